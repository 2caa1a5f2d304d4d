/* Quantises the formats in which models are trained, MXFP4 (floor, even) and NVFP4 (TransformerEngine's chain), at the speed of memory. */
#include "hip_backend/kernels/device/fast.h"
#include "hip_backend/kernels/device/tile.h"

MXH_DEVICE void mxd_load8(float x[8], mxh_ptr<const float> at) {
  const mxh_ptr<const mxd_float4> p = mxh_as<const mxd_float4>(at);
  const mxd_float4 a = p[0], b = p[1];
  for (unsigned i = 0; i < 4; i++) {
    x[i] = a.v[i];
    x[i + 4] = b.v[i];
  }
}

/* Quantises eight elements of a block that have been read (lane `part` of block / 8). */
MXH_DEVICE void mxd_fast_block(const fast_args &a, const fast_rule &f, mxh_ptr<float> factors, const float x[8], uint32_t index, unsigned part,
                               bool here) {
  const uint32_t amax = mxd_plain_amax(x, 1u << a.shift);
  uint32_t code;
  float factor, y[8];
  const bool plain = mxd_plain_scale(f, factors, amax, &code, &factor);
  for (unsigned i = 0; i < 8; i++) y[i] = x[i] * factor;
  if (!here) return;
  if (plain) {
    /* The y of a chain is a float that may underflow to zero; the exact quotient is zero only if x is. */
    a.codes[((uint64_t)index << a.shift) + part] = mxd_plain_e2m1(y, x, f.lead == MXD_LEAD_TE, f.drop);
    if (part == 0) a.scales[index] = (uint8_t)code;
  } else if (part == 0)
    a.special[mxh_atomic_add(a.n_special, 1)] = index;
}

/* R and D of chain te are in the plan, where mxh_tensor_plan put them. */
MXH_DEVICE fast_rule mxd_fast_rule(const fast_args &a) {
  fast_rule f = a.rule;
  if (f.lead == MXD_LEAD_TE) {
    const mxd_plan &p = mxh_ref(a.plan);
    f.d = p.vars[MXD_VAR_FIRST + 1];
    f.r = p.vars[MXD_VAR_FIRST + 2];
    if (!(f.r > 0 && f.r < 0x1p120f && f.d > 0x1p-100f && f.d < 0x1p100f)) f.r = mxd_nanf(false); /* then no block counts as plain */
  }
  return f;
}

/* Each lane loads two pieces of eight elements before it uses the first. Every lane goes through every round, since lanes exchange values in
 * it. */
MXH_KERNEL(mxh_quantize_fast, fast_args, a, 256) {
  MXH_SHARED(float, factors, MXD_FACTORS);
  const fast_rule f = mxd_fast_rule(a);
  mxd_plain_factors(factors, f);
  const uint32_t n = a.n_blocks << a.shift, parts = 1u << a.shift, width = mxh_block_size();
  for (uint64_t first = (uint64_t)mxh_block_id() * 2 * width; first < n; first += (uint64_t)mxh_grid_size() * 2 * width) {
    float x[2][8] = {};
    uint32_t i[2];
    for (unsigned k = 0; k < 2; k++) {
      i[k] = (uint32_t)first + k * width + mxh_thread_id();
      const uint32_t index = i[k] >> a.shift;
      uint64_t at = (uint64_t)i[k] * 8;
      if (!a.dense)
        at = (uint64_t)(index / a.blocks_per_row) * (uint64_t)a.x.row_step + (uint64_t)(index % a.blocks_per_row) * a.block +
             (i[k] & (parts - 1)) * 8;
      if (i[k] < n) mxd_load8(x[k], a.x.at + at);
    }
    for (unsigned k = 0; k < 2; k++) mxd_fast_block(a, f, factors, x[k], i[k] >> a.shift, i[k] & (parts - 1), i[k] < n);
  }
}

