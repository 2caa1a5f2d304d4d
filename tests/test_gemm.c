/* Tests the block-scaled product: every model against ref_gemm, element by element, over mixes, shapes, layouts and special values. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gemm.h"
#include "gemm/codes/codes.h"
#include "gemm/internal.h"
#include "lib/operands.h"
#include "lib/run.h"
#include "mxgold/random.h"
#include "mxgold/isa.h"
static void check_mix(const char *a_text, const char *b_text, size_t M, size_t N, size_t K, operands_kind kind, int models) {
  const mx_spec as = operands_spec(a_text), bs = operands_spec(b_text);
  mx_tensor a, b;
  operands_fill(&a, &as, M, K, kind, 11);
  operands_fill(&b, &bs, N, K, kind, 23);
  float *got = malloc((M * N + 1) * sizeof *got), *want = malloc((M * N + 1) * sizeof *want);
  for (int model = 0; model < MX_GEMM_FUSED; model++) {
    if (!(models >> model & 1)) continue;
    mx_gemm_options o = {.model = model};
    char what[400];
    mx_error err;
    for (size_t m = 0; m < OPERANDS_MASKS; m++) {
      if (operands_masks[m] == MX_ISA_AMX && !(mx_isa_usable(0) & MX_ISA_AMX)) continue; /* it would be the same again */
      o.exec.isa_mask = operands_masks[m];
      o.exec.n_threads = m == 1 ? 2 : 1;
      memset(got, 0xAA, M * N * sizeof *got);
      if (mx_gemm(got, N, &a, &as, &b, &bs, &o, &err)) ck_abort_msg("%s x %s %s: %s", a_text, b_text, mx_gemm_model_name(model), err.text);
      if (m == 0) ck_assert_int_eq(ref_gemm(want, N, &a, &as, &b, &bs, &o, NULL), MX_OK);
      snprintf(what, sizeof what, "%s x %s, %zu x %zu x %zu, %s, %s, mask %u", a_text, b_text, M, N, K, operands_names[kind],
               mx_gemm_model_name(model), operands_masks[m]);
      operands_compare(got, want, M * N, MX_F32, what);
    }
  }
  free(got);
  free(want);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}

enum { ALL = 31, BLOCK = 1 };

