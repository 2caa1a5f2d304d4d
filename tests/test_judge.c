/* mx_judge(): each bug of a product kernel, injected into operands or outputs by hand, is seen and named. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/judge.h"
#include "mxgold/mxgold.h"

enum { M = 48, N = 48, K = 144 }; /* K: four blocks and a half */

typedef struct fixture {
  mx_spec spec;
  mx_tensor a, b;
  size_t m, n, k;
} fixture;

static void fill(mx_tensor *t, const mx_spec *s, size_t rows, size_t cols, uint64_t seed) {
  float *x = malloc(rows * cols * sizeof *x);
  for (size_t i = 0; i < rows * cols; i++) {
    const uint32_t bits = mx_random(seed, MX_STREAM_DATA, i), spread = mx_random(seed + 9, MX_STREAM_DATA, i / 32);
    x[i] = ldexpf((float)(int32_t)bits * 0x1p-31f, (int)(spread % 24));
  }
  ck_assert_int_eq(mx_tensor_alloc(t, rows, cols, s), MX_OK);
  ck_assert_int_eq(mx_quantize(t, x, rows, cols, cols, s, NULL, NULL), MX_OK);
  free(x);
}

static void begin(fixture *f, const char *keys, size_t m, size_t n, size_t k) {
  f->spec = (mx_spec){0};
  f->m = m, f->n = n, f->k = k;
  if (*keys == '@')
    ck_assert_int_eq(mx_preset_find(&f->spec, keys + 1, NULL), MX_OK);
  else
    ck_assert_int_eq(mx_spec_parse(&f->spec, keys, NULL), MX_OK);
  fill(&f->a, &f->spec, m, k, 1);
  fill(&f->b, &f->spec, n, k, 2);
}

static void end(fixture *f) {
  mx_tensor_free(&f->a);
  mx_tensor_free(&f->b);
}

static mx_tensor copy(const mx_tensor *t, const mx_spec *s) {
  mx_tensor c;
  mx_tensor_alloc(&c, t->rows, t->cols, s);
  memcpy(c.codes, t->codes, t->rows * t->code_stride);
  memcpy(c.scales, t->scales, t->scale_rows * t->scale_cols * t->scale_bytes);
  c.tensor_scale = t->tensor_scale;
  return c;
}

static float *product(const fixture *f, const mx_tensor *a, const mx_tensor *b, const mx_gemm_options *o) {
  float *d = malloc(f->m * f->n * sizeof *d);
  mx_error err;
  if (mx_gemm(d, f->n, a, &f->spec, b, &f->spec, o, &err)) ck_abort_msg("%s", err.text);
  return d;
}

static mx_judgement judged;

static const mx_judgement *judge(const fixture *f, const void *d, const mx_gemm_options *o, const mx_judge_options *how) {
  mx_error err;
  if (mx_judge(&judged, d, &f->a, &f->spec, &f->b, &f->spec, o, how, &err)) ck_abort_msg("%s", err.text);
  return &judged;
}

/* The first finding has these words, leaves nothing, and is bit for bit under `model` (NULL: any). */
static void named(const mx_judgement *j, const char *words, const char *model) {
  ck_assert(!j->equal);
  ck_assert_uint_gt(j->differ, 0);
  if (!j->n_findings) ck_abort_msg("nothing found, expected \"%s\"", words);
  if (!strstr(j->findings[0].what, words)) ck_abort_msg("found \"%s\", expected \"%s\"", j->findings[0].what, words);
  ck_assert_msg(j->findings[0].unexplained == 0, "%s: leaves %llu", words, (unsigned long long)j->findings[0].unexplained);
  ck_assert(*j->findings[0].model);
  if (model) ck_assert_str_eq(j->findings[0].model, model);
}

static void where(const mx_judgement *j, const char *words) {
  for (int i = 0; i < j->n_regions; i++)
    if (strstr(j->regions[i], words)) return;
  ck_abort_msg("no region says \"%s\"; the first says \"%s\"", words, j->n_regions ? j->regions[0] : "nothing");
}

