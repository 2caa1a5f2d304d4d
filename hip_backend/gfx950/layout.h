/** Defines where the operands of v_mfma_scale_f32_16x16x128_f8f6f4 (m = 16) and 32x32x64 (m = 32) lie in the registers of a wave, from the
 *  matrix to (lane, register, bit) and back. These are plain functions of C and C++, for host programs. A is [m][K], B is [m][K] (each of its
 *  rows is a column of the product), K = 2048 / m; there is one scale for each row and 32 elements of K.
 *  Source: AMD CDNA4 ISA 7.1.5, 7.2, 7.4.   Oracle: hip_backend/tests/test_gfx950.cc (bijections, tiles whose codes tell their position). */
#ifndef MXH_GFX950_LAYOUT_H
#define MXH_GFX950_LAYOUT_H

#include "gfx950.h"

static inline int gfx950_bits(int type) {
  static const uint8_t bits[] = {8, 8, 6, 6, 4, 16, 16, 32, 0};
  return bits[type];
}
static inline int gfx950_depth(int m) { return 2048 / m; }

/* Where element (row, k) of an operand is: bit `bit` of the lane's registers, taken as one little-endian string of 256 bits. */
typedef struct gfx950_at {
  int lane, bit;
} gfx950_at;

static inline gfx950_at gfx950_operand_at(int m, int type, int row, int k) {
  gfx950_at at;
  const int bits = gfx950_bits(type);
  if (bits == 8) { /* registers 0-3 hold the first half of K, 4-7 the second, with 16 elements of a lane in each */
    const int half = gfx950_depth(m) / 2;
    at.lane = row + m * (k % half / 16);
    at.bit = 128 * (k / half) + 8 * (k % 16);
  } else { /* 32 consecutive elements */
    at.lane = row + m * (k / 32);
    at.bit = bits * (k % 32);
  }
  return at;
}
/* The inverse: the row and k of the i-th element (0..31) of a lane. */
static inline void gfx950_operand_of(int m, int type, int lane, int i, int *row, int *k) {
  *row = lane % m;
  if (gfx950_bits(type) == 8)
    *k = i / 16 * (gfx950_depth(m) / 2) + lane / m * 16 + i % 16;
  else
    *k = lane / m * 32 + i;
}

/* The lane whose scale register applies to (row, block of 32 along K). */
static inline int gfx950_scale_lane(int m, int row, int block) { return row + m * block; }

/* The row and column of C and D (binary32) that a register of a lane holds. */
static inline void gfx950_result_of(int m, int lane, int reg, int *row, int *col) {
  *col = lane % m;
  *row = m == 16 ? 4 * (lane / 16) + reg : 8 * (reg / 4) + 4 * (lane / 32) + reg % 4;
}
static inline int gfx950_result_regs(int m) { return m * m / 64; }

/* Reads a field of up to 8 bits at any bit of a string of words. */
static inline uint32_t gfx950_field(const uint32_t *words, int bit, int n) {
  uint32_t v = words[bit / 32] >> bit % 32;
  if (bit % 32 + n > 32) v |= words[bit / 32 + 1] << (32 - bit % 32);
  return v & ((1u << n) - 1);
}
static inline void gfx950_set_field(uint32_t *words, int bit, int n, uint32_t value) {
  for (int i = 0; i < n; i++) {
    uint32_t *w = &words[(bit + i) / 32];
    const uint32_t one = 1u << (bit + i) % 32;
    *w = value >> i & 1 ? *w | one : *w & ~one;
  }
}
#endif
