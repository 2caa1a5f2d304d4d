/* Declares how specs are tried: on chosen blocks by the scalar rules, scales and elements separately, and over everything by mx_quantize(). */
#ifndef MX_VERIFY_TRIAL_TRIAL_H
#define MX_VERIFY_TRIAL_TRIAL_H

#include <math.h>
#include <string.h>

#include "verify/trial/observe.h"

typedef struct score {
  uint64_t scales, codes, nan_codes; /* that differ; codes are judged under the scale that is stored, whether the spec gives it or not */
} score;

static inline uint64_t score_total(score s) { return s.scales * 4 + s.codes; }
static inline int score_less(score a, score b) {
  const uint64_t x = score_total(a), y = score_total(b);
  return x < y || (x == y && a.nan_codes < b.nan_codes);
}
static inline int score_clean(score s) { return !score_total(s) && !s.nan_codes; }
static inline score score_sum(score a, score b) { return (score){a.scales + b.scales, a.codes + b.codes, a.nan_codes + b.nan_codes}; }
static inline score score_worst(void) { return (score){UINT32_MAX, UINT32_MAX, UINT32_MAX}; }

/* Equal bit for bit, except that all NaNs are alike. */
static inline int same_value(float a, float b) { return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : !memcmp(&a, &b, sizeof a); }

enum { LOOKED = 40 };

/* A block and those of its elements that are compared. */
typedef struct set_item {
  uint32_t block; /* into observation.blocks */
  uint32_t n;
  uint32_t look[LOOKED]; /* r * block_cols + c */
} set_item;

typedef struct block_set {
  const observation *of;
  size_t n, room;
  set_item *at; /* by block, ascending */
} block_set;

/** Adds a block to a set, once, with the elements that tell most: of each kind, the largest, those nearest to a tie, and some others. If wrong is
 *  not NULL, also those that this spec gets wrong (a block that is there already may then get more). Returns 1 if anything was added. */
int mxi_set_add(block_set *s, uint32_t block, const mx_spec *wrong);
void mxi_set_free(block_set *s);
/** Adds one more element, r * block_cols + c, if there is room. */
void mxi_set_item_look_at(set_item *item, uint32_t at);
/** Adds a few elements that spec gets wrong. */
void mxi_set_item_add_wrong(set_item *item, const observation *o, const mx_spec *spec);

enum {
  LOOK_SCALES = 1,  /* the scales alone; with select=foursix either candidate will do */
  LOOK_BOTH = 3,    /* scales and elements */
  LOOK_LENIENT = 4, /* a stochastic rounding may go either way: its seed is not known */
  LOOK_EITHER = 8   /* so may select=foursix, under such a rounding */
};

/** Makes the plan of a spec over an observation, whose x has been through input.dtype, and through flush and the rotation if there is one.
 *  MX_ERR_CONFLICT if spec asks for another dtype or flush. */
mx_status mxi_trial_plan(mx_plan *p, const observation *o, const mx_spec *spec);
/** Counts what spec gets wrong on a set; wrong (may be NULL) has an entry for each item. The count may stop once it is past the limit. */
score mxi_set_score(const block_set *s, const mx_spec *spec, int how, uint64_t limit, uint8_t *wrong);
/** The same; print (may be NULL) becomes a fingerprint of the codes that spec gives there. */
score mxi_set_score_print(const block_set *s, const mx_spec *spec, int how, uint64_t limit, uint8_t *wrong, uint64_t *print);
/** Tries seeds one after another under a spec of scale.round=sr: does each give the scales of the set, under select=foursix either of the two? A
 *  trial belongs to one thread. Returns 0 if the spec cannot be run. */
typedef struct seed_trial {
  const block_set *set;
  uint32_t sample;
  mx_plan plan;
} seed_trial;
int mxi_seed_trial_open(seed_trial *t, const block_set *set, const mx_spec *spec);
int mxi_seed_trial_fits(seed_trial *t, uint64_t seed);
/** The scale of the i-th block of the set under a seed. Returns 0 if the spec refuses the block. */
int mxi_seed_trial_scale(uint32_t *code, seed_trial *t, size_t i, uint64_t seed);
/** Counts the codes that were seen where spec gives others: of scales below 256, and of elements without their sign. */
void mxi_set_wrong_codes(const block_set *s, const mx_spec *spec, uint32_t scales[256], uint32_t codes[256]);
/** Compares scales alone, over all blocks whose class is in the mask; wrong (may be NULL) has an entry for each block. */
score mxi_scales_score(const observation *o, const mx_spec *spec, unsigned classes, int how, uint8_t *wrong);
/** Runs everything by mx_quantize(), with rows and tails as they are; wrong (may be NULL) has an entry for each block. */
score mxi_full_score(const observation *o, const mx_spec *spec, uint8_t *wrong, int n_threads);
/** Counts samples whose stored tensor scale spec does not give: among the witnesses, or among all. */
uint64_t mxi_tensor_scales_wrong(const observation *o, const mx_spec *spec, int all);
/** Are these two NaN codes, or two codes of a NaN that differ only in sign? Which one a library gives depends on its processor. */
int mxi_same_nan(const mx_format *f, uint32_t a, uint32_t b, float x);
int mxi_nan_scale(const mx_format *f, uint32_t code);

#endif
