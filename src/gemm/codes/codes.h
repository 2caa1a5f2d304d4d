/* Declares f32_block on packed e2m1 codes: the dot of a block in 8-bit integers, and one fused multiply-add for each block.
 *
 * Twice the value of a code is an integer d, |d| <= 12. B's codes stay packed, four bytes (eight k) of sixteen columns side by side, and
 * become d + 12 >= 0 by a table permute in registers. A's codes become signed bytes, those of even k separate from those of odd k, as B's
 * nibbles are. The sum over a block of a * (d + 12), minus 12 times the sum of a, is four times the exact dot. It is below 2^24 for blocks
 * up to 2^16, so binary32 holds it, and fma(dot, sa * sb, acc) is acc + dot * sa * sb rounded once if sa * sb is exact in binary32.
 * mxi_gemm_codes_fit() proves that from the smallest and the largest exponent of each panel's scales. It also makes every term a multiple of
 * 2^-149, so that acc is never -0.
 *
 * Scales whose product needs more than 24 bits, and scales that divide, are wide: the integer dots go to binary64, and tile/ makes the terms. */
#ifndef MX_GEMM_CODES_CODES_H
#define MX_GEMM_CODES_CODES_H

#include "gemm/tile/tile.h"

enum { MXG_GROUP = 8 }; /* codes in a four-byte word */

/* How one-byte scales become binary32 without a table. The codes of e8m0 are exponents; in other formats codes below top, shifted left, are
 * the bits of a binary32 that is value / factor. top 0: there is no such formula. */
typedef struct mxg_scale_codes {
  int e8m0;
  unsigned top, shift;
  float factor;
} mxg_scale_codes;

/* Which operand a panel holds; a tile product needs B as signed bytes too. */
typedef enum mxg_side { MXG_SIDE_B, MXG_SIDE_A, MXG_SIDE_B_SIGNED } mxg_side;

typedef struct mxg_packed {
  size_t rows, kb, groups; /* groups: words in a block */
  int avx512;              /* AVX-512 may be used; kept here because asking the machine costs microseconds under a hypervisor */
  mxg_side side;
  uint32_t *words; /* B: [kb][groups][16], packed, for tiles [kb][groups][2][16]; A: [kb][16][groups][2], signed bytes, even k then odd k */
  int32_t *offset; /* A: [kb][16] -12 * (sum of the block) */
  float *s;        /* [kb][16]; those of A have the factor 1/4 */
  double *wide;    /* wide scales, in place of s: [kb][16], those of A have the factor 1/4, or 4 where they divide; NULL: they are not wide */
  uint32_t *few;   /* A with few rows (mxi_gemm_skinny_alloc()), or NULL */
  size_t few_rows;
  const mxg_operand *table_of; /* the operand of the next two; NULL: they are not filled in yet */
  float table[256];
  mxg_scale_codes codes;
  int settled;        /* mxi_gemm_codes_leave_out_zeros() has been called */
  int powers;         /* A with few rows: every scale is a power of two, positive and normal */
  int turned;         /* after mxi_gemm_skinny_fill_b(): the scales are codes in `turns`, not numbers in s */
  uint32_t *turns;    /* [kb / 4][16]: codes of four blocks */
  mx_workspace *from; /* where the memory comes from; NULL: the heap */
  int least, largest; /* exponents of the scales that are not 0, Inf or NaN; least is that of the last significant bit */
} mxg_packed;

/** Whether this product can be computed on codes at all, given panels that fit. */
int mxi_gemm_codes_usable(const mxg_plan *plan);
mx_status mxi_gemm_codes_alloc(mxg_packed *p, const mxg_plan *plan, mxg_side side);
void mxi_gemm_codes_free(mxg_packed *p);
void mxi_gemm_codes_fill_a(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0);
void mxi_gemm_codes_fill_b(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0);
int mxi_gemm_codes_fit(const mxg_packed *a, const mxg_packed *b);
/** Whether there are scales, or products of them, below 2^-126. Intel's processors need a hundred cycles or more for each. */
int mxi_gemm_codes_slow(const mxg_packed *a, const mxg_packed *b);
/** Replaces the finite scales of blocks of zeros (quantisers store 0 there) by 1, which leaves them out of the range. Called once for panels
 *  that do not fit or are slow; row0 is the row from which they were filled. */
void mxi_gemm_codes_leave_out_zeros(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0);

/** Computes four times the dots of a block of a tile, [16][16], from panels with wide scales. */
void mxi_gemm_codes_dots(double *dots, const mxg_packed *a, const mxg_packed *b, size_t block);
typedef void mxg_codes_dots(double *dots, const mxg_packed *a, const mxg_packed *b, size_t block);
mxg_codes_dots mxi_gemm_codes_dots_avx2, mxi_gemm_codes_dots_avx512;

/** Computes the sums of a tile, as mxg_kernel does. */
typedef void mxg_codes_kernel(float *acc, const mxg_packed *a, const mxg_packed *b);
mxg_codes_kernel mxi_gemm_codes_avx2, mxi_gemm_codes_avx512;
/** The best kernel of the machine, or NULL if it has none. */
mxg_codes_kernel *mxi_gemm_codes_best(const mx_exec *exec);

