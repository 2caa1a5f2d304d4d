/* Declares what the files of mx_judge() share: models and the sums of D, statements that are weighed against all of D, and the searches for what
 * was computed instead. judge.c has the order in which they are asked. */
#ifndef MX_VERIFY_JUDGE_INTERNAL_H
#define MX_VERIFY_JUDGE_INTERNAL_H

#include "core/shortage.h"
#include "mxgold/judge.h"
#include "mxgold/mma.h"

/* How many wrong outputs an idea is tried on before it is tried on all of D. With fewer, more wrong ideas get as far as D; with more, every idea
 * takes longer. */
enum { JUDGE_SAMPLE = 64 };

/* Thresholds that several files share. JUDGE_FEWEST: how many wrong outputs a cause must explain to the bit; with fewer, a wrong cause fits by
 * chance; with more, small tensors get no answer. JUDGE_FEWEST_NEAR: the same for a cause that gives outputs only nearly, and for an order of all of
 * D, since chance produces near outputs more often. JUDGE_FEWEST_SHARED: from so many wrong outputs on, a trait is named that each has by one chance
 * in two, and orders of summation are tried. JUDGE_BREAKS_ONE_IN: right outputs that a cause would have made wrong may be at most one in so many of
 * the wrong ones that it explains; a larger share lets a wrong cause pass, a smaller one loses a cause that acts in a part of D whose edges are not
 * known. */
enum { JUDGE_FEWEST = 4, JUDGE_FEWEST_NEAR = 16, JUDGE_FEWEST_SHARED = 8, JUDGE_BREAKS_ONE_IN = 8 };

/* How many multiply-adds may be spent on products of all of D to tell apart models that do equally well on the sample. With less, large products
 * get the name of a model that does less well; with more, they take seconds. */
static const size_t JUDGE_WORK = (size_t)1 << 28;

/* Knuth's multiplicative hash: indices times this, modulo a size, are spread evenly. */
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
/** x, exact or rounded to odd, rounded to a type. saturate: the largest value instead of Inf; flush: zeros instead of subnormals. */
double mxi_judge_round(double x, const judge_type *type, int mode, int saturate, int flush);
/** A sum rounded to odd in binary64, so that one more rounding to 51 bits or fewer is correct. */
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
/** Output i as binary32 before it is rounded to the type of D: x, which is the product alone, plus beta * C and the bias. */
double mxi_judge_after(const judge_job *j, size_t i, double x);
/** Are these the same, by the options? */
int mxi_judge_same(const judge_job *j, float x, float y);
/** Computes outputs of a problem under a model, as binary32 after rounding to `type`: the listed pairs, or all if the list is NULL. */
mx_status mxi_judge_run(const judge_job *j, float *out, const mx_gemm_problem *p, int model, mx_dtype type, const size_t (*pairs)[2], size_t n);
/** Models of mx_gemm(), then the rows of accumulation.def that it takes for these operands. */
mx_status mxi_judge_find_models(judge_job *j);
/** Compares D with each model. base becomes the nearest, or the one asked for, and `want` its outputs. */
mx_status mxi_judge_try_models(judge_job *j, mx_error *err);
/** Calls look(); if that finds nothing, calls it again under other models that leave the same outputs wrong, since the cause may show under one
 *  of them alone. */
void mxi_judge_under_ties(judge_job *j, void (*look)(judge_job *));
/** Adds a finding unless one like it was added before. */
void mxi_judge_say(judge_job *j, const char *model, uint64_t explained, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A statement about D, weighed against all of D. */
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
/** Weighs output i against x, which a statement gives there. */
void mxi_judge_weigh(judge_tally *t, const judge_job *j, size_t i, float x);
/** May a statement be made? A cause that would have changed many right outputs is not a cause, unless many numbers agree to the bit and lie apart
 *  from those, in other tiles of 4 x 4: then it acts where D is wrong. Effects that depend on values, as a ReLU, may be mixed with right outputs. */
int mxi_judge_holds(const judge_job *j, const judge_tally *t);
/** mxi_judge_say() with all that was counted. */
void mxi_judge_says(judge_job *j, const char *model, const judge_tally *t, const char *format, ...) __attribute__((format(printf, 4, 5)));

void mxi_judge_variants(judge_job *j);
/** about: the number need not give bits. */
void mxi_judge_factors(judge_job *j, int about);
void mxi_judge_places(judge_job *j);
/** Describes each wrong output by itself, if there are fewer than could show a cause, beside many right ones. */
void mxi_judge_few(judge_job *j);
/** Is D, but for a few outputs, the product under a model that was not asked for? Then no cause is looked for that would have to explain the model. */
void mxi_judge_another_model(judge_job *j);
/** Finds rows or columns that stand elsewhere, in no order that has a name. */
void mxi_judge_moved(judge_job *j);
/** Finds scattered outputs that are all zero or all NaN. */
void mxi_judge_scattered(judge_job *j);
void mxi_judge_output(judge_job *j);
/** Tries the same factors in another order after the sum, and an accumulator that was not cleared. */
void mxi_judge_chains(judge_job *j);
void mxi_judge_orders(judge_job *j);
void mxi_judge_regions(judge_job *j);

#endif
