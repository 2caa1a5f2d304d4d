/* Computes the block-scaled product of SPEC 4 under f32_block and f32_seq, one output in each lane. Every term is exact, and every rounding
 * is one of the model. */
#include "hip_backend/kernels/device/tile.h"
#include "mxgold/gemm.h"

typedef __int128 mxd_i128;
typedef unsigned __int128 mxd_u128;

MXH_DEVICE int mxd_top_bit(mxd_u128 v) { /* the highest bit that is set; -1 for 0 */
  const uint64_t high = (uint64_t)(v >> 64), low = (uint64_t)v;
  return high ? 127 - mxh_clz(high) : 63 - mxh_clz(low);
}

/* v * 2^shift rounded to odd; shift is at most 0. */
MXH_DEVICE mxd_u128 mxd_shift_right(mxd_u128 v, int shift) {
  if (shift >= 128) return v != 0;
  const mxd_u128 kept = v >> shift;
  return kept | ((kept << shift) != v);
}

/* Rounds a nonzero sum * 2^low to binary32. If anything was cut below, the last bit of sum is odd. */
MXH_DEVICE float mxd_round_sum(mxd_u128 sum, int low, bool negative) {
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

/* rnd_f32(acc + m * 2^e), exact before its only rounding. m has at most 94 bits, so that bits that are cut below never matter in a
 * cancellation. */
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
  return mxd_round_sum(sum, low, negative);
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

/* ---- Exact sums of binary32 numbers multiplied or divided by binary32 scales, in two's complement, in units of 2^MXD_WIDE_LOW. The
 * smallest term is 2^-149 * 2^-149 * 2^-149 * 2^-149 / (2^127 * 2^127), and there is room for 2^64 of the largest. ---- */
enum { MXD_WIDE_LOW = -896, MXD_WIDE_LIMBS = 58 };
struct mxd_wide {
  uint32_t limb[MXD_WIDE_LIMBS];
};
/* Adds m * 2^e, or subtracts it if negative. */
MXH_DEVICE void mxd_wide_add(mxd_wide *w, mxd_u128 m, int e, bool negative) {
  const int at = e - MXD_WIDE_LOW, first = at / 32, shift = at % 32;
  const uint32_t flip = negative ? 0xFFFFFFFFu : 0;
  uint64_t carry = negative;
  for (int i = first, k = 0; i < MXD_WIDE_LIMBS; i++, k++) {
    if (k > 4 && carry == (uint64_t)negative) return; /* nothing changes from here on */
    const uint32_t word = k == 0 ? (uint32_t)(m << shift) : 32 * k - shift < 128 ? (uint32_t)(m >> (32 * k - shift)) : 0;
    const uint64_t sum = (uint64_t)w->limb[i] + (word ^ flip) + carry;
    w->limb[i] = (uint32_t)sum;
    carry = sum >> 32;
  }
}
/* The sign: -1, 0 or 1. */
MXH_DEVICE int mxd_wide_sign(const mxd_wide &w) {
  uint32_t any = 0;
  for (int i = 0; i < MXD_WIDE_LIMBS; i++) any |= w.limb[i];
  return w.limb[MXD_WIDE_LIMBS - 1] >> 31 ? -1 : any != 0;
}
/* Rounds w / divisor to binary32 by long division, for 80 bits; the divisor is below 2^49. */
MXH_DEVICE float mxd_wide_quotient(mxd_wide *w, uint64_t divisor) {
  const int sign = mxd_wide_sign(*w);
  if (!sign) return 0;
  uint64_t carry = 1;
  for (int i = 0; i < MXD_WIDE_LIMBS && sign < 0; i++) {
    carry += (uint32_t)~w->limb[i];
    w->limb[i] = (uint32_t)carry;
    carry >>= 32;
  }
  int top = MXD_WIDE_LIMBS - 1;
  while (!w->limb[top]) top--;
  top = 32 * top + 31 - mxh_clz(w->limb[top]);
  const int low = top > 79 ? top - 79 : 0;
  mxd_u128 q = 0;
  uint64_t rest = 0;
  for (int bit = top; bit >= low; bit--) {
    rest = rest << 1 | (w->limb[bit / 32] >> bit % 32 & 1);
    q <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      q |= 1;
    }
  }
  uint32_t below = rest != 0;
  for (int i = 0; i < low / 32; i++) below |= w->limb[i];
  if (low % 32) below |= w->limb[low / 32] << (32 - low % 32);
  return mxd_round_sum(q << 1 | (below != 0), low - 1 + MXD_WIDE_LOW, sign < 0);
}

