/** Quantises plain blocks in few instructions: E2M1 in blocks of 16 or 32 along a row, with four bits per code and the low nibble first. A
 *  lane has eight elements. Blocks that are not plain (zeros, NaN, Inf, scales at the ends of their range) are left to the interpreter of
 *  tile.h, so that every choice about them is made in one place. */
#ifndef MXD_FAST_H
#define MXD_FAST_H

#include "hip_backend/run/args.h"
#include "number.h"

struct alignas(16) mxd_float4 {
  float v[4];
};

/* The magnitude code of |y| < 2^100, ties to even, in a format of man_bits whose smallest normal exponent is emin. The machine's own
 * addition rounds: the power of two that puts the format's last place at the end of the significand is added, and the difference of the bits
 * is the number of steps. */
MXH_DEVICE uint32_t mxd_plain_magnitude(float y, uint32_t man_bits, uint32_t emin_field, uint32_t most) {
  const uint32_t a = mxh_bits<uint32_t>(y) & 0x7FFFFFFFu, field = a & 0x7F800000u, least = emin_field << 23;
  const uint32_t binade = field > least ? field : least, magic = binade + ((23 - man_bits) << 23);
  const uint32_t sum = mxh_bits<uint32_t>(mxh_bits<float>(a) + mxh_bits<float>(magic));
  const uint32_t code = ((binade - least) >> (23 - man_bits)) + (sum - magic);
  return code < most ? code : most;
}

/* Eight codes of y in a word. drop: -0 gets the code of +0; by_y says whether that concerns a y of -0, or the x that y comes from. */
MXH_DEVICE uint32_t mxd_plain_e2m1(const float *y, const float *x, bool by_y, bool drop) {
  uint32_t word = 0;
  for (unsigned i = 0; i < 8; i++) {
    const float s = by_y ? y[i] : x[i]; /* chosen for each element, since a pointer to one of two arrays would keep both in memory */
    const uint32_t bits = mxh_bits<uint32_t>(drop ? s + 0.0f : s); /* -0 + 0 is +0 */
    word |= (mxd_plain_magnitude(y[i], 1, 127, 7) | (bits >> 28 & 8)) << 4 * i;
  }
  return word;
}

/* The largest magnitude in a block's lanes (2 or 4 neighbours) as bits, with NaN above Inf above numbers. */
MXH_DEVICE uint32_t mxd_plain_amax(const float *x, unsigned lanes) {
  uint32_t most = 0;
  for (unsigned i = 0; i < 8; i++) {
    const uint32_t a = mxh_bits<uint32_t>(x[i]) & 0x7FFFFFFFu;
    most = a > most ? a : most;
  }
  for (unsigned m = 1; m < lanes; m *= 2) {
    const uint32_t other = mxh_shfl_xor(most, m);
    most = other > most ? other : most;
  }
  return most;
}

/* The number that an e4m3 code below 0x7F stands for. */
MXH_DEVICE float mxd_plain_e4m3(uint32_t code) { return code < 8 ? (float)code * 0x1p-9f : mxh_bits<float>((code << 20) + (120u << 23)); }

/* The factor of chain te for each scale code, in a table, so that lanes need not divide for every block. All lanes of a group take part. */
enum { MXD_FACTORS = 128 };
MXH_DEVICE void mxd_plain_factors(mxh_ptr<float> factors, const fast_rule &f) {
  if (f.lead != MXD_LEAD_TE) return;
  for (unsigned i = mxh_thread_id(); i < MXD_FACTORS; i += mxh_block_size()) {
    const float y = 1.0f / (mxd_plain_e4m3(i) * f.d);
    factors[i] = y < 3.40282346638528859812e38f ? y : 3.40282346638528859812e38f;
  }
  mxh_barrier();
}

/* Finds the scale code and the factor of a plain block. False: it is not plain. */
MXH_DEVICE bool mxd_plain_scale(const fast_rule &f, mxh_ptr<float> factors, uint32_t amax, uint32_t *code, float *factor) {
  if (f.lead == MXD_LEAD_TE) {
    const float v = mxh_bits<float>(amax) * f.r; /* amax * (S / F), finite */
    *code = mxd_plain_magnitude(v, 3, 121, 0x7E);
    *factor = factors[*code];
    return amax - 1 < 0x7F7FFFFFu && *code != 0 && v < 0x1p99f && mxh_bits<float>(amax) * *factor < 0x1p99f;
  }
  const uint32_t field = (amax + f.even_add) >> 23; /* even: half of the last kept bit is added */
  *code = field - 2;                                /* 2 is the emax of e2m1 */
  *factor = mxh_bits<float>((256 - field) << 23);   /* 2^-(field - 129) */
  return field - 3 <= 254 - 3 && amax - 1 < 0x7F7FFFFFu;
}
#endif
