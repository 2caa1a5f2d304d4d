/* Declares what the files of the matrix-unit models share. The order of work: mma.c and gemm/fused.c describe the operands, run.c cuts D
 * into jobs, panel.c turns rows of operands into panels, a kernel (fused.c, chain.c) computes one output from a row of each panel, and
 * round.c makes its bits. */
#ifndef MX_MMA_INTERNAL_H
#define MX_MMA_INTERNAL_H

#include "mxgold/mma.h"

/* The class of an operand; 0: finite and not zero. */
enum { MMA_ZERO = 1, MMA_INF = 2, MMA_NAN = 4 };

/* The exponent of a term that takes no part in the alignment. It is so low that a sum with one real exponent is still below every sum of
 * two. */
enum { MMA_NO_EXP = -(1 << 20), MMA_NO_EXP_SUM = -(1 << 19) };

/* A number in three parts: value = sig * 2^(exp - frac), where frac is a property of its format and exp is the exponent of the encoding. */
typedef struct mma_num {
  int64_t sig;
  int exp;
  int cls;
} mma_num;

/* An operand, whatever its layout in memory. */
typedef struct mma_side mma_side;
struct mma_side {
  const mx_format *type, *scale;                                                      /* scale NULL: none */
  void (*codes)(uint64_t *out, const mma_side *side, size_t row, size_t k, size_t n); /* codes of `type`; 0 beyond the last element */
  mma_num (*scale_of)(const mma_side *side, size_t row, size_t block);
  const void *from;      /* what codes() and scale_of() read: rows of bytes (mma.c) or an mxg_operand (gemm/fused.c) */
  const uint8_t *scales; /* mma.c: [rows][row_scales] */
  size_t row_bytes, row_scales;
  int zero_exp;       /* the exponent of zeros among the operands of a product */
  mma_num table[256]; /* all numbers of a type of at most 8 bits */
  mma_num scale_table[256];
};

/* Rows of one operand, decomposed into numbers: [rows][K], where K is a stretch of the whole. The operation decides which arrays exist. */
typedef struct mma_panel {
  int32_t *sig; /* fused, integer */
  int32_t *exp; /* fused */
  uint8_t *cls; /* fused */
  float *f32;   /* pairwise, fma */
  double *f64;  /* fma in f64 */
  /* for fused with P, where scales stay separate: [rows][blocks along K] */
  int32_t *scale_sig;
  int32_t *scale_exp;
  uint8_t *bytes;   /* the same for lanes: each element in units of the smallest one, plus 64; [rows][bytes_stride] */
  uint8_t *special; /* [rows]: the row holds an Inf or NaN, or a NaN scale */
  /* only for kept operands: [rows], where bit i says that some element of the i-th 1 << live_shift is nonzero. NULL: not known */
  uint64_t *live;
  int live_shift;
  size_t K, n_blocks, bytes_stride;
} mma_panel;

/* A model, with what is derived from it once. */
typedef struct mma_plan {
  const mx_mma_model *model; /* its a, b, scale and block are only read by mma.c; elsewhere sides and block stand for them */
  mx_accum x;
  mma_side a, b;
  size_t block;    /* elements along K that share a scale; 0: no scales */
  int frac;        /* fraction bits of a product's sig, scales included unless P */
  int scale_frac;  /* with P: fraction bits of the product of two scale significands */
  int zero_exp;    /* the exponent of a zero operand: -126 or MMA_NO_EXP */
  int may_be_huge; /* a finite product can reach 2^128, and that matters */
  /* type of D */
  int man, bias, exp_max, exp_min, keep; /* keep: fraction bits of the result */
  int floor, c_drop;                     /* those of x as numbers; INT32_MIN and INT32_MAX if there is none */
  size_t k;                              /* elements in an instruction */
  int with_bytes;                        /* panels have bytes, for the sums of P products in lanes */
  int vectors;                           /* mxi_mma_fused() may use AVX-512 */
} mma_plan;

/* log2 of a bound on the magnitudes of a type. */
int mxi_mma_top_of(const mx_format *f);

/* The accumulator: bits of type D, or nothing yet. */
typedef struct mma_acc {
  uint64_t bits;
  int some;
} mma_acc;

/* Computes one output from row i of panel a and row j of panel b. */
typedef mma_acc mma_kernel(const mma_plan *plan, const mma_panel *a, size_t i, const mma_panel *b, size_t j, mma_acc c);
mma_kernel mxi_mma_fused, mxi_mma_pairwise, mxi_mma_fma, mxi_mma_integer;

/* Storing D, and reading numbers as bits of another type: */
void mxi_mma_store(void *d, const mx_format *type, size_t at, uint64_t bits);  /* stores element `at` of D */
uint64_t mxi_mma_widen(const mx_format *c, const mx_format *d, uint64_t bits); /* a number of type C as bits of type D */
void mxi_mma_side_of(mma_side *side, const mx_mma_model *m, const mx_format *type, const void *codes, const void *scales, size_t K);

/* Splitting codes of operands into sign, significand and exponent: */
void mxi_mma_codes(uint64_t *out, const void *row, const mx_format *type, size_t k, size_t n); /* reads elements k .. k+n-1 of a row */
uint64_t mxi_mma_code(const void *row, const mx_format *type, size_t k);
mma_num mxi_mma_split(const mx_format *type, uint64_t code);
mma_num mxi_mma_operand(const mma_plan *plan, const mx_format *type, uint64_t code); /* applies `via` and `zero` */
mma_num mxi_mma_scale(const mma_plan *plan, const mx_format *scale, uint64_t code);
void mxi_mma_tables(mma_side *side, const mma_plan *plan); /* for types and scales of at most 8 bits; masks the sign of a scale */