MXH_DEVICE uint32_t mxd_gemm_code(const mxd_plan &p, mxh_ptr<const uint8_t> codes, uint64_t r, uint64_t k) {
  const uint64_t row = r * p.code_stride;
  if (p.elem.kind == MX_KIND_NONE) {
    uint32_t code = 0;
    for (uint64_t i = 0; i < 4; i++) code |= (uint32_t)codes[row + 4 * k + i] << 8 * i;
    return code;
  }
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
  if (p.elem.kind == MX_KIND_NONE) return 1;
  for (int i = 0; i < p.scale_bytes; i++) code |= (uint32_t)scales[(r * p.scale_cols + b) * (uint64_t)p.scale_bytes + (uint64_t)i] << 8 * i;
  return mxd_scale_value(p, code);
}
/* The value of an element; that of HiFloat4 includes its levels 2 and 3. */
MXH_DEVICE double mxd_gemm_element(const mxd_plan &p, mxh_ptr<const uint8_t> codes, mxh_ptr<const uint8_t> micro, uint64_t r, uint64_t k) {
  const uint32_t code = mxd_gemm_code(p, codes, r, k);
  if (p.elem.kind == MX_KIND_NONE) return mxd_widen(mxh_bits<float>(code));
  const double v = mxd_decode(p.elem, code);
  if (p.spec.scale_rule != MX_SCALE_RULE_HIF4) return v;
  const uint64_t at = (r * p.scale_cols + k / 64) * 3;
  return v * mxd_hif4_factor((uint32_t)micro[at] | (uint32_t)micro[at + 1] << 8 | (uint32_t)micro[at + 2] << 16, (uint32_t)(k % 64));
}

/* Rounds to binary16 or bfloat16, once. */
MXH_DEVICE uint16_t mxd_to_16(float d, bool bf16) {
  if (mxd_isnan(d)) return bf16 ? 0x7FC0 : 0x7E00;
  const double r = bf16 ? mxd_to_dtype((double)d, MX_INPUT_DTYPE_BFLOAT16) : mxd_to_dtype((double)d, MX_INPUT_DTYPE_FLOAT16), a = mxd_abs(r);
  const uint32_t sign = mxd_negative(r) ? 0x8000u : 0;
  if (bf16) return (uint16_t)(mxh_bits<uint32_t>((float)r) >> 16);
  if (a == 0 || mxd_isinf(a)) return (uint16_t)(sign | (a == 0 ? 0 : 0x7C00u));
  const int e = mxd_exponent(a) < -14 ? -14 : mxd_exponent(a);
  return (uint16_t)(sign | (((uint32_t)(e + 14) << 10) + (uint32_t)(a * mxd_pow2(10 - e))));
}

/* The exponent of the format's last place: every value is a multiple of that power of two. */
MXH_DEVICE int mxd_last_place(const mxd_format &f) { return f.kind == MX_KIND_INT ? -f.man_bits : 1 - f.bias - f.man_bits; }

/* An element times its scale, or divided by it, rounded to binary32. 0 / 0 is how the encode form stores an all-zero block. */
MXH_DEVICE float mxd_gemm_value(const mxd_plan &p, double x, double scale) {
  if (p.elem.kind == MX_KIND_NONE || p.spec.scale_form != MX_SCALE_FORM_ENCODE) return (float)(x * scale);
  return x == 0 && scale == 0 ? (float)x : (float)mxd_quotient(x, scale);
}

/* What the scale of one side of a block contributes to the numerator or the denominator. False: it is 0, Inf or NaN. */
MXH_DEVICE bool mxd_gemm_scaling(const mxd_plan &p, double scale, int64_t *up, int *e_up, int64_t *under, int *e_under) {
  if (!mxd_finite(scale) || scale == 0) return false;
  int e;
  const int64_t m = mxd_odd_part(scale, &e);
  const bool divides = p.elem.kind != MX_KIND_NONE && p.spec.scale_form == MX_SCALE_FORM_ENCODE;
  *(divides ? under : up) *= m;
  *(divides ? e_under : e_up) += e;
  return true;
}

