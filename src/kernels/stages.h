/* Declares the general vector path: what a plan needs, in the few forms that vector kernels know, and the table of kernels of an ISA.
 *
 * A row of blocks goes through three stages, some dozen blocks at a time so that the data stay in the first-level cache:
 *   1 amax     finds the largest magnitude of each block, as bits
 *   2 scales   turns that into the scale's code and the one or two factors of its elements, for many blocks side by side
 *   3 codes    multiplies elements by their factors and rounds them
 * Stage 2 marks the blocks that are not ordinary (zeros, NaN, Inf, scales at the ends of their range). Those go to the scalar code of
 * scale.c and element.c, so that every choice about them is made in one place. For blocks of zeros, two codes are found once and reused. */
#ifndef MX_KERNELS_STAGES_H
#define MX_KERNELS_STAGES_H

#include "kernels/block/plan.h"
#include "kernels/input.h"

enum { MX_PIECE_BLOCKS = 128, MX_PIECE_ELEMENTS = 2048 }; /* the most that a piece holds */
enum { MX_SIX_BLOCK = 256 };                              /* most elements in a block of select=foursix in vectors */

/* How stage 2 finds the scale of a block; MX_LEAD_NONE: by mxi_block_scale_find, one block at a time. */
enum {
  MX_LEAD_NONE,
  MX_LEAD_FLOOR,
  MX_LEAD_CEIL,
  MX_LEAD_EVEN,
  MX_LEAD_CHAIN,
  MX_LEAD_DIV32,
  MX_LEAD_MUL32,
  MX_LEAD_EXACT,
  MX_LEAD_EXACT_INVERSE
};
/* How an element is scaled: x * f0, x / f0, x / f0 * f1, x * t / u exactly. */
enum { MX_FORM_MUL, MX_FORM_DIV, MX_FORM_DIV_MUL, MX_FORM_EXACT };
/* How a scaled value is rounded. */
enum { MX_WAY_NEAREST, MX_WAY_BIASED, MX_WAY_SR };

/* Whether codes saturate, are signed and are rounded without exceptions; a -0 then keeps its sign, or loses it. */
enum { MX_PLAIN_NO, MX_PLAIN_KEEP, MX_PLAIN_DROP };

/* The vector form of mx_encoding for one format, for |y| below about 2^30. */
typedef struct mx_stage_encode {
  int way;
  int man_bits, round;            /* round: MX_ROUND_*, for BIASED */
  int32_t min_normal, big;        /* as bits: 2^emin; the power of two past the largest value, to which |y| is limited */
  int32_t max_code, over_code;    /* codes past max_code become over_code, */
  int32_t over_negative;          /* or this for a negative number */
  int32_t f32_tie;                /* as bits: half of the smallest value if its predecessor rounds up (rna_f32, rne_f32), otherwise -1 */
  int sign_shift;                 /* from bit 31 to the code's sign */
  int zero_sign, integer, sticky; /* sticky: a y that underflowed does not count as zero */
  int sr_mode, sr_bits;           /* for SR */
  int sr_simple;                  /* discarded bits below those of the random integer do not matter */
  int32_t wrap;                   /* all bits of a code if what lies past the largest wraps, otherwise 0 */
  float wrap_grid;                /* the power of two whose last place is one step of the last binade */
  int plain;                      /* MX_PLAIN_*, to nearest */
} mx_stage_encode;

