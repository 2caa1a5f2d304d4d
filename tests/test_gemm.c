/* The block-scaled product: every model against ref_gemm, element by element of mixes, shapes, layouts, special values. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gemm.h"
#include "gemm/gemm_codes.h"
#include "lib/run.h"
#include "mxgold/isa.h"
#include "mxgold/mma.h"
#include "mxgold/random.h"

/* --- making operands --- */

typedef enum data_kind { NARROW, WIDE, ANY, CANCEL, QUANTISED, DATA_KINDS, ZEROS } data_kind;
static const char *const kind_names[] = {"narrow", "wide", "any", "cancel", "quantised", "", "zeros"};

static uint32_t draw(uint64_t seed, uint64_t i) { return mx_random(seed, MX_STREAM_DATA, i); }

/* Codes and scales of each kind: scales near 1; scales over their whole range; every byte, NaN and Inf among them; rows whose second half of K
 * takes back the first; values through mx_quantize; those with blocks of zeros, whose scales are the smallest. */
static void fill(mx_tensor *t, const mx_spec *spec, size_t rows, size_t cols, data_kind kind, uint64_t seed) {
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  ck_assert_int_eq(mx_tensor_alloc(t, rows, cols, spec), MX_OK);
  float *x = malloc((rows * cols + 1) * sizeof *x);
  for (size_t i = 0; i < rows * cols; i++) x[i] = (float)(int32_t)draw(seed, i) * 0x1p-31f * (i % 7 == 0 ? 16.0f : 1.0f);
  if (elem->kind == MX_KIND_NONE) {
    memcpy(t->codes, x, rows * cols * sizeof *x);
    if (kind == ANY && rows && cols > 2) ((float *)(void *)t->codes)[1] = INFINITY, ((float *)(void *)t->codes)[2] = NAN;
    if (kind == WIDE)
      for (size_t i = 0; i < rows * cols; i++) ((float *)(void *)t->codes)[i] = ldexpf(x[i], (int)(draw(seed + 5, i) % 200) - 100);
    free(x);
    return;
  }
  t->tensor_scale = t->has_tensor_scale ? 0.0123f : 1;
  if (kind == QUANTISED || kind == ZEROS) {
    mx_error err;
    for (size_t i = 0; kind == ZEROS && i < rows * cols; i++)
      if (draw(seed + 7, i / 64) % 3 == 0) x[i] = i % 2 ? -0.0f : 0;
    if (mx_quantize(t, x, rows, cols, cols, spec, NULL, &err)) ck_abort_msg("%s", err.text);
    size_t block_rows, block;
    mx_spec_block(spec, rows, cols, &block_rows, &block);
    for (size_t i = 0; kind == ZEROS && block_rows == 1 && i < rows * t->scale_cols; i++) { /* the smallest scale where nothing wants one */
      const size_t r = i / t->scale_cols, first = i % t->scale_cols * block;
      int any = 0;
      for (size_t k = first; k < cols && k < first + block; k++) any |= x[r * cols + k] != 0;
      if (!any) t->scales[i] = 0;
    }
    free(x);
    return;
  }
  free(x);
  for (size_t i = 0; i < rows * t->code_stride; i++) t->codes[i] = (uint8_t)draw(seed + 1, i);
  if (elem->bits > 4)
    for (size_t i = 0; i < rows * t->code_stride; i++) {
      t->codes[i] &= (uint8_t)((1u << elem->bits) - 1);
      const double v = mx_decode(elem, t->codes[i]);
      if (kind != ANY && !isfinite(v)) t->codes[i] = 1;
    }
  const size_t half = cols / 2;
  if (kind == CANCEL && elem->bits > 4 && elem->kind != MX_KIND_INT)
    for (size_t r = 0; r < rows; r++)
      for (size_t k = 0; k < half && r % 2; k++)
        t->codes[r * t->code_stride + k + half] = t->codes[r * t->code_stride + k] ^ (uint8_t)(1u << (elem->bits - 1));
  if (kind == CANCEL && elem->bits == 4)
    for (size_t r = 0; r < rows; r++)
      for (size_t k = 0; k < half / 2 && r % 2; k++) t->codes[r * t->code_stride + k + half / 2] = t->codes[r * t->code_stride + k] ^ 0x88;
  const uint32_t one = (uint32_t)mx_encode(scale, 1, &(mx_encoding){0}, 0), step = 1u << scale->man_bits;
  for (size_t i = 0; i < t->scale_rows * t->scale_cols; i++) {
    uint32_t code = draw(seed + 2, i) & (uint32_t)((UINT64_C(1) << scale->bits) - 1);
    if (kind == NARROW) code = one + draw(seed + 2, i) % (4 * step);
    if (kind == CANCEL) code = one + (i % 3 == 0 ? 0 : draw(seed + 3, i) % 8 * step);
    if (kind != ANY && !isfinite(mx_decode(scale, code))) code = one;
    memcpy(t->scales + i * t->scale_bytes, &code, t->scale_bytes);
  }
  if (t->micro)
    for (size_t i = 0; i < t->scale_rows * t->scale_cols * 3; i++) t->micro[i] = (uint8_t)draw(seed + 4, i);
}

