/* Tests single values under the casts of libraries: every array of tests/peers' casters, bit for bit (SPEC 2; PEERS.md 2.3). */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/run.h"
#include "mxgold/mxgold.h"

/* One array: the settings of the encoder, and the bytes that the library gave. */
typedef struct cast {
  char format[16], round[8], overflow[16], mode[16];
  int scale_exp, scale_is_nan, n_bits; /* n_bits 0: no random integers */
} cast;

/* "e2m1_rn_satfinite" */
static int of_cuda(cast *c, const char *key) {
  char round[8], how[16];
  if (sscanf(key, "%15[a-z0-9]_%7[a-z]_%15s", c->format, round, how) != 3) return 0;
  snprintf(c->round, sizeof c->round, "%s", !strcmp(round, "rn") ? "rne" : !strcmp(round, "rz") ? "rtz" : "rtp");
  snprintf(c->overflow, sizeof c->overflow, "%s", !strcmp(how, "satfinite") ? "saturate" : "ieee");
  return 1;
}

/* "e4m3mx_sat_sr_s-3", or "e4m3_sat_sr_s0" from the header's unscaled function: the same rule, the same bytes. s-128 is a NaN scale. */
static int of_amd(cast *c, const char *key) {
  char how[16];
  if (sscanf(key, "%15[a-z0-9]_%15[a-z]_%7[a-z]_s%d", c->format, how, c->round, &c->scale_exp) != 4) return 0;
  char *mx = strstr(c->format, "mx");
  if (mx) *mx = 0;
  snprintf(c->overflow, sizeof c->overflow, "%s", !strcmp(how, "sat") ? "saturate" : "ieee");
  if ((c->scale_is_nan = c->scale_exp == -128)) c->scale_exp = 0;
  if (!strcmp(c->round, "sr")) c->n_bits = 32;
  return 1;
}

/* "float8_e4m3fn" */
static int of_dtype(cast *c, const char *key) {
  if (sscanf(key, "float%*d_%4s", c->format) != 1) return 0;
  return 1;
}

/* "fastest16"; bits16 holds its integers. */
static int of_gfloat(cast *c, const char *key) {
  if (!strncmp(key, "bits", 4) || sscanf(key, "%15[a-z]%d", c->mode, &c->n_bits) != 2) return 0;
  snprintf(c->format, sizeof c->format, "e2m1");
  snprintf(c->round, sizeof c->round, "sr");
  return 1;
}

static const struct library {
  const char *preset, *file, *prefix;
  int (*parse)(cast *c, const char *key);
  size_t n_arrays;
} libraries[] = {
    {"cuda-host", "cuda_host", "elementwise.", of_cuda, 14}, {"amd-host", "amd_host", "elementwise.", of_amd, 51},
    {"ml-dtypes", "ml_dtypes", "elementwise.", of_dtype, 6}, {"torch", "torch", "elementwise.", of_dtype, 3},
    {"gfloat", "gfloat-sr", "data.", of_gfloat, 20},
};
enum { N_LIBRARIES = sizeof libraries / sizeof libraries[0] };

static void set(mx_spec *spec, const char *key, const char *value) {
  if (*value) ck_assert_int_eq(mx_spec_set(spec, key, value, NULL), MX_OK);
}

static void compare(const struct library *l, const cast *c, const char *key, const mx_array *x, const mx_array *want, const mx_array *bits) {
  mx_spec spec = {0};
  mx_encoder e;
  const mx_format *f;
  const size_t n = (size_t)x->n_values;
  ck_assert_int_eq(mx_encoder_format(&f, c->format, NULL), MX_OK);
  ck_assert_int_eq(mx_encoder_keys(&spec, l->preset, c->format, NULL), MX_OK);
  set(&spec, "elem.round", c->round);
  set(&spec, "elem.overflow", c->overflow);
  set(&spec, "sr.mode", c->mode);
  ck_assert_int_eq(mx_encoder_init(&e, f, &spec, NULL), MX_OK);
  e.scale_exp = c->scale_exp;
  e.scale_is_nan = c->scale_is_nan;
  if (!e.how.sr_bits) e.how.sr_bits = c->n_bits;
  float *values = malloc(n * sizeof *values);
  uint32_t *random = calloc(n, sizeof *random);
  uint8_t *got = malloc(n);
  mx_array_read_f32(values, x, 0, n, 0);
  for (size_t i = 0; c->n_bits && i < n; i++) {
    memcpy(&random[i], bits->data + i * mx_dtype_bytes(bits->dtype), mx_dtype_bytes(bits->dtype));
    random[i] >>= c->n_bits - e.how.sr_bits;
  }
  ck_assert_int_eq(mx_encoder_run(got, values, 0, n, &e, c->n_bits ? random : NULL, NULL), MX_OK);
  size_t first = 0;
  while (first < n && got[first] == want->data[first]) first++;
  if (first < n)
    ck_abort_msg("%s %s: %a gives 0x%02X, the library 0x%02X", l->preset, key, (double)values[first], got[first], want->data[first]);
  free(values);
  free(random);
  free(got);
}