typedef struct mx_stages {
  const mx_plan *plan;
  int usable; /* 0: everything is done by scalar code */
  int steps;  /* scales are monotone in the maximum */
  int form, lead;
  /* stage 2 */
  int32_t amax_lo, amax_hi;       /* bits; ordinary blocks have lo <= amax <= hi */
  int32_t code_lo, code_hi;       /* and code_lo <= code <= code_hi */
  int32_t even_add, emax;         /* EVEN: added to the bits; power-of-two rules: subtracted from the exponent */
  int scale_is_exp, round, log2f; /* round: of the scale's value, MX_SCALE_ROUND_* */
  float f, rcp_f;                 /* for DIV32, MUL32 */
  double times, over;             /* for EXACT: amax * times / over, or its inverse */
  float v_lo, v_hi;               /* ordinary values before rounding */
  mx_stage_encode scale;          /* how these are rounded, for a scale with a mantissa */
  int32_t scale_rebias;           /* (127 - bias) << man_bits */
  float scale_sub;                /* the smallest subnormal of the scale */
  enum { MX_FACTOR_POW2, MX_FACTOR_RCP_POW2, MX_FACTOR_SF, MX_FACTOR_RCP32, MX_FACTOR_CHAIN } factor;
  float pre;                                         /* a factor on x before scaling; 0: none; not for EXACT */
  enum { MX_SCAN_NONE, MX_SCAN_Y, MX_SCAN_X } scan;  /* by distances from y, or from x, if its form is x / (the stored scale) */
  int far;                                           /* for scans: x may be so far beyond the largest value that distances are equal */
  int wide;                                          /* scales have more than a byte and are in p->wide */
  int nearest;                                       /* for FORM_EXACT: y is used in binary32 */
  uint64_t n_values;                                 /* values in the tensor up to the last row of the call */
  int select, map_to_4;                              /* select=foursix: pieces hold sf; these are the stages of the map-to-4 candidate */
  int six;                                           /* both candidates can be done in vectors, */
  float y_six;                                       /* up to this |y| */
  int hif4;                                          /* usable only for scale.rule=hif4 */
  float y_hi, y_most;                                /* the largest |y| of an ordinary block, and of one whose codes are made one to a byte */
  mx_chain_expr scale_of, factor_of[2], again_of[2]; /* for CHAIN: with everything evaluated that is the same for the whole tensor */
  /* stage 3 */
  int dtype; /* MX_INPUT_DTYPE_*: y is rounded to it */
  mx_stage_encode elem;
  double exact_times, exact_over; /* FORM_EXACT: y = x * (exact_times or scale * it) / (scale * exact_over or it) */
  float elem_max;                 /* the largest value */
  int has_ends, ends; /* has_ends: a y beyond ends_from, or NaN, may have its own code (y is at most binary32); ends: flat stages check it */
  int32_t ends_from;  /* as bits */
  int32_t inf_code[2], nan_code; /* codes of Inf and -Inf, and of the NaN of 0 / 0 and 0 * Inf */
  int columns;                   /* columns of a matrix can be quantised as they lie in memory, in blocks of sixteen rows to e2m1 */
  int byte_sized;                /* elements are plain, and a code with its exponent field fits into the low byte */
  int stochastic;                /* MX_PLAIN_*, for elem.round=sr if it is simple and x has one factor */
  int hot;                       /* e2m1 by a table, two to a byte in order */
  int32_t wrap_far;              /* for e2m1, in which a single code wraps up to 8.5: elem.wrap for what lies beyond */
  int again;                     /* codes are encoded once more; codes of four bits through a table for each block */
  float values[256];             /* values of codes, for that */
  uint8_t table[128];            /* indexed by floor(4y) + ceil(4y) modulo 128 */
  int fold_4;                    /* the 4 may be multiplied into the factor, since it does not matter how small a nonzero number is */
  int keep_sign;                 /* -0 gives the code of -0, which that index does not show */
  int nibble;                    /* MX_NIBBLE_*, or -1 for one code to a byte */
  /* blocks of zeros */
  int zero_known;
  mx_block_scale zero_scale;
  uint8_t zero_code[2]; /* of +0 and -0 */
} mx_stages;

