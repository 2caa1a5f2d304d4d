/* Tests what TECHNIQUES section 6 requires of quantisers and the other suites do not have, with a test for each row: T5, T8 to T11 and T28
 * to T30. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/ref.h"
#include "lib/run.h"
#include "mxgold/mxgold.h"

static mx_spec spec_of(const char *preset, const char *keys) {
  mx_spec spec = {0};
  mx_error err;
  if (preset) ck_assert_msg(!mx_preset_find(&spec, preset, &err), "%s", err.text);
  ck_assert_msg(!mx_spec_parse(&spec, keys, &err), "%s", err.text);
  ck_assert_msg(!mx_spec_check(&spec, &err), "%s", err.text);
  return spec;
}

static mx_tensor quantized(const mx_spec *spec, const float *x, size_t rows, size_t cols) {
  mx_tensor t;
  ck_assert_int_eq(mx_tensor_alloc(&t, rows, cols, spec), MX_OK);
  ck_assert_int_eq(mx_quantize(&t, x, rows, cols, cols, spec, NULL, NULL), MX_OK);
  return t;
}

static float *gaussian(size_t n, uint64_t seed) {
  float *x = malloc(n * sizeof *x);
  for (size_t i = 0; i < n; i++) {
    const double u = (mx_random(seed, MX_STREAM_DATA, 2 * i) + 0.5) / 0x1p32, v = mx_random(seed, MX_STREAM_DATA, 2 * i + 1) / 0x1p32;
    x[i] = (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
  }
  return x;
}

/* Signal to quantisation noise in dB. */
static double sqnr(const mx_spec *spec, const float *x, size_t rows, size_t cols) {
  float *y = malloc(rows * cols * sizeof *y);
  mx_tensor t = quantized(spec, x, rows, cols);
  double signal = 0, noise = 0;
  ck_assert_int_eq(mx_dequantize(y, cols, &t, spec, NULL), MX_OK);
  for (size_t i = 0; i < rows * cols; i++) {
    signal += (double)x[i] * (double)x[i];
    noise += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
  }
  mx_tensor_free(&t);
  free(y);
  return 10 * log10(signal / noise);
}

/* T5, T28 and the others of TECHNIQUES 1.6, 4.3, 4.9: dB on N(0, 1). */
START_TEST(signal_to_noise_on_a_gaussian) {
  enum { ROWS = 512, COLS = 1024 };
  static const struct {
    const char *preset, *keys;
    double db;
  } rows[] = {{NULL, "scale.rule=value scale.round=up", 18.74},
              {NULL, "scale.rule=value", 17.60},
              {NULL, "scale.rule=value scale.round=down", 13.86},
              {NULL, "scale.rule=value scale.form=encode scale.round=up", 13.86},
              {NULL, "scale.rule=value scale.form=encode", 18.79},
              {NULL, "scale.rule=value scale.form=encode scale.round=down", 18.74},
              {NULL, "", 18.79},
              {"te-nvfp4", "", 20.43},
              {"te-nvfp4-2d", "", 19.06},
              {"hif4", "", 21.62}};
  float *x = gaussian(ROWS * COLS, 4);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const mx_spec spec = spec_of(rows[i].preset, rows[i].keys);
    const double db = sqnr(&spec, x, ROWS, COLS);
    ck_assert_msg(fabs(db - rows[i].db) < .05, "%s %s: %.3f dB, expected %.2f", rows[i].preset ? rows[i].preset : "", rows[i].keys, db,
                  rows[i].db);
  }
  free(x);
}
END_TEST