/* Quantises the blocks that were not plain, one in each lane. */
MXH_KERNEL(mxh_quantize_special, fast_args, a, 256) {
  const mxd_plan &p = mxh_ref(a.plan);
  const uint32_t n = a.n_special[0], step = mxh_grid_size() * mxh_block_size();
  const mxh_ptr<uint8_t> bytes = mxh_as<uint8_t>(a.codes);
  for (uint32_t i = mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < n; i += step) {
    const uint32_t index = a.special[i];
    const mxd_tile t = mxd_tile_at(p, index);
    const mxd_stats st = mxd_tile_stats(p, a.x, t, index);
    mxd_scale s;
    if (!mxd_block_scale(&s, p, st, 0)) continue; /* specs that can refuse a block do not take the fast path */
    for (uint32_t c = 0; c < a.block; c += 2) {
      float value;
      const uint32_t low = mxd_element(p, s, mxd_at(a.x, t.row, t.col + c), 0, &value);
      const uint32_t high = mxd_element(p, s, mxd_at(a.x, t.row, t.col + c + 1), 0, &value);
      bytes[(uint64_t)index * (a.block / 2) + c / 2] = (uint8_t)(low | high << 4);
    }
    a.scales[index] = (uint8_t)s.code;
  }
}

/* Reads a tile of 32 x 32 once, and quantises it along its rows and, for the transposed matrix, along its columns. 128 lanes. */
MXH_KERNEL(mxh_quantize_both, both_args, a, 128) {
  MXH_SHARED(float, tile, 32 * 33);
  MXH_SHARED(float, factors, MXD_FACTORS); /* not read, since both directions have power-of-two scales */
  const unsigned t = mxh_thread_id(), line = t / 4, part = t % 4;
  const uint32_t across = a.cols / 32, down = a.rows / 32;
  for (uint32_t b = mxh_block_id(); b < across * down; b += mxh_grid_size()) {
    const uint32_t r0 = b / across * 32, c0 = b % across * 32;
    float x[8];
    mxd_load8(x, a.along.x.at + ((int64_t)(r0 + line) * a.along.x.row_step + c0 + part * 8));
    for (unsigned i = 0; i < 8; i++) tile[line * 33 + part * 8 + i] = x[i];
    mxd_fast_block(a.along, a.along.rule, factors, x, (r0 + line) * across + c0 / 32, part, true);
    mxh_barrier();
    for (unsigned i = 0; i < 8; i++) x[i] = tile[(part * 8 + i) * 33 + line];
    mxd_fast_block(a.across, a.across.rule, factors, x, (c0 + line) * down + r0 / 32, part, true);
    mxh_barrier();
  }
}

/* v * times / over, rounded once. v has few bits, so p + t is the product with a relative error of about 2^-46. Near a tie, 2^-20 of t is
 * more than that error: if moving t by as much changes nothing, p + t rounds as the real product does. Otherwise, and at the ends of
 * binary32, it divides. */
MXH_DEVICE float mxd_times_ratio(const fast_dequantize_args &a, float v) {
  const float p = v * a.ratio_hi, t = mxh_fma(v, a.ratio_lo, mxh_fma(v, a.ratio_hi, -p));
  const float low = p + mxh_fma(t, -0x1p-20f, t), high = p + mxh_fma(t, 0x1p-20f, t);
  const uint32_t field = mxh_bits<uint32_t>(p) >> 23 & 0xFF;
  if (low == high && field - 60 < 180) return low;
  if (v == 0 && mxd_finite((double)a.ratio_hi)) return p;
  const double q = mxd_quotient((double)v * a.times, a.over);
  return mxd_isnan(q) ? mxd_nanf(false) : (float)q;
}

/* The value of an e2m1 code. */
MXH_DEVICE float mxd_plain_value(uint32_t code) {
  const uint32_t m = code & 7, bits = m < 2 ? m * 0x3F000000u : (m << 22) + (126u << 23);
  return mxh_bits<float>(bits | (code & 8) << 28);
}

/* A table of the values of each code under each e4m3 scale, with the tensor scale: a group of lanes computes its 2048 entries once and then
 * looks elements up. */