START_TEST(elements) {
  static const char *const elems[] = {"e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "int8", "e4m3fnuz", "e5m2fnuz"};
  char a[64], b[64];
  for (size_t i = 0; i < 8; i++)
    for (size_t j = 0; j < 8; j++)
      for (operands_kind kind = 0; kind < OPERANDS_KINDS; kind++) {
        snprintf(a, sizeof a, "elem=%s", elems[i]);
        snprintf(b, sizeof b, "elem=%s", elems[j]);
        check_mix(a, b, 3, 4, 39, kind, i == j ? ALL : BLOCK);
      }
}
END_TEST

START_TEST(scale_formats) {
  static const char *const names[] = {"e8m0", "e4m3", "ue5m3", "ue5m3_61440", "ue5m3_122880", "e8m3", "e6m2", "bf16", "fp32"};
  static const char *const elems[] = {"e2m1", "e4m3", "e5m2"};
  char a[96], b[96];
  for (size_t i = 0; i < 9; i++)
    for (size_t j = 0; j < 9; j++)
      for (size_t e = 0; e < 3; e++)
        for (operands_kind kind = 0; kind < OPERANDS_QUANTISED; kind++) {
          snprintf(a, sizeof a, "elem=%s scale=%s block=1x16", elems[e], names[i]);
          snprintf(b, sizeof b, "elem=%s scale=%s block=1x16", elems[(e + j) % 3], names[j]);
          check_mix(a, b, 2, 3, 37, kind, i == j ? ALL : BLOCK);
        }
}
END_TEST

START_TEST(encode_form) {
  static const char *const names[] = {"e8m0", "e4m3", "ue5m3", "e8m3", "bf16", "fp32"};
  char a[96], b[96];
  for (size_t i = 0; i < 6; i++)
    for (size_t j = 0; j < 6; j++)
      for (operands_kind kind = 0; kind < OPERANDS_QUANTISED; kind++)
        for (int e = 0; e < 3; e++) {
          snprintf(a, sizeof a, "elem=%s scale=%s block=1x16 scale.form=encode", e == 1 ? "e5m2" : "e2m1", names[i]);
          snprintf(b, sizeof b, "elem=e4m3 scale=%s block=1x16%s", names[j], e == 2 ? "" : " scale.form=encode");
          const int exact = i < 4 && (j < 4 || e == 2);
          check_mix(a, b, 2, 3, 37, kind, exact ? ALL : ALL & ~(1 << MX_GEMM_EXACT));
        }
}
END_TEST

START_TEST(shapes) {
  static const size_t sizes[][3] = {{0, 3, 5},    {3, 0, 5},    {3, 5, 0},   {1, 1, 1},     {1, 17, 64},
                                    {16, 16, 32}, {17, 33, 65}, {2, 40, 31}, {33, 16, 128}, {5, 5, 257}};
  static const char *const specs[] = {"",
                                      "block=1x16 scale=e4m3",
                                      "block=1x5",
                                      "block=1x1",
                                      "block=col",
                                      "block=row",
                                      "block=tensor",
                                      "block=16x16",
                                      "block=1x12",
                                      "elem=e4m3 block=1x3",
                                      "nibble=high_first",
                                      "nibble=half_block",
                                      "elem=int8",
                                      "elem=int8 block=row",
                                      "elem=e2m3 block=1x8"};
  for (size_t i = 0; i < 10; i++)
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
      check_mix(specs[s], specs[s], sizes[i][0], sizes[i][1], sizes[i][2], i % 2 ? OPERANDS_NARROW : OPERANDS_QUANTISED, i < 4 ? ALL : BLOCK);
}
END_TEST

/* With few rows of A, B is read in place. */
START_TEST(skinny) {
  static const char *const specs[] = {"", "block=1x16 scale=e4m3", "block=1x16", "scale=ue5m3"};
  static const size_t rows[] = {1, 2, 3, 5, 9, 16};
  for (size_t i = 0; i < 6; i++)
    for (size_t s = 0; s < 4; s++)
      for (operands_kind kind = 0; kind < OPERANDS_KINDS; kind++)
        check_mix(specs[s], specs[s], rows[i], i % 3 ? 35 : 51, 256 + 128 * (i % 2), kind, BLOCK);
}
END_TEST

/* A block of zeros is stored with the smallest scale. The kernels on codes take it all the same, so that no tile needs the slow way. */
START_TEST(zero_blocks) {
  static const char *const specs[] = {"", "block=1x16 scale=e4m3", "block=1x16", "nibble=high_first", "block=row"};
  static const size_t sizes[][3] = {{1, 35, 256}, {16, 16, 384}, {7, 40, 130}, {33, 17, 64}};
  for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
    for (size_t i = 0; i < 4; i++) check_mix(specs[s], specs[s], sizes[i][0], sizes[i][1], sizes[i][2], OPERANDS_ZEROS, BLOCK);
  const mx_spec spec = {0};
  const mx_gemm_options o = {0};
  mx_tensor t;
  mxg_plan plan;
  mxg_packed a, b;
  if (!mxi_gemm_codes_best(&o.exec)) return;
  operands_fill(&t, &spec, 16, 1024, OPERANDS_ZEROS, 3);
  ck_assert_int_eq(mxi_gemm_plan_of_tensors(&plan, &t, &spec, &t, &spec, &o, 16, NULL), MX_OK);
  mxi_gemm_move_to(&plan.a, &t, 0, 16);
  mxi_gemm_move_to(&plan.b, &t, 0, 16);
  ck_assert(mxi_gemm_codes_usable(&plan) && !mxi_gemm_codes_alloc(&a, &plan, MXG_SIDE_A) && !mxi_gemm_codes_alloc(&b, &plan, MXG_SIDE_B));
  mxi_gemm_codes_fill_a(&a, &plan.a, &plan, 0);
  mxi_gemm_codes_fill_b(&b, &plan.b, &plan, 0);
  ck_assert(!mxi_gemm_codes_fit(&a, &b));
  mxi_gemm_codes_leave_out_zeros(&a, &plan.a, &plan, 0);
  mxi_gemm_codes_leave_out_zeros(&b, &plan.b, &plan, 0);
  ck_assert(mxi_gemm_codes_fit(&a, &b));
  mxi_gemm_codes_free(&a);
  mxi_gemm_codes_free(&b);
  mx_tensor_free(&t);
}
END_TEST

START_TEST(odd_mixes) {
  static const char *const mixes[][2] = {
      {"elem=none", "elem=none"},
      {"elem=none", "elem=e4m3 block=1x16"},
      {"elem=e2m1 scale=e4m3 block=1x16", "elem=none"},
      {"nibble=high_first", "nibble=half_block"},
      {"scale.sign=signed scale=e4m3 block=1x16", "scale=e4m3 block=1x16"},
      {"scale.sign=signed scale=bf16", "scale.sign=signed scale=fp32"},
      {"block=16x32", ""},
      {"tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value", "tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value"},
      {"tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value",
       "tensor.norm=nv chain=exact tensor.store=divisor scale=e4m3 block=1x16 scale.rule=value"}};
  for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++)
    for (operands_kind kind = 0; kind < OPERANDS_KINDS; kind++) {
      if (i == 4 && kind == OPERANDS_QUANTISED) continue;
      check_mix(mixes[i][0], mixes[i][1], 3, 19, 45, kind, ALL);
    }
}
END_TEST

/* Blocks of float32 values whose sum binary64 cannot hold, next to a tie of binary32: the lost part decides, however small it is. And sums
 * that cancel down to the lost part. */
