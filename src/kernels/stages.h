/* Declares the general vector path: what a plan asks for, in the few forms that vector kernels know, and the table of kernels of an ISA.
 *
 * A row of blocks goes through three stages, some dozen blocks at a time so that the data stay in the nearest cache:
 *   1 amax     largest magnitude of each block, as bits
 *   2 scales   from that to the scale's code and the one or two factors of its elements, many blocks side by side
 *   3 codes    elements by factors, rounded
 * Stage 2 marks the blocks that are not ordinary (zeros, NaN, Inf, scales at the ends of their range): those go to the scalar code of scale.c
 * and element.c, so that every choice about them has one home. A block of zeros is answered from two codes found once. */
#ifndef MX_KERNELS_STAGES_H
#define MX_KERNELS_STAGES_H

#include "kernels/block/plan.h"

enum { MX_PIECE_BLOCKS = 128, MX_PIECE_ELEMENTS = 2048 }; /* of one piece, at most */
enum { MX_SIX_BLOCK = 256 };                              /* elements of a block of select=foursix in vectors, at most */

/* How a block's scale is found in stage 2; MX_LEAD_NONE: by mxi_block_scale_find, one block at a time. */
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

/* Vector form of mx_encoding for one format: codes of |y| below 2^30 or so. */
typedef struct mx_stage_encode {
  int way;
  int man_bits, round;            /* MX_ROUND_*, of BIASED */
  int32_t min_normal, big;        /* bits: 2^emin; the power of two past the largest value, at which |y| is cut off */
  int32_t max_code, over_code;    /* codes past max_code become over_code, */
  int32_t over_negative;          /* of a negative number this */
  int32_t f32_tie;                /* bits: half the least value if its predecessor is to round up (rna_f32, rne_f32), else -1 */
  int sign_shift;                 /* from bit 31 to the code's sign */
  int zero_sign, integer, sticky; /* sticky: a y that underflowed is not zero */
  int sr_mode, sr_bits;           /* SR */
  int sr_simple;                  /* discarded bits below those of the random integer do not matter */
  int32_t wrap;                   /* all bits of a code, if what lies past the largest wraps, 0 otherwise */
  float wrap_grid;                /* the power of two whose last place is one step of the last binade */
  enum { MX_PLAIN_NO, MX_PLAIN_KEEP, MX_PLAIN_DROP } plain; /* nearest, saturating, signed: a -0 keeps its sign, or loses it */
} mx_stage_encode;

typedef struct mx_stages {
  const mx_plan *plan;
  int usable; /* 0: all scalar */
  int steps;  /* scales rise, or fall, with the maximum */
  int form, lead;
  /* stage 2 */
  int32_t amax_lo, amax_hi;       /* bits; ordinary blocks have lo <= amax <= hi */
  int32_t code_lo, code_hi;       /* and code_lo <= code <= code_hi */
  int32_t even_add, emax;         /* EVEN: added to the bits; power-of-two rules: taken from the exponent */
  int scale_is_exp, round, log2f; /* of the scale's value: MX_SCALE_ROUND_* */
  float f, rcp_f;                 /* DIV32, MUL32 */
  double times, over;             /* EXACT: amax * times / over, or its inverse */
  float v_lo, v_hi;               /* ordinary values before rounding */
  mx_stage_encode scale;          /* how they are rounded, for a scale with a mantissa */
  int32_t scale_rebias;           /* (127 - bias) << man_bits */
  float scale_sub;                /* least subnormal of the scale */
  enum { MX_FACTOR_POW2, MX_FACTOR_RCP_POW2, MX_FACTOR_SF, MX_FACTOR_RCP32, MX_FACTOR_CHAIN } factor;
  float pre;                                         /* a factor on x before, 0: none; not of EXACT */
  enum { MX_SCAN_NONE, MX_SCAN_Y, MX_SCAN_X } scan;  /* by distances from y, or from x, whose form is x / (the stored scale) */
  int far;                                           /* of scans: x may be so far beyond the largest value that distances are equal */
  int wide;                                          /* scales of more than a byte, in p->wide */
  int nearest;                                       /* of FORM_EXACT: y is looked at in binary32 */
  uint64_t n_values;                                 /* of the tensor up to the last row of the call */
  int select, map_to_4;                              /* select=foursix: pieces hold sf; these are the stages of the map-to-4 candidate */
  int six;                                           /* both candidates in vectors, */
  float y_six;                                       /* up to this |y| */
  int hif4;                                          /* usable for scale.rule=hif4 alone */
  float y_hi, y_most;                                /* largest |y| of an ordinary block; of one whose codes are made a byte each */
  mx_chain_expr scale_of, factor_of[2], again_of[2]; /* CHAIN: with what the tensor decides evaluated */
  /* stage 3 */
  int dtype; /* MX_INPUT_DTYPE_*: y is rounded to it */
  mx_stage_encode elem;
  double exact_times, exact_over; /* FORM_EXACT: y = x * (exact_times or scale * it) / (scale * exact_over or it) */
  float elem_max;                 /* largest value */
  int has_ends, ends; /* a y beyond ends_from, or NaN, may have a code of its own: y goes through binary32 or less; of flat stages, looked at */
  int32_t ends_from;  /* bits */
  int32_t inf_code[2], nan_code; /* of Inf and -Inf, and of what 0 / 0 and 0 * Inf are */
  int byte_sized;                /* the elements are plain, and a code with its exponent's field fits the low byte */
  int stochastic;                /* the same with elem.round=sr, simple, x by one factor */
  int hot;                       /* e2m1 by table, two a byte in order */
  int32_t wrap_far;              /* of e2m1, which up to 8.5 has one code that wraps: elem.wrap beyond that */
  int again;                     /* codes are encoded once more, those of four bits through a table a block */
  float values[256];             /* of codes, for that */
  uint8_t table[128];            /* by floor(4y) + ceil(4y) modulo 128 */
  int fold_4;                    /* the 4 may be multiplied into the factor: it makes no difference how small a number is that is not zero */
  int keep_sign;                 /* -0 gives the code of -0, which that sum does not show */
  int nibble;                    /* MX_NIBBLE_*, -1 for a code a byte */
  /* blocks of zeros */
  int zero_known;
  mx_block_scale zero_scale;
  uint8_t zero_code[2]; /* of +0 and -0 */
} mx_stages;

