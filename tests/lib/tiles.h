/* Declares deterministic operands of matrix products that show what a matrix unit does: the same bits on every machine. */
#ifndef TESTS_TILES_H
#define TESTS_TILES_H

#include "mxgold/mma.h"

typedef enum tiles_kind {
  TILES_BITS,    /* random bit patterns */
  TILES_NEAR,    /* exponents within a few of each other */
  TILES_WIDE,    /* exponents over the whole range */
  TILES_EDGE,    /* powers of two and their neighbours, spread over the 40 binary places where terms are cut */
  TILES_CANCEL,  /* the second half along K undoes the first, but for one element in eight */
  TILES_TINY,    /* zeros of both signs, subnormals and the smallest normal numbers */
  TILES_SPECIAL, /* NEAR with one NaN, Inf or zero in eight */
  TILES_COUNT
} tiles_kind;

/** xorshift64*: state must not be 0. */
uint64_t tiles_random(uint64_t *state);

/* Operands of one model, malloc'ed; d has room for the result. args points into them. */
typedef struct tiles {
  mx_mma_args args;
  void *a, *b, *c, *scale_a, *scale_b, *d, *d_ref;
  size_t d_bytes;
} tiles;

/** Fill tiles of [T][M][N] outputs and depth K. with_c 0: no C. Aborts without memory. */
void tiles_make(tiles *t, const mx_mma_model *model, tiles_kind kind, size_t T, size_t M, size_t N, size_t K, int with_c, uint64_t *state);
void tiles_free(tiles *t);

#endif