START_TEST(lost_parts_decide) {
  enum { K = 64, TIES = 256, ROWS = 4 * TIES };
  float *x = calloc(ROWS * K, sizeof *x), w[K], *got = malloc(ROWS * sizeof *got), *want = malloc(ROWS * sizeof *want);
  for (int k = 0; k < K; k++) w[k] = 1;
  int moved = 0;
  for (int i = 0; i < ROWS; i++) {
    float *row = x + i * K;
    const int tie = i % TIES, kind = i / TIES;
    row[0] = (float)(1 + (tie & 1) * 0x1p-23);         /* in the first block, even and odd last places */
    row[32] = tie & 2 ? -0x1p-24f : 0x1p-24f;          /* in the second, half a place, which is a whole one below a power of two */
    row[33] = ldexpf(tie & 4 ? 1 : -1, -60 - tie / 8); /* and what decides, which binary64 loses below 2^-78 */
    if (kind == 1) row[34] = 3e7f, row[35] = -3e7f;    /* more is lost, and found again */
    if (kind == 2) row[34] = -row[0], row[35] = -row[32];
    if (kind == 3) row[34] = 1e20f, row[35] = 1.7e3f, row[36] = -1e20f, row[37] = -1.7e3f;
  }
  const mx_spec s = operands_spec("elem=none");
  mx_tensor a, b;
  mx_error err;
  ck_assert(!mx_tensor_alloc(&a, ROWS, K, &s) && !mx_tensor_alloc(&b, 1, K, &s));
  ck_assert(!mx_quantize(&a, x, ROWS, K, K, &s, NULL, &err) && !mx_quantize(&b, w, 1, K, K, &s, NULL, &err));
  ck_assert_int_eq(ref_gemm(want, 1, &a, &s, &b, &s, &(mx_gemm_options){.model = MX_GEMM_F32_BLOCK}, NULL), MX_OK);
  ck_assert_int_eq(mx_gemm(got, 1, &a, &s, &b, &s, &(mx_gemm_options){.model = MX_GEMM_F32_BLOCK}, &err), MX_OK);
  operands_compare(got, want, ROWS, MX_F32, "ties");
  for (int i = 0; i < TIES; i++) moved += want[i] != (float)((double)x[i * K] + (double)x[i * K + 32]);
  ck_assert_msg(moved >= TIES / 4, "the lost part decides %d of %d ties alone", moved, TIES);
  free(x);
  free(got);
  free(want);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}
END_TEST

/* The second half of K cancels the first, except for one element in the block of the smallest scale, so that the result is far below the
 * terms. */
static void take_back(mx_tensor *a, mx_tensor *b, const mx_format *elem, uint64_t seed) {
  const size_t code_half = a->code_stride / 2, scale_half = a->scale_cols / 2 * a->scale_bytes;
  const uint8_t sign = elem->bits == 4 ? 0x88 : 0x80;
  for (size_t r = 0; r < b->rows; r++) {
    memcpy(b->codes + r * b->code_stride + code_half, b->codes + r * b->code_stride, code_half);
    memcpy(b->scales + r * 2 * scale_half + scale_half, b->scales + r * 2 * scale_half, scale_half);
  }
  for (size_t r = 0; r < a->rows; r++) {
    uint8_t *row = a->codes + r * a->code_stride, *scales = a->scales + r * 2 * scale_half;
    size_t least = 0;
    for (size_t i = 0; i < code_half; i++) row[code_half + i] = elem->kind == MX_KIND_INT ? (uint8_t)-row[i] : row[i] ^ sign;
    for (size_t i = 0; i < scale_half; i++) least = scales[i] < scales[least] ? i : least;
    memcpy(scales + scale_half, scales, scale_half);
    row[least * (code_half / (a->scale_cols / 2)) + operands_draw(seed, r) % 8] ^= 1;
  }
}

/* `exact` in one, two and three binary64 sums, and where these are not enough: scales spanning 2^0, 2^20, 2^50 and 2^200, and blocks that
 * cancel. */
