/* Computes products for golden vectors: each model of mx_gemm(), each row of accumulation.def and some instructions, on every pair of operand formats and
 * every kind of input. */
#include "products.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/gemm.h"
#include "mxgold/mma.h"
#include "oracles.h"
#include "product_inputs.h"

enum { M = PRODUCT_M, N = PRODUCT_N, K = PRODUCT_K };

static const char *const instructions[] = {"hopper/wgmma_m64n8k32_f32_e4m3_e5m2", "blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3",
                                           "hopper/mma_m16n8k32_f32_e4m3_e4m3_f32", "ampere/mma_m16n8k16_f32_f16_f16_f32",
                                           "cdna3/mfma_f32_16x16x32_fp8_bf8"};

typedef struct walk {
  product_fn *fn;
  void *to;
} walk;

static void quantised(mx_tensor *t, mx_spec *spec, const char *keys, int kind, size_t rows, int is_b) {
  mx_error err;
  memset(spec, 0, sizeof *spec);
  if (mx_spec_parse(spec, keys, &err)) {
    fprintf(stderr, "products: %s\n", err.text);
    abort();
  }
  float *x = product_operand(kind, rows, is_b);
  if (mx_tensor_alloc(t, rows, K, spec) || ref_quantize(t, x, rows, K, K, spec, NULL, NULL)) abort();
  free(x);
}

static void one(const walk *w, const product_mix *m, int kind, const mx_gemm_options *how, const char *model) {
  mx_spec as, bs;
  mx_tensor a, b;
  float d[M * N];
  char operation[96];
  quantised(&a, &as, m->keys[0], kind, M, 0);
  quantised(&b, &bs, m->keys[1], kind, N, 1);
  mx_gemm_options o = *how;
  product_after(&o, kind);
  if (ref_gemm(d, N, &a, &as, &b, &bs, &o, NULL)) abort();
  snprintf(operation, sizeof operation, "gemm:%s", model);
  w->fn(w->to, operation, m->name, product_kinds[kind], d, M * N * mx_dtype_bytes(o.out));
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}

static int takes(const product_mix *m, const mx_accum *x) { return x->op != MX_ACC_OP_INTEGER && !(m->wide && (x->P || x->via)); }

void products_each(product_fn *fn, void *to) {
  const walk w = {fn, to};
  mx_mma_model m;
  for (size_t x = 0; x < PRODUCT_MIXES; x++)
    for (int s = 0; s < PRODUCT_KINDS; s++) {
      for (int model = 0; model < MX_GEMM_FUSED; model++)
        one(&w, &product_mixes[x], s, &(mx_gemm_options){.model = model}, mx_gemm_model_name(model));
      const mx_gemm_options unit = {.model = MX_GEMM_FUSED, .fused = &m};
      for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK && !strchr(m.name, '/'); i++)
        if (mx_gemm_model_find(m.name) < 0 && takes(&product_mixes[x], &m.accum)) one(&w, &product_mixes[x], s, &unit, m.name);
      for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        if (mx_mma_model_find(&m, instructions[i], NULL)) abort();
        if (takes(&product_mixes[x], &m.accum)) one(&w, &product_mixes[x], s, &unit, m.name);
      }
    }
}
