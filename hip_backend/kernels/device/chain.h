/** Evaluates formulas of formats/chains.def on the device, one binary32 operation after the other. */
#ifndef MXD_CHAIN_H
#define MXD_CHAIN_H

#include "hip_backend/run/kernel_plan.h"
#include "number.h"

struct mxd_rcp_row {
  int32_t c0, c1, c2;
};
MXH_CONSTANT mxd_rcp_row mxd_rcp_rows[128] = {
#define MX_RCP_SM90(c0, c1, c2) {c0, c1, c2},
#include "formats/rcp_sm90.def"
#undef MX_RCP_SM90
};

/* rcp.approx.ftz.f32 of sm_90 from its table: 1/(1.f) = c0/2^26 - c1/2^16 x + c2/2^10 x^2 in units of 2^-39, with the square truncated. */
MXH_DEVICE float mxd_rcpa(float v) {
  uint32_t bits = mxh_bits<uint32_t>(v), sign = bits & 0x80000000u, e = bits >> 23 & 0xFF, fraction = bits & 0x7FFFFF;
  if (e == 0xFF) return mxh_bits<float>(fraction ? 0x7FFFFFFFu : sign);
  if (e == 0) return mxh_bits<float>(sign | 0x7F800000u);
  mxd_rcp_row r = mxd_rcp_rows[fraction >> 16];
  uint32_t x = fraction & 0xFFFF, upper = x >> 8, square = upper * upper >> 1;
  for (int k = 0; k < 8; k++) square += (x >> k & 1) * (x >> (16 - k));
  int64_t sum = ((int64_t)r.c0 << 13) + 2023 - (int64_t)r.c1 * x + (int64_t)r.c2 * square;
  uint32_t significand = (uint32_t)(sum >> 15);
  int one = significand >> 24 ? 1 : 0, field = 126 + one + 127 - (int)e;
  return mxh_bits<float>(field <= 0 ? sign : sign | (uint32_t)field << 23 | (one ? 0 : significand & 0x7FFFFF));
}

MXH_DEVICE float mxd_apply(int op, float a, float b) {
  switch (op) {
  case MXD_ADD:
    return mxd_step('+', a, b);
  case MXD_SUB:
    return mxd_step('-', a, b);
  case MXD_MUL:
    return mxd_step('*', a, b);
  case MXD_DIV:
    return mxd_step('/', a, b);
  case MXD_MIN:
    return mxd_isnan(a) ? a : mxd_isnan(b) ? b : a < b ? a : b;
  case MXD_MAX:
    return mxd_isnan(a) ? a : mxd_isnan(b) ? b : a > b ? a : b;
  case MXD_IFZERO:
    return a == 0 ? b : a;
  case MXD_IFINF:
    return mxd_isinf((double)a) ? b : a;
  case MXD_IFNAN:
    return mxd_isnan(a) ? b : a;
  default:
    return a == 0 ? 0 : b; /* MXD_ZEROIF */
  }
}

MXH_DEVICE float mxd_eval(const mxd_expr &e, const float *vars) {
  float stack[8];
  int n = 0;
  for (int i = 0; i < e.n; i++) {
    const mxd_op &o = e.op[i];
    if (o.op == MXD_NUMBER)
      stack[n++] = o.number;
    else if (o.op == MXD_VAR)
      stack[n++] = vars[o.var];
    else if (o.op == MXD_RCP0)
      stack[n - 1] = stack[n - 1] == 0 ? 0 : mxd_step('/', 1, stack[n - 1]);
    else if (o.op == MXD_RCPA)
      stack[n - 1] = mxd_rcpa(stack[n - 1]);
    else {
      n--;
      stack[n - 1] = mxd_apply(o.op, stack[n - 1], stack[n]);
    }
  }
  return n ? stack[n - 1] : mxd_nanf(false);
}
#endif