START_TEST(each_model_is_named) {
  fixture f;
  begin(&f, "elem=e4m3", M, 40, K);
  const mx_gemm_options o = {.model = _i};
  float *d = product(&f, &f.a, &f.b, &o);
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  ck_assert(j->equal);

  ck_assert_uint_eq(j->models[_i].differ, 0);
  ck_assert_uint_eq(j->models[_i].compared, M * 40);
  if (_i != MX_GEMM_F64 && _i != MX_GEMM_EXACT) { /* the others round more than once */
    j = judge(&f, d, NULL, &(mx_judge_options){.model = "f64"});
    named(j, "D is the product under another model", mx_gemm_model_name(_i));
  }
  free(d);
  end(&f);
}
END_TEST

/* ---- operands: the damage is done to copies of the tensors */

static void twice(mx_tensor *t) { /* e8m0: 2^(c - 127) squared */
  for (size_t i = 0; i < t->scale_rows * t->scale_cols; i++) t->scales[i] = (uint8_t)(2 * t->scales[i] - 127);
}
static void left_out(mx_tensor *t) { memset(t->scales, 127, t->scale_rows * t->scale_cols); }
static void turned(mx_tensor *t) {
  const size_t r = t->scale_rows, c = t->scale_cols;
  uint8_t *s = malloc(r * c);
  memcpy(s, t->scales, r * c);
  for (size_t i = 0; i < r; i++)
    for (size_t k = 0; k < c; k++) t->scales[i * c + k] = s[k * r + i];
  free(s);
}
static void swapped_nibbles(mx_tensor *t) {
  for (size_t i = 0; i < t->rows * t->code_stride; i++) t->codes[i] = (uint8_t)(t->codes[i] << 4 | t->codes[i] >> 4);
}
static void first_scale(mx_tensor *t) {
  for (size_t r = 0; r < t->scale_rows; r++) memset(t->scales + r * t->scale_cols, t->scales[r * t->scale_cols], t->scale_cols);
}
static void next_block(mx_tensor *t) {
  for (size_t r = 0; r < t->scale_rows; r++) memmove(t->scales + r * t->scale_cols, t->scales + r * t->scale_cols + 1, t->scale_cols - 1);
}
static void next_row(mx_tensor *t) { memmove(t->scales, t->scales + t->scale_cols, (t->scale_rows - 1) * t->scale_cols); }
static void packed(mx_tensor *t) {
  const size_t n = mx_layout_size(MX_LAYOUT_NV128X4, t->scale_rows, t->scale_cols);
  uint8_t *s = malloc(n);
  mx_layout_pack(s, MX_LAYOUT_NV128X4, t->scales, t->scale_rows, t->scale_cols, 0);
  memcpy(t->scales, s, t->scale_rows * t->scale_cols);
  free(s);
}
static void third_block(mx_tensor *t) {
  for (size_t r = 0; r < t->rows; r++) memset(t->codes + r * t->code_stride + 2 * 16, 0, 16);
}
static void first_block(mx_tensor *t) {
  for (size_t r = 0; r < t->rows; r++) memset(t->codes + r * t->code_stride, 0, 16);
}
static void last_block(mx_tensor *t) {
  for (size_t r = 0; r < t->rows; r++) memset(t->codes + r * t->code_stride + 4 * 16, 0, 8);
}
static void k_tail(mx_tensor *t) { /* K = 144, tiles of 128 */
  last_block(t);
}

static const struct {
  void (*damage)(mx_tensor *);
  const char *words;
} damages[] = {{twice, "the scales of %s are applied twice"},
               {left_out, "the scales of %s are left out"},
               {turned, "the scales of %s are read transposed"},
               {swapped_nibbles, "the two codes of each byte of %s are swapped"},
               {first_scale, "scale of each row's first block of %s is used"},
               {next_block, "the scales of %s are those of the next block"},
               {next_row, "the scales of %s are those of the next row"},
               {packed, "the scales of %s are in layout nv128x4"},
               {third_block, "K block 3 of 5 is lost"},
               {first_block, "the first K block is lost"},
               {last_block, "the last K block is lost (K = 128 for 144)"},
               {k_tail, "K = 128 for 144"}};

