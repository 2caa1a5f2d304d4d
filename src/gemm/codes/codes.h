/* Declares f32_block on packed e2m1 codes: the dot of a block in 8-bit integers, one fused multiply-add a block.
 *
 * A code's value doubled is an integer d, |d| <= 12. B's codes stay packed, four bytes (eight k) of sixteen columns side by side, and become
 * d + 12 >= 0 by a table permute in registers; A's become signed bytes, those of even k apart from those of odd k as B's nibbles are. The
 * sum over a block of a * (d + 12) less 12 times the sum of a is four times the exact dot: below 2^24 for blocks up to 2^16, so binary32
 * holds it, and fma(dot, sa * sb, acc) is acc + dot * sa * sb rounded once wherever sa * sb is exact in binary32. mxi_gemm_codes_fit() proves that
 * from the least and the largest exponent of each panel's scales; it also keeps every term a multiple of 2^-149, so that acc is never -0. */
#ifndef MX_GEMM_CODES_CODES_H
#define MX_GEMM_CODES_CODES_H

#include "gemm/tile/tile.h"

enum { MXG_GROUP = 8 }; /* codes a four-byte word holds */

/* How one-byte scales become binary32 without a table: e8m0's codes are exponents; of other formats codes below top are, shifted left, the bits
 * of a binary32 that is value / factor. top 0: they are not. */
typedef struct mxg_scale_codes {
  int e8m0;
  unsigned top, shift;
  float factor;
} mxg_scale_codes;

/* A tile product wants B as signed bytes too. */
typedef enum mxg_side { MXG_SIDE_B, MXG_SIDE_A, MXG_SIDE_B_SIGNED } mxg_side;

typedef struct mxg_packed {
  size_t rows, kb, groups; /* groups: words a block */
  int avx512;              /* the machine has it and it is to be used: asking costs microseconds under a hypervisor */
  mxg_side side;
  uint32_t *words; /* B: [kb][groups][16], packed, for tiles [kb][groups][2][16]; A: [kb][16][groups][2], signed bytes, even k then odd k */
  int32_t *offset; /* A: [kb][16] -12 * (sum of the block) */
  float *s;        /* [kb][16]; A's have the factor 1/4 */
  uint32_t *few;   /* A of few rows, or NULL: mxi_gemm_skinny_alloc() */
  size_t few_rows;
  const mxg_operand *table_of; /* whose values the next two are; NULL: none yet */
  float table[256];
  mxg_scale_codes codes;
  int settled;        /* mxi_gemm_codes_leave_out_zeros() has been here */
  int powers;         /* A of few rows: every scale is a power of two, positive and normal */
  int turned;         /* mxi_gemm_skinny_fill_b(): scales are codes, in `turns` and not in s */
  uint32_t *turns;    /* [kb / 4][16]: codes of four blocks */
  mx_workspace *from; /* whose memory this is; NULL: the heap's */
  int least, largest; /* exponents of the scales that are neither 0, Inf nor NaN; least is that of the last significant bit */
} mxg_packed;

/** Can this product be done on codes at all, given panels that fit? */
int mxi_gemm_codes_usable(const mxg_plan *plan);
mx_status mxi_gemm_codes_alloc(mxg_packed *p, const mxg_plan *plan, mxg_side side);
void mxi_gemm_codes_free(mxg_packed *p);
void mxi_gemm_codes_fill_a(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0);
void mxi_gemm_codes_fill_b(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0);
int mxi_gemm_codes_fit(const mxg_packed *a, const mxg_packed *b);
/** Are there scales, or products of them, below 2^-126? Intel's processors need a hundred cycles and more for each. */
int mxi_gemm_codes_slow(const mxg_packed *a, const mxg_packed *b);
/** Blocks of zeros need no scale, whatever theirs is (0 is what quantisers store): a finite one becomes 1 and has no say in the range. For panels
 *  that do not fit or are slow, once; row0 is what they were filled from. */
void mxi_gemm_codes_leave_out_zeros(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0);

/** Sums of a tile, as mxg_kernel. */
typedef void mxg_codes_kernel(float *acc, const mxg_packed *a, const mxg_packed *b);
mxg_codes_kernel mxi_gemm_codes_avx2, mxi_gemm_codes_avx512;
/** NULL if the machine has none. */
mxg_codes_kernel *mxi_gemm_codes_best(const mx_exec *exec);

