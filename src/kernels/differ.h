/* Declares the comparison of two rows of codes: where they differ, and which pairs of codes stand there. */
#ifndef MX_KERNELS_DIFFER_H
#define MX_KERNELS_DIFFER_H

#include <stddef.h>
#include <stdint.h>

/* Bytes in a set of pairs of 4-bit codes; the most bytes that a kernel takes at once; bytes that tally() takes. */
enum { MX_DIFFER_SET = 32, MX_DIFFER_STEP = 64, MX_DIFFER_TALLY = 2048 };

typedef struct mx_differ_kernels {
  /* How many bytes from the start, a multiple of 64, have at least `least` differences in each 64. n is a multiple of 64. */
  size_t (*crowd)(const uint8_t *x, const uint8_t *y, size_t n, unsigned least);
  /* 4-bit codes, two to a byte: n bytes of x and y, a multiple of `unit`. Each unit (8 or 16 bytes, or 4 by scalar code) has a set of pairs:
   * sets + 32 * set[i], with bit b & 7 of byte 16 * (b >> 3) + a for (a of x, b of y). It stops before the first 16, 32 or 64 bytes in which
   * some pair is in its set (or fewer at the end), and returns how many bytes it did. Of these
   *   sums [n / unit]  is how many codes differ
   *   low, high [n]    is increased by 1 if the codes in the lower (upper) halves of a byte differ */
  size_t (*fours)(uint8_t *sums, uint8_t *low, uint8_t *high, const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets,
                  const uint16_t *set, unsigned unit);
  /* 4-bit codes likewise, without stopping: returns how many pairs are in the set of their unit. */
  uint64_t (*members)(const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets, const uint16_t *set, unsigned unit);
  /* One-byte codes, likewise but without sets; unit is 8 or 16. */
  void (*eights)(uint8_t *sums, uint8_t *cols, const uint8_t *x, const uint8_t *y, size_t n, unsigned unit);
  /* pairs [2 n]: the bytes x[0], x[0] ^ y[0], x[1], x[1] ^ y[1] and so on, with the pairs in any order. n is a multiple of 64. */
  void (*zip)(uint8_t *pairs, const uint8_t *x, const uint8_t *y, size_t n);
  /* 4-bit codes: n bytes of x and y; vector kernels take exactly MX_DIFFER_TALLY. Adds how often a of x stands opposite b of y to any of the
   * eight numbers sums[16 * a + b], for the pairs that are asked for: bit b of asked[a]. */
  void (*tally)(uint64_t (*sums)[8], const uint8_t *x, const uint8_t *y, size_t n, const uint16_t asked[16]);
  unsigned tally_most; /* up to this many pairs, that is faster than counting both codes of a byte in a table of 65,536 */
} mx_differ_kernels;

extern const mx_differ_kernels mxi_differ_scalar, mxi_differ_avx2, mxi_differ_avx512, mxi_differ_neon;

#endif
