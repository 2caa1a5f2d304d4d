/* Each model of mx_gemm(), each row of accumulation.def and some instructions, on each mix, on each suite. */
#include "products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/gemm.h"
#include "mxgold/mma.h"
#include "oracles.h"

enum { M = 3, N = 4, K = 72 }; /* K: no multiple of a block or an instruction */

typedef struct mix {
  const char *name, *a, *b;
  int wide; /* an operand is dequantised to binary32: P and via have no room for it */
} mix;

static const mix mixes[] = {
    {"mxfp4*mxfp4", "", "", 0},
    {"nvfp4*nvfp4", "scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv", "scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv", 0},
    {"mxfp8-e4m3*mxfp8-e5m2", "elem=e4m3", "elem=e5m2", 0},
    {"mxfp6-e2m3*mxfp6-e3m2", "elem=e2m3", "elem=e3m2", 0},
    {"mxint8*mxfp8-e4m3", "elem=int8", "elem=e4m3", 0},
    {"e2m1-e4m3*e2m1-ue5m3", "scale=e4m3 scale.rule=value", "scale=ue5m3 scale.rule=value", 0},
    {"e4m3fnuz*mxfp4", "elem=e4m3fnuz", "", 0},
    {"hif4*hif4", "elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4", "elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4", 0},
    {"none*mxfp8-e4m3", "elem=none", "elem=e4m3", 1},
    {"e2m1-fp32*e2m1-e4m3-encode", "scale=fp32 scale.rule=value", "scale=e4m3 scale.rule=value scale.form=encode", 1},
};

static const char *const instructions[] = {"hopper/wgmma_m64n8k32_f32_e4m3_e5m2", "blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3",
                                           "hopper/mma_m16n8k32_f32_e4m3_e4m3_f32", "ampere/mma_m16n8k16_f32_f16_f16_f32",
                                           "cdna3/mfma_f32_16x16x32_fp8_bf8"};

typedef struct walk {
  product_fn *fn;
  void *to;
} walk;

/* Rows [first, first + rows) of a suite, cut or filled with +0 to K columns. Suite -1: bell-shaped numbers of one size, in a block now and then
 * 2^-20 of it. */
static float *operand(int s, const mx_spec *spec, size_t first, size_t rows) {
  float *x = calloc(rows * K, sizeof *x);
  if (!x) abort();
  if (s < 0) {
    uint64_t state = 0x6D6D61 + first;
    for (size_t i = 0; i < rows * K; i++) {
      int sum = 0;
      for (int n = 0; n < 4; n++) sum += (int)((state = state * UINT64_C(6364136223846793005) + 1442695040888963407) >> 49);
      x[i] = (float)(sum - 2 * 0x7FFF) * (i / 16 % 7 == 3 ? 0x1p-34f : 0x1p-14f);
    }
    return x;
  }
  size_t have, cols;
  float *all = suite_make(&have, &cols, (suite)s, spec, &oracle_ref);
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < K && c < cols; c++) x[r * K + c] = all[(first + r) % have * cols + c];
  free(all);
  return x;
}

static void quantised(mx_tensor *t, mx_spec *spec, const char *keys, int s, size_t first, size_t rows) {
  mx_error err;
  memset(spec, 0, sizeof *spec);
  if (mx_spec_parse(spec, keys, &err)) {
    fprintf(stderr, "products: %s\n", err.text);
    abort();
  }
  float *x = operand(s, spec, first, rows);
  if (mx_tensor_alloc(t, rows, K, spec) || ref_quantize(t, x, rows, K, K, spec, NULL, NULL)) abort();
  free(x);
}

/* One product as it is, and one with all that follows the sum. */
static void one(const walk *w, const mix *m, int s, const mx_gemm_options *how, const char *model) {
  static const float alpha = 0.75f, beta = -1.5f, bias[N] = {1, -2, 0.3f, 1e-3f}, c[M * N] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  mx_spec as, bs;
  mx_tensor a, b;
  float d[M * N];
  char operation[96];
  quantised(&a, &as, m->a, s, 0, M);
  quantised(&b, &bs, m->b, s, 5, N);
  mx_gemm_options o = *how;
  if (s == SUITE_TAILS) o.alpha = &alpha, o.beta = &beta, o.c = c, o.bias = bias, o.out = MX_BF16;
  if (ref_gemm(d, N, &a, &as, &b, &bs, &o, NULL)) abort();
  snprintf(operation, sizeof operation, "gemm:%s", model);
  w->fn(w->to, operation, m->name, s < 0 ? "near" : suite_name((suite)s), d, M * N * mx_dtype_bytes(o.out));
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}

static int takes(const mix *m, const mx_accum *x) { return x->op != MX_ACC_OP_INTEGER && !(m->wide && (x->P || x->via)); }

void products_each(product_fn *fn, void *to) {
  static const int suites[] = {-1, SUITE_SPECIAL, SUITE_NONFINITE, SUITE_TAILS};
  const walk w = {fn, to};
  mx_mma_model m;
  for (size_t x = 0; x < sizeof mixes / sizeof *mixes; x++)
    for (size_t s = 0; s < sizeof suites / sizeof *suites; s++) {
      for (int model = 0; model < MX_GEMM_FUSED; model++)
        one(&w, &mixes[x], suites[s], &(mx_gemm_options){.model = model}, mx_gemm_model_name(model));
      const mx_gemm_options unit = {.model = MX_GEMM_FUSED, .fused = &m};
      for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK && !strchr(m.name, '/'); i++)
        if (mx_gemm_model_find(m.name) < 0 && takes(&mixes[x], &m.accum)) one(&w, &mixes[x], suites[s], &unit, m.name);
      for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        if (mx_mma_model_find(&m, instructions[i], NULL)) abort();
        if (takes(&mixes[x], &m.accum)) one(&w, &mixes[x], suites[s], &unit, m.name);
      }
    }
}