/** Sums of n tiles, of n panels of A and a B of signed bytes. */
typedef void mxg_codes_column(float (*acc)[MXG_LANES * MXG_LANES], const mxg_packed *const *a, size_t n, const mxg_packed *b);
mxg_codes_column mxi_gemm_codes_amx;
typedef struct mxg_codes_kernels {
  mxg_codes_kernel *tile;   /* NULL: none */
  mxg_codes_column *column; /* to be used in place of tile; NULL: none */
} mxg_codes_kernels;
/** The best for this product. */
mxg_codes_kernels mxi_gemm_codes_choose(const mxg_plan *plan);
/** All of D on codes. */
mx_status mxi_gemm_codes_run(const mxg_plan *plan, mxg_codes_kernels kernels, void *d, const void *c);

/** Few rows of A: can B be read as it lies, each panel once? Then scales alone are filled in, and the kernel takes codes from the operand. */
int mxi_gemm_skinny_usable(const mxg_plan *plan, mxg_codes_kernel *kernel);
/** The memory of the next two, on top of that of mxi_gemm_codes_alloc(); M rows of A. */
mx_status mxi_gemm_skinny_alloc(mxg_packed *a, mxg_packed b[2], size_t M);
/** A, filled as ever, once more without the rows that it has not: what belongs to a block side by side, so that all of it stays in the first cache.
 *  few [kb] of: offset [few_rows], s [few_rows], words [few_rows][groups][2]; few_rows is 2, 4, 8 or 16. */
void mxi_gemm_skinny_fill_a(mxg_packed *p);
/** Scales of a panel: as codes, which the kernel makes numbers of while it waits for memory, or as numbers where that can't be. */
void mxi_gemm_skinny_fill_b(mxg_packed *p, const mxg_packed *a, const mxg_operand *o, size_t row0);
/** As numbers in any case. */
void mxi_gemm_skinny_numbers(mxg_packed *p, const mxg_operand *o, size_t row0);
/** Sums of two tiles, of panels at row0[0] and row0[1], which may be the same one. */
void mxi_gemm_skinny(float acc[2][MXG_LANES * MXG_LANES], const mxg_packed *a, mxg_packed *const b[2], const mxg_operand *o,
                     const size_t row0[2]);
/** Scales of two panels: numbers, or codes of powers of two where A's are such too and no product is below 2^-126, or codes below codes->top. */
typedef enum mxg_scale_form { MXG_NUMBERS, MXG_POWERS, MXG_LINEAR } mxg_scale_form;
/** What the kernel reads of B: of two panels, the first row's codes, `stride` bytes from row to row, and scales. Only asked for: ahead, the codes of the
 *  two panels after these (the same ones if there are none), and scales_ahead, their scales. */
typedef struct mxg_stream {
  const uint8_t *first[2], *ahead[2], *scales_ahead;
  size_t stride;
  mxg_scale_form form;
  const uint32_t *turns[2];
  const float *s[2];
  const mxg_scale_codes *codes;
} mxg_stream;
void mxi_gemm_skinny_avx512(float *acc, const mxg_packed *a, const mxg_stream *from);

/** A row of A, its words as they lie: out[(b * 16 * groups + g) * 2] and the word after it, offset[b * 16]. Only where mxi_gemm_codes_best() is not NULL. */
void mxi_gemm_pack_a_avx2(uint32_t *out, int32_t *offset, const uint32_t *words, size_t groups, size_t n_blocks);
/** n sixteens of words at out + n * 16 become signed bytes at out, two sixteens of each: even k, then odd k. */
void mxi_gemm_pack_signed_avx512(uint32_t *out, size_t n);
/** Sixteen rows side by side: out[g * 16 + r] = word g of row r, for as many whole sixteens of the n words as there are; returns how many words.
 *  first is row 0, stride bytes from row to row. */
size_t mxi_gemm_pack_words_avx512(uint32_t *out, const uint8_t *first, size_t stride, size_t n);
/** The same for one-byte scales, all n blocks; *least and *largest are lowered and raised to the magnitudes seen, as bits of binary32. */
void mxi_gemm_pack_scales_avx512(float *out, uint32_t *least, uint32_t *largest, const uint8_t *first, size_t stride, size_t n,
                                 const float *table, const mxg_scale_codes *codes);
/** The same, left as codes: byte q of out[c * 16 + r] is that of row r, block 4 c + q; n is a multiple of four. Returns whether all are e8m0's powers of
 *  two from 2^-126 on, or all below codes->top; if not, nothing of it is of use. */
int mxi_gemm_turn_scales_avx512(uint32_t *out, uint32_t *least, uint32_t *largest, const uint8_t *first, size_t stride, size_t n,
                                const float *table, const mxg_scale_codes *codes);

#endif
