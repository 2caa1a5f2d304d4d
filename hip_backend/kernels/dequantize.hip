/* Computes values from codes (SPEC 3.7), one element in each lane. */
#include "hip_backend/kernels/device/tile.h"

MXH_DEVICE uint32_t mxd_code_at(const mxd_plan &p, mxh_ptr<const uint8_t> codes, uint64_t r, uint64_t c) {
  const uint64_t row = r * p.code_stride;
  if (p.elem.bits > 4) return codes[row + c];
  const uint64_t block = p.block_cols, half = block / 2;
  uint64_t byte = c / 2;
  bool high = c & 1;
  if (p.spec.nibble == MX_NIBBLE_HIGH_FIRST) high = !high;
  if (p.spec.nibble == MX_NIBBLE_HALF_BLOCK) {
    byte = c / block * half + c % block % half;
    high = c % block >= half;
  }
  return (uint32_t)codes[row + byte] >> (high ? 4 : 0) & 15;
}

MXH_DEVICE float mxd_value(const mxd_plan &p, double code, double scale, double times, double over) {
  const bool encode = p.spec.scale_form == MX_SCALE_FORM_ENCODE;
  if (mxd_isnan(code) || mxd_isnan(scale)) return mxd_nanf(false);
  if (encode && code == 0 && scale == 0) return (float)code; /* this is how an all-zero block is stored */
  double v;
  if (p.spec.deq_arith == MX_DEQ_ARITH_TWO_STEP) {
    v = (double)(float)(encode ? mxd_quotient(code, scale) : code * scale);
    if (p.has_tensor_scale) v = v * (double)(float)mxd_quotient(times, over);
  } else if (p.spec.deq_arith == MX_DEQ_ARITH_SCALE_FIRST) {
    double f = scale;
    if (!encode)
      f = (double)(float)mxd_quotient(scale * times, over);
    else if (scale != 0)
      f = (double)(float)mxd_quotient(scale * over, times);
    if (encode && code == 0 && f == 0) return (float)code;
    v = encode ? mxd_quotient(code, f) : code * f;
  } else
    v = encode ? mxd_quotient(code * times, scale * over) : mxd_quotient(code * scale * times, over);
  return mxd_isnan(v) ? mxd_nanf(false) : (float)v;
}

MXH_KERNEL(mxh_dequantize, dequantize_args, a, 256) {
  const mxd_plan &p = mxh_ref(a.plan);
  const double stored = mxd_widen(a.tensor_scale);
  double times = p.store == MXD_STORE_SCALE || p.store == MXD_STORE_AMAX ? stored : 1;
  double over = p.store == MXD_STORE_DIVISOR ? stored : p.store == MXD_STORE_AMAX ? (p.uses_chain ? p.target : p.norm) : 1;
  if (p.store == MXD_STORE_AMAX && p.spec.deq_arith == MX_DEQ_ARITH_SCALE_FIRST) {
    times = (double)(float)mxd_quotient(times, over);
    over = 1;
  }
  const uint64_t n = p.rows * p.cols, step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < n; i += step) {
    const uint64_t r = i / p.cols, c = i % p.cols;
    if (p.elem.kind == MX_KIND_NONE) {
      uint32_t bits = 0;
      for (uint64_t b = 0; b < 4; b++) bits |= (uint32_t)a.codes[r * p.code_stride + 4 * c + b] << 8 * b;
      a.out[i] = mxh_bits<float>(bits);
      continue;
    }
    const uint64_t at = (p.scale_rows == p.rows ? r : r / p.block_rows) * p.scale_cols + c / p.block_cols;
    uint32_t code = 0;
    for (int b = 0; b < p.scale_bytes; b++) code |= (uint32_t)a.scales[at * (uint64_t)p.scale_bytes + (uint64_t)b] << 8 * b;
    double scale = mxd_scale_value(p, code);
    if (p.spec.scale_rule == MX_SCALE_RULE_HIF4) {
      uint32_t micro = 0;
      for (uint64_t b = 0; b < 3; b++) micro |= (uint32_t)a.micro[at * 3 + b] << 8 * b;
      scale *= mxd_hif4_factor(micro, (uint32_t)(c % 64));
    }
    a.out[i] = mxd_value(p, mxd_decode(p.elem, mxd_code_at(p, a.codes, r, c)), scale, times, over);
  }
}