/* One piece of a row: n_blocks blocks of `block` elements, where block is a multiple of 16; n elements in all. */
typedef struct mx_piece {
  const float *x;
  size_t n_blocks, block, n;
  int shift;         /* the factors of element i are those at i / 16 >> shift */
  int by_element;    /* or those at i, for a row of a tile of several rows */
  const float *next; /* what will be read after this piece */
  uint64_t index;    /* the index of x[0] in the tensor, for random bits */
  size_t run;        /* of so many elements in a row each, n of them in all */
  uint64_t apart;    /* and of the first element of the next row above that of this */
  int32_t amax[MX_PIECE_BLOCKS];
  uint8_t code[MX_PIECE_BLOCKS]; /* codes of scales */
  uint32_t wide[MX_PIECE_BLOCKS];
  uint8_t odd[MX_PIECE_BLOCKS]; /* 1: not ordinary */
  float f0[MX_PIECE_BLOCKS], f1[MX_PIECE_BLOCKS];
  int beyond;                      /* a block has a larger y than the plan's kernel allows, so codes must be made one to a byte */
  float sf[MX_PIECE_BLOCKS];       /* the scales themselves, for select */
  float again[2][MX_PIECE_BLOCKS]; /* factors of the second encoding */
} mx_piece;

/* The operations of one ISA. n and block are multiples of 16 unless said otherwise; pointers need no alignment. */
typedef struct mx_stage_kernels {
  const char *name;
  /* The largest bits of |x| over n values, for any n. */
  int32_t (*amax)(const float *x, size_t n);
  /* Stage 1 for a piece. */
  void (*block_amax)(mx_piece *p);
  /* The largest bits of |x| in each of n columns over `rows` rows. */
  void (*column_amax)(int32_t *out, const float *x, size_t ld, size_t rows, size_t n);
  /* Stage 2. */
  void (*scales)(const mx_stages *f, mx_piece *p);
  /* Stage 3: the bytes of the whole piece, packed as f->nibble says. */
  void (*codes)(uint8_t *out, const mx_stages *f, const mx_piece *p);
  /* Stages 2 and 3 for the two candidates of select=foursix: the codes of the better one, one to a byte, with its scales left in six. Blocks
   * have at most MX_SIX_BLOCK elements; the +0 that fill them up add no error. */
  void (*foursix)(uint8_t *out, const mx_stages *f, mx_piece *six, const mx_piece *four);
  /* All stages of scale.rule=hif4: codes, one to a byte, and three bytes of micro-scales for each block. */
  void (*hif4)(uint8_t *out, uint8_t *micro, const mx_stages *f, mx_piece *p);
  /* Sums of x - mean and of its squares, in any order. */
  void (*moments)(double out[2], const float *x, size_t n, double mean);
  /* Packs n codes into n / 2 bytes, as mx_pack4 does. */
  void (*pack4)(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block);
  /* The Philox words [first, first + n) of stream MX_STREAM_ELEMENT; first and n are multiples of 4. */
  void (*random)(uint32_t *out, uint64_t seed, uint64_t first, size_t n);
  /* Stages 1 and 3 for columns of a matrix as it lies in memory (columns_avx512.h), if mx_stages.columns; NULL: turn them. */
  void (*columns_load)(float *y, mx_piece *p, const float *x, size_t ld, size_t groups, size_t ahead, const mx_input *in);
  void (*columns_codes)(uint8_t *out, size_t stride, const mx_stages *f, const mx_piece *p, size_t groups);
} mx_stage_kernels;

extern const mx_stage_kernels mxi_stages_avx512, mxi_stages_avx2, mxi_stages_neon;

/** Translates a plan whose tensor-level numbers are set. */
void mxi_stages_init(mx_stages *stages, const mx_plan *plan);
/** The same stages with one code to a byte, without the kernels that allow fewer values of y. */
void mxi_stages_flat(mx_stages *flat, const mx_stages *stages);
/** The same stages for the map-to-4 candidate of select=foursix. */
void mxi_stages_map_to_4(mx_stages *four, const mx_stages *six);
/** Finds the factors of one block from its scale; returns 0 if the kernels have no form for it. */
int mxi_stages_factors(float f[2], const mx_stages *stages, const mx_block_scale *scale);

#endif
