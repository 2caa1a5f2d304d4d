/* Declares the comparison of two rows of codes: where they differ, and which pairs of codes stand there. For src/verify/diff/dense.c. */
#ifndef MX_KERNELS_DIFFER_H
#define MX_KERNELS_DIFFER_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a set of pairs of 4-bit codes; most bytes that a kernel takes at once; bytes that tally() takes. */
enum { MX_DIFFER_SET = 32, MX_DIFFER_STEP = 64, MX_DIFFER_TALLY = 2048 };

typedef struct mx_differ_kernels {
  /* Of n bytes of x and y, a multiple of 64, the first of them (a multiple of 64) in each 64 of which at least `least` differ. */
  size_t (*crowd)(const uint8_t *x, const uint8_t *y, size_t n, unsigned least);
  /* 4-bit codes, two a byte: n bytes of x and y, a multiple of `unit`. Each unit (4 bytes by scalar code alone, 8 or 16) has a set of pairs:
   * sets + 32 * set[i], with bit b & 7 of byte 16 * (b >> 3) + a for (a of x, b of y). Stops before the first 16, 32 or 64 bytes in which some pair
   * is in its set (fewer where less than that is left), and returns how many bytes it did. Of these
   *   sums [n / unit]  how many codes differ
   *   low, high [n]    1 is added where the codes of the lower, of the upper halves of a byte differ */
  size_t (*fours)(uint8_t *sums, uint8_t *low, uint8_t *high, const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets,
                  const uint16_t *set, unsigned unit);
  /* 4-bit codes, likewise, but nothing stops it: how many pairs are in their unit's set. */
  uint64_t (*members)(const uint8_t *x, const uint8_t *y, size_t n, const uint8_t *sets, const uint16_t *set, unsigned unit);
  /* Codes of a byte, likewise but without sets; unit is 8 or 16. */
  void (*eights)(uint8_t *sums, uint8_t *cols, const uint8_t *x, const uint8_t *y, size_t n, unsigned unit);
  /* pairs [2 n]: the bytes x[0], x[0] ^ y[0], x[1], x[1] ^ y[1] .., in any order of the pairs. n is a multiple of 64. */
  void (*zip)(uint8_t *pairs, const uint8_t *x, const uint8_t *y, size_t n);
  /* 4-bit codes: n bytes of x and y, but MX_DIFFER_TALLY of them where it is not the scalar code. How often a of x stands beside b of y is added to
   * sums[16 * a + b], to any of these eight, for the pairs that are asked for: bit b of asked[a]. */
  void (*tally)(uint64_t (*sums)[8], const uint8_t *x, const uint8_t *y, size_t n, const uint16_t asked[16]);
  unsigned tally_most; /* pairs up to which that is quicker than to count both codes of a byte in a table of 65,536 */
} mx_differ_kernels;

extern const mx_differ_kernels mxi_differ_scalar, mxi_differ_avx2, mxi_differ_avx512, mxi_differ_neon;

#endif