/* T8: a tensor times 2^k has the same codes and block scales, since its tensor scale takes the whole factor. */
START_TEST(two_levels_take_a_power_of_two) {
  enum { N = 32 * 256 };
  static const char *const names[] = {"te-nvfp4", "te-4over6-mse-256"};
  float *x = gaussian(N, 5), y[256], z[256];
  for (size_t n = 0; n < 2; n++) {
    const mx_spec spec = spec_of(names[n], "");
    mx_tensor t = quantized(&spec, x, 32, 256);
    for (int k = -20; k <= 20; k += 5) {
      float *scaled = malloc(N * sizeof *scaled);
      for (size_t i = 0; i < N; i++) scaled[i] = ldexpf(x[i], k);
      mx_tensor u = quantized(&spec, scaled, 32, 256);
      ck_assert(!memcmp(t.codes, u.codes, t.rows * t.code_stride) && !memcmp(t.scales, u.scales, t.scale_rows * t.scale_cols));
      const mx_tensor a = mx_tensor_rows(&t, 0, 1, 1), b = mx_tensor_rows(&u, 0, 1, 1);
      ck_assert_int_eq(mx_dequantize(y, 256, &a, &spec, NULL) | mx_dequantize(z, 256, &b, &spec, NULL), MX_OK);
      for (size_t i = 0; i < 256; i++) ck_assert(ldexpf(y[i], k) == z[i]);
      mx_tensor_free(&u);
      free(scaled);
    }
    mx_tensor_free(&t);
  }
  free(x);
}
END_TEST

/* T9: square blocks of the transpose are the transpose of the blocks; blocks of a row are not. */
START_TEST(square_blocks_transpose) {
  enum { ROWS = 48, COLS = 80 };
  float *x = gaussian(ROWS * COLS, 6);
  static const struct {
    const char *preset, *keys;
    int same;
  } cases[] = {{"te-nvfp4-2d", "", 1}, {NULL, "block=16x16 scale.rule=even", 1}, {NULL, "block=8x8 elem=e4m3", 1}, {NULL, "block=1x16", 0}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const mx_spec spec = spec_of(cases[n].preset, cases[n].keys);
    mx_tensor t = quantized(&spec, x, ROWS, COLS), turned;
    float y[ROWS * COLS], z[ROWS * COLS];
    ck_assert_int_eq(mx_tensor_alloc(&turned, COLS, ROWS, &spec), MX_OK);
    ck_assert_int_eq(mx_quantize_transposed(&turned, x, ROWS, COLS, COLS, &spec, NULL, NULL), MX_OK);
    ck_assert_int_eq(mx_dequantize(y, COLS, &t, &spec, NULL) | mx_dequantize(z, ROWS, &turned, &spec, NULL), MX_OK);
    size_t differ = 0;
    for (size_t r = 0; r < ROWS; r++)
      for (size_t c = 0; c < COLS; c++) differ += y[r * COLS + c] != z[c * ROWS + r];
    ck_assert_msg(cases[n].same ? differ == 0 : differ > 0, "case %zu: %zu values differ", n, differ);
    mx_tensor_free(&t);
    mx_tensor_free(&turned);
  }
  free(x);
}
END_TEST

/* T10, T29: the table of TECHNIQUES 4.10b, over d = k / 4096 and all integers: mean of P(up) - d, and its largest magnitude. */
START_TEST(few_random_bits) {
  enum { GRID = 4096 };
  static const struct {
    int mode, bits;
    double mean, most;
  } rows[] = {{MX_SR_FASTEST, 1, -.249878, .499756},
              {MX_SR_FASTEST, 2, -.124878, .249756},
              {MX_SR_FASTEST, 4, -.031128, .062256},
              {MX_SR_FASTEST, 8, -.001831, .003662},
              {MX_SR_FAST, 1, .000122, .25},
              {MX_SR_FAST, 2, .000122, .125},
              {MX_SR_FAST, 4, .000122, .03125},
              {MX_SR_FAST, 8, .000122, .001953125},
              {MX_SR_SRC, 1, 0, .25},
              {MX_SR_SRC, 2, 0, .125},
              {MX_SR_SRC, 4, 0, .03125},
              {MX_SR_SRC, 8, 0, .001953125}};
  const mx_format *e2m1 = mx_elem_format(MX_ELEM_E2M1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const mx_encoding how = {.round = MX_ROUND_SR, .sr_mode = rows[i].mode, .sr_bits = rows[i].bits};
    const double n = ldexp(1, rows[i].bits);
    double mean = 0, most = 0;
    for (int k = 0; k < GRID; k++) { /* 1 + d / 2, between the codes 2 and 3 */
      double up = 0;
      for (uint32_t b = 0; b < 1u << rows[i].bits; b++) up += mx_encode(e2m1, 1 + k / (2.0 * GRID), &how, b) == 3;
      const double bias = up / n - (double)k / GRID;
      mean += bias / GRID;
      most = fmax(most, fabs(bias));
    }
    ck_assert_msg(fabs(mean - rows[i].mean) < 5e-7 && fabs(most - rows[i].most) < 5e-7, "mode %d, %d bits: %.6f, %.6f", rows[i].mode,
                  rows[i].bits, mean, most);
  }
}
END_TEST