START_TEST(each_damage_of_operands_is_named) {
  fixture f;
  char words[120];
  begin(&f, "elem=e2m1", M, M, K);
  for (int side = 1; side <= 3; side++) {
    if (side == 3 && damages[_i].damage == swapped_nibbles) continue; /* the same pairs in another order: nothing is wrong */
    mx_tensor a = copy(&f.a, &f.spec), b = copy(&f.b, &f.spec);
    if (side & 1) damages[_i].damage(&a);
    if (side & 2) damages[_i].damage(&b);
    const mx_gemm_options o = {.model = side == 2 ? MX_GEMM_F32_SEQ : MX_GEMM_F32_BLOCK};
    float *d = product(&f, &a, &b, &o);
    const char *at = strstr(damages[_i].words, "%s");
    snprintf(words, sizeof words, "%.*s%s%s", at ? (int)(at - damages[_i].words) : 120, damages[_i].words,
             at ? side == 1   ? "A"
                  : side == 2 ? "B"
                              : "A and B"
                : "",
             at ? at + 2 : "");
    named(judge(&f, d, NULL, NULL), words, mx_gemm_model_name(o.model));
    free(d);
    mx_tensor_free(&a);
    mx_tensor_free(&b);
  }
  end(&f);
}
END_TEST

START_TEST(operands_that_are_swapped_or_turned) {
  fixture f;
  begin(&f, "elem=e4m3 scale=e4m3 block=1x16", M, M, M);
  float *d = product(&f, &f.b, &f.a, NULL); /* B x A^T */
  named(judge(&f, d, NULL, NULL), "D is transposed, or A and B are swapped", NULL);
  free(d);
  mx_tensor b = copy(&f.b, &f.spec); /* B as [K][N] */
  for (size_t r = 0; r < M; r++)
    for (size_t k = 0; k < M; k++) b.codes[r * M + k] = f.b.codes[k * M + r];
  d = product(&f, &f.a, &b, NULL);
  named(judge(&f, d, NULL, NULL), "the codes of B are read transposed", "f32_block");
  free(d);
  mx_tensor a2 = copy(&f.a, &f.spec);
  memcpy(b.codes, f.b.codes, M * M);
  memcpy(b.scales, f.a.scales, M * b.scale_cols);
  memcpy(a2.scales, f.b.scales, M * b.scale_cols);
  d = product(&f, &a2, &b, NULL);
  named(judge(&f, d, NULL, NULL), "the scales of A and B are swapped", "f32_block");
  free(d);
  mx_tensor_free(&a2);
  mx_tensor_free(&b);
  end(&f);
}
END_TEST

START_TEST(tensor_scales) {
  fixture f;
  begin(&f, "@te-nvfp4", M, N, K);
  ck_assert(f.a.has_tensor_scale);
  for (int twice_it = 0; twice_it < 2; twice_it++) {
    const float right = f.a.tensor_scale;
    float one;
    mx_tensor a = copy(&f.a, &f.spec);
    mx_tensor_multiplier(&one, &f.a, &f.spec);
    float *d = product(&f, &a, &f.b, &(mx_gemm_options){.alpha = &(float){twice_it ? one : 1 / one}});
    a.tensor_scale = right;
    const mx_judgement *j = judge(&f, d, NULL, NULL);
    ck_assert(!j->equal);
    ck_assert_msg(j->n_findings &&
                      strstr(j->findings[0].what, twice_it ? "the tensor scale of A is applied twice" : "the tensor scale of A is left out"),
                  "%s", j->n_findings ? j->findings[0].what : "nothing");
    free(d);
    mx_tensor_free(&a);
  }
  end(&f);
}
END_TEST

/* ---- what follows the sum */

static const char *const endings[] = {"alpha is forgotten",
                                      "beta is forgotten",
                                      "C is forgotten",
                                      "C is subtracted",
                                      "C is read transposed",
                                      "the bias is forgotten",
                                      "the bias is added twice",
                                      "the bias goes along rows",
                                      "the bias is multiplied by alpha",
                                      "alpha is applied to C too",
                                      "the sign of the product is wrong"};

START_TEST(each_bug_of_the_epilogue_is_named) {
  fixture f;
  begin(&f, "elem=e2m1", M, M, K);
  float c[M * M], ct[M * M], bias[M], bias2[M], alpha = 0.75f, beta = -1.5f, ab = -1.125f, minus = 1.5f, neg = -0.75f;
  for (size_t i = 0; i < M; i++) {
    bias[i] = (float)(i + 1) * 3.25f;
    bias2[i] = _i == 8 ? bias[i] * alpha : 2 * bias[i];
    for (size_t k = 0; k < M; k++) c[i * M + k] = ct[k * M + i] = (float)((i * 37 + k * 11) % 64) - 20.5f;
  }
  const mx_gemm_options right = {.alpha = &alpha, .beta = &beta, .c = c, .c_type = MX_F32, .bias = bias};
  mx_gemm_options wrong = right;
  if (_i == 0) wrong.alpha = NULL;
  if (_i == 1) wrong.beta = NULL;
  if (_i == 2) wrong.c = NULL;
  if (_i == 3) wrong.beta = &minus;
  if (_i == 4) wrong.c = ct;
  if (_i == 5) wrong.bias = NULL;
  if (_i == 6 || _i == 8) wrong.bias = bias2;
  if (_i == 7) wrong.bias_of_rows = 1;
  if (_i == 9) wrong.beta = &ab;
  if (_i == 10) wrong.alpha = &neg;
  float *d = product(&f, &f.a, &f.b, &wrong);
  named(judge(&f, d, &right, NULL), endings[_i], "f32_block");
  free(d);
  end(&f);
}
END_TEST

