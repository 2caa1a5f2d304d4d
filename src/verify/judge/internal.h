/* Declares what the files of mx_judge() share.
 *
 * judge.c           the call: the problem in the raw form, mask of wrong outputs, counts
 * findings.c        outputs compared, statements weighed against all of D, findings noted: what all the others below stand on
 * models.c          D under each model
 * variants.c        what else could have been computed: ranked, then held to bits
 * edits.c           those edits of the problem, made
 * words.c           and said
 * output.c          functions of the right output alone: a ReLU, a clamp
 * chains.c          alpha and tensor scales multiplied in another order; a sum that began with another output's
 * factors.c         one number that all outputs are multiplied or raised by
 * places.c          parts of D that hold what belongs elsewhere, or nothing
 * orders.c          orders of summation and widths of accumulators that no model of mx_gemm() has
 * round.c           roundings to narrow types
 * regions.c         where in D, and what stands there */
#ifndef MX_VERIFY_JUDGE_INTERNAL_H
#define MX_VERIFY_JUDGE_INTERNAL_H

#include "core/shortage.h"
#include "mxgold/judge.h"
#include "mxgold/mma.h"

/* Wrong outputs that ideas are tried on before all of D is. Fewer, and more wrong ideas get as far as D; more, and every idea takes longer. */
enum { JUDGE_SAMPLE = 64 };

/* Thresholds that several files share.
 * JUDGE_FEWEST        wrong outputs that a cause must explain to the bit. Fewer, and a wrong cause fits by chance; more, and small tensors get no answer.
 * JUDGE_FEWEST_NEAR   the same for a cause that gives outputs only nearly, and for an order of all of D: what is near is there by chance more often.
 * JUDGE_FEWEST_SHARED a trait that wrong outputs share by one chance in two each is said from so many on, and orders of summation are tried from there.
 * JUDGE_BREAKS_ONE_IN right outputs that a cause would have made wrong, as a share of the wrong ones that it explains: at most one in so many. A larger
 *                     share lets a wrong cause pass; a smaller one loses a cause that acts in a part of D whose edges are not known. */
enum { JUDGE_FEWEST = 4, JUDGE_FEWEST_NEAR = 16, JUDGE_FEWEST_SHARED = 8, JUDGE_BREAKS_ONE_IN = 8 };

/* Multiply-adds of products of all of D that may be spent on telling apart models that do equally well on the sample. Less, and large products get the
 * name of a model that does less well; more, and they take seconds. */
static const size_t JUDGE_WORK = (size_t)1 << 28;

/* Knuth's multiplicative hash: indices times this, modulo a size, lie all over it. */
static const uint64_t JUDGE_SCATTER = 2654435761u;

/* A value of binary32 or narrower: significant bits, least normal exponent, largest finite value. */
typedef struct judge_type {
  const char *name;
  int bits, emin;
  double max;
} judge_type;
enum { JUDGE_F32, JUDGE_F16, JUDGE_BF16, JUDGE_E8M13, JUDGE_TF32, JUDGE_TYPES };
extern const judge_type mxi_judge_types[JUDGE_TYPES];
enum { JUDGE_RNE, JUDGE_RZ, JUDGE_RNA, JUDGE_DOWN, JUDGE_UP };
/** x, exact or rounded to odd, to a type. saturate: the largest value instead of Inf; flush: zeros instead of subnormals. */
double mxi_judge_round(double x, const judge_type *type, int mode, int saturate, int flush);
/** Sum rounded to odd in binary64, so that one more rounding to 51 bits or fewer is right. */
double mxi_judge_add(double a, double b);

typedef struct judge_model {
  char name[64];
  int id;
  mx_mma_model fused;
} judge_model;