/* T11: under OCP's scale three quarters of any maximum are below 6, so that stochastic rounding never saturates; without that factor a third
 * of all maxima do. Takes every 61st significand of a binade, its ends, and P(up) of the worked block. */
START_TEST(three_quarters_never_saturate) {
  const mx_spec with = spec_of(NULL, "elem.prescale=0.75 elem.round=sr block=1x4"), without = spec_of(NULL, "elem.round=sr block=1x4");
  enum { N = (1 << 23) / 61 + 2 };
  float *x = calloc(4 * N, sizeof *x);
  for (uint32_t i = 0; i < N; i++) {
    const uint32_t bits = (129u << 23) + (i == N - 1 ? (1u << 23) - 1 : i * 61 < 1u << 23 ? i * 61 : 0);
    memcpy(x + 4 * i, &bits, sizeof bits);
  }
  mx_tensor a = quantized(&with, x, N, 4), b = quantized(&without, x, N, 4);
  size_t beyond[2] = {0, 0};
  for (size_t i = 0; i < N; i++) { /* checks y, not its code, since code 6 may be right */
    beyond[0] += (double)x[4 * i] * .75 > 6 * ldexp(1, (int)a.scales[i] - 127);
    beyond[1] += (double)x[4 * i] > 6 * ldexp(1, (int)b.scales[i] - 127);
  }
  ck_assert_uint_eq(beyond[0], 0);
  ck_assert_uint_gt(beyond[1], N / 3);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  free(x);
  /* y = [5.925, -2.475, .15, 3.825] */
  static const double lower[4] = {4, 2, 0, 3}, upper[4] = {6, 3, .5, 4}, up[4] = {.9625, .475, .3, .825};
  const float block[4] = {7.9f, -3.3f, .2f, 5.1f};
  double share[4] = {0};
  for (uint64_t seed = 0; seed < 4096; seed++) {
    mx_spec drawn = with;
    drawn.seed = seed;
    mx_tensor t = quantized(&drawn, block, 1, 4);
    for (size_t i = 0; i < 4; i++) {
      const double v = fabs(mx_decode(mx_elem_format(MX_ELEM_E2M1), mx_code_at(&t, &drawn, 0, i)));
      ck_assert(v == lower[i] || v == upper[i]);
      share[i] += v == upper[i];
    }
    mx_tensor_free(&t);
  }
  for (size_t i = 0; i < 4; i++) ck_assert(fabs(share[i] / 4096 - up[i]) < .03);
}
END_TEST

/* T28: ties of HiFloat4's elements, x = .125, .625, 1.125, 1.625 and .375 in a block whose scale is 1. */
START_TEST(ties_of_hif4) {
  static const float ties[5] = {.125f, .625f, 1.125f, 1.625f, .375f}, half_up[5] = {.25f, .75f, 1.25f, 1.75f, .5f},
                     even[5] = {0, .5f, 1, 1.5f, .5f};
  for (int to_even = 0; to_even < 2; to_even++) {
    const mx_spec spec = spec_of("hif4", to_even ? "hif4.ties=even" : "");
    float x[64] = {[63] = 7}, y[64];
    for (size_t i = 0; i < 5; i++) x[8 * i] = ties[i], x[8 * i + 4] = -ties[i];
    mx_tensor t = quantized(&spec, x, 1, 64), slow;
    ck_assert_int_eq(ref_tensor_alloc(&slow, 1, 64, &spec), MX_OK);
    ck_assert_int_eq(ref_quantize(&slow, x, 1, 64, 64, &spec, NULL, NULL), MX_OK);
    ck_assert(!memcmp(t.codes, slow.codes, 32) && !memcmp(t.micro, slow.micro, 3) && t.scales[0] == slow.scales[0]);
    ck_assert_int_eq(mx_dequantize(y, 64, &t, &spec, NULL), MX_OK);
    for (size_t i = 0; i < 5; i++) {
      const float want = to_even ? even[i] : half_up[i];
      ck_assert_msg(y[8 * i] == want && y[8 * i + 4] == -want, "%s: %g gives %g", to_even ? "even" : "half up", (double)ties[i],
                    (double)y[8 * i]);
    }
    mx_tensor_free(&t);
    ref_tensor_free(&slow);
  }
}
END_TEST