/* The step of f32_block for any elements and scales of binary32. */
MXH_DEVICE float mxd_gemm_wide(const gemm_args &a, const mxd_plan &pa, const mxd_plan &pb, float acc, uint64_t i, uint64_t j, uint64_t b) {
  const double sa = mxd_gemm_scale(pa, a.a_scales, i, b), sb = mxd_gemm_scale(pb, a.b_scales, j, b);
  const uint64_t last = (b + 1) * a.block < a.K ? (b + 1) * a.block : a.K;
  int64_t up = 1, under = 1;
  int e_up = 0, e_under = 0;
  const bool plain_a = mxd_gemm_scaling(pa, sa, &up, &e_up, &under, &e_under),
             plain = mxd_gemm_scaling(pb, sb, &up, &e_up, &under, &e_under) && plain_a;
  if (!plain) up = under = 1, e_up = e_under = 0; /* then only the sign of the sum counts */
  const bool negative = (up < 0) != (under < 0);
  const uint64_t up_size = (uint64_t)(up < 0 ? -up : up), under_size = (uint64_t)(under < 0 ? -under : under);
  mxd_wide sum = {};
  bool finite = true;
  double loose = 0;
  for (uint64_t k = b * a.block; k < last; k++) {
    const double x = mxd_gemm_element(pa, a.a_codes, a.a_micro, i, k), y = mxd_gemm_element(pb, a.b_codes, a.b_micro, j, k);
    loose += x * y;
    if (!mxd_finite(x) || !mxd_finite(y))
      finite = false;
    else if (x != 0 && y != 0) {
      int ex, ey;
      const int64_t m = mxd_odd_part(x, &ex) * mxd_odd_part(y, &ey);
      mxd_wide_add(&sum, (mxd_u128)(uint64_t)(m < 0 ? -m : m) * up_size, ex + ey + e_up - e_under, (m < 0) != negative);
    }
  }
  if (!plain || !finite || !mxd_finite((double)acc)) { /* IEEE arithmetic decides between NaN, Inf and 0 */
    double term = finite ? (double)mxd_wide_sign(sum) : loose, over = 1, divisor = 1;
    (pa.elem.kind != MX_KIND_NONE && pa.spec.scale_form == MX_SCALE_FORM_ENCODE ? divisor : over) *= sa;
    (pb.elem.kind != MX_KIND_NONE && pb.spec.scale_form == MX_SCALE_FORM_ENCODE ? divisor : over) *= sb;
    if (!(term == 0 && divisor == 0 && mxd_finite(over))) term = term * over / divisor;
    return (float)((double)acc + (term == 0 ? 0.0 : term));
  }
  if (acc != 0) {
    int e;
    const int64_t m = mxd_odd_part((double)acc, &e);
    mxd_wide_add(&sum, (mxd_u128)(uint64_t)(m < 0 ? -m : m) * under_size, e, m < 0);
  }
  return mxd_wide_quotient(&sum, under_size);
}

MXH_KERNEL(mxh_gemm, gemm_args, a, 256) {
  const mxd_plan &pa = mxh_ref(a.a_plan), &pb = mxh_ref(a.b_plan);
  const uint64_t n = a.M * a.N, step = (uint64_t)mxh_grid_size() * mxh_block_size(), blocks = (a.K + a.block - 1) / a.block;
  const int place_a = mxd_last_place(pa.elem), place_b = mxd_last_place(pb.elem);
  for (uint64_t index = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); index < n; index += step) {
    const uint64_t i = index / a.N, j = index % a.N;
    float acc = 0;
    for (uint64_t b = 0; b < blocks && !a.alpha_zero; b++) {
      if (a.wide && a.model == MX_GEMM_F32_BLOCK) {
        acc = mxd_gemm_wide(a, pa, pb, acc, i, j, b);
        continue;
      }
      const double sa = mxd_gemm_scale(pa, a.a_scales, i, b), sb = mxd_gemm_scale(pb, a.b_scales, j, b);
      const uint64_t last = (b + 1) * a.block < a.K ? (b + 1) * a.block : a.K;
      mxd_i128 dot = 0;
      double loose = 0;
      bool finite = mxd_finite(sa) && mxd_finite(sb) && mxd_finite((double)acc);
      for (uint64_t k = b * a.block; k < last; k++) {
        const double x = mxd_gemm_element(pa, a.a_codes, a.a_micro, i, k), y = mxd_gemm_element(pb, a.b_codes, a.b_micro, j, k);
        if (a.model == MX_GEMM_F32_SEQ) {
          acc = mxh_fma(mxd_gemm_value(pa, x, sa), mxd_gemm_value(pb, y, sb), acc);
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
        acc = (float)((double)acc + (loose * (sa * sb) + 0.0)); /* IEEE arithmetic decides between NaN and Inf */
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