START_TEST(two_bugs_at_once) {
  fixture f;
  begin(&f, "elem=e2m1", M, N, K);
  float alpha = 0.37f;
  mx_tensor b = copy(&f.b, &f.spec);
  twice(&b);
  float *d = product(&f, &f.a, &b, NULL);
  named(judge(&f, d, &(mx_gemm_options){.alpha = &alpha}, NULL), "the scales of B are applied twice, and alpha is forgotten", "f32_block");
  free(d);
  mx_tensor_free(&b);
  end(&f);
}
END_TEST

/* ---- where D stands */

START_TEST(d_transposed_shifted_and_permuted) {
  fixture f;
  begin(&f, "elem=e2m1", M, 40, K);
  const size_t n = 40;
  float *d = product(&f, &f.a, &f.b, NULL), *e = calloc(M * n, sizeof *e);
  for (size_t i = 0; i < M; i++)
    for (size_t k = 0; k < n; k++) e[k * M + i] = d[i * n + k];
  named(judge(&f, e, NULL, NULL), "D is transposed (column-major)", "f32_block");
  memcpy(e, d + n, (M - 1) * n * sizeof *e);
  memset(e + (M - 1) * n, 0, n * sizeof *e);
  const mx_judgement *j = judge(&f, e, NULL, NULL);
  ck_assert_msg(strstr(j->findings[0].what, "each row of D holds the next row"), "%s", j->findings[0].what);
  ck_assert_uint_eq(j->findings[0].unexplained, n); /* the last row */
  for (size_t i = 0; i < M; i++) memcpy(e + i * n, d + (i * 5 + 3) % M * n, n * sizeof *e);
  where(judge(&f, e, NULL, NULL), "rows are in another order: row 0 holds what belongs to row 3");
  free(d);
  free(e);
  end(&f);
}
END_TEST

START_TEST(regions) {
  fixture f;
  begin(&f, "elem=e2m1", 72, 80, K);
  const size_t n = 80, m = 72;
  float *d = product(&f, &f.a, &f.b, NULL), *e = malloc(m * n * sizeof *e);
#define FRESH() memcpy(e, d, m *n * sizeof *e)
  FRESH();
  for (size_t i = 64; i < m; i++) memset(e + i * n, 0, n * sizeof *e);
  const mx_judgement *j = judge(&f, e, NULL, NULL);
  where(j, "all in rows 64 to 71 (the last 8, the tail of tiles of 64)");
  where(j, "D is zero there");
  ck_assert_uint_eq(j->differ, 8 * n);
  FRESH();
  for (size_t i = 16; i < 32; i++)
    for (size_t k = 32; k < 48; k++) e[i * n + k] = NAN;
  j = judge(&f, e, NULL, NULL);
  where(j, "one tile of 16 x 16");
  where(j, "all in rows 16 to 31, columns 32 to 47; everything there is wrong");
  where(j, "D is NaN there");
  ck_assert_uint_eq(j->nan_wrong, 256);
  FRESH();
  for (size_t i = 0; i < m * n; i++)
    if (d[i] < 0) e[i] = 0;
  where(judge(&f, e, NULL, NULL), "only where the product is negative");
  FRESH();
  for (size_t i = 0; i < m; i++)
    for (size_t k = 3; k < n; k += 16) e[i * n + k] = 1e9f;
  j = judge(&f, e, NULL, NULL);
  where(j, "only columns with index % 16 = 3");
  where(j, "D holds one number there: 1e+09");
  ck_assert_uint_eq(j->ulps[6], m * 5);
  FRESH();
  e[5 * n + 7] = nextafterf(e[5 * n + 7], 1e9f);
  j = judge(&f, e, NULL, NULL);
  where(j, "all in row 5, column 7");
  ck_assert_uint_eq(j->differ, 1);
  ck_assert_uint_eq(j->ulps[0], 1);
  ck_assert_uint_eq(j->worst.row, 5);
  ck_assert_uint_eq(j->worst.col, 7);
  ck_assert_double_eq(j->worst.ulps, 1);
  FRESH();
  e[3] = INFINITY;
  ck_assert_uint_eq(judge(&f, e, NULL, NULL)->inf_wrong, 1);
  for (size_t i = 0; i < m * n; i++) e[i] = 2 * d[i] * 1.7f;
  j = judge(&f, e, NULL, NULL);
  ck_assert_msg(strstr(j->findings[0].what, "3.4 times"), "%s", j->findings[0].what);
  for (size_t i = 0; i < m * n; i++) e[i] = -0.125f * d[i];
  j = judge(&f, e, NULL, NULL);
  named(j, "2^-3 times what it should be, with the other sign", "f32_block");
  free(d);
  free(e);
  end(&f);
}
END_TEST

