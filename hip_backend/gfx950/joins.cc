/* Makes tiles that show how the sum of a group is joined with C: chains along K, and ties. */
#include <math.h>

#include "hip_backend/gfx950/run.h"

using namespace gfx950_run;

/* Products chained along K: the D of the device is the C of the next tile, so that C has the bits and the size of such a sum, which no tile
 * made beforehand has. Codes are dense and random, and the scales of a chain span 2 to 30 binades. Every other chain undoes each second step
 * by negating A, so that only what was cut remains. Tile number: step * chains + chain. */
void gfx950_run::fill_chains(mx_probe *p, int pair, size_t chains, size_t steps, generator *g) {
  static const unsigned spreads[] = {2, 18, 6, 30, 18};
  const size_t edge = p->spec.M;
  for (size_t t = 0; t < chains * steps; t++) {
    const unsigned spread = spreads[t % chains % 5];
    const bool back = t % chains % 2 && t / chains % 2;
    for (int side = 0; side < 2; side++) {
      const int type = side ? b_of(pair) : a_of(pair), bits = gfx950_bits(type);
      const size_t bytes = (side ? p->b_bytes : p->a_bytes) * edge, blocks = edge * p->s_bytes;
      uint8_t *codes = (side ? p->b : p->a) + t * bytes, *scales = (side ? p->scale_b : p->scale_a) + t * blocks;
      if (back) {
        memcpy(codes, codes - chains * bytes, bytes);
        memcpy(scales, scales - chains * blocks, blocks);
        for (size_t i = 0; !side && i < bytes; i++) codes[i] ^= bits == 4 ? 0x88 : (uint8_t)(1 << (bits - 1));
        continue;
      }
      for (size_t i = 0; i < bytes; i++) {
        uint32_t v = g->next() & (bits == 6 ? 0x3F : 0xFF);
        if (bits == 8 && (v & 0x7F) >= (type == GFX950_E5M2 ? 0x7Cu : 0x7Fu)) v &= 0xBF; /* no NaN, no Inf */
        codes[i] = (uint8_t)v;
      }
      for (size_t i = 0; i < blocks; i++) scales[i] = (uint8_t)(127 + g->below(spread) - spread / 2);
    }
  }
}

/* Ties that small products in the same scale block decide: equal products whose sum is half of C's last place (or half of the place below
 * it, if C is a power of two of the other sign), and up to three products far below. The products of a block may span only few binades, as
 * those of FP4 do. No single product is then half of C's last place beside others that are so much smaller, and only such sums show how much
 * of a group's sum is kept beside C. */
void gfx950_run::fill_ties(mx_probe *p, int pair, size_t first, generator *g) {
  enum { RANDOM, POWER, NEAR, FULL, VARIANTS, EACH = 5, LITTLE = 29 };
  struct number {
    uint32_t code;
    int exponent;
  };
  const size_t edge = p->spec.M, blocks = p->s_bytes;
  std::vector<number> powers[2];  /* powers of two, ascending */
  uint32_t half_more[2] = {0, 0}; /* 1.5 times the largest of them */
  for (int side = 0; side < 2; side++) {
    const int type = side ? b_of(pair) : a_of(pair);
    for (uint32_t code = 1; code < 1u << (gfx950_bits(type) - 1); code++) {
      int e;
      const double m = frexp(mx_decode(element_format(type), code), &e);
      if (m == 0.5) powers[side].push_back({code, e - 1});
      if (m == 0.75) half_more[side] = code;
    }
  }
  for (size_t t = first; t < p->T; t++) {
    const int variant = (int)(t - first) % VARIANTS;
    const size_t block = (t - first) / VARIANTS % blocks, turn = g->below(32);
    int exponent[2][32]; /* exponent of what a row contributes to the half */
    uint32_t minus[2][32];
    for (int side = 0; side < 2; side++)
      for (size_t r = 0; r < edge; r++) {
        const int bits = gfx950_bits(side ? b_of(pair) : a_of(pair)), n = variant == FULL ? LITTLE : side ? 16 : 1 << r % EACH;
        const number big = powers[side].back();
        uint8_t *row = (side ? p->b : p->a) + (t * edge + r) * (side ? p->b_bytes : p->a_bytes);
        uint8_t *scale = (side ? p->scale_b : p->scale_a) + (t * edge + r) * blocks;
        memset(scale, 127, blocks);
        scale[block] = (uint8_t)(124 + g->below(7));
        minus[side][r] = g->below(2);
        exponent[side][r] = big.exponent + scale[block] - 127 + (side ? 0 : variant == FULL ? 6 : (int)r % EACH); /* 1 + 28 * 2.25 = 2^6 */
        for (int k = 0; k < 32; k++) {
          uint32_t code = k >= n ? 0 : variant == FULL && k ? half_more[side] : big.code, sign = minus[side][r];
          if (k >= LITTLE && (k == LITTLE || g->below(3) == 0))
            code = powers[side][g->below((unsigned)(powers[side].size() < 6 ? powers[side].size() : 6))].code, sign = g->below(2);
          code |= code ? sign << (bits - 1) : 0;
          const size_t at = block * 32 + ((size_t)k + turn) % 32;
          row[bits == 4 ? at / 2 : at] |= (uint8_t)(code << (bits == 4 ? at % 2 * 4 : 0));
        }
      }
    for (size_t i = 0; i < edge; i++)
      for (size_t j = 0; j < edge; j++) {
        const int e = exponent[0][i] + exponent[1][j] + 24 + (variant == POWER ? 1 : variant == NEAR ? (int)g->below(7) - 3 : 0);
        const uint32_t sign = variant == POWER ? !(minus[0][i] ^ minus[1][j]) : g->below(2), fraction = variant == POWER ? 0 : g->next() >> 9,
                       c = sign << 31 | (uint32_t)(e + 127) << 23 | fraction;
        memcpy(p->c + ((t * edge + i) * edge + j) * 4, &c, 4);
      }
  }
}