typedef struct judge_job {
  mx_judgement *out;
  mx_judge_options how;
  const mx_tensor *a, *b;
  const mx_spec *a_spec, *b_spec;
  mx_gemm_problem right; /* the problem as it should be */
  int raw;               /* 0: operands that mx_gemm_raw() has no form for; models alone are tried */
  const void *d;
  mx_dtype type;
  float *got, *want; /* D and the base, as binary32 */
  uint8_t *wrong;
  const float *lo, *hi; /* with bound: each output's interval; else NULL */
  uint8_t *tiles;       /* of mxi_judge_weigh() */
  uint8_t *in[2];       /* rows and columns that hold a wrong output: together the part of D that something may be wrong in */
  judge_model *models;
  int n_models, base;
  size_t (*sample)[2]; /* wrong outputs */
  size_t n_sample;
  uint8_t *need[2];  /* rows of A and of B that the sample needs */
  shortage *lack;    /* of the call: where memory runs out, it is noted there */
  uint8_t *codes[2]; /* operands unpacked, where the raw call has no name for the order of nibbles */
} judge_job;

float mxi_judge_load(const void *from, size_t index, mx_dtype type);
/** Output i as binary32 before it is rounded to the type of D: x, the product alone, and onto it beta * C and the bias. */
double mxi_judge_after(const judge_job *j, size_t i, double x);
/** Are these the same, by the options? */
int mxi_judge_same(const judge_job *j, float x, float y);
/** Outputs of a problem under a model, as binary32 after rounding to `type`: the listed pairs, or with NULL all. */
mx_status mxi_judge_run(const judge_job *j, float *out, const mx_gemm_problem *p, int model, mx_dtype type, const size_t (*pairs)[2], size_t n);
/** Models of mx_gemm(), then the rows of accumulation.def that it takes for these operands. */
mx_status mxi_judge_find_models(judge_job *j);
/** D against each model; base becomes the nearest, or the one asked for, and `want` its outputs. */
mx_status mxi_judge_try_models(judge_job *j, mx_error *err);
/** look(), and if it finds nothing again under other models that leave the same outputs wrong: what is wrong in these is told under one of them alone. */
void mxi_judge_under_ties(judge_job *j, void (*look)(judge_job *));
/** Add a finding; one like it is not added twice. */
void mxi_judge_say(judge_job *j, const char *model, uint64_t explained, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A statement about D beside all of D. */
typedef struct judge_tally {
  uint64_t explained; /* wrong outputs that it gives */
  uint64_t telling;   /* of these, numbers other than zero that are not near the right one: not there by chance */
  uint64_t breaks;    /* right outputs, in rows and columns with wrong ones, that it would have made wrong */
} judge_tally;

/** Does output i lie in the part of D that something may be wrong in? */
int mxi_judge_inside(const judge_job *j, size_t i);
/** Tiles of D in which mxi_judge_weigh() counts: bytes of j->tiles. */
size_t mxi_judge_tiles(const judge_job *j);
void mxi_judge_start(judge_tally *t, const judge_job *j);
/** Output i beside x, which a statement gives there. */
void mxi_judge_weigh(judge_tally *t, const judge_job *j, size_t i, float x);
/** May it be said? A cause that would have changed many right outputs is not a cause, unless many numbers agree to the bit and lie apart from those: in
 * other tiles of 4 x 4. Then it acts where D is wrong. What goes by value, as a ReLU does, is mixed. */
int mxi_judge_holds(const judge_job *j, const judge_tally *t);
/** mxi_judge_say() with all that was counted. */
void mxi_judge_says(judge_job *j, const char *model, const judge_tally *t, const char *format, ...) __attribute__((format(printf, 4, 5)));

void mxi_judge_variants(judge_job *j);
/** about: the number need not give bits. */
void mxi_judge_factors(judge_job *j, int about);
void mxi_judge_places(judge_job *j);
/** Fewer wrong outputs than can show a cause, beside many right ones: each by itself. */
void mxi_judge_few(judge_job *j);
/** Rows or columns that stand elsewhere, in no order that has a name. */
void mxi_judge_moved(judge_job *j);
/** Outputs that are all zero or NaN, one here, one there. */
void mxi_judge_scattered(judge_job *j);
void mxi_judge_output(judge_job *j);
/** The same numbers multiplied onto the sum in another order; an accumulator that was not cleared. */
void mxi_judge_chains(judge_job *j);
void mxi_judge_orders(judge_job *j);
void mxi_judge_regions(judge_job *j);

#endif