START_TEST(exact_sums) {
  static const char *const specs[] = {"",          "elem=e4m3", "elem=e5m2", "block=1x16 scale=e4m3 tensor.norm=nv scale.rule=value",
                                      "elem=int8", "elem=none"};
  static const unsigned spread[] = {1, 20, 50, 200};
  static const mx_dtype types[] = {MX_F32, MX_BF16, MX_F16};
  enum { M = 3, N = 18, K = 192 };
  for (size_t s = 0; s < 6; s++)
    for (size_t w = 0; w < 4; w++)
      for (int tail = 0; tail < 4; tail++) {
        const mx_spec spec = operands_spec(specs[s]);
        mx_tensor a, b;
        operands_fill(&a, &spec, M, K, OPERANDS_CANCEL, 51 + w);
        operands_fill(&b, &spec, N, K, OPERANDS_CANCEL, 52 + w);
        for (size_t i = 0; spec.scale == MX_SCALE_E8M0 && s != 5 && i < a.scale_rows * a.scale_cols; i++)
          a.scales[i] = (uint8_t)(127 - spread[w] / 2 + operands_draw(53, i) % spread[w]);
        if (s != 5) take_back(&a, &b, mx_elem_format(spec.elem), 54);
        static const float alpha = 0x1.8p-3f, c[M * N] = {1, 2e-30f, -3e10f}, bias[N] = {0.1f};
        mx_gemm_options o = {.model = MX_GEMM_EXACT, .out = types[tail % 3], .alpha = tail ? &alpha : NULL};
        if (tail == 3) o.c = c, o.bias = bias;
        float want[M * N], got[M * N];
        ref_gemm(want, N, &a, &spec, &b, &spec, &o, NULL);
        for (size_t m = 0; m < 3; m++) {
          o.exec.isa_mask = operands_masks[m];
          mx_error err;
          if (mx_gemm(got, N, &a, &spec, &b, &spec, &o, &err)) ck_abort_msg("%s", err.text);
          operands_compare(got, want, M * N, o.out, specs[s]);
        }
        mx_tensor_free(&a);
        mx_tensor_free(&b);
      }
}
END_TEST

START_TEST(presets) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    const mx_preset *p = mx_preset_at(i);
    mx_spec s;
    if (p->alias_of || mx_preset_find(&s, p->name, NULL)) continue;
    mx_tensor a, b;
    float *x = malloc(20 * 70 * sizeof *x), got[6 * 20], want[6 * 20];
    for (size_t k = 0; k < 20 * 70; k++) x[k] = (float)(int32_t)operands_draw(i, k) * 0x1p-31f;
    ck_assert_int_eq(mx_tensor_alloc(&a, 6, 70, &s) | mx_tensor_alloc(&b, 20, 70, &s), MX_OK);
    const int bad = mx_quantize(&a, x, 6, 70, 70, &s, NULL, NULL) || mx_quantize(&b, x, 20, 70, 70, &s, NULL, NULL);
    for (int model = 0; model < MX_GEMM_FUSED && !bad; model++) {
      const mx_gemm_options o = {.model = model};
      mx_error err;
      if (mx_gemm(got, 20, &a, &s, &b, &s, &o, &err)) ck_abort_msg("%s: %s", p->name, err.text);
      if (model == 0 || i % 8 == 0) {
        ck_assert_int_eq(ref_gemm(want, 20, &a, &s, &b, &s, &o, NULL), MX_OK);
        operands_compare(got, want, 6 * 20, MX_F32, p->name);
      }
    }
    free(x);
    mx_tensor_free(&a);
    mx_tensor_free(&b);
  }
}
END_TEST

/* --- group64 --- */

/* Whole and short groups of 64 on numbers of every kind, on each ISA, for all of D and for a list of outputs. */
START_TEST(group64_is_the_reference) {
  static const char *const specs[] = {"scale=ue5m3_61440 block=1x16", "elem=e4m3", "elem=e5m2 scale=fp32 scale.rule=value", "elem=none"};
  enum { M = 5, N = 19, K = 201 };
  for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
    for (operands_kind kind = 0; kind < OPERANDS_KINDS; kind++) {
      const mx_spec spec = operands_spec(specs[s]);
      mx_tensor a, b;
      operands_fill(&a, &spec, M, K, kind, 5);
      operands_fill(&b, &spec, N, K, kind, 6);
      float got[M * N], want[M * N];
      const float alpha = 0.3f;
      mx_gemm_options o = {.model = MX_GEMM_GROUP64, .alpha = &alpha};
      ck_assert_int_eq(ref_gemm(want, N, &a, &spec, &b, &spec, &o, NULL), MX_OK);
      for (size_t m = 0; m < OPERANDS_MASKS; m++) {
        o.exec.isa_mask = operands_masks[m];
        ck_assert_int_eq(mx_gemm(got, N, &a, &spec, &b, &spec, &o, NULL), MX_OK);
        operands_compare(got, want, M * N, MX_F32, specs[s]);
      }
      mx_tensor_free(&a);
      mx_tensor_free(&b);
    }
}
END_TEST

