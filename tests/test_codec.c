/* Tests mx_encode and mx_decode of single values against ref/, for every format, rounding, overflow and NaN choice, and stochastic rounding
 * in every mode. */
#include <check.h>
#include <dirent.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/ref.h"
#include "lib/checkasm.h"
#include "lib/run.h"
#include "lib/units.h"
#include "mxgold/mxgold.h"

static const mx_format *format_at(int i) { return i < MX_ELEM_COUNT ? mx_elem_format(i) : mx_scale_format(i - MX_ELEM_COUNT); }
static const mx_format *ref_format_at(int i) { return i < MX_ELEM_COUNT ? ref_elem_format(i) : ref_scale_format(i - MX_ELEM_COUNT); }
enum { N_FORMATS = MX_ELEM_COUNT + MX_SCALE_COUNT };

/* These formats take part in `make exhaustive` too; here there are also values that no float has. */
static int is_code(const mx_format *f) { return f->kind != MX_KIND_NONE && f->bits <= 16; }

static void same(const mx_format *f, const mx_format *r, double x, const mx_encoding *how, uint32_t random) {
  const uint64_t got = mx_encode(f, x, how, random), want = ref_encode(r, x, how, random);
  ck_assert_msg(got == want, "%s, round %d, overflow %d, nan %d, sr %d of %d bits, random %u: %a gives %llx, reference %llx", f->name,
                how->round, how->overflow, how->nan, how->sr_mode, how->sr_bits, random, x, (unsigned long long)got, (unsigned long long)want);
}

/* The values of all codes, their midpoints, points a quarter of a step from those, and neighbours of all these in binary32 and binary64; and
 * the numbers that rounding twice gets wrong. */
static size_t points(double *out, const mx_format *f) {
  size_t n = 0;
  const uint32_t codes = f->bits > 8 ? 600 : 1u << f->bits;
  for (uint32_t c = 0; c < codes; c++) {
    const double unsigned_too = !f->sign_bits && c % 3 == 0 ? -1 : 1; /* the sign is dropped before rounding */
    const double a = unsigned_too * mx_decode(f, c), b = unsigned_too * mx_decode(f, (c + 1) & (codes - 1));
    if (!isfinite(a)) continue;
    const double middle = isfinite(b) ? a / 2 + b / 2 : a * 1.0625, at[] = {a, middle, a / 2 + middle / 2, middle / 2 + b / 2};
    for (int k = 0; k < 4; k++) {
      if (!isfinite(at[k])) continue;
      const float single = (float)at[k];
      out[n++] = at[k];
      out[n++] = nextafter(at[k], INFINITY);
      out[n++] = nextafter(at[k], -INFINITY);
      out[n++] = (double)nextafterf(single, INFINITY);
      out[n++] = (double)nextafterf(single, -INFINITY);
    }
  }
  static const double more[] = {0, -0.0, INFINITY, -INFINITY, 0x1p-149, -0x1p-149, 0x1p-1074, 0x1.fffffep127, 0x1p128, -0x1p300};
  for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) out[n++] = more[i];
  out[n++] = (double)NAN;
  out[n++] = -(double)NAN;
  return n;
}

START_TEST(every_rounding_overflow_and_nan) {
  const mx_format *f = format_at(_i), *r = ref_format_at(_i);
  if (!is_code(f)) return;
  double *x = calloc(20 * 1024 + 16, sizeof *x);
  const size_t n = points(x, f);
  for (int round = 0; round < MX_ROUND_SCAN_Y; round++)
    for (int overflow = 0; overflow <= MX_OVERFLOW_IEEE; overflow++)
      for (int nan = 0; nan < MX_ELEM_NAN_ERROR; nan++) {
        if (round == MX_ROUND_SR || (nan && (round || overflow))) continue;
        const mx_encoding how = {.round = round, .overflow = overflow, .nan = nan, .nan_code = 1};
        for (size_t i = 0; i < n; i++) {
          const int twice = round == MX_ROUND_RNA_F32 || round == MX_ROUND_RNE_F32;
          same(f, r, twice ? (double)(float)x[i] : x[i], &how, 0); /* these roundings are defined on binary32 */
        }
      }
  free(x);
}
END_TEST