/* A tile whose K loop ended early, all else right: the bug is named from the wrong outputs alone. */
START_TEST(a_tile_with_a_bug) {
  fixture f;
  begin(&f, "elem=e4m3", 64, 64, 160);
  mx_tensor a = copy(&f.a, &f.spec);
  for (size_t r = 0; r < 64; r++) memset(a.codes + r * a.code_stride + 128, 0, 32);
  float *d = product(&f, &f.a, &f.b, NULL), *e = product(&f, &a, &f.b, NULL);
  for (size_t i = 48; i < 64; i++) memcpy(d + i * 64 + 32, e + i * 64 + 32, 32 * sizeof *d);
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  named(j, "the last K block is lost", "f32_block");
  where(j, "rows 48 to 63");
  free(d);
  free(e);
  mx_tensor_free(&a);
  end(&f);
}
END_TEST

START_TEST(numbers_that_all_outputs_share) {
  fixture f;
  begin(&f, "elem=e2m1", M, M, K);
  const size_t n = M * M;
  float c[M * M], bias[M], alpha = 0.75f, beta = -1.5f;
  for (size_t i = 0; i < n; i++) c[i] = (float)(i * 37 % 64) * 1e6f - 20.5e6f;
  for (size_t i = 0; i < M; i++) bias[i] = (float)i * 3.25e5f;
  float *d = product(&f, &f.a, &f.b, NULL), *e = malloc(n * sizeof *e);
  for (size_t i = 0; i < n; i++) e[i] = d[i] * 1.5f;
  named(judge(&f, e, NULL, NULL), "every output is 1.5 times what it should be: alpha is 1.5, not 1", "f32_block");
  for (size_t i = 0; i < n; i++) e[i] = d[i] * 0.1f;
  named(judge(&f, e, NULL, NULL), "alpha is 0.1, not 1", "f32_block");
  for (size_t i = 0; i < n; i++) e[i] = d[i] + 1;
  named(judge(&f, e, NULL, NULL), "1 is added to every output", "f32_block");
  for (size_t i = 0; i < n; i++) e[i] = d[i] - 12345.5f;
  named(judge(&f, e, NULL, NULL), "-12345.5 is added to every output", "f32_block");
  free(d);
  const mx_gemm_options right = {.alpha = &alpha, .beta = &beta, .c = c, .c_type = MX_F32, .bias = bias};
  mx_gemm_options wrong = right;
  wrong.beta = &(float){-3};
  d = product(&f, &f.a, &f.b, &wrong);
  named(judge(&f, d, &right, NULL), "C is added twice", "f32_block");
  free(d);
  wrong.beta = &(float){-0.7f};
  d = product(&f, &f.a, &f.b, &wrong);
  named(judge(&f, d, &right, NULL), "beta is -0.7, not -1.5", "f32_block");
  free(d);
  wrong = right;
  wrong.alpha = &(float){2};
  d = product(&f, &f.a, &f.b, &wrong);
  named(judge(&f, d, &right, NULL), "alpha is 2, not 0.75", "f32_block");
  free(d);
  /* bfloat16: multiplied after the rounding. */
  const mx_gemm_options half = {.out = MX_BF16};
  uint16_t *h = malloc(n * sizeof *h);
  ck_assert_int_eq(mx_gemm(h, M, &f.a, &f.spec, &f.b, &f.spec, &half, NULL), MX_OK);
  for (size_t i = 0; i < n; i++) {
    uint32_t bits = (uint32_t)h[i] << 16;
    float x;
    memcpy(&x, &bits, 4);
    x *= 1.1f;
    memcpy(&bits, &x, 4);
    h[i] = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
  named(judge(&f, h, &half, NULL), "every output is multiplied by 1.1, after it was rounded", "f32_block");
  free(h);
  free(e);
  end(&f);
}
END_TEST

START_TEST(tiles_that_hold_something_else) {
  fixture f;
  begin(&f, "elem=e2m1", 64, 96, K);
  const size_t n = 96;
  float *d = product(&f, &f.a, &f.b, NULL), *e = malloc(64 * n * sizeof *e);
#define TILE(r0, r1, c0, c1, value)                                                                                                            \
  memcpy(e, d, 64 * n * sizeof *e);                                                                                                            \
  for (size_t r = r0; r < r1; r++)                                                                                                             \
    for (size_t c = c0; c < c1; c++) e[r * n + c] = value
  TILE(0, 64, 64, 96, d[r * n + c - 64]);
  named(judge(&f, e, NULL, NULL), "columns 64 to 95 hold what belongs to columns 0 to 31", "f32_block");
  TILE(32, 64, 32, 64, d[(r - 32) * n + c + 32]);
  named(judge(&f, e, NULL, NULL), "rows 32 to 63, columns 32 to 63 hold what belongs to rows 0 to 31, columns 64 to 95", "f32_block");
  TILE(16, 32, 48, 64, 0);
  named(judge(&f, e, NULL, NULL), "a tile was never written, or lost: it is zero in rows 16 to 31, columns 48 to 63", "f32_block");
  TILE(16, 32, 48, 64, d[(c - 48 + 16) * n + r - 16 + 48]);
  named(judge(&f, e, NULL, NULL), "a tile is transposed in itself: rows 16 to 31, columns 48 to 63", "f32_block");
  TILE(0, 64, 0, 96, NAN);
  named(judge(&f, e, NULL, NULL), "D was never written, or lost: it is NaN in all of D", NULL);
  free(d);
  free(e);
  end(&f);
}
END_TEST

/* ---- orders and roundings: computed here, in plain C */

static float deq(const mx_tensor *t, const mx_spec *s, size_t r, size_t k) {
  if (s->elem == MX_ELEM_NONE) return ((const float *)(const void *)t->codes)[r * t->cols + k];
  return (float)(mx_decode(mx_elem_format(s->elem), mx_code_at(t, s, r, k)) *
                 mx_decode(mx_scale_format(s->scale), t->scales[r * t->scale_cols + k / 32]));
}

static float own_sum(const fixture *f, size_t i, size_t j, int kind) {
  float acc = 0, lane[8] = {0};
  volatile float p;
  switch (kind) {
  case 0:
    for (size_t k = f->k; k-- > 0;) acc = fmaf(deq(&f->a, &f->spec, i, k), deq(&f->b, &f->spec, j, k), acc);
    return acc;
  case 1:
    for (size_t k = 0; k < f->k; k++) {
      p = deq(&f->a, &f->spec, i, k) * deq(&f->b, &f->spec, j, k);
      acc += p;
    }
    return acc;
  case 2:
    for (size_t k = 0; k < f->k; k++) lane[k % 8] = fmaf(deq(&f->a, &f->spec, i, k), deq(&f->b, &f->spec, j, k), lane[k % 8]);
    for (size_t w = 4; w; w /= 2)
      for (size_t l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
  case 3: /* a block's exact dot, added from the last block to the first */
    for (size_t b = f->k / 32; b-- > 0;) {
      double dot = 0;
      for (size_t k = b * 32; k < b * 32 + 32; k++) dot += (double)deq(&f->a, &f->spec, i, k) * (double)deq(&f->b, &f->spec, j, k);
      acc = (float)((double)acc + dot);
    }
    return acc;
  case 4: /* every sum cut to binary32 */
    for (size_t k = 0; k < f->k; k++) {
      const double x = (double)acc + (double)deq(&f->a, &f->spec, i, k) * (double)deq(&f->b, &f->spec, j, k);
      float y = (float)x;
      if (fabs((double)y) > fabs(x)) y = nextafterf(y, 0);
      acc = y;
    }
    return acc;
  default: /* chunks of 64 */
    for (size_t c = 0; c < f->k; c += 64) {
      float part = 0;
      for (size_t k = c; k < c + 64 && k < f->k; k++) part = fmaf(deq(&f->a, &f->spec, i, k), deq(&f->b, &f->spec, j, k), part);
      acc += part;
    }
    return acc;
  }
}

START_TEST(orders_of_summation_are_named) {
  static const char *const words[] = {"products fused into the accumulator, k descending",
                                      "products rounded, then added, k ascending",
                                      "8 interleaved lanes",
                                      "exact block dots added, k descending",
                                      "binary32, cut towards zero",
                                      "chunks of 64"};
  fixture f;
  begin(&f, _i == 1 ? "elem=none" : "elem=e4m3", M, 40, 192); /* products of narrow elements are exact in binary32 */
  float *d = malloc(M * 40 * sizeof *d);
  for (size_t i = 0; i < M; i++)
    for (size_t j = 0; j < 40; j++) d[i * 40 + j] = own_sum(&f, i, j, _i);
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  named(j, words[_i], "its own");
  ck_assert(judge(&f, d, NULL, &(mx_judge_options){.bound = 1, .family = {.bits = _i == 4 ? 23 : 0}})->equal);
  free(d);
  end(&f);
}
END_TEST

static uint16_t cut_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)(bits >> 16);
}