/* By hand: sums of two groups, added toward zero, then rounded to the lattice, then times alpha = 3. */
START_TEST(group64_by_hand) {
  enum { K = 128, CASES = 10 };
  static const struct {
    float first, second, want;
  } cases[CASES] = {{16384, 0x1.8p-10f, 16384}, /* to nearest: 16384 + 2^-9 */
                    {-16384, -0x1.8p-10f, -16384},
                    {16384, -0x1p-20f, 0x1.fffffep+13f}, /* to nearest: 16384 */
                    {0x1p-11f, 0, 0},                    /* a tie of the lattice goes to the even multiple */
                    {0x1.8p-10f, 0, 0x1p-9f},
                    {-0x1p-11f, 0, -0.0f},
                    {0x1.fffffep+127f, 0x1.fffffep+127f, 0x1.fffffep+127f},
                    {0x1.388002p+12f, 0, 5000}, /* 5000 + 2^-11 is a tie between 5000 and 5000 + 2^-10 */
                    {1, -1, 0},
                    {INFINITY, -INFINITY, NAN}};
  const mx_spec none = operands_spec("elem=none");
  mx_tensor a, b;
  ck_assert_int_eq(mx_tensor_alloc(&a, 1, K, &none) | mx_tensor_alloc(&b, CASES, K, &none), MX_OK);
  float x[K], w[CASES * K] = {0}, got[CASES], want[CASES];
  for (size_t k = 0; k < K; k++) x[k] = 1;
  for (size_t i = 0; i < CASES; i++) w[i * K + 63] = cases[i].first, w[i * K + 64] = cases[i].second;
  ck_assert_int_eq(mx_quantize(&a, x, 1, K, K, &none, NULL, NULL) | mx_quantize(&b, w, CASES, K, K, &none, NULL, NULL), MX_OK);
  const float alpha = 3;
  const mx_gemm_options o = {.model = MX_GEMM_GROUP64, .alpha = &alpha};
  ck_assert_int_eq(mx_gemm(got, CASES, &a, &none, &b, &none, &o, NULL), MX_OK);
  for (size_t i = 0; i < CASES; i++) want[i] = cases[i].want * 3;
  operands_compare(got, want, CASES, MX_F32, "group64 by hand");
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}
END_TEST

/* --- what follows the sum --- */

START_TEST(epilogue) {
  const mx_spec s = operands_spec("tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value");
  static const float scalars[] = {1, 0, -1, 0.333f, 1e-30f, INFINITY, NAN};
  static const mx_dtype types[] = {MX_F32, MX_BF16, MX_F16};
  enum { M = 4, N = 3, K = 40, B = 2, LD = 7 };
  for (int kind = 0; kind < 4; kind++) {
    mx_tensor a, b;
    operands_fill(&a, &s, B * M, K, (operands_kind)kind, 3);
    operands_fill(&b, &s, B * N, K, (operands_kind)kind, 4);
    float bias[M], c[B * M * LD];
    for (int i = 0; i < M; i++) bias[i] = i == 3 ? INFINITY : (float)i * 0.7f - 1;
    for (int i = 0; i < B * M * LD; i++) c[i] = i == 5 ? NAN : i == 9 ? -INFINITY : (float)(int32_t)operands_draw(9, (uint64_t)i) * 0x1p-30f;
    for (int n = 0; n < 7 * 7 * 3 * 4 * 2; n += 3) {
      const int flags = n / 147 % 4;
      mx_gemm_options o = {.model = n / 588 ? MX_GEMM_EXACT : kind,
                           .alpha = &scalars[n % 7],
                           .beta = &scalars[n / 7 % 7],
                           .out = types[n / 49 % 3],
                           .batch = B,
                           .ldc = LD};
      if (flags & 1) o.c = c;
      if (flags & 2) o.bias = bias, o.bias_of_rows = n % 2;
      o.c_type = n % 3 == 0 ? MX_F32 : n % 3 == 1 ? MX_BF16 : MX_F16; /* any bytes will do, whatever the type */
      float got[B * M * LD], want[B * M * LD];
      memset(got, 0x55, sizeof got);
      memset(want, 0x55, sizeof want);
      mx_error err;
      if (mx_gemm(got, LD, &a, &s, &b, &s, &o, &err)) ck_abort_msg("%s", err.text);
      ref_gemm(want, LD, &a, &s, &b, &s, &o, NULL);
      char what[160];
      snprintf(what, sizeof what, "kind %d, case %d, alpha %g, beta %g, flags %d, out %d", kind, n, (double)*o.alpha, (double)*o.beta, flags,
               o.out);
      operands_compare(got, want, sizeof got / mx_dtype_bytes(o.out), o.out, what);
    }
    mx_tensor_free(&a);
    mx_tensor_free(&b);
  }
}
END_TEST