static mx_spec spec_of(const char *text) {
  mx_spec s;
  memset(&s, 0, sizeof s);
  mx_error err;
  if (mx_spec_parse(&s, text, &err)) ck_abort_msg("%s: %s", text, err.text);
  return s;
}

/* --- comparing --- */

static int same(uint32_t got, uint32_t want, mx_dtype type) {
  (void)type;
  return got == want;
}

static void compare(const void *got, const void *want, size_t n, mx_dtype type, const char *what) {
  for (size_t i = 0; i < n; i++) {
    uint32_t g = 0, w = 0;
    const size_t bytes = mx_dtype_bytes(type);
    memcpy(&g, (const uint8_t *)got + i * bytes, bytes);
    memcpy(&w, (const uint8_t *)want + i * bytes, bytes);
    if (!same(g, w, type)) ck_abort_msg("%s: output %zu is %08x, expected %08x", what, i, g, w);
  }
}

static const uint32_t masks[] = {0, MX_ISA_AVX512, MX_ISA_ALL};

static void check_mix(const char *a_text, const char *b_text, size_t M, size_t N, size_t K, data_kind kind, int models) {
  const mx_spec as = spec_of(a_text), bs = spec_of(b_text);
  mx_tensor a, b;
  fill(&a, &as, M, K, kind, 11);
  fill(&b, &bs, N, K, kind, 23);
  float *got = malloc((M * N + 1) * sizeof *got), *want = malloc((M * N + 1) * sizeof *want);
  for (int model = 0; model < MX_GEMM_FUSED; model++) {
    if (!(models >> model & 1)) continue;
    mx_gemm_options o = {.model = model};
    char what[400];
    mx_error err;
    for (size_t m = 0; m < sizeof masks / sizeof masks[0]; m++) {
      o.exec.isa_mask = masks[m];
      o.exec.n_threads = m == 1 ? 2 : 1;
      memset(got, 0xAA, M * N * sizeof *got);
      if (mx_gemm(got, N, &a, &as, &b, &bs, &o, &err)) ck_abort_msg("%s x %s %s: %s", a_text, b_text, mx_gemm_model_name(model), err.text);
      if (m == 0) ck_assert_int_eq(ref_gemm(want, N, &a, &as, &b, &bs, &o, NULL), MX_OK);
      snprintf(what, sizeof what, "%s x %s, %zu x %zu x %zu, %s, %s, mask %u", a_text, b_text, M, N, K, kind_names[kind],
               mx_gemm_model_name(model), masks[m]);
      compare(got, want, M * N, MX_F32, what);
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
      for (data_kind kind = 0; kind < DATA_KINDS; kind++) {
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
        for (data_kind kind = 0; kind < QUANTISED; kind++) {
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
      for (data_kind kind = 0; kind < QUANTISED; kind++)
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
      check_mix(specs[s], specs[s], sizes[i][0], sizes[i][1], sizes[i][2], i % 2 ? NARROW : QUANTISED, i < 4 ? ALL : BLOCK);
}
END_TEST

/* Few rows of A: B is read as it lies. */
START_TEST(skinny) {
  static const char *const specs[] = {"", "block=1x16 scale=e4m3", "block=1x16", "scale=ue5m3"};
  static const size_t rows[] = {1, 2, 3, 5, 9, 16};
  for (size_t i = 0; i < 6; i++)
    for (size_t s = 0; s < 4; s++)
      for (data_kind kind = 0; kind < DATA_KINDS; kind++) check_mix(specs[s], specs[s], rows[i], 35, 256 + 128 * (i % 2), kind, BLOCK);
}
END_TEST

/* A block of zeros is stored with the smallest scale there is. The kernels on codes take it all the same: no tile is left to the slow way. */
START_TEST(zero_blocks) {
  static const char *const specs[] = {"", "block=1x16 scale=e4m3", "block=1x16", "nibble=high_first", "block=row"};
  static const size_t sizes[][3] = {{1, 35, 256}, {16, 16, 384}, {7, 40, 130}, {33, 17, 64}};
  for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
    for (size_t i = 0; i < 4; i++) check_mix(specs[s], specs[s], sizes[i][0], sizes[i][1], sizes[i][2], ZEROS, BLOCK);
  const mx_spec spec = {0};
  const mx_gemm_options o = {0};
  mx_tensor t;
  mxg_plan plan;
  mxg_packed a, b;
  if (!mxg_codes_best(&o.exec)) return;
  fill(&t, &spec, 16, 1024, ZEROS, 3);
  ck_assert_int_eq(mxg_plan_of_tensors(&plan, &t, &spec, &t, &spec, &o, 16, NULL), MX_OK);
  mxg_move_to(&plan.a, &t, 0, 16);
  mxg_move_to(&plan.b, &t, 0, 16);
  ck_assert(mxg_codes_usable(&plan) && !mxg_codes_alloc(&a, &plan, 1) && !mxg_codes_alloc(&b, &plan, 0));
  mxg_codes_fill_a(&a, &plan.a, &plan, 0);
  mxg_codes_fill_b(&b, &plan.b, &plan, 0);
  ck_assert(!mxg_codes_fit(&a, &b));
  mxg_codes_leave_out_zeros(&a, &plan.a, &plan, 0);
  mxg_codes_leave_out_zeros(&b, &plan.b, &plan, 0);
  ck_assert(mxg_codes_fit(&a, &b));
  mxg_codes_free(&a);
  mxg_codes_free(&b);
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
    for (data_kind kind = 0; kind < DATA_KINDS; kind++) {
      if (i == 4 && kind == QUANTISED) continue;
      check_mix(mixes[i][0], mixes[i][1], 3, 19, 45, kind, ALL);
    }
}
END_TEST

/* The second half of K takes back the first, but for one element in the block of the smallest scale: what is left lies far below the terms. */
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
    row[least * (code_half / (a->scale_cols / 2)) + draw(seed, r) % 8] ^= 1;
  }
}

/* `exact` in one, two and three binary64 sums, and where they do not do: scales over 2^0, 2^20, 2^50 and 2^200, blocks that cancel. */
START_TEST(exact_sums) {
  static const char *const specs[] = {"",          "elem=e4m3", "elem=e5m2", "block=1x16 scale=e4m3 tensor.norm=nv scale.rule=value",
                                      "elem=int8", "elem=none"};
  static const unsigned spread[] = {1, 20, 50, 200};
  static const mx_dtype types[] = {MX_F32, MX_BF16, MX_F16};
  enum { M = 3, N = 18, K = 192 };
  for (size_t s = 0; s < 6; s++)
    for (size_t w = 0; w < 4; w++)
      for (int tail = 0; tail < 4; tail++) {
        const mx_spec spec = spec_of(specs[s]);
        mx_tensor a, b;
        fill(&a, &spec, M, K, CANCEL, 51 + w);
        fill(&b, &spec, N, K, CANCEL, 52 + w);
        for (size_t i = 0; spec.scale == MX_SCALE_E8M0 && s != 5 && i < a.scale_rows * a.scale_cols; i++)
          a.scales[i] = (uint8_t)(127 - spread[w] / 2 + draw(53, i) % spread[w]);
        if (s != 5) take_back(&a, &b, mx_elem_format(spec.elem), 54);
        static const float alpha = 0x1.8p-3f, c[M * N] = {1, 2e-30f, -3e10f}, bias[N] = {0.1f};
        mx_gemm_options o = {.model = MX_GEMM_EXACT, .out = types[tail % 3], .alpha = tail ? &alpha : NULL};
        if (tail == 3) o.c = c, o.bias = bias;
        float want[M * N], got[M * N];
        ref_gemm(want, N, &a, &spec, &b, &spec, &o, NULL);
        for (size_t m = 0; m < 3; m++) {
          o.exec.isa_mask = masks[m];
          mx_error err;
          if (mx_gemm(got, N, &a, &spec, &b, &spec, &o, &err)) ck_abort_msg("%s", err.text);
          compare(got, want, M * N, o.out, specs[s]);
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
    for (size_t k = 0; k < 20 * 70; k++) x[k] = (float)(int32_t)draw(i, k) * 0x1p-31f;
    ck_assert_int_eq(mx_tensor_alloc(&a, 6, 70, &s) | mx_tensor_alloc(&b, 20, 70, &s), MX_OK);
    const int bad = mx_quantize(&a, x, 6, 70, 70, &s, NULL, NULL) || mx_quantize(&b, x, 20, 70, 70, &s, NULL, NULL);
    for (int model = 0; model < MX_GEMM_FUSED && !bad; model++) {
      const mx_gemm_options o = {.model = model};
      mx_error err;
      if (mx_gemm(got, 20, &a, &s, &b, &s, &o, &err)) ck_abort_msg("%s: %s", p->name, err.text);
      if (model == 0 || i % 8 == 0) {
        ck_assert_int_eq(ref_gemm(want, 20, &a, &s, &b, &s, &o, NULL), MX_OK);
        compare(got, want, 6 * 20, MX_F32, p->name);
      }
    }
    free(x);
    mx_tensor_free(&a);
    mx_tensor_free(&b);
  }
}
END_TEST

/* --- matrix-unit models --- */

static mx_mma_model unit(const char *text) {
  mx_mma_model m;
  mx_error err;
  if (mx_mma_model_find(&m, text, &err)) ck_abort_msg("%s: %s", text, err.text);
  return m;
}

/* D by every path against the reference, with all that follows the sum; 0 if the model refuses these operands. */
static int check_fused(const char *a_text, const char *b_text, size_t M, size_t N, size_t K, data_kind kind, const mx_mma_model *m, int tail) {
  static const float alpha = -0.75f, beta = 1.5f;
  const mx_spec as = spec_of(a_text), bs = spec_of(b_text);
  mx_tensor a, b;
  fill(&a, &as, M, K, kind, 41);
  fill(&b, &bs, N, K, kind, 43);
  float *got = malloc((M * N + 1) * sizeof *got), *want = malloc((M * N + 1) * sizeof *want), *c = malloc((M * N + 1) * sizeof *c);
  for (size_t i = 0; i < M * N; i++) c[i] = (float)(int32_t)draw(45, i) * 0x1p-27f;
  mx_gemm_options o = {.model = MX_GEMM_FUSED, .fused = m};
  if (tail) o.alpha = &alpha, o.beta = &beta, o.c = c, o.bias = c, o.out = tail % 3 == 1 ? MX_F32 : tail % 3 == 2 ? MX_F16 : MX_BF16;
  mx_error err;
  mx_status status = MX_OK;
  for (size_t i = 0; i < sizeof masks / sizeof masks[0] && !status; i++) {
    o.exec.isa_mask = masks[i];
    o.exec.n_threads = i == 1 ? 2 : 1;
    memset(got, 0xAA, M * N * sizeof *got);
    status = mx_gemm(got, N, &a, &as, &b, &bs, &o, &err);
    if (status && status != MX_ERR_CONFLICT) ck_abort_msg("%s: %s", m->name, err.text);
    if (status) break;
    if (i == 0) ck_assert_int_eq(ref_gemm(want, N, &a, &as, &b, &bs, &o, NULL), MX_OK);
    char what[500], keys[256];
    mx_accum_text(keys, sizeof keys, &m->accum);
    snprintf(what, sizeof what, "%s x %s, %zu x %zu x %zu, %s, %s (%s), mask %u", a_text, b_text, M, N, K, kind_names[kind], m->name, keys,
             masks[i]);
    compare(got, want, M * N, o.out, what);
  }
  free(got);
  free(want);
  free(c);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  return status == MX_OK;
}

/* Elements, scales in and out of the unit, signs, tiles, nibbles, micro-scales, tensor scales. */
static const char *const fused_mixes[][2] = {
    {"", ""},
    {"elem=e4m3", "elem=e5m2"},
    {"elem=e2m1 scale=e4m3 block=1x16", "elem=e2m1 scale=ue5m3 block=1x16"},
    {"elem=e2m3 scale=e8m3 scale.nan=max block=1x16", "elem=e3m2 scale=e4m3 scale.sign=signed block=1x16"},
    {"elem=int8", "elem=e4m3fnuz"},
    {"elem=e5m2fnuz scale=ue5m3_61440", "elem=int8 scale=ue5m3_122880 scale.nan=max"},
    {"elem=none", "elem=e4m3 block=1x16"},
    {"elem=none", "elem=none"},
    {"scale=bf16", "scale=fp32"},
    {"scale=fp32 scale.sign=signed", "elem=e4m3"},
    {"scale=e4m3 scale.form=encode scale.rule=value block=1x16", "scale=ue5m3 block=1x16"},
    {"scale.form=encode scale.rule=value", "elem=e5m2"},
    {"nibble=high_first block=1x12", "nibble=half_block block=1x12"},
    {"block=16x32", "block=row"},
    {"elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4", "elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4"},
    {"tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value", "tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value"},
};
enum { FUSED_MIXES = sizeof fused_mixes / sizeof fused_mixes[0] };

START_TEST(fused_rows) {
  mx_mma_model m;
  size_t taken = 0, tried = 0;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK && !strchr(m.name, '/'); i++)
    for (size_t x = 0; x < FUSED_MIXES; x++, tried++) {
      if (x == 13 && i % 2) continue;
      const data_kind kind = (data_kind)((i + x) % (x == 6 || x == 7 ? QUANTISED : DATA_KINDS));
      taken += (size_t)check_fused(fused_mixes[x][0], fused_mixes[x][1], 3, 18, 75, kind, &m, (int)(i + x) % 4);
    }
  ck_assert_uint_gt(taken, tried * 3 / 4);
}
END_TEST

START_TEST(fused_instructions) {
  static const char *const names[] = {"hopper/wgmma_m64n8k32_f32_e4m3_e5m2",
                                      "hopper/mma_m16n8k32_f32_e4m3_e4m3_f32",
                                      "hopper/mma_m16n8k16_f16_f16_f16_f16",
                                      "ampere/mma_m16n8k16_f32_bf16_bf16_f32",
                                      "blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3",
                                      "blackwell/tcgen05bs_m128n8k64_block32_f32_e2m1_e2m1_ue8m0",
                                      "rtx_blackwell/mmabs_m16n8k32_block32_f32_e4m3_e5m2_f32_ue8m0",
                                      "cdna3/mfma_f32_16x16x32_fp8_bf8",
                                      "cdna2/mfma_f32_16x16x16f16",
                                      "hopper/mma_m8n8k4_f64_f64_f64_f64",
                                      "cdna4/mfma_scale_f32_16x16x128_f8f6f4_e2m1_e4m3",
                                      "fused:L=32,F=13,out=e8m13rz",
                                      "fused:L=k,F=exact,out=bf16rne",
                                      "fused:L=8,k=32,F=11,align=rne,join=add,order=pairs",
                                      "fused:L=16,F=20,align=rd,P=8,zero=e126",
                                      "blackwell_mxf4:rules=h200"};
  size_t taken = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const mx_mma_model m = unit(names[i]);
    for (size_t x = 0; x < FUSED_MIXES; x++)
      for (size_t q = 0; q < 2; q++) {
        const data_kind kind = (data_kind)((i + x + 2 * q) % (x == 6 || x == 7 ? QUANTISED : DATA_KINDS));
        taken += (size_t)check_fused(fused_mixes[x][0], fused_mixes[x][1], 2, 17, 33 + 16 * (x % 5), kind, &m, (int)kind);
      }
  }
  ck_assert_uint_gt(taken, sizeof names / sizeof *names * FUSED_MIXES);
}
END_TEST

START_TEST(fused_shapes) {
  static const size_t sizes[][3] = {{0, 3, 5}, {3, 0, 5}, {3, 5, 0}, {1, 1, 1}, {1, 17, 64}, {17, 33, 65}, {130, 19, 40}, {5, 5, 257}};
  static const char *const names[] = {"hopper/wgmma_m64n8k32_f32_e4m3_e4m3", "hopper_f16", "cdna3_fp8",
                                      "blackwell/tcgen05bs_m128n8k64_block32_f32_e2m1_e2m1_ue8m0"};
  for (size_t n = 0; n < 4; n++) {
    const mx_mma_model m = unit(names[n]);
    for (size_t i = 0; i < 8; i++) ck_assert(check_fused("", "", sizes[i][0], sizes[i][1], sizes[i][2], NARROW, &m, 0));
  }
  /* K that panels do not hold at once, and no multiple of what they hold */
  for (size_t n = 2; n < 4; n++) {
    const mx_mma_model m = unit(names[n]);
    ck_assert(check_fused("", "", 1, 1, (1 << 16) + 77, NARROW, &m, 0));
  }
}
END_TEST

START_TEST(fused_by_hand) {
  /* 64 ones, and 2^-13 in the second instruction of 32: SPEC's wgmma keeps 13 bits, so that 32 + 2^-13 loses it; in one group of its own it stays. */
  mx_spec s = spec_of("elem=e4m3");
  mx_tensor a, b;
  float d;
  const mx_mma_model m = unit("hopper/wgmma_m64n8k32_f32_e4m3_e4m3");
  mx_gemm_options o = {.model = MX_GEMM_FUSED, .fused = &m};
  ck_assert_int_eq(mx_tensor_alloc(&a, 1, 64, &s) | mx_tensor_alloc(&b, 1, 64, &s), MX_OK);
  memset(a.codes, 0, 64);
  memset(b.codes, 0, 64);
  a.codes[0] = b.codes[0] = a.codes[40] = b.codes[40] = 0x38; /* 1 */
  a.scales[0] = b.scales[0] = b.scales[1] = 127;
  a.scales[1] = 127 - 13;
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  ck_assert(d == 1 + 0x1p-13f);
  a.scales[1] = 127 - 14; /* one place further it is cut, C's way: 1 comes first, then 2^-14 is aligned to it */
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  ck_assert(d == 1);
  /* C does not enter the unit: 2^-14 + C is one fused multiply-add of binary32 after the sum. */
  const float c = 0x1p-20f;
  o.c = &c;
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  ck_assert(d == 1 + 0x1p-20f);
  o.c = NULL;
  /* A NaN scale makes NaN of everything, in mx_gemm()'s bits whatever the unit's are. */
  a.scales[1] = 255;
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  uint32_t bits;
  memcpy(&bits, &d, 4);
  ck_assert_uint_eq(bits, 0x7FC00000);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  /* s8 x s8 without scales: ones, modulo 2^32. */
  const mx_mma_model ints = unit("s32");
  const int8_t x[4] = {-128, 127, 3, 0}, y[4] = {-128, 2, -1, 9};
  mx_gemm_problem p = {.M = 1,
                       .N = 1,
                       .K = 4,
                       .a = {.elem = mx_format_find("s8"), .data = x},
                       .b = {.elem = mx_format_find("s8"), .data = y, .transposed = 1},
                       .d = &d};
  p.options = (mx_gemm_options){.model = MX_GEMM_FUSED, .fused = &ints};
  mx_error err;
  if (mx_gemm_raw(&p, &err)) ck_abort_msg("%s", err.text);
  ck_assert(d == 16384 + 254 - 3);
}
END_TEST

/* --- what follows the sum --- */

START_TEST(epilogue) {
  const mx_spec s = spec_of("tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value");
  static const float scalars[] = {1, 0, -1, 0.333f, 1e-30f, INFINITY, NAN};
  static const mx_dtype types[] = {MX_F32, MX_BF16, MX_F16};
  enum { M = 4, N = 3, K = 40, B = 2, LD = 7 };
  for (int kind = 0; kind < 4; kind++) {
    mx_tensor a, b;
    fill(&a, &s, B * M, K, (data_kind)kind, 3);
    fill(&b, &s, B * N, K, (data_kind)kind, 4);
    float bias[M], c[B * M * LD];
    for (int i = 0; i < M; i++) bias[i] = i == 3 ? INFINITY : (float)i * 0.7f - 1;
    for (int i = 0; i < B * M * LD; i++) c[i] = i == 5 ? NAN : i == 9 ? -INFINITY : (float)(int32_t)draw(9, (uint64_t)i) * 0x1p-30f;
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
      o.c_type = n % 3 == 0 ? MX_F32 : n % 3 == 1 ? MX_BF16 : MX_F16; /* the same bytes read as another type are as good as any */
      float got[B * M * LD], want[B * M * LD];
      memset(got, 0x55, sizeof got);
      memset(want, 0x55, sizeof want);
      mx_error err;
      if (mx_gemm(got, LD, &a, &s, &b, &s, &o, &err)) ck_abort_msg("%s", err.text);
      ref_gemm(want, LD, &a, &s, &b, &s, &o, NULL);
      char what[160];
      snprintf(what, sizeof what, "kind %d, case %d, alpha %g, beta %g, flags %d, out %d", kind, n, (double)*o.alpha, (double)*o.beta, flags,
               o.out);
      compare(got, want, sizeof got / mx_dtype_bytes(o.out), o.out, what);
    }
    mx_tensor_free(&a);
    mx_tensor_free(&b);
  }
}
END_TEST

