/* The block-scaled product of SPEC 4 under f32_block and f32_seq, one lane an output: every term exact, every rounding where the model has it. */
#include "hip_backend/device/tile.h"
#include "mxgold/gemm.h"

typedef __int128 mxd_i128;
typedef unsigned __int128 mxd_u128;

MXH_DEVICE int mxd_top_bit(mxd_u128 v) { /* -1 for 0 */
  const uint64_t high = (uint64_t)(v >> 64), low = (uint64_t)v;
  return high ? 127 - mxh_clz(high) : 63 - mxh_clz(low);
}

/* v * 2^shift, shift at most 0 and rounded to odd. */
MXH_DEVICE mxd_u128 mxd_shift_right(mxd_u128 v, int shift) {
  if (shift >= 128) return v != 0;
  const mxd_u128 kept = v >> shift;
  return kept | ((kept << shift) != v);
}

/* rnd_f32(acc + m * 2^e), exact before the one rounding. m has at most 94 bits (so that what is cut below never meets a cancellation). */
MXH_DEVICE float mxd_add_exact(float acc, mxd_i128 m, int e) {
  const double a = (double)acc;
  if (m == 0) return acc + 0.0f;
  const bool m_negative = m < 0, a_negative = mxd_negative(acc);
  mxd_u128 term = m_negative ? (mxd_u128)-m : (mxd_u128)m;
  const int ea = a == 0 ? -2000 : mxd_exponent(a) - 52, top_term = e + mxd_top_bit(term);
  mxd_u128 sum = a == 0 ? 0 : (mxh_bits<uint64_t>(a) & 0xFFFFFFFFFFFFFull) | 1ull << 52;
  const int top_acc = a == 0 ? -2000 : ea + 52, top = top_term > top_acc ? top_term : top_acc, low = top - 122;
  term = e >= low ? term << (e - low) : mxd_shift_right(term, low - e);
  if (a != 0) sum = ea >= low ? sum << (ea - low) : mxd_shift_right(sum, low - ea);
  bool negative = m_negative;
  if (a == 0)
    sum = term;
  else if (m_negative == a_negative)
    sum += term;
  else if (sum >= term) {
    sum -= term;
    negative = a_negative;
  } else
    sum = term - sum;
  if (sum == 0) return 0;
  int at = low + mxd_top_bit(sum), quantum = (at < -126 ? -126 : at) - 23, shift = quantum - low;
  uint64_t steps;
  if (shift <= 0)
    steps = (uint64_t)(sum << -shift);
  else if (shift > 124)
    steps = 0; /* far below half of the smallest subnormal */
  else {
    const mxd_u128 half = (mxd_u128)1 << (shift - 1), rest = sum & ((half << 1) - 1);
    steps = (uint64_t)(sum >> shift);
    steps += rest > half || (rest == half && (steps & 1));
  }
  return (float)mxd_with_sign((double)steps * mxd_pow2(quantum), negative);
}

/* Finite x as m * 2^*e with m odd or 0. */
MXH_DEVICE int64_t mxd_odd_part(double x, int *e) {
  if (x == 0) {
    *e = 0;
    return 0;
  }
  uint64_t m = (mxh_bits<uint64_t>(x) & 0xFFFFFFFFFFFFFull) | 1ull << 52;
  *e = mxd_exponent(x) - 52;
  const int zeros = 63 - mxh_clz(m & (0 - m));
  *e += zeros;
  m >>= zeros;
  return mxd_negative(x) ? -(int64_t)m : (int64_t)m;
}

MXH_DEVICE uint32_t mxd_gemm_code(const mxd_plan &p, mxh_ptr<const uint8_t> codes, uint64_t r, uint64_t k) {
  const uint64_t row = r * p.code_stride;
  if (p.elem.bits > 4) return codes[row + k];
  const uint64_t block = p.block_cols, half = block / 2;
  uint64_t byte = k / 2;
  bool high = k & 1;
  if (p.spec.nibble == MX_NIBBLE_HIGH_FIRST) high = !high;
  if (p.spec.nibble == MX_NIBBLE_HALF_BLOCK) {
    byte = k / block * half + k % block % half;
    high = k % block >= half;
  }
  return (uint32_t)codes[row + byte] >> (high ? 4 : 0) & 15;
}
MXH_DEVICE double mxd_gemm_scale(const mxd_plan &p, mxh_ptr<const uint8_t> scales, uint64_t r, uint64_t b) {
  uint32_t code = 0;
  for (int i = 0; i < p.scale_bytes; i++) code |= (uint32_t)scales[(r * p.scale_cols + b) * (uint64_t)p.scale_bytes + (uint64_t)i] << 8 * i;
  return mxd_scale_value(p, code);
}
/* Value of an element; a HiFloat4 one with its two upper levels. */
MXH_DEVICE double mxd_gemm_element(const mxd_plan &p, mxh_ptr<const uint8_t> codes, mxh_ptr<const uint8_t> micro, uint64_t r, uint64_t k) {
  const double v = mxd_decode(p.elem, mxd_gemm_code(p, codes, r, k));
  if (p.spec.scale_rule != MX_SCALE_RULE_HIF4) return v;
  const uint64_t at = (r * p.scale_cols + k / 64) * 3;
  return v * mxd_hif4_factor((uint32_t)micro[at] | (uint32_t)micro[at + 1] << 8 | (uint32_t)micro[at + 2] << 16, (uint32_t)(k % 64));
}

