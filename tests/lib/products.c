/* Computes products for golden vectors: each model of mx_gemm(), each row of accumulation.def and some instructions, on each mix, on each kind of
 * inputs. */
#include "products.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/gemm.h"
#include "mxgold/mma.h"
#include "oracles.h"

enum { M = 3, N = 4, K = 104 }; /* K: no multiple of a block or an instruction */

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

static const char *const inputs[] = {"near", "cancel", "wide", "nonfinite", "after"};
enum { NEAR, CANCEL, WIDE, NONFINITE, AFTER, INPUTS };

static uint32_t draw(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (uint32_t)(*state >> 33);
}

/* Bell-shaped numbers in runs of 16 of one size: over 2^13 (near), 2^135 (wide). cancel: the last half takes back what the first half of a row of A
 * gave, but for one element in eight. nonfinite: NaN and Inf in the first row. after: near, and what follows the sum. */
static float *operand(int kind, size_t rows, int is_b) {
  uint64_t state = 0x6D6D6178 + 2 * (uint64_t)kind + (uint64_t)is_b;
  float *x = calloc(rows * K, sizeof *x);
  if (!x) abort();
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0, size = 0; k < K; k++) {
      int sum = -2 * 0x7FFF;
      for (int n = 0; n < 4; n++) sum += (int)(draw(&state) & 0x7FFF);
      if (k % 16 == 0) size = draw(&state) % (kind == WIDE ? 68 : 14);
      float *at = x + r * K + k;
      *at = ldexpf((float)sum, (kind == WIDE ? 16 : -14) - (int)size * (kind == WIDE ? 2 : 1));
      if (kind == CANCEL && k >= K / 2 && draw(&state) % 8) *at = is_b ? at[-(K / 2)] : -at[-(K / 2)];
      if (kind == NONFINITE && r == 0 && k == (is_b ? 80 : 50)) *at = is_b ? INFINITY : NAN;
    }
  return x;
}

static void quantised(mx_tensor *t, mx_spec *spec, const char *keys, int kind, size_t rows, int is_b) {
  mx_error err;
  memset(spec, 0, sizeof *spec);
  if (mx_spec_parse(spec, keys, &err)) {
    fprintf(stderr, "products: %s\n", err.text);
    abort();
  }
  float *x = operand(kind, rows, is_b);
  if (mx_tensor_alloc(t, rows, K, spec) || ref_quantize(t, x, rows, K, K, spec, NULL, NULL)) abort();
  free(x);
}

static void one(const walk *w, const mix *m, int kind, const mx_gemm_options *how, const char *model) {
  static const float alpha = 0.75f, beta = -1.5f, bias[N] = {1, -2, 0.3f, 1e-3f}, c[M * N] = {1, 2, 3, 4, -5, 6, 7, 8, 9, 1e-4f, 1e6f, -0.0f};
  mx_spec as, bs;
  mx_tensor a, b;
  float d[M * N];
  char operation[96];
  quantised(&a, &as, m->a, kind, M, 0);
  quantised(&b, &bs, m->b, kind, N, 1);
  mx_gemm_options o = *how;
  if (kind == AFTER) o.alpha = &alpha, o.beta = &beta, o.c = c, o.bias = bias, o.out = MX_F16;
  if (ref_gemm(d, N, &a, &as, &b, &bs, &o, NULL)) abort();
  snprintf(operation, sizeof operation, "gemm:%s", model);
  w->fn(w->to, operation, m->name, inputs[kind], d, M * N * mx_dtype_bytes(o.out));
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}

static int takes(const mix *m, const mx_accum *x) { return x->op != MX_ACC_OP_INTEGER && !(m->wide && (x->P || x->via)); }

void products_each(product_fn *fn, void *to) {
  const walk w = {fn, to};
  mx_mma_model m;
  for (size_t x = 0; x < sizeof mixes / sizeof *mixes; x++)
    for (int s = 0; s < INPUTS; s++) {
      for (int model = 0; model < MX_GEMM_FUSED; model++) one(&w, &mixes[x], s, &(mx_gemm_options){.model = model}, mx_gemm_model_name(model));
      const mx_gemm_options unit = {.model = MX_GEMM_FUSED, .fused = &m};
      for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK && !strchr(m.name, '/'); i++)
        if (mx_gemm_model_find(m.name) < 0 && takes(&mixes[x], &m.accum)) one(&w, &mixes[x], s, &unit, m.name);
      for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        if (mx_mma_model_find(&m, instructions[i], NULL)) abort();
        if (takes(&mixes[x], &m.accum)) one(&w, &mixes[x], s, &unit, m.name);
      }
    }
}