/* Special values typed by hand: SPEC section 4. One output of K = 32 e5m2 elements, e8m0 scales 1 unless said. */
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
  const mx_spec spec = spec_of("elem=e5m2");
  static const int models[] = {MX_GEMM_F32_BLOCK, MX_GEMM_EXACT, MX_GEMM_FUSED};
  const mx_mma_model exact = unit("fused:L=32,F=exact,out=f32rne"), *fused = &exact;
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

/* --- the validator's call --- */

static void check_raw(mx_gemm_problem *p, size_t d_bytes, const char *what) {
  uint8_t *got = malloc(d_bytes), *want = malloc(d_bytes);
  memset(got, 0x55, d_bytes);
  memset(want, 0x55, d_bytes);
  mx_error err;
  p->d = got;
  if (mx_gemm_raw(p, &err)) ck_abort_msg("%s: %s", what, err.text);
  p->d = want;
  ref_gemm_raw(p, NULL);
  compare(got, want, d_bytes / mx_dtype_bytes(p->options.out), p->options.out, what);
  free(got);
  free(want);
}

START_TEST(raw) {
  static const char *const elems[] = {"e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "int8", "bf16", "f16", "fp32"};
  enum { M = 34, N = 19, K = 42, LD = 80, BATCH = 2, ROOM = 80 * 80 * 4 };
  uint8_t *bytes = malloc(ROOM * BATCH * 2);
  static uint8_t scales[2][BATCH * 16384];
  for (size_t i = 0; i < ROOM * BATCH * 2; i++) bytes[i] = (uint8_t)draw(77, i);
  for (size_t i = 0; i < sizeof scales; i++) ((uint8_t *)scales)[i] = (uint8_t)(118 + draw(78, i) % 16);
  static float c[BATCH * LD * LD];
  for (size_t i = 0; i < BATCH * LD * LD; i++) c[i] = (float)(int32_t)draw(79, i) * 0x1p-24f;
  const float alpha = 0.75f, beta = -2, g = 1.0f / 3;
  static const char *const scale_names[] = {"e8m0", "e4m3", "ue5m3"};
  const mx_mma_model units[] = {unit("hopper_f16"), unit("cdna3/mfma_f32_16x16x32_fp8_fp8"), unit("fused:L=32,F=13,out=e8m13rz")};
  int n = 0;
  for (int order = 0; order < 2; order++)
    for (int ta = 0; ta < 2; ta++)
      for (int tb = 0; tb < 2; tb++)
        for (int e = 0; e < 9; e++)
          for (int layout = 0; layout < MX_LAYOUT_COUNT + 1; layout++, n++) {
            mx_gemm_problem p = {.M = M,
                                 .N = N,
                                 .K = K,
                                 .block = n % 2 ? 32 : 16,
                                 .order = order,
                                 .ldd = n % 3 ? 0 : LD,
                                 .options = {.model = n % 6,
                                             .fused = &units[n / 6 % 3],
                                             .alpha = &alpha,
                                             .batch = BATCH,
                                             .out = n % 4 == 0   ? MX_F16
                                                    : n % 4 == 1 ? MX_BF16
                                                                 : MX_F32}};
            p.a = (mx_gemm_operand){.elem = mx_format_find(elems[e]),
                                    .transposed = ta,
                                    .ld = n % 2 ? LD : 0,
                                    .data = bytes,
                                    .stride = ROOM / 4,
                                    .packing = n % 7 == 0,
                                    .nibble = n % 5 == 0,
                                    .multiplier = &g};
            p.b = (mx_gemm_operand){.elem = mx_format_find(elems[(e + n) % 9]),
                                    .transposed = tb,
                                    .ld = LD,
                                    .data = bytes + ROOM,
                                    .stride = ROOM / 4,
                                    .packing = n % 11 == 0};
            for (int side = 0; side < 2; side++) {
              mx_gemm_operand *x = side ? &p.b : &p.a;
              if (side && n % 13 == 0) continue; /* one operand without scales */
              x->scale = mx_format_find(scale_names[n / 2 % 3]);
              x->scales = scales[side];
              x->scale_layout = layout % MX_LAYOUT_COUNT;
              x->scale_transposed = layout == MX_LAYOUT_COUNT;
              x->scale_stride = n % 2 ? 16384 : 0;
            }
            if (!strcmp(elems[e], "e4m3")) p.a.scale = mx_format_find("e8m0");
            p.ldd = p.ldd ? LD : 0;
            p.stride_d = LD * LD;
            if (n % 3 == 1) p.options.c = c, p.options.ldc = LD, p.stride_c = 100, p.options.beta = &beta;
            char what[200];
            snprintf(what, sizeof what, "raw %d: order %d, trans %d %d, %s x %s, layout %d", n, order, ta, tb, p.a.elem->name, p.b.elem->name,
                     layout);
            if (n % 12 == 0) check_raw(&p, BATCH * LD * LD * mx_dtype_bytes(p.options.out), what);
            /* a list alone, by pointer batch */
            const size_t pairs[][2] = {{0, 0}, {33, 18}, {33, 2}, {5, 18}, {5, 17}};
            const void *list[BATCH] = {bytes + 16, bytes};
            p.pairs = pairs;
            p.n_pairs = 5;
            p.a.list = list;
            p.stride_d = 0;
            check_raw(&p, BATCH * 5 * mx_dtype_bytes(p.options.out), what);
          }
  free(bytes);
}
END_TEST

START_TEST(refusals) {
  const mx_spec s = {0}, other = spec_of("block=1x16"), wide = spec_of("scale=bf16 scale.form=encode");
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
  const mx_mma_model ints = unit("s32"), presum = unit("fused:L=64,P=64,F=35");
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.model = MX_GEMM_FUSED, .fused = &ints}, &err), MX_ERR_CONFLICT);
  ck_assert(strstr(err.text, "has no block scales"));
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.model = MX_GEMM_FUSED, .fused = &presum}, &err), MX_ERR_CONFLICT);
  ck_assert(strstr(err.text, "a block of 32 is not a multiple of P=64"));
  ck_assert_int_eq(mx_gemm(d, 2, &a, &s, &b, &s, &(mx_gemm_options){.batch = 3}, &err), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_gemm(d, 2, &a, &wide, &b, &wide, &(mx_gemm_options){.model = MX_GEMM_EXACT}, &err), MX_ERR_UNSUPPORTED);
  const mx_gemm_operand x = {.elem = mx_elem_format(MX_ELEM_E4M3), .data = d};
  ck_assert_int_eq(mx_gemm_raw(&(mx_gemm_problem){.M = 1, .N = 1, .K = 4, .a = x, .b = x}, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_gemm_raw(&(mx_gemm_problem){.M = 1, .N = 1, .K = 4, .a = x, .b = {0}, .d = d}, &err), MX_ERR_ARG);
  const size_t outside[][2] = {{1, 0}};
  ck_assert_int_eq(mx_gemm_raw(&(mx_gemm_problem){.M = 1, .N = 1, .K = 4, .a = x, .b = x, .d = d, .pairs = outside, .n_pairs = 1}, &err),
                   MX_ERR_SHAPE);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}