/* One piece of a row: n_blocks blocks of `block` elements, block a multiple of 16; n elements in all. */
typedef struct mx_piece {
  const float *x;
  size_t n_blocks, block, n;
  int shift;         /* the factors of element i are those at i / 16 >> shift */
  int by_element;    /* or at i: a row of a tile that is higher than 1 */
  const float *next; /* what will be read after it */
  uint64_t index;    /* of x[0] in the tensor, for random bits */
  int32_t amax[MX_PIECE_BLOCKS];
  uint8_t code[MX_PIECE_BLOCKS]; /* scales */
  uint32_t wide[MX_PIECE_BLOCKS];
  uint8_t odd[MX_PIECE_BLOCKS]; /* 1: not ordinary */
  float f0[MX_PIECE_BLOCKS], f1[MX_PIECE_BLOCKS];
  int beyond;                      /* a block has larger y than the kernel of the plan knows: codes are to be made a byte each */
  float sf[MX_PIECE_BLOCKS];       /* the scale itself, for select */
  float again[2][MX_PIECE_BLOCKS]; /* factors of the plan's second encoding */
} mx_piece;

/* The operations of one ISA. n and block are multiples of 16 unless said otherwise; pointers need no alignment. */
typedef struct mx_stage_kernels {
  const char *name;
  /* Largest bits of |x| of n (any number) values. */
  int32_t (*amax)(const float *x, size_t n);
  /* Stage 1 of a piece. */
  void (*block_amax)(mx_piece *p);
  /* Largest bits of |x| of each of n columns over rows. */
  void (*column_amax)(int32_t *out, const float *x, size_t ld, size_t rows, size_t n);
  /* Stage 2. */
  void (*scales)(const mx_stages *f, mx_piece *p);
  /* Stage 3: bytes of the whole piece, packed as f->nibble says. */
  void (*codes)(uint8_t *out, const mx_stages *f, const mx_piece *p);
  /* Stages 2 and 3 of the two candidates of select=foursix: codes, one a byte, of the better one, whose scales are left in six. Blocks of at most
   * MX_SIX_BLOCK; +0 that fills them up adds no error. */
  void (*foursix)(uint8_t *out, const mx_stages *f, mx_piece *six, const mx_piece *four);
  /* All stages of scale.rule=hif4: codes, one a byte, and three bytes of micro-scales a block. */
  void (*hif4)(uint8_t *out, uint8_t *micro, const mx_stages *f, mx_piece *p);
  /* Sums of x - mean and of its squares, in any order. */
  void (*moments)(double out[2], const float *x, size_t n, double mean);
  /* n codes to n / 2 bytes, as mx_pack4. */
  void (*pack4)(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block);
  /* Philox words [first, first + n) of stream MX_STREAM_ELEMENT; first and n are multiples of 4. */
  void (*random)(uint32_t *out, uint64_t seed, uint64_t first, size_t n);
} mx_stage_kernels;

extern const mx_stage_kernels mxi_stages_avx512, mxi_stages_avx2, mxi_stages_neon;

/** Compile a plan whose tensor-level numbers are set. */
void mxi_stages_init(mx_stages *stages, const mx_plan *plan);
/** The same stages with a code a byte, without the kernels that know fewer values of y. */
void mxi_stages_flat(mx_stages *flat, const mx_stages *stages);
/** The same stages for the map-to-4 candidate of select=foursix. */
void mxi_stages_map_to_4(mx_stages *four, const mx_stages *six);
/** The factors of one block from its scale: 0 if the kernels have no form for it. */
int mxi_stages_factors(float f[2], const mx_stages *stages, const mx_block_scale *scale);

#endif