/* All random integers of up to six bits at all points, and some with more bits. */
START_TEST(stochastic_in_every_mode) {
  const mx_format *f = format_at(_i), *r = ref_format_at(_i);
  if (!is_code(f) || f->bits > 8) return;
  double *x = calloc(20 * 1024 + 16, sizeof *x);
  const size_t n = points(x, f), step = n > 400 ? n / 400 : 1;
  for (int mode = 0; mode < MX_SR_COUNT; mode++)
    for (int bits = 1; bits <= 24; bits += bits < 6 ? 1 : 9)
      for (size_t i = 0; i < n; i += step)
        for (uint32_t k = 0; k < (bits > 6 ? 16u : 1u << bits); k++) {
          const mx_encoding how = {.round = MX_ROUND_SR, .sr_mode = mode, .sr_bits = bits};
          same(f, r, x[i], &how, bits > 6 ? k * 0x9E3779B9u >> (32 - bits) : k);
        }
  free(x);
}
END_TEST

START_TEST(every_code_decodes_alike) {
  const mx_format *f = format_at(_i), *r = ref_format_at(_i);
  if (!is_code(f)) return;
  for (uint32_t c = 0; c < 1u << f->bits; c++) {
    const double a = mx_decode(f, c), b = ref_decode(r, c);
    ck_assert_msg(isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b), "%s: code %x is %a, reference %a", f->name, c, a, b);
  }
}
END_TEST

/* Whole numbers of matrix units, signed and unsigned: arrays give the same as single values, and those the same as the reference. */
START_TEST(whole_numbers) {
  static const char *const names[] = {"u8", "s8", "u4", "s4"};
  enum { N = 2048 };
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const mx_format *f = mx_format_find(names[k]);
    static float x[N];
    static uint8_t codes[N];
    const mx_encoding how = {0};
    for (int i = 0; i < N; i++) x[i] = (float)(i - N / 2) / 4;
    mx_encode_array(codes, x, N, f, &how, NULL);
    for (int i = 0; i < N; i++) {
      const uint64_t one = mx_encode(f, (double)x[i], &how, 0);
      ck_assert_msg(codes[i] == one, "%s: %g is %u in an array, %u alone", names[k], (double)x[i], codes[i], (unsigned)one);
    }
    for (uint64_t c = 0; c >> f->bits == 0; c++)
      ck_assert_msg(ref_decode(f, c) == mx_decode(f, c), "%s: code %u is %g, reference %g", names[k], (unsigned)c, mx_decode(f, c),
                    ref_decode(f, c));
  }
}
END_TEST

/* mx_encoder_run passes arrays to the vector kernels if it can, for each preset of each format, and must not overlook any key. */
START_TEST(arrays_of_an_encoder_are_its_single_values) {
  enum { N = 3000 };
  const char *keys[] = {"",
                        "scale.negative=nan",
                        "scale.subnormal=encoding elem.round=rna",
                        "elem.round=rna_f32 elem.zero_sign=force",
                        "elem.overflow=wrap_negzero",
                        "elem.round=sr sr.mode=src seed=7"};
  const char *preset = _i ? mx_encoder_preset((size_t)_i - 1) : NULL;
  static float x[N];
  static uint8_t codes[N];
  const char *name;
  checkasm_fill(x, N, 2);
  for (int i = 0; i < N; i += 5) { /* subnormals, powers of two, far numbers */
    uint32_t bits = (uint32_t)i * 2654435761u;
    if (i % 2) bits >>= 8;
    memcpy(x + i, &bits, sizeof bits);
  }
  for (size_t f = 0; (name = mx_encoder_format_name(f)); f++)
    for (size_t k = 0; k < sizeof keys / sizeof *keys + 2; k++) {
      const mx_format *format;
      mx_encoder e;
      mx_spec spec = {0};
      uint64_t refused = 0;
      ck_assert(!mx_encoder_format(&format, name, NULL) && !mx_encoder_keys(&spec, preset, name, NULL));
      if (k < sizeof keys / sizeof *keys && mx_spec_parse(&spec, keys[k], NULL)) continue;
      if (mx_encoder_init(&e, format, &spec, NULL)) continue;
      if (e.how.nan == MX_ELEM_NAN_ERROR) e.how.nan = MX_ELEM_NAN_SIGNMAX; /* the data have NaN */
      if (k == sizeof keys / sizeof *keys) e.scale_exp = 3;
      if (k > sizeof keys / sizeof *keys) e.scale_is_nan = 1;
      ck_assert(!mx_encoder_run(codes, x, 11, N, &e, NULL, &refused));
      for (int i = 0; i < N; i++) {
        const int bits = e.how.sr_bits ? e.how.sr_bits : 16;
        const uint32_t random = e.how.round == MX_ROUND_SR ? mx_random(e.seed, MX_STREAM_ELEMENT, 11 + (uint64_t)i) >> (32 - bits) : 0;
        const uint8_t want = mx_encoder_code(&e, x[i], random);
        ck_assert_msg(codes[i] == want, "%s, preset %d, keys %zu: %a is %02x, one by one %02x", name, _i, k, (double)x[i], codes[i], want);
      }
    }
}
END_TEST