/* binary16 and bfloat16, rounded once. */
MXH_DEVICE uint16_t mxd_to_16(float d, bool bf16) {
  if (mxd_isnan(d)) return bf16 ? 0x7FC0 : 0x7E00;
  const double r = bf16 ? mxd_to_dtype((double)d, MX_INPUT_DTYPE_BFLOAT16) : mxd_to_dtype((double)d, MX_INPUT_DTYPE_FLOAT16), a = mxd_abs(r);
  const uint32_t sign = mxd_negative(r) ? 0x8000u : 0;
  if (bf16) return (uint16_t)(mxh_bits<uint32_t>((float)r) >> 16);
  if (a == 0 || mxd_isinf(a)) return (uint16_t)(sign | (a == 0 ? 0 : 0x7C00u));
  const int e = mxd_exponent(a) < -14 ? -14 : mxd_exponent(a);
  return (uint16_t)(sign | (((uint32_t)(e + 14) << 10) + (uint32_t)(a * mxd_pow2(10 - e))));
}

/* Exponent of the format's last place: every value is a multiple of 2^it. */
MXH_DEVICE int mxd_last_place(const mxd_format &f) { return f.kind == MX_KIND_INT ? -f.man_bits : 1 - f.bias - f.man_bits; }

MXH_KERNEL(mxh_gemm, gemm_args, a, 256) {
  const mxd_plan &pa = mxh_ref(a.a_plan), &pb = mxh_ref(a.b_plan);
  const uint64_t n = a.M * a.N, step = (uint64_t)mxh_grid_size() * mxh_block_size(), blocks = (a.K + a.block - 1) / a.block;
  const int place_a = mxd_last_place(pa.elem), place_b = mxd_last_place(pb.elem);
  for (uint64_t index = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); index < n; index += step) {
    const uint64_t i = index / a.N, j = index % a.N;
    float acc = 0;
    for (uint64_t b = 0; b < blocks && !a.alpha_zero; b++) {
      const double sa = mxd_gemm_scale(pa, a.a_scales, i, b), sb = mxd_gemm_scale(pb, a.b_scales, j, b);
      const uint64_t last = (b + 1) * a.block < a.K ? (b + 1) * a.block : a.K;
      mxd_i128 dot = 0;
      double loose = 0;
      bool finite = mxd_finite(sa) && mxd_finite(sb) && mxd_finite((double)acc);
      for (uint64_t k = b * a.block; k < last; k++) {
        const double x = mxd_gemm_element(pa, a.a_codes, a.a_micro, i, k), y = mxd_gemm_element(pb, a.b_codes, a.b_micro, j, k);
        if (a.model == MX_GEMM_F32_SEQ) {
          acc = mxh_fma((float)(x * sa), (float)(y * sb), acc);
          continue;
        }
        loose += x * y;
        if (mxd_finite(x) && mxd_finite(y))
          dot += (mxd_i128)(int64_t)(x * mxd_pow2(-place_a)) * (int64_t)(y * mxd_pow2(-place_b));
        else
          finite = false;
      }
      if (a.model == MX_GEMM_F32_SEQ) continue;
      if (!finite)
        acc = (float)((double)acc + (loose * (sa * sb) + 0.0)); /* IEEE's arithmetic says which of NaN and Inf it is */
      else {
        int ea, eb;
        const int64_t ma = mxd_odd_part(sa, &ea), mb = mxd_odd_part(sb, &eb);
        acc = mxd_add_exact(acc, dot * (ma * mb), place_a + place_b + ea + eb);
      }
    }
    float d = acc;
    if (a.scaled) d = d * a.t;
    if (a.c) d = mxh_fma(a.beta, (float)a.c[index], d);
    if (a.bias) d = d + a.bias[j];
    if (a.out)
      a.d[index] = mxd_to_16(d, a.out == 2);
    else
      mxh_as<float>(a.d)[index] = mxd_isnan(d) ? mxd_nanf(false) : d;
  }
}