/* Special values typed by hand from SPEC section 4: one output of K = 32 e5m2 elements, with e8m0 scales of 1 unless given. */
START_TEST(specials_by_hand) {
  static const struct {
    uint8_t a[2], b[2], scale_a; /* the first two elements; the others are +0 */
    uint32_t f32;
    uint16_t bf16, f16;
  } cases[] = {
      {{0x3C, 0}, {0x3C, 0}, 127, 0x3F800000, 0x3F80, 0x3C00},       /* 1 * 1 */
      {{0x7D, 0}, {0x3C, 0}, 127, 0x7FC00000, 0x7FC0, 0x7E00},       /* NaN * 1 */
      {{0xFF, 0}, {0, 0}, 127, 0x7FC00000, 0x7FC0, 0x7E00},          /* -NaN * 0: the NaN's sign is lost */
      {{0x7C, 0}, {0xBC, 0}, 127, 0xFF800000, 0xFF80, 0xFC00},       /* Inf * -1 */
      {{0x7C, 0}, {0, 0}, 127, 0x7FC00000, 0x7FC0, 0x7E00},          /* Inf * 0 */
      {{0x7C, 0x7C}, {0x3C, 0xBC}, 127, 0x7FC00000, 0x7FC0, 0x7E00}, /* Inf - Inf */
      {{0x3C, 0}, {0x3C, 0}, 255, 0x7FC00000, 0x7FC0, 0x7E00},       /* scale NaN */
      {{0, 0}, {0, 0}, 255, 0x7FC00000, 0x7FC0, 0x7E00},             /* scale NaN over zeros */
      {{0x80, 0}, {0x3C, 0}, 127, 0, 0, 0},                          /* -0 * 1 is +0 here */
      {{0x3C, 0x3C}, {0x3C, 0xBC}, 127, 0, 0, 0},                    /* 1 - 1 */
      {{0x7B, 0}, {0x7B, 0}, 254, 0x7F800000, 0x7F80, 0x7C00},       /* 57344^2 * 2^127 */
      {{0x7B, 0}, {0x3C, 0}, 127, 0x47600000, 0x4760, 0x7B00},       /* 57344 */
      {{0x7B, 0}, {0x3E, 0}, 127, 0x47A80000, 0x47A8, 0x7C00},       /* 86016 is Inf in f16 */
  };
  const mx_spec spec = operands_spec("elem=e5m2");
  static const int models[] = {MX_GEMM_F32_BLOCK, MX_GEMM_EXACT, MX_GEMM_FUSED};
  const mx_mma_model exact = operands_unit("fused:L=32,F=exact,out=f32rne"), *fused = &exact;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (size_t m = 0; m < 3; m++)
      for (int type = 0; type < 3; type++) {
        mx_tensor a, b;
        ck_assert_int_eq(mx_tensor_alloc(&a, 1, 32, &spec) | mx_tensor_alloc(&b, 1, 32, &spec), MX_OK);
        memcpy(a.codes, cases[i].a, 2);
        memcpy(b.codes, cases[i].b, 2);
        a.scales[0] = cases[i].scale_a;
        b.scales[0] = 127;
        uint32_t d = 0, want = type == 0 ? cases[i].f32 : type == 1 ? cases[i].bf16 : cases[i].f16;
        mx_gemm_options o = {.model = models[m], .fused = fused, .out = type == 0 ? MX_F32 : type == 1 ? MX_BF16 : MX_F16};
        ck_assert_int_eq(mx_gemm(&d, 1, &a, &spec, &b, &spec, &o, NULL), MX_OK);
        ck_assert_msg(d == want, "case %zu, model %d, type %d: %x, by hand %x", i, models[m], type, d, want);
        d = 0;
        ck_assert_int_eq(ref_gemm(&d, 1, &a, &spec, &b, &spec, &o, NULL), MX_OK);
        ck_assert_msg(d == want, "ref, case %zu, model %d, type %d: %x, by hand %x", i, models[m], type, d, want);
        mx_tensor_free(&a);
        mx_tensor_free(&b);
      }
}
END_TEST