static int n_threads_alive(void) {
  DIR *d = opendir("/proc/self/task");
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
  if (d) closedir(d);
  return n;
}

/* Starting threads costs more than a thousand values do, and on a busy machine a hundred times more. */
START_TEST(little_work_starts_no_thread) {
  enum { N = 1 << 10 };
  static float x[N], y[N];
  uint8_t codes[N];
  mx_tensor t;
  mx_spec spec;
  const int before = n_threads_alive();
  omp_set_num_threads(4);
  ck_assert(!mx_preset_find(&spec, "te-nvfp4", NULL) && !mx_tensor_alloc(&t, 32, 32, &spec));
  checkasm_fill(x, N, 0);
  ck_assert(!mx_quantize(&t, x, 32, 32, 32, &spec, NULL, NULL) && !mx_dequantize(y, 32, &t, &spec, NULL));
  mx_tensor_free(&t);
  const mx_encoding how = {0};
  mx_encode_array(codes, x, N, mx_elem_format(MX_ELEM_E4M3), &how, NULL);
  mx_decode_array(y, codes, N, mx_elem_format(MX_ELEM_E4M3), NULL);
  mx_hadamard(y, 32, x, 32, 32, 32, 16, MX_HAD_SIGN_NONE, NULL, 0);
  ck_assert_int_eq(n_threads_alive(), before);
}
END_TEST

/* Rotates rows of every kind of value, including Inf and NaN, back in place and into another buffer, with each kind of signs and each size,
 * as the reference does. */
START_TEST(hadamard_back_is_the_references) {
  enum { ROWS = 3, COLS = 2048, LD = COLS + 5 };
  static float x[ROWS * LD], want[ROWS * LD], y[ROWS * LD];
  static const uint8_t signs[16] = {0xD2, 0x51, 0x0F, 0xEE, 0x33, 0x80, 0x01, 0xC7, 0x5A, 0x99, 0xFE, 0x10, 0x6B, 0xA4, 0x3D, 0x77};
  for (unsigned size = 2; size <= 1024; size *= 2)
    for (int sign = 0; sign < MX_HAD_SIGN_COUNT; sign++) {
      checkasm_fill(x, ROWS * LD, (int)(size / 2 + (unsigned)sign) % 5);
      x[7] = INFINITY, x[LD + 9] = NAN;
      memset(want, 0, sizeof want);
      memset(y, 0, sizeof y);
      ck_assert_int_eq(ref_hadamard_back(want, LD, x, ROWS, COLS, LD, size, sign, signs, 11), MX_OK);
      ck_assert_int_eq(mx_hadamard_back(y, LD, x, ROWS, COLS, LD, size, sign, signs, 11), MX_OK);
      ck_assert_msg(!memcmp(y, want, sizeof y), "size %u, signs %d", size, sign);
      for (int r = 0; r < ROWS; r++) memset(x + r * LD + COLS, 0, (LD - COLS) * sizeof *x);
      ck_assert_int_eq(mx_hadamard_back(x, LD, x, ROWS, COLS, LD, size, sign, signs, 11), MX_OK);
      ck_assert_msg(!memcmp(x, want, sizeof x), "in place, size %u, signs %d", size, sign);
    }
  ck_assert_int_eq(mx_hadamard_back(y, LD, x, 1, 24, LD, 16, MX_HAD_SIGN_NONE, NULL, 0), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_hadamard_back(y, LD, x, 1, 24, LD, 24, MX_HAD_SIGN_NONE, NULL, 0), MX_ERR_ARG);
  ck_assert_int_eq(mx_hadamard_back(y, LD, x, 1, 16, LD, 16, MX_HAD_SIGN_FIXED, NULL, 0), MX_ERR_ARG);
}
END_TEST