START_TEST(roundings_of_the_output_are_named) {
  fixture f;
  begin(&f, "elem=e2m1", M, N, K);
  float *d = product(&f, &f.a, &f.b, NULL);
  uint16_t *h = malloc(M * N * sizeof *h);
  for (size_t i = 0; i < M * N; i++) h[i] = cut_bf16(d[i]);
  const mx_gemm_options bf16 = {.out = MX_BF16}, f16 = {.out = MX_F16};
  named(judge(&f, h, &bf16, NULL), "outputs are cut to bfloat16", "f32_block");
  /* bf16 values in a binary32 matrix */
  float *e = malloc(M * N * sizeof *e);
  for (size_t i = 0; i < M * N; i++) {
    const uint32_t bits = (uint32_t)h[i] << 16;
    memcpy(&e[i], &bits, sizeof bits);
  }
  named(judge(&f, e, NULL, NULL), "outputs went through bfloat16, cut towards zero", "f32_block");
  /* binary16: beyond the range, saturated */
  float alpha = 4000;
  const mx_gemm_options big = {.out = MX_F16, .alpha = &alpha};
  ck_assert_int_eq(mx_gemm(h, N, &f.a, &f.spec, &f.b, &f.spec, &big, NULL), MX_OK);
  size_t changed = 0;
  for (size_t i = 0; i < M * N; i++)
    if ((h[i] & 0x7FFF) == 0x7C00) h[i]--, changed++;
  ck_assert_uint_gt(changed, 8);
  const mx_judgement *j = judge(&f, h, &big, NULL);
  named(j, "beyond the range of binary16 saturate", NULL);
  ck_assert_uint_eq(j->inf_wrong, changed);
  ck_assert_int_eq(mx_gemm(h, N, &f.a, &f.spec, &f.b, &f.spec, &f16, NULL), MX_OK);
  ck_assert(judge(&f, h, &f16, NULL)->equal);
  free(d);
  free(e);
  free(h);
  end(&f);
}
END_TEST