enum { MXD_VALUES = 2048 };
MXH_DEVICE void mxd_value_table(mxh_ptr<float> table, const fast_dequantize_args &a) {
  for (unsigned i = mxh_thread_id(); i < MXD_VALUES; i += mxh_block_size()) {
    const uint32_t scale = i >> 4;
    float v = mxd_plain_value(i & 15) * mxd_plain_e4m3(scale); /* exact */
    if (a.two_level && a.deq_arith == MX_DEQ_ARITH_TWO_STEP)
      v = v * (float)a.times;
    else if (a.two_level && a.deq_arith == MX_DEQ_ARITH_SCALE_FIRST)
      v = mxd_plain_value(i & 15) * (float)mxd_quotient((double)mxd_plain_e4m3(scale) * a.times, a.over);
    else if (a.two_level)
      v = mxd_times_ratio(a, v);
    table[i] = scale == 0x7F || mxd_isnan((double)v) ? mxd_nanf(false) : v;
  }
  mxh_barrier();
}

/* Computes the values of four codes in each lane, four times; scales are e8m0 or e4m3. */
MXH_KERNEL(mxh_dequantize_fast, fast_dequantize_args, a, 256) {
  MXH_SHARED(float, table, MXD_VALUES);
  const uint32_t width = mxh_block_size();
  if (a.e4m3) mxd_value_table(table, a);
  for (uint64_t first = (uint64_t)mxh_block_id() * 4 * width; first < a.n4; first += (uint64_t)mxh_grid_size() * 4 * width) {
    uint32_t word[4] = {}, s[4] = {};
    for (unsigned k = 0; k < 4; k++) {
      const uint32_t i = (uint32_t)first + k * width + mxh_thread_id();
      if (i >= a.n4) continue;
      word[k] = a.codes[i];
      s[k] = a.scales[i >> a.shift];
    }
    for (unsigned k = 0; k < 4; k++) {
      const uint32_t i = (uint32_t)first + k * width + mxh_thread_id();
      if (i >= a.n4) continue;
      mxd_float4 out;
      if (a.e4m3) {
        const uint32_t row = (s[k] & 0x7F) << 4;
        for (unsigned e = 0; e < 4; e++) out.v[e] = table[row | (word[k] >> 4 * e & 15)];
      } else {
        const float scale = mxh_bits<float>(s[k] ? s[k] << 23 : 0x00400000u);
        for (unsigned e = 0; e < 4; e++) {
          const float v = mxd_plain_value(word[k] >> 4 * e & 15) * scale; /* exact, or past FLT_MAX */
          out.v[e] = s[k] == 0xFF ? mxd_nanf(false) : v;
        }
      }
      mxh_as<mxd_float4>(a.out)[i] = out;
    }
  }
}

/* Finds the largest magnitude, with NaN and Inf counting as themselves. */
MXH_KERNEL(mxh_amax_fast, fast_amax_args, a, MXD_BLOCK_LARGEST) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  const mxh_ptr<const mxd_float4> x = mxh_as<const mxd_float4>(a.x);
  const unsigned t = mxh_thread_id();
  uint32_t best = 0;
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + t; i < a.n4; i += step) {
    const mxd_float4 v = x[i];
    for (unsigned k = 0; k < 4; k++) {
      const uint32_t b = mxh_bits<uint32_t>(v.v[k]) & 0x7FFFFFFFu;
      best = b > best ? b : best;
    }
  }
  const uint32_t most = mxd_block_largest(best);
  if (t == 0) mxh_atomic_max(a.amax, most > 0x7F800000u ? 0x7FC00000u : most);
}

MXH_KERNEL(mxh_copy, copy_args, a, 256) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < a.n4; i += step) {
    const mxd_float4 v = mxh_as<const mxd_float4>(a.x)[i];
    mxh_as<mxd_float4>(a.y)[i] = v;
  }
}
/* Fills with random numbers of both signs from 23 binades, by stream 3 of Philox. */
MXH_KERNEL(mxh_fill_random, fill_args, a, 256) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); 4 * i < a.n; i += step) {
    uint32_t w[4];
    mxd_philox(w, a.seed, MX_STREAM_DATA, i);
    for (uint64_t k = 0; k < 4 && 4 * i + k < a.n; k++) {
      const uint32_t e = 112 + (w[k] >> 23 & 7) + (uint32_t)(i >> 6 & 15);
      a.x[4 * i + k] = mxh_bits<float>((w[k] & 0x807FFFFFu) | e << 23);
    }
  }
}
