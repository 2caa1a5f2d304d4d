/* Makes the operands of golden products. */
#include "product_inputs.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

const product_mix product_mixes[PRODUCT_MIXES] = {
    {"mxfp4*mxfp4", {"", ""}, 0},
    {"nvfp4*nvfp4", {"scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv", "scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv"}, 0},
    {"mxfp8-e4m3*mxfp8-e5m2", {"elem=e4m3", "elem=e5m2"}, 0},
    {"mxfp6-e2m3*mxfp6-e3m2", {"elem=e2m3", "elem=e3m2"}, 0},
    {"mxint8*mxfp8-e4m3", {"elem=int8", "elem=e4m3"}, 0},
    {"e2m1-e4m3*e2m1-ue5m3", {"scale=e4m3 scale.rule=value", "scale=ue5m3 scale.rule=value"}, 0},
    {"e4m3fnuz*mxfp4", {"elem=e4m3fnuz", ""}, 0},
    {"hif4*hif4", {"elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4", "elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4"}, 0},
    {"none*mxfp8-e4m3", {"elem=none", "elem=e4m3"}, 1},
    {"e2m1-fp32*e2m1-e4m3-encode", {"scale=fp32 scale.rule=value", "scale=e4m3 scale.rule=value scale.form=encode"}, 1},
};

const char *const product_kinds[PRODUCT_KINDS] = {"near", "cancel", "wide", "nonfinite", "after"};

static uint32_t draw(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (uint32_t)(*state >> 33);
}

float *product_operand(int kind, size_t rows, int is_b) {
  uint64_t state = 0x6D6D6178 + 2 * (uint64_t)kind + (uint64_t)is_b;
  float *x = calloc(rows * PRODUCT_K, sizeof *x);
  if (!x) abort();
  for (size_t r = 0; r < rows; r++)
    for (size_t k = 0, size = 0; k < PRODUCT_K; k++) {
      int sum = -2 * 0x7FFF;
      for (int n = 0; n < 4; n++) sum += (int)(draw(&state) & 0x7FFF);
      if (k % 16 == 0) size = draw(&state) % (kind == PRODUCT_WIDE ? 68 : 14);
      float *at = x + r * PRODUCT_K + k;
      *at = ldexpf((float)sum, (kind == PRODUCT_WIDE ? 16 : -14) - (int)size * (kind == PRODUCT_WIDE ? 2 : 1));
      if (kind == PRODUCT_CANCEL && k >= PRODUCT_K / 2 && draw(&state) % 8) *at = is_b ? at[-(PRODUCT_K / 2)] : -at[-(PRODUCT_K / 2)];
      if (kind == PRODUCT_NONFINITE && r == 0 && k == (is_b ? 80 : 50)) *at = is_b ? INFINITY : NAN;
    }
  return x;
}

void product_after(mx_gemm_options *o, int kind) {
  static const float alpha = 0.75f, beta = -1.5f, bias[PRODUCT_N] = {1, -2, 0.3f, 1e-3f},
                     c[PRODUCT_M * PRODUCT_N] = {1, 2, 3, 4, -5, 6, 7, 8, 9, 1e-4f, 1e6f, -0.0f};
  if (kind != PRODUCT_AFTER) return;
  o->alpha = &alpha, o->beta = &beta, o->c = c, o->bias = bias, o->out = MX_F16;
}