/* T30: scales of AMD's kernel (TECHNIQUES 2.1), and those that a test describes as TransformerEngine's, for x = ((13 i mod 37) - 18) / 4 in
 * two rows of 64. Its elements are reproduced with ties away from zero; with ties to even 24 of its 64 bytes differ. */
START_TEST(scales_of_the_amd_recipe) {
  static const struct {
    float amax;
    int byte;
  } rows[] = {{7, 128}, {6.99f, 127}, {3.5f, 127}, {3.49f, 126}, {1.75f, 126}, {0x1.bffffep0f, 125}};
  const mx_spec even = spec_of(NULL, "scale.rule=even"), away = spec_of(NULL, "scale.rule=even elem.round=rna"),
                turned = spec_of(NULL, "scale.rule=even had.size=16");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const float x[32] = {rows[i].amax};
    mx_tensor t = quantized(&even, x, 1, 32);
    ck_assert_int_eq(t.scales[0], rows[i].byte);
    mx_tensor_free(&t);
  }
  float x[128];
  for (int i = 0; i < 128; i++) x[i] = (float)(i * 13 % 37 - 18) / 4;
  mx_tensor a = quantized(&even, x, 2, 64), b = quantized(&away, x, 2, 64), c = quantized(&turned, x, 2, 64);
  static const uint8_t plain[4] = {127, 127, 127, 127}, h16[4] = {127, 128, 127, 127};
  ck_assert(!memcmp(a.scales, plain, 4) && !memcmp(b.scales, plain, 4) && !memcmp(c.scales, h16, 4));
  size_t differ = 0;
  for (size_t i = 0; i < 64; i++) differ += a.codes[i] != b.codes[i];
  ck_assert_uint_eq(differ, 24);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  mx_tensor_free(&c);
}
END_TEST

/* The values of x under a spec. */
static float *values(const mx_spec *spec, const float *x, size_t rows, size_t cols) {
  float *y = malloc(rows * cols * sizeof *y);
  mx_tensor t = quantized(spec, x, rows, cols);
  ck_assert_int_eq(mx_dequantize(y, cols, &t, spec, NULL), MX_OK);
  mx_tensor_free(&t);
  return y;
}

/* T4: with 5 as the largest of a block under E4M3, .8125 * 6 against 6 / 1.25; and a power of two rounds up as 6 / amax where amax / 6
 * rounds down. */
START_TEST(forms_of_a_scale) {
  enum { ROWS = 64, COLS = 128 };
  const float five[32] = {5};
  const mx_spec decode = spec_of(NULL, "scale=e4m3 scale.rule=value"), encode = spec_of(NULL, "scale=e4m3 scale.rule=value scale.form=encode"),
                up = spec_of(NULL, "scale.rule=value scale.form=encode scale.round=up"),
                down = spec_of(NULL, "scale.rule=value scale.round=down");
  float *a = values(&decode, five, 1, 32), *b = values(&encode, five, 1, 32), *x = gaussian(ROWS * COLS, 7);
  ck_assert(a[0] == 4.875f && b[0] == 4.8f);
  free(a), free(b);
  a = values(&up, x, ROWS, COLS), b = values(&down, x, ROWS, COLS);
  ck_assert(!memcmp(a, b, ROWS * COLS * sizeof *a));
  free(a), free(b), free(x);
}
END_TEST

/* T7: a tensor scale that is a power of two changes nothing if block scales are powers of two. (Except for ties of scale.round=rne, which go
 * to the even code: 6 / 8 lies between codes 126 and 127, and eight times that between 129 and 130.) */
