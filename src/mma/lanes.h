/* Declares the fused sum for 16 outputs at a time: one row of A and 16 columns of B, with an output in each lane.
 *
 * lanes.c decides whether a model can run this way, lays columns out and walks along K; lanes_avx512.c computes one row.
 * mxi_mma_lanes_make() checks every bound that makes 32 (or 64) bits enough; models that do not fit run in fused.c, which gives the same
 * bits. */
#ifndef MX_MMA_LANES_H
#define MX_MMA_LANES_H

#include "internal.h"

enum { MMA_LANES = 16, MMA_PRESUMS = 16 /* most in a group */, MMA_ROWS = 4 /* at a time */ };

/* How a group becomes an output. */
typedef enum mma_lanes_kind {
  MMA_LANES_NONE,  /* it cannot run in lanes */
  MMA_LANES_IN,    /* join=in or add: 32 bits */
  MMA_LANES_AFTER, /* join=after: products in 32 bits, the join in 64 */
  MMA_LANES_PRESUM /* P: byte products summed in 32 bits, terms in 64 */
} mma_lanes_kind;

/* A plan for lanes. A product of significands, shifted left by up (which the columns already include) and right by down + (largest exponent
 * - its own), is a term in units of the sum; likewise for C. */
struct mma_lanes_plan {
  mma_lanes_kind kind;
  int L, P, k; /* in elements; P is 0 if products are not summed first */
  int up, down, up_c, down_c;
  int split;                                   /* even and odd products are separate */
  int add;                                     /* join=add: S starts from nothing, and then there is one addition */
  int floor;                                   /* or INT32_MIN */
  int zero_exp, skip;                          /* the exponent of a zero C; skip: a zero sum of P products takes no part */
  int man, bias, exp_min, exp_max, keep, bits; /* of D */
  int round, under;
  int F;                              /* fraction bits of the sum */
  int sum_up, sum_down, c_up, c_down; /* join=after: how the sum and C are cut, */
  int join_bits, sum_place, c_place;  /* and where they meet */
  int c_drop;                         /* or INT32_MAX */
  int join_rz;
  uint32_t nan;
  uint32_t inf;
};

/* 16 columns of B over a stretch of K: [n][16]. */
typedef struct mma_columns {
  int32_t *sig, *exp;
  /* with P: bytes [n/4][16][4], 64 times their sums over P [n/P][16], scales [blocks][16] */
  int8_t *bytes;
  int32_t *bias, *scale_sig, *scale_exp;
} mma_columns;

/* A row of A over the same stretch. */
typedef struct mma_lanes_row {
  const int32_t *sig, *exp;
  const uint8_t *bytes; /* with P: each value + 64 */
  const int32_t *scale_sig, *scale_exp;
  int block; /* elements that share a scale */
} mma_lanes_row;

/* Computes some rows by 16 columns over n elements, which are whole instructions except perhaps at the very end. acc [rows][16], aligned to
 * a cache line, holds bits of D before and after; some 0: there is nothing in it yet. */
typedef void mma_lanes_kernel(const mma_lanes_plan *p, const mma_lanes_row *a, int rows, const mma_columns *b, size_t n, uint32_t *acc,
                              int some);
mma_lanes_kernel mxi_mma_lanes_avx512;

/* --- for the walk over D --- */

/* Returns whether the model can run in lanes on this machine, and then fills in *p. */
int mxi_mma_lanes_make(mma_lanes_plan *p, const mma_plan *plan, const mx_exec *exec);

typedef struct mma_lanes_work {
  mma_columns columns;
  uint32_t *acc;  /* [rows][16] */
  size_t stretch; /* how many elements of K are done at a time */
} mma_lanes_work;
mx_status mxi_mma_lanes_alloc(mma_lanes_work *w, const mma_lanes_plan *p, const mma_plan *plan, size_t rows, size_t K);
void mxi_mma_lanes_free(mma_lanes_work *w);

/* Computes the outputs of rows 0 .. ni-1 of panel a and up to 16 columns of panel b from j0 on, none of which is special. acc [ni][16] holds
 * C before and D afterwards. */
void mxi_mma_lanes_block(const mma_lanes_plan *p, const mma_plan *plan, mma_lanes_work *w, const mma_panel *a, size_t ni, const mma_panel *b,
                         size_t j0, size_t nj, int some);

#endif