/* The text of golden/HASHES, which ref/ wrote. */
typedef struct hashes {
  char text[1 << 20]; /* more than the file needs */
  size_t held;
} hashes;

static void hold_line(void *to, const char *operation, const char *name, const char *inputs, const void *data, size_t n) {
  hashes *h = to;
  char line[200];
  mx_digest(line, data, n);
  snprintf(line + 32, sizeof line - 32, " %s %s %s ", operation, name, inputs);
  ck_assert_msg(strstr(h->text, line) != NULL, "golden/HASHES has no line '%s'", line);
  h->held++;
}

START_TEST(golden_lines_of_single_operations) {
  static hashes h;
  static const unit_ops by_library = {mx_encode, mx_decode, mx_hadamard, mx_layout_size, mx_layout_pack};
  FILE *f = fopen("golden/HASHES", "r");
  ck_assert(f != NULL);
  h.text[fread(h.text, 1, sizeof h.text - 1, f)] = 0;
  fclose(f);
  units_each(hold_line, &h, &by_library);
  ck_assert_uint_gt(h.held, 200);
}
END_TEST

/* Every upper half of a binary32, with lower halves around each place where bfloat16 and binary16 round. */
START_TEST(checkpoint_dtypes_round_as_encode) {
  static const uint16_t lower[] = {0,      1,      0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001,
                                   0x7FFF, 0x8000, 0x8001, 0xEFFF, 0xF000, 0xF001, 0xFFFF};
  enum { N = sizeof lower / sizeof lower[0] };
  static const mx_encoding nearest = {0}; /* which saturates */
  for (uint32_t upper = 0; upper < 1 << 16; upper++) {
    float x[N];
    uint16_t bf16[N], f16[N];
    for (size_t i = 0; i < N; i++) memcpy(&x[i], &(uint32_t){upper << 16 | lower[i]}, sizeof x[i]);
    mx_narrow(bf16, x, N, MX_BF16, 1);
    mx_narrow(f16, x, N, MX_F16, 1);
    for (size_t i = 0; i < N; i++) {
      const mx_format *b = mx_operand_format(MX_OPERAND_BF16), *h = mx_operand_format(MX_OPERAND_F16);
      if (isnan(x[i])) {
        ck_assert(mx_format_is_nan(b, bf16[i] & 0x7FFF) && mx_format_is_nan(h, f16[i] & 0x7FFF));
        continue;
      }
      if (isinf(x[i])) { /* it stays Inf */
        ck_assert_uint_eq(bf16[i] & 0x7FFF, b->inf_code);
        ck_assert_uint_eq(f16[i] & 0x7FFF, h->inf_code);
        continue;
      }
      ck_assert_msg(bf16[i] == mx_encode(b, (double)x[i], &nearest, 0), "bf16 of %a is %04x", (double)x[i], bf16[i]);
      ck_assert_msg(f16[i] == mx_encode(h, (double)x[i], &nearest, 0), "f16 of %a is %04x", (double)x[i], f16[i]);
    }
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("codec");
  TCase *t = tcase_create("values");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, every_rounding_overflow_and_nan, 0, N_FORMATS);
  tcase_add_loop_test(t, stochastic_in_every_mode, 0, N_FORMATS);
  tcase_add_loop_test(t, every_code_decodes_alike, 0, N_FORMATS);
  int presets = 0;
  while (mx_encoder_preset((size_t)presets)) presets++;
  tcase_add_loop_test(t, arrays_of_an_encoder_are_its_single_values, 0, presets + 1);
  tcase_add_test(t, whole_numbers);
  tcase_add_test(t, checkpoint_dtypes_round_as_encode);
  tcase_add_test(t, little_work_starts_no_thread);
  tcase_add_test(t, hadamard_back_is_the_references);
  tcase_add_test(t, golden_lines_of_single_operations);
  suite_add_tcase(s, t);
  return run_suite(s);
}
