/* Rows of blocks in vectors. A kernel does the ordinary blocks of a row and names the others (NaN, Inf, zero, far exponents, scales that hit an
 * end): those go through the scalar tile, so every rule about them stands in one place. */
#ifndef MX_KERNELS_FAST_H
#define MX_KERNELS_FAST_H

#include "kernels/lanes.h"
#include "kernels/plan.h"

enum { MX_FAST_GROUP = 16, MX_FAST_BLOCK = 256 }; /* blocks that a kernel takes together; the longest block */

/* Which zeros need care after the table: a -0 that keeps its sign, or a negative number that underflowed on the way. */
typedef enum mx_fast_zero { MX_FAST_ZERO_TABLE, MX_FAST_ZERO_KEEP, MX_FAST_ZERO_UNDERFLOW } mx_fast_zero;

typedef struct mx_fast mx_fast;
/** One row: whole blocks, the last filled up with +0 where x has only n values. Writes codes and scales of every block, and the indices of those
 *  that are to be done again to special[]; returns how many. */
typedef size_t mx_fast_row(const mx_fast *fast, const float *x, size_t n, uint8_t *codes, uint8_t *scales, uint32_t *special);

struct mx_fast {
  const mx_plan *plan;
  mx_fast_row *row;
  size_t block;
  /* scale=e8m0: code = exponent field of amax + offset + (its mantissa >= threshold); within margin of the threshold the block is special. */
  int32_t offset, threshold, margin, least, largest;
  int32_t min_code, max_code; /* other codes are special */
  /* chains */
  mx_lanes scale;
  int scale_plain;                                  /* mx_encode_plain does it */
  mx_chain_expr scale_of, factor[MX_CHAIN_FACTORS]; /* of amax and of sf; all else is a number by now */
  float sf[256];
  /* Elements: 4y between two integers or on one is all that E2M1 asks. table[i & 127] is the code of floor(4y) + ceil(4y) = i, -64 < i < 64. */
  int by_table, clamp, fold; /* clamp: y may pass 8; fold: 4y may be made by one multiplication */
  uint8_t table[128];
  mx_fast_zero zero;
  mx_lanes elem;
  int high_first;
};

/** Returns 0 if the plan has no fast path or no usable ISA (MX_ISA_*). The plan's tensor-level numbers are set. */
int mx_fast_init(mx_fast *out, const mx_plan *plan, uint32_t usable);

mx_fast_row mx_fast_row_avx512, mx_fast_row_avx2;

#endif