/** Computes the sums of n tiles, from n panels of A and a panel of B as signed bytes. */
typedef void mxg_codes_column(float (*acc)[MXG_LANES * MXG_LANES], const mxg_packed *const *a, size_t n, const mxg_packed *b);
mxg_codes_column mxi_gemm_codes_amx;
typedef struct mxg_codes_kernels {
  mxg_codes_kernel *tile;   /* NULL: none */
  mxg_codes_column *column; /* used instead of tile; NULL: none */
} mxg_codes_kernels;
/** Chooses the best kernels for this product. */
mxg_codes_kernels mxi_gemm_codes_choose(const mxg_plan *plan);
/** Computes all of D on codes. */
mx_status mxi_gemm_codes_run(const mxg_plan *plan, mxg_codes_kernels kernels, void *d, const void *c);

/** Whether A has so few rows that B can be read in place, each panel once. Then only scales are filled in, and the kernel reads codes from
 *  the operand. */
int mxi_gemm_skinny_usable(const mxg_plan *plan, mxg_codes_kernel *kernel);
/** Allocates the memory that the next two need beside that of mxi_gemm_codes_alloc(), for M rows of A. */
mx_status mxi_gemm_skinny_alloc(mxg_packed *a, mxg_packed b[2], size_t M);
/** Copies an A that has been filled, without the rows that it lacks and with everything that belongs to a block side by side, so that it
 *  stays in the first-level cache. few [kb] of: offset [few_rows], s [few_rows], words [few_rows][groups][2]; few_rows is 2, 4, 8 or 16. */
void mxi_gemm_skinny_fill_a(mxg_packed *p);
/** Fills in the scales of a panel: as codes, which the kernel decodes while it waits for memory, or as numbers if that is not possible. */
void mxi_gemm_skinny_fill_b(mxg_packed *p, const mxg_packed *a, const mxg_operand *o, size_t row0);
/** Makes them numbers in any case. */
void mxi_gemm_skinny_numbers(mxg_packed *p, const mxg_operand *o, size_t row0);
/** Computes the sums of two tiles, from the panels at row0[0] and row0[1], which may be the same one. */
void mxi_gemm_skinny(float acc[2][MXG_LANES * MXG_LANES], const mxg_packed *a, mxg_packed *const b[2], const mxg_operand *o,
                     const size_t row0[2]);
/** How the scales of two panels are given: as numbers; as codes of powers of two, if A's scales are powers of two as well and no product is
 *  below 2^-126; or as codes below codes->top. */
typedef enum mxg_scale_form { MXG_NUMBERS, MXG_POWERS, MXG_LINEAR } mxg_scale_form;
/** What the kernel reads of B: the codes of the first row of two panels, with `stride` bytes from row to row, and their scales. The codes of
 *  the next two panels (`ahead`; these two again if there are none) and their scales (`scales_ahead`) are only prefetched. */
typedef struct mxg_stream {
  const uint8_t *first[2], *ahead[2], *scales_ahead;
  size_t stride;
  mxg_scale_form form;
  const uint32_t *turns[2];
  const float *s[2];
  const mxg_scale_codes *codes;
} mxg_stream;
void mxi_gemm_skinny_avx512(float *acc, const mxg_packed *a, const mxg_stream *from);

/** Packs a row of A, whose words are in their original order, into out[(b * 16 * groups + g) * 2], the word after it, and offset[b * 16].
 *  Only if mxi_gemm_codes_best() is not NULL. */
void mxi_gemm_pack_a_avx2(uint32_t *out, int32_t *offset, const uint32_t *words, size_t groups, size_t n_blocks);
/** Turns n groups of 16 words at out + n * 16 into signed bytes at out, two groups of 16 words for each: even k, then odd k. */
void mxi_gemm_pack_signed_avx512(uint32_t *out, size_t n);
/** Puts sixteen rows side by side: out[g * 16 + r] = word g of row r, for as many whole groups of 16 as the n words have; returns how many
 *  words it did. first is row 0, with stride bytes from row to row. */
size_t mxi_gemm_pack_words_avx512(uint32_t *out, const uint8_t *first, size_t stride, size_t n);
/** Does the same for one-byte scales, for all n blocks; *least and *largest are extended to the magnitudes seen, as bits of binary32. */
void mxi_gemm_pack_scales_avx512(float *out, uint32_t *least, uint32_t *largest, const uint8_t *first, size_t stride, size_t n,
                                 const float *table, const mxg_scale_codes *codes);
/** Does the same but leaves codes: byte q of out[c * 16 + r] is that of row r, block 4 c + q; n is a multiple of four. Returns whether all
 *  are e8m0's powers of two from 2^-126 on, or all are below codes->top; if not, the output must not be used. */
int mxi_gemm_turn_scales_avx512(uint32_t *out, uint32_t *least, uint32_t *largest, const uint8_t *first, size_t stride, size_t n,
                                const float *table, const mxg_scale_codes *codes);

#endif