END_TEST

/* --- products that no order can change --- */

START_TEST(order_free) {
  static const char *const specs[] = {"",          "block=1x16 scale=e4m3", "elem=e4m3", "elem=e5m2", "elem=e2m3 scale=ue5m3", "elem=e3m2",
                                      "elem=int8", "nibble=half_block",     "scale=fp32"};
  for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
    for (unsigned bits = 14; bits <= 24; bits += 10) {
      const mx_spec spec = spec_of(specs[s]);
      enum { M = 5, N = 18 };
      const size_t K = bits == 24 ? 300 : 70;
      mx_tensor a, b;
      ck_assert_int_eq(mx_tensor_alloc(&a, M, K, &spec) | mx_tensor_alloc(&b, N, K, &spec), MX_OK);
      ck_assert_int_eq(mx_gemm_make_order_free(&a, &spec, &b, &spec, bits, s + bits), MX_OK);
      float want[M * N], got[M * N];
      ref_gemm(want, N, &a, &spec, &b, &spec, &(mx_gemm_options){.model = MX_GEMM_EXACT}, NULL);
      int zeros = 0;
      for (int i = 0; i < M * N; i++) zeros += want[i] == 0;
      ck_assert_int_lt(zeros, M * N / 4);
      for (int model = 0; model < MX_GEMM_FUSED; model++) {
        ck_assert_int_eq(mx_gemm(got, N, &a, &spec, &b, &spec, &(mx_gemm_options){.model = model}, NULL), MX_OK);
        compare(got, want, M * N, MX_F32, specs[s]);
      }
      /* a random order, in binary32 without fused operations */
      float *x = malloc(M * K * sizeof *x), *y = malloc(N * K * sizeof *y);
      mx_dequantize(x, K, &a, &spec, NULL);
      mx_dequantize(y, K, &b, &spec, NULL);
      size_t order[300];
      for (size_t k = 0; k < K; k++) order[k] = k;
      for (size_t k = K - 1; k; k--) {
        const size_t other = draw(s, k) % (k + 1), keep = order[k];
        order[k] = order[other];
        order[other] = keep;
      }
      for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
          float sum = 0;
          for (size_t k = 0; k < K; k++) sum += x[i * K + order[k]] * y[j * K + order[k]];
          got[i * N + j] = sum;
        }
      compare(got, want, M * N, MX_F32, specs[s]);
      free(x);
      free(y);
      a.codes[3] ^= 0x55;
      a.scales[0] = spec.scale == MX_SCALE_E8M0 ? 250 : a.scales[0];
      int ok = 1;
      ck_assert_int_eq(mx_gemm_order_free(&ok, &a, &spec, &b, &spec, 4), MX_OK);
      ck_assert_int_eq(ok, 0);
      mx_tensor_free(&a);
      mx_tensor_free(&b);
    }
}
END_TEST

