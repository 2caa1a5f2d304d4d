/* Tests that every preset named after a library gives the bytes of that library. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/ref.h"
#include "lib/peers.h"
#include "lib/run.h"

static const char *folder(void) { return getenv("PEERS") ? getenv("PEERS") : "tests/peers"; }

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Lists the files of block quantisers, sorted by name; test_casts reads those of casts, which have no codes. */
static size_t list(char *names[256]) {
  DIR *d = opendir(folder());
  ck_assert_msg(d != NULL, "cannot open %s", folder());
  size_t n = 0;
  for (struct dirent *e; (e = readdir(d)) && n < 256;) {
    const size_t length = strlen(e->d_name);
    if (length > 12 && !strcmp(e->d_name + length - 12, ".safetensors")) names[n++] = strndup(e->d_name, length - 12);
  }
  closedir(d);
  qsort(names, n, sizeof *names, by_name);
  return n;
}

static void all(peer_quantize *quantize, const char *who) {
  static const char *others[] = {"amd_host", "cuda_host", "ml_dtypes", "torch", "gfloat-sr", "values"};
  char *names[256], path[512], why[256];
  const size_t n = list(names);
  peer_count total = {0};
  size_t presets = 0;
  for (size_t i = 0; i < n; i++) {
    int other = 0;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) other |= !strcmp(names[i], others[k]);
    if (!other) {
      peer_count c = {0};
      snprintf(path, sizeof path, "%s/%s.safetensors", folder(), names[i]);
      ck_assert_msg(peers_compare(&c, path, names[i], quantize, why) == 0, "%s: %s", names[i], why);
      if (getenv("PEERS_TABLE")) printf("| %s | %zu | %zu | %s |\n", names[i], c.bytes, c.codes + c.scales + c.tensor_scales, c.table);
      ck_assert_msg(c.codes + c.scales + c.tensor_scales == 0, "%s: %zu codes, %zu scales, %zu tensor scales differ", names[i], c.codes,
                    c.scales, c.tensor_scales);
      total.bytes += c.bytes;
      total.suites += c.suites;
      presets++;
    }
    free(names[i]);
  }
  printf("peers: %s: %zu presets, %zu suites, %zu bytes compared, 0 differ\n", who, presets, total.suites, total.bytes);
  if (!getenv("PEERS")) ck_assert_uint_eq(presets, 118);
}

START_TEST(production_gives_every_librarys_bytes) { all(mx_quantize, "library"); }
END_TEST

START_TEST(reference_gives_every_librarys_bytes) { all(ref_quantize, "reference"); }
END_TEST

typedef mx_status reader(float *, size_t, const mx_tensor *, const mx_spec *, const mx_exec *);

/* How many values of x, quantised and dequantised, differ from those of a library. A zero that lost its sign counts (Model-Optimizer). */
static size_t values_differ(const char *preset, int order, const mx_array *x, const mx_array *want, peer_quantize *quantize,
                            reader *dequantize) {
  mx_spec spec;
  mx_tensor t;
  const size_t rows = x->shape[0], cols = x->shape[1], n = rows * cols;
  float *in = malloc(4 * n), *library = malloc(4 * n), *y = malloc(4 * n);
  memcpy(in, x->data, 4 * n); /* the file promises no alignment */
  memcpy(library, want->data, 4 * n);
  ck_assert_int_eq(mx_preset_find(&spec, preset, NULL), MX_OK);
  ck_assert_int_eq(spec.deq_arith, MX_DEQ_ARITH_EXACT); /* golden/HASHES has the values for the others */
  spec.deq_arith = order;
  ck_assert_int_eq(mx_tensor_alloc(&t, rows, cols, &spec), MX_OK);
  ck_assert_int_eq(quantize(&t, in, rows, cols, cols, &spec, NULL, NULL), MX_OK);
  ck_assert_int_eq(dequantize(y, cols, &t, &spec, NULL), MX_OK);
  size_t differ = 0;
  for (size_t i = 0; i < n; i++) differ += memcmp(y + i, library + i, 4) && (y[i] != 0 || library[i] != 0);
  mx_tensor_free(&t);
  free(in);
  free(library);
  free(y);
  return differ;
}

/* docs/reference/PRESETS.md says under which deq.arith these presets give the values that their library computes from its codes; no other
 * order does. */
START_TEST(values_of_libraries_under_a_tensor_scale) {
  char path[512];
  mx_error err;
  mx_file *f;
  size_t presets = 0, values = 0;
  snprintf(path, sizeof path, "%s/values.safetensors", folder());
  const int failed = mx_file_open(&f, path, &err);
  if (failed && getenv("PEERS")) return; /* another folder may have no such files */
  ck_assert_msg(!failed, "%s", err.text);
  for (size_t i = 0; i < mx_file_count(f); i++) {
    const mx_array *want = mx_file_at(f, i), *x;
    const char *dot = strrchr(want->name, '.');
    char preset[64], name[80];
    if (!dot || strcmp(dot, ".values")) continue;
    snprintf(preset, sizeof preset, "%.*s", (int)(dot - want->name), want->name);
    snprintf(name, sizeof name, "%s.x", preset);
    ck_assert_int_eq(mx_file_find(&x, f, name, NULL), MX_OK);
    ck_assert(x->n_bytes == want->n_bytes && x->n_values * 4 == x->n_bytes);
    size_t n[MX_DEQ_ARITH_COUNT];
    for (int order = 0; order < MX_DEQ_ARITH_COUNT; order++) {
      n[order] = values_differ(preset, order, x, want, mx_quantize, mx_dequantize);
      ck_assert_uint_eq(n[order], values_differ(preset, order, x, want, ref_quantize, ref_dequantize));
    }
    if (getenv("PEERS_TABLE"))
      printf("| %s | %zu values | exact %zu, two_step %zu, scale_first %zu differ |\n", preset, x->n_values, n[0], n[1], n[2]);
    ck_assert_msg(n[MX_DEQ_ARITH_SCALE_FIRST] == 0, "%s: %zu of %zu values differ", preset, n[MX_DEQ_ARITH_SCALE_FIRST], x->n_values);
    ck_assert_msg(getenv("PEERS") || (n[MX_DEQ_ARITH_EXACT] && n[MX_DEQ_ARITH_TWO_STEP]), "%s: its values tell no order from another", preset);
    presets++;
    values += x->n_values;
  }
  mx_file_close(f);
  printf("peers: values of %zu presets, %zu, as deq.arith=scale_first has them\n", presets, values);
  if (!getenv("PEERS")) ck_assert_uint_eq(presets, 5);
}
END_TEST

int main(void) {
  Suite *s = suite_create("peers");
  TCase *t = tcase_create("bytes");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, production_gives_every_librarys_bytes);
  tcase_add_test(t, reference_gives_every_librarys_bytes);
  tcase_add_test(t, values_of_libraries_under_a_tensor_scale);
  suite_add_tcase(s, t);
  return run_suite(s);
}