START_TEST(refusals) {
  const mx_spec s = {0}, other = operands_spec("block=1x16"), wide = operands_spec("scale=bf16 scale.form=encode");
  mx_tensor a, b;
  float d[4];
  mx_error err;
  ck_assert_int_eq(mx_tensor_alloc(&a, 2, 32, &s) | mx_tensor_alloc(&b, 2, 32, &s), MX_OK);
  ck_assert_int_eq(mx_gemm(d, 1, &a, &s, &b, &s, NULL, &err), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &other, NULL, &err), MX_ERR_CONFLICT);
  ck_assert_int_eq(mx_gemm(NULL, 2, &a, &s, &b, &s, NULL, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.model = 99}, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.out = MX_F64}, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.model = MX_GEMM_FUSED}, &err), MX_ERR_ARG);
  const mx_mma_model ints = operands_unit("s32"), presum = operands_unit("fused:L=64,P=64,F=35");
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.model = MX_GEMM_FUSED, .fused = &ints}, &err), MX_ERR_CONFLICT);
  ck_assert(strstr(err.text, "takes no block scales"));
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.model = MX_GEMM_FUSED, .fused = &presum}, &err), MX_ERR_CONFLICT);
  ck_assert(strstr(err.text, "a block of 32 is not a multiple of P=64"));
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.batch = 3}, &err), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_gemm(d, 2, &a, &wide, &b, &wide, &(mx_gemm_options){.model = MX_GEMM_EXACT}, &err), MX_ERR_UNSUPPORTED);
  const mx_spec narrow = operands_spec("scale=ue5m3 scale.form=encode scale.rule=value"); /* these scales are narrow enough */
  ck_assert_int_eq(mx_gemm(d, 2, &a, &narrow, &b, &wide, &(mx_gemm_options){.model = MX_GEMM_EXACT}, &err), MX_ERR_UNSUPPORTED);
  ck_assert_msg(strstr(err.text, "and bf16 scales"), "%s", err.text);
  const mx_gemm_operand x = {.elem = mx_elem_format(MX_ELEM_E4M3), .data = d};
  ck_assert_int_eq(mx_gemm_raw(&(mx_gemm_problem){.M = 1, .N = 1, .K = 4, .a = x, .b = x}, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_gemm_raw(&(mx_gemm_problem){.M = 1, .N = 1, .K = 4, .a = x, .b = {0}, .d = d}, &err), MX_ERR_ARG);
  /* Fields outside their lists, and a batch that no D can hold; D must stay unchanged. */
  static const struct {
    size_t batch;
    int packing, nibble, form, sign;
    const char *says;
  } bad[] = {{1, 5, 0, 0, 0, "operand A: packing 5"},     {1, -1, 0, 0, 0, "operand A: packing -1"},
             {1, 0, 9, 0, 0, "operand A: nibble 9"},      {1, 0, 0, 7, 0, "operand A: scale_form 7"},
             {1, 0, 0, 0, 7, "operand A: scale_sign 7"},  {(size_t)1 << 62, 0, 0, 0, 0, "in a batch of 4611686018427387904"},
             {1, 0, 0, -1, 0, "operand A: scale_form -1"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const uint8_t one[4] = {0x38, 0x38, 0x38, 0x38}, scale = 127;
    mx_gemm_operand y = {.elem = mx_elem_format(MX_ELEM_E4M3), .data = one, .scale = mx_scale_format(MX_SCALE_E8M0), .scales = &scale};
    mx_gemm_problem p = {.M = 1, .N = 1, .K = 4, .a = y, .b = y, .d = d, .options.batch = bad[i].batch};
    p.a.packing = bad[i].packing;
    p.a.nibble = bad[i].nibble;
    p.a.scale_form = bad[i].form;
    p.a.scale_sign = bad[i].sign;
    d[0] = 77;
    ck_assert_int_ne(mx_gemm_raw(&p, &err), MX_OK);
    ck_assert_msg(strstr(err.text, bad[i].says) && d[0] == 77, "case %zu: %s", i, err.text);
  }
  const size_t outside[][2] = {{1, 0}};
  ck_assert_int_eq(mx_gemm_raw(&(mx_gemm_problem){.M = 1, .N = 1, .K = 4, .a = x, .b = x, .d = d, .pairs = outside, .n_pairs = 1}, &err),
                   MX_ERR_SHAPE);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}
END_TEST

/* Quotients that cancel: the second block is the first with y's signs inverted, so that the sum lies below the last place of a quotient. In
 * every fourth round one scale in sixteen is 0 or NaN. */
START_TEST(quotients_that_cancel) {
  enum { ROWS = 19, BLOCKS = 3, ROUNDS = 24 };
  const mx_spec s = operands_spec("scale=e4m3 scale.form=encode scale.rule=value block=1x16");
  uint64_t word = 0;
  for (int round = 0; round < ROUNDS; round++) {
    mx_tensor t[2];
    uint32_t got[ROWS * ROWS], want[ROWS * ROWS];
    for (int i = 0; i < 2; i++) {
      ck_assert_int_eq(mx_tensor_alloc(&t[i], ROWS, BLOCKS * 16, &s), MX_OK);
      for (size_t r = 0; r < ROWS; r++) {
        uint8_t *codes = t[i].codes + r * t[i].code_stride, *scales = t[i].scales + r * t[i].scale_cols;
        for (size_t k = 0; k < t[i].code_stride; k++) codes[k] = (uint8_t)mx_random(5, MX_STREAM_DATA, word++);
        for (size_t k = 0; k < BLOCKS; k++) {
          const uint32_t draw = mx_random(5, MX_STREAM_DATA, word++);
          scales[k] = round % 4 == 3 && draw % 16 == 0 ? (draw & 16 ? 0x7F : 0) : (uint8_t)(1 + draw / 32 % 126);
        }
        for (size_t k = 0; k < 8; k++) codes[8 + k] = codes[k] ^ (i ? 0x88 : 0);
        scales[1] = scales[0];
      }
    }
    ck_assert_int_eq(mx_gemm(got, ROWS, &t[0], &s, &t[1], &s, NULL, NULL), MX_OK);
    ck_assert_int_eq(ref_gemm(want, ROWS, &t[0], &s, &t[1], &s, NULL, NULL), MX_OK);
    for (int i = 0; i < ROWS * ROWS; i++) ck_assert_msg(got[i] == want[i], "round %d, output %d: %x, ref %x", round, i, got[i], want[i]);
    mx_tensor_free(&t[0]);
    mx_tensor_free(&t[1]);
  }
}
END_TEST

/* One operand decodes, the other encodes: the term is dot * sa / sb, and a zero dot over a zero sb is 0. e2m1, codes 2 (1.0) and 4 (2.0). */
START_TEST(mixed_forms) {
  const mx_spec decode = operands_spec("scale=ue5m3"), encode = operands_spec("scale=ue5m3 scale.form=encode scale.rule=value");
  enum { ONE = 120, TWO = 128, NOTHING = 0 }; /* scales: 1, 2 and 0 */
  static const struct {
    uint8_t code, sa, sb;
    uint32_t want;
  } cases[] = {
      {2, TWO, ONE, 0x40800000},         /* 1 * 2 * 2 / 1 */
      {2, ONE, TWO, 0x3F800000},         /* 1 * 2 * 1 / 2 */
      {2, ONE, NOTHING, 0x7F800000},     /* 2 / 0 */
      {2, NOTHING, NOTHING, 0x7FC00000}, /* 2 * 0 / 0 */
      {0, NOTHING, NOTHING, 0},          /* a block of zeros */
      {0, TWO, NOTHING, 0},
      {2, NOTHING, TWO, 0},
  };
  for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
    const size_t q = i / 2;
    const mx_spec *sx = &decode, *sy = &encode;
    mx_tensor x, y;
    ck_assert_int_eq(mx_tensor_alloc(&x, 1, 32, sx) | mx_tensor_alloc(&y, 1, 32, sy), MX_OK);
    x.codes[0] = cases[q].code;
    y.codes[0] = 4;
    x.scales[0] = cases[q].sa;
    y.scales[0] = cases[q].sb;
    const int swapped = (int)(i % 2);
    uint32_t d[2] = {0, 0};
    ck_assert_int_eq(mx_gemm(&d[0], 1, swapped ? &y : &x, swapped ? sy : sx, swapped ? &x : &y, swapped ? sx : sy, NULL, NULL), MX_OK);
    ck_assert_int_eq(ref_gemm(&d[1], 1, swapped ? &y : &x, swapped ? sy : sx, swapped ? &x : &y, swapped ? sx : sy, NULL, NULL), MX_OK);
    ck_assert_msg(d[0] == cases[q].want && d[1] == d[0], "case %zu: %x, ref %x, by hand %x", q, d[0], d[1], cases[q].want);
    mx_tensor_free(&x);
    mx_tensor_free(&y);
  }
}
END_TEST