START_TEST(a_tensor_scale_of_a_power_of_two_is_none) {
  enum { ROWS = 64, COLS = 128 };
  const mx_spec none = spec_of(NULL, "scale.rule=value scale.form=encode scale.round=up"),
                unit = spec_of(NULL, "scale.rule=value scale.form=encode scale.round=up tensor.norm=unit tensor.target=6");
  float *x = gaussian(ROWS * COLS, 8);
  for (int other = 0; other < 2; other++) {
    for (size_t i = 0; i < ROWS * COLS; i++) x[i] = fmaxf(-7, fminf(7, x[i]));
    x[1000] = other ? 9 : 8; /* max|X|; 9 is not a power of two */
    float *a = values(&none, x, ROWS, COLS), *b = values(&unit, x, ROWS, COLS);
    const int same = !memcmp(a, b, ROWS * COLS * sizeof *a);
    ck_assert_msg(same == !other, "with %g as the largest: %s", (double)x[1000], same ? "the same values" : "other values");
    free(a), free(b);
  }
  free(x);
}
END_TEST

/* T14: ones are amplified four times, and on whole numbers a rotation undoes itself. */
START_TEST(rotations) {
  float x[64], y[64];
  for (int i = 0; i < 16; i++) x[i] = 1;
  ck_assert_int_eq(mx_hadamard(y, 16, x, 1, 16, 16, 16, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  for (int i = 0; i < 16; i++) ck_assert_float_eq(y[i], i ? 0 : 4);
  for (unsigned size = 4; size <= 64; size *= 4) { /* sizes whose root is a power of two */
    for (int i = 0; i < 64; i++) x[i] = (float)(i * i * 7 % 113 - 56);
    ck_assert_int_eq(mx_hadamard(y, 64, x, 1, 64, 64, size, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
    ck_assert(memcmp(x, y, sizeof x) != 0);
    ck_assert_int_eq(mx_hadamard(y, 64, y, 1, 64, 64, size, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
    for (int i = 0; i < 64; i++) ck_assert_float_eq(y[i], x[i]);
  }
}
END_TEST

/* T20: the largest element of each row, and of each column (as rows of the transpose), is 6 in units of its scale. */
START_TEST(rows_fill_the_format) {
  enum { ROWS = 64, COLS = 200 };
  const mx_spec spec = spec_of(NULL, "scale=fp32 block=row scale.rule=value");
  float *x = gaussian(ROWS * COLS, 9);
  for (size_t i = 0; i < ROWS * COLS; i++) x[i] = ldexpf(x[i], (int)(i / COLS % 40) - 20);
  mx_tensor t = quantized(&spec, x, ROWS, COLS), turned;
  ck_assert_int_eq(mx_tensor_alloc(&turned, COLS, ROWS, &spec), MX_OK);
  ck_assert_int_eq(mx_quantize_transposed(&turned, x, ROWS, COLS, COLS, &spec, NULL, NULL), MX_OK);
  ck_assert(t.scale_rows * t.scale_cols == ROWS && turned.scale_rows * turned.scale_cols == COLS);
  for (int across = 0; across < 2; across++)
    for (size_t r = 0; r < (across ? COLS : ROWS); r++) {
      size_t at = 0;
      for (size_t c = 0, n = across ? ROWS : COLS; c < n; c++) {
        const float now = fabsf(across ? x[c * COLS + r] : x[r * COLS + c]), most = fabsf(across ? x[at * COLS + r] : x[r * COLS + at]);
        at = now > most ? c : at;
      }
      ck_assert_uint_eq(mx_code_at(across ? &turned : &t, &spec, r, at) & 7, 7);
    }
  mx_tensor_free(&t);
  mx_tensor_free(&turned);
  free(x);
}
END_TEST

int main(void) {
  Suite *s = suite_create("quantize techniques");
  TCase *t = tcase_create("techniques");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, signal_to_noise_on_a_gaussian);
  tcase_add_test(t, two_levels_take_a_power_of_two);
  tcase_add_test(t, square_blocks_transpose);
  tcase_add_test(t, few_random_bits);
  tcase_add_test(t, three_quarters_never_saturate);
  tcase_add_test(t, ties_of_hif4);
  tcase_add_test(t, scales_of_the_amd_recipe);
  tcase_add_test(t, forms_of_a_scale);
  tcase_add_test(t, a_tensor_scale_of_a_power_of_two_is_none);
  tcase_add_test(t, rotations);
  tcase_add_test(t, rows_fill_the_format);
  suite_add_tcase(s, t);
  return run_suite(s);
}