START_TEST(every_array) {
  const struct library *l = &libraries[_i];
  char path[512], name[64];
  mx_file *file;
  const mx_array *x, *bits = NULL;
  size_t n_arrays = 0;
  snprintf(path, sizeof path, "%s/%s.safetensors", getenv("PEERS") ? getenv("PEERS") : "tests/peers", l->file);
  if (getenv("PEERS") && access(path, R_OK)) return; /* `make peers` runs only the libraries that are installed */
  ck_assert_int_eq(mx_file_open(&file, path, NULL), MX_OK);
  snprintf(name, sizeof name, "%sx", l->prefix);
  ck_assert_int_eq(mx_file_find(&x, file, name, NULL), MX_OK);
  for (size_t i = 0; i < mx_file_count(file); i++) {
    const mx_array *want = mx_file_at(file, i);
    const char *key = want->name + strlen(l->prefix);
    cast c = {0};
    if (!l->parse(&c, key)) continue;
    if (c.n_bits) {
      snprintf(name, sizeof name, c.n_bits == 32 ? "%sseed" : "%sbits%d", l->prefix, c.n_bits);
      ck_assert_int_eq(mx_file_find(&bits, file, name, NULL), MX_OK);
    }
    compare(l, &c, key, x, want, bits);
    n_arrays++;
  }
  ck_assert_uint_eq(n_arrays, l->n_arrays);
  mx_file_close(file);
}
END_TEST

/* Every row of encoders.def has keys that exist and a format that encode takes. */
START_TEST(rows) {
  const mx_encoder_row *r;
  for (size_t i = 0; (r = mx_encoder_row_at(i)); i++) {
    mx_spec spec = {0};
    const mx_format *f;
    ck_assert_int_eq(mx_spec_parse(&spec, r->keys, NULL), MX_OK);
    ck_assert(!strcmp(r->format, "any") || mx_encoder_format(&f, r->format, NULL) == MX_OK);
  }
  mx_spec spec = {0};
  mx_error err;
  ck_assert_int_eq(mx_encoder_keys(&spec, "tourch", "e2m1", &err), MX_ERR_KEY);
  ck_assert_str_eq(err.text, "preset 'tourch' of encode is unknown, nearest: torch");
}
END_TEST

/* What the stored inputs do not cover: unsigned formats without a preset, refused NaN, and Philox by index whatever the pieces. */
START_TEST(unsigned_formats) {
  const mx_encoding ieee = {.overflow = MX_OVERFLOW_IEEE};
  mx_encoder e = {.format = mx_format_find("ue5m3"), .how = ieee};
  ck_assert_uint_eq(mx_encoder_code(&e, -1, 0), mx_encoder_code(&e, 1, 0));
  ck_assert_uint_eq(mx_encoder_code(&e, -0.0f, 0), 0);
  e.negative = MX_NEGATIVE_NAN;
  ck_assert_uint_eq(mx_encoder_code(&e, -1, 0), 0xFF);
  ck_assert_uint_eq(mx_encoder_code(&e, -0.0f, 0), 0);
  ck_assert_uint_eq(mx_encoder_code(&e, 122880, 0), 0xFF);
  e.how.nan = MX_ELEM_NAN_ERROR;
  const float x[3] = {1, 2, NAN};
  uint8_t out[3] = {7, 7, 7};
  uint64_t refused = 0;
  ck_assert_int_eq(mx_encoder_run(out, x, 10, 3, &e, NULL, &refused), MX_ERR_DATA);
  ck_assert_uint_eq(refused, 12);
  ck_assert_uint_eq(out[0], 7);
}
END_TEST

START_TEST(pieces) {
  enum { N = 1000 };
  mx_encoder e = {.format = mx_format_find("e2m1"), .how = {.round = MX_ROUND_SR, .sr_bits = 8}, .seed = 5};
  float x[N];
  uint8_t whole[N], parts[N];
  for (int i = 0; i < N; i++) x[i] = (float)i / 200;
  mx_encoder_run(whole, x, 0, N, &e, NULL, NULL);
  for (size_t i = 0; i < N; i += 37) mx_encoder_run(parts + i, x + i, i, N - i < 37 ? N - i : 37, &e, NULL, NULL);
  ck_assert_mem_eq(whole, parts, N);
}
END_TEST

int main(void) {
  Suite *s = suite_create("casts");
  TCase *t = tcase_create("casts");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, every_array, 0, N_LIBRARIES);
  tcase_add_test(t, rows);
  tcase_add_test(t, unsigned_formats);
  tcase_add_test(t, pieces);
  suite_add_tcase(s, t);
  return run_suite(s);
}