/* In the encode form a block of zeros has the scale 0, and 0 / 0 is the code's zero: -0 stays -0 in models whose sum does not begin at +0. */
START_TEST(zeros_over_zero) {
  const mx_spec s = operands_spec("scale=e4m3 scale.form=encode scale.rule=value block=1x16");
  const mx_gemm_options how = {.model = MX_GEMM_F32_PAIRWISE};
  mx_tensor x, y;
  ck_assert_int_eq(mx_tensor_alloc(&x, 1, 3, &s) | mx_tensor_alloc(&y, 1, 3, &s), MX_OK);
  const float zeros[3] = {-0.0f, -0.0f, -0.0f}, ones[3] = {1, 2, 3};
  ck_assert_int_eq(mx_quantize(&x, zeros, 1, 3, 3, &s, NULL, NULL) | mx_quantize(&y, ones, 1, 3, 3, &s, NULL, NULL), MX_OK);
  ck_assert(x.scales[0] == 0 && x.codes[0] == 0x88);
  uint32_t got, want;
  ck_assert_int_eq(mx_gemm(&got, 1, &x, &s, &y, &s, &how, NULL), MX_OK);
  ck_assert_int_eq(ref_gemm(&want, 1, &x, &s, &y, &s, &how, NULL), MX_OK);
  ck_assert_msg(got == 0x80000000 && want == got, "%x, ref %x, expected 80000000", got, want);
  mx_tensor_free(&x);
  mx_tensor_free(&y);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gemm");
  TCase *t = tcase_create("gemm");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, elements);
  tcase_add_test(t, scale_formats);
  tcase_add_test(t, encode_form);
  tcase_add_test(t, zeros_over_zero);
  tcase_add_test(t, quotients_that_cancel);
  tcase_add_test(t, shapes);
  tcase_add_test(t, skinny);
  tcase_add_test(t, zero_blocks);
  tcase_add_test(t, odd_mixes);
  tcase_add_test(t, lost_parts_decide);
  tcase_add_test(t, presets);
  tcase_add_test(t, epilogue);
  tcase_add_test(t, refusals);
  tcase_add_test(t, group64_is_the_reference);
  tcase_add_test(t, group64_by_hand);
  tcase_add_test(t, mixed_forms);
  suite_add_tcase(suite, t);
  t = tcase_create("by hand");
  tcase_add_test(t, specials_by_hand);
  suite_add_tcase(suite, t);
  t = tcase_create("exact");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, exact_sums);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