START_TEST(bounds) {
  static const char *const specs[] = {"", "elem=e4m3", "elem=e5m2", "tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value",
                                      "scale=e4m3 scale.form=encode block=1x16"};
  enum { M = 4, N = 7, K = 90 };
  for (size_t s = 0; s < 5; s++)
    for (data_kind kind = 0; kind < QUANTISED; kind++) {
      const mx_spec spec = spec_of(specs[s]);
      mx_tensor a, b;
      fill(&a, &spec, M, K, kind, 31);
      fill(&b, &spec, N, K, kind, 32);
      const float alpha = -1.5f, beta = 0.25f, bias[N] = {1, 2, 3};
      float c[M * N], lo[M * N], hi[M * N], d[M * N];
      for (int i = 0; i < M * N; i++) c[i] = (float)i;
      mx_gemm_options o = {.alpha = &alpha, .beta = &beta, .c = c, .bias = bias};
      mx_error err;
      if (mx_gemm_bound(lo, hi, N, &a, &spec, &b, &spec, &o, NULL, &err)) ck_abort_msg("%s", err.text);
      for (o.model = 0; o.model < MX_GEMM_FUSED; o.model++) {
        if (o.model == MX_GEMM_EXACT) continue; /* another epilogue */
        if (kind != NARROW && kind != CANCEL && (o.model == MX_GEMM_F32_SEQ || o.model == MX_GEMM_F32_PAIRWISE))
          continue; /* code * scale alone may overflow */
        mx_gemm(d, N, &a, &spec, &b, &spec, &o, NULL);
        for (int i = 0; i < M * N; i++)
          if (!(lo[i] <= d[i] && d[i] <= hi[i]) && !isnan(lo[i]) && !(isinf(lo[i]) && isinf(hi[i])))
            ck_abort_msg("%s, %s: %a outside [%a, %a]", specs[s], mx_gemm_model_name(o.model), (double)d[i], (double)lo[i], (double)hi[i]);
      }
      if (kind == NARROW) /* tight, too: a few units of the magnitudes, not a blank cheque */
        for (int i = 0; i < M * N; i++) ck_assert(hi[i] - lo[i] < 0.01f * (fabsf(hi[i]) + 10 * (s == 3 ? 1 : 1e3f)) || s == 4 || s == 2);
      mx_tensor_free(&a);
      mx_tensor_free(&b);
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gemm");
  TCase *t = tcase_create("gemm");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, elements);
  tcase_add_test(t, scale_formats);
  tcase_add_test(t, encode_form);
  tcase_add_test(t, shapes);
  tcase_add_test(t, skinny);
  tcase_add_test(t, zero_blocks);
  tcase_add_test(t, odd_mixes);
  tcase_add_test(t, presets);
  tcase_add_test(t, epilogue);
  tcase_add_test(t, raw);
  tcase_add_test(t, refusals);
  tcase_add_test(t, order_free);
  tcase_add_test(t, bounds);
  suite_add_tcase(suite, t);
  t = tcase_create("by hand");
  tcase_add_test(t, specials_by_hand);
  suite_add_tcase(suite, t);
  t = tcase_create("exact");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, exact_sums);
  suite_add_tcase(suite, t);
  t = tcase_create("fused");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, fused_rows);
  tcase_add_test(t, fused_instructions);
  tcase_add_test(t, fused_shapes);
  tcase_add_test(t, fused_by_hand);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