/* Panels: rows of one operand that are split once and used by many outputs. */
mx_status mxi_mma_panel_alloc(mma_panel *p, const mma_plan *plan, size_t rows, size_t K);
void mxi_mma_panel_free(mma_panel *p);
/* Fills row r of the panel with elements k0 .. k0 + p->K - 1 of a row of the operand. */
void mxi_mma_panel_fill(mma_panel *p, size_t r, const mma_plan *plan, const mma_side *side, size_t row, size_t k0);
/* Where element k of a row of K is placed, which is the order of summation within an instruction. */
size_t mxi_mma_panel_place(const mma_plan *plan, size_t k, size_t K);
/* Makes a panel hold fewer elements than it has memory for. */
void mxi_mma_panel_shorten(mma_panel *p, const mma_plan *plan, size_t K);

/* The number that a field of mx_accum stands for if MX_ACC_NUMBER_0 may stand for 0; `none` if the field is 0. */
static inline int mma_number_of(int field, int none) { return field == 0 ? none : field == MX_ACC_NUMBER_0 ? 0 : field; }

/* Makes a plan from a model, from sides whose type, scale and functions are set, and from a block. */
void mxi_mma_plan_make(mma_plan *plan, const mx_mma_model *model, size_t K);

typedef struct mma_lanes_plan mma_lanes_plan;
/* All outputs of T tiles. load() gives C as bits of type D, or nothing (has_c 0: always nothing); store() takes D. Any thread calls them,
 * once for each output. */
typedef struct mma_work mma_work;
struct mma_work {
  const mma_plan *plan;
  size_t T, M, N, K;
  int has_c;
  mma_acc (*load)(const mma_work *w, size_t t, size_t i, size_t j);
  void (*store)(const mma_work *w, size_t t, size_t i, size_t j, mma_acc acc);
  const void *context; /* for load() and store() */
  /* Set by the walk itself: */
  const mma_lanes_plan *lanes; /* NULL: one output at a time */
  mma_kernel *kernel;
  size_t side;       /* rows and columns of a block */
  size_t stretch;    /* how many elements of K panels hold: all, or whole instructions and whole blocks */
  size_t rows, cols; /* blocks in a tile */
};
mx_status mxi_mma_run(mma_work *w, mma_plan *plan, const mx_exec *exec);
mma_kernel *mxi_mma_kernel_of(const mma_plan *plan);
size_t mxi_mma_stretch(const mma_plan *plan, size_t K); /* the largest stretch that panels of 16 rows have room for */

/* value * 2^-shift as an integer; mode: MX_ACC_ALIGN_*. */
static inline int64_t mma_cut(int64_t value, int shift, int mode) {
  if (shift <= 0) return (int64_t)((uint64_t)value << -shift);
  if (mode == MX_ACC_ALIGN_RD) return value >> (shift > 63 ? 63 : shift);
  uint64_t sign = (uint64_t)(value >> 63), magnitude = ((uint64_t)value ^ sign) - sign, kept = shift > 63 ? 0 : magnitude >> shift;
  if (mode == MX_ACC_ALIGN_RNE && shift <= 63) {
    uint64_t rest = magnitude & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
  }
  return (int64_t)((kept ^ sign) - sign);
}

/* The products of a group, or only those of its even or odd elements, at most 2^8 of them. */
enum { MMA_TERMS_ALL, MMA_TERMS_EVEN, MMA_TERMS_ODD };
typedef struct mma_terms {
  const int32_t *sig_a, *sig_b, *exp_a, *exp_b;
  size_t n;
} mma_terms;
int mxi_mma_vectors(uint32_t isa_off);                       /* what plan.vectors is on this machine */
int mxi_mma_terms_top_avx512(const mma_terms *t, int which); /* finds the largest exponent */
int64_t mxi_mma_terms_sum_avx512(const mma_terms *t, int which, int down,
                                 int mode); /* cuts every term by down - its exponent, and returns their sum */

/* Cutting sums and rounding them to the bits of D: */
__int128 mxi_mma_cut_wide(__int128 value, int shift, int mode);
uint64_t mxi_mma_round(const mma_plan *plan, int64_t value, int exp, int mode); /* rounds value * 2^exp to the bits of D; mode: MX_ACC_OUT_* */
uint64_t mxi_mma_round_wide(const mma_plan *plan, __int128 value, int exp, int mode);
uint64_t mxi_mma_inf(const mma_plan *plan, int negative);
uint64_t mxi_mma_nan(const mma_plan *plan);
uint64_t mxi_mma_add(const mma_plan *plan, uint64_t x, uint64_t y); /* adds two values of type D, to nearest even */

/* An exact sum: */
enum { MMA_LIMBS = 20, MMA_WIDE_EXP = -640 }; /* bit 0 has the weight 2^MMA_WIDE_EXP */
typedef struct mma_wide {
  uint64_t limb[MMA_LIMBS]; /* two's complement */
} mma_wide;
void mxi_mma_wide_add(mma_wide *w, int64_t value, int exp);
/* The sum as value * 2^*exp, with at most 62 significant bits, the last of which is sticky. */
int64_t mxi_mma_wide_top(const mma_wide *w, int *exp);

#endif