START_TEST(options_of_comparison) {
  fixture f;
  begin(&f, "elem=e2m1", 8, 8, 32);
  memset(f.a.codes, 0, f.a.code_stride); /* a row of zeros */
  float *d = product(&f, &f.a, &f.b, NULL);
  ck_assert(judge(&f, d, NULL, NULL)->equal);
  d[1] = -0.0f;
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  ck_assert(!j->equal && j->zero_signs == 1);
  ck_assert(judge(&f, d, NULL, &(mx_judge_options){.equal_zeros = 1})->equal);
  f.a.scales[1] = 255; /* a NaN scale */
  free(d);
  d = product(&f, &f.a, &f.b, NULL);
  ck_assert(isnan(d[8]));
  d[8] = -d[8];
  ck_assert(judge(&f, d, NULL, NULL)->equal);
  ck_assert(!judge(&f, d, NULL, &(mx_judge_options){.nan_bits = 1})->equal);
  ck_assert(judge(&f, d, NULL, &(mx_judge_options){.bound = 1})->equal);
  d[9] = 1;
  ck_assert_uint_eq(judge(&f, d, NULL, &(mx_judge_options){.bound = 1})->differ, 1);
  mx_error err;
  ck_assert_int_eq(mx_judge(&judged, d, &f.a, &f.spec, &f.b, &f.spec, NULL, &(mx_judge_options){.model = "f32_blok"}, &err), MX_ERR_KEY);
  ck_assert(strstr(err.text, "nearest: f32_block"));
  free(d);
  end(&f);
}
END_TEST

/* Every model's own product is right under --bound, and a wrong one is not. */
START_TEST(bound_takes_every_order_and_no_bug) {
  fixture f;
  begin(&f, "elem=e4m3", M, N, K);
  for (int m = 0; m < MX_GEMM_FUSED; m++) {
    float *d = product(&f, &f.a, &f.b, &(mx_gemm_options){.model = m});
    ck_assert(judge(&f, d, NULL, &(mx_judge_options){.bound = 1})->equal);
    mx_tensor a = copy(&f.a, &f.spec);
    for (size_t r = 0; r < M; r++) memset(a.codes + r * a.code_stride + 128, 0, 16);
    float *e = product(&f, &a, &f.b, &(mx_gemm_options){.model = m});
    const mx_judgement *j = judge(&f, e, NULL, &(mx_judge_options){.bound = 1});
    named(j, "the last K block is lost", NULL);
    free(d);
    free(e);
    mx_tensor_free(&a);
  }
  end(&f);
}
END_TEST

/* Matrix units: the row of the table is named, alone and under a bug; and a row with parameters of one's own. */
START_TEST(matrix_units_are_named) {
  static const char *const rows[] = {"hopper_fp8_wgmma", "ada_fp8", "blackwell_mxf8f6f4", "cdna3_fp8"};
  fixture f;
  begin(&f, "elem=e4m3", M, N, 160);
  mx_mma_model model;
  ck_assert_int_eq(mx_mma_model_find(&model, rows[_i], NULL), MX_OK);
  const mx_gemm_options o = {.model = MX_GEMM_FUSED, .fused = &model};
  float *d = product(&f, &f.a, &f.b, &o);
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  ck_assert(j->equal);
  int same = 0;
  for (int i = 0; i < j->n_models; i++) same |= !strcmp(j->models[i].name, rows[_i]) && !j->models[i].differ && j->models[i].compared == M * N;
  ck_assert(same);
  ck_assert(judge(&f, d, NULL, &(mx_judge_options){.model = rows[_i]})->equal);
  ck_assert(!judge(&f, d, NULL, &(mx_judge_options){.model = "hopper_f16:F=9"})->equal);
  free(d);
  mx_tensor b = copy(&f.b, &f.spec);
  twice(&b);
  d = product(&f, &f.a, &b, &o);
  named(judge(&f, d, NULL, NULL), "the scales of B are applied twice", NULL);
  free(d);
  mx_tensor_free(&b);
  end(&f);
}
END_TEST

int main(void) {
  Suite *s = suite_create("judge");
  TCase *t = tcase_create("judge");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, each_model_is_named, 0, MX_GEMM_FUSED);
  tcase_add_loop_test(t, each_damage_of_operands_is_named, 0, (int)(sizeof damages / sizeof damages[0]));
  tcase_add_test(t, operands_that_are_swapped_or_turned);
  tcase_add_loop_test(t, matrix_units_are_named, 0, 4);
  tcase_add_test(t, tensor_scales);
  tcase_add_loop_test(t, each_bug_of_the_epilogue_is_named, 0, (int)(sizeof endings / sizeof endings[0]));
  tcase_add_test(t, two_bugs_at_once);
  tcase_add_test(t, d_transposed_shifted_and_permuted);
  tcase_add_test(t, regions);
  tcase_add_test(t, a_tile_with_a_bug);
  tcase_add_test(t, numbers_that_all_outputs_share);
  tcase_add_test(t, tiles_that_hold_something_else);
  tcase_add_loop_test(t, orders_of_summation_are_named, 0, 6);
  tcase_add_test(t, roundings_of_the_output_are_named);
  tcase_add_test(t, options_of_comparison);
  tcase_add_test(t, bound_takes_every_order_and_no_bug);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
