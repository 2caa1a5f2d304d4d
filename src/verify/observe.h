/* Samples cut into blocks, sets of blocks to try specs on, and the count of what a spec gets wrong. */
#ifndef MX_VERIFY_OBSERVE_H
#define MX_VERIFY_OBSERVE_H

#include "mxgold/verify.h"

/* Blocks by what decides their scale. */
typedef enum block_class { BLOCK_PLAIN, BLOCK_SMALL, BLOCK_LARGE, BLOCK_ZERO, BLOCK_INF, BLOCK_NAN, BLOCK_CLASSES } block_class;

typedef struct block_at {
  uint32_t sample;
  uint32_t row, col; /* of its first element */
  uint32_t scale;    /* code seen */
  float amax;        /* of the numbers */
  uint8_t kind;      /* block_class */
} block_at;

typedef struct sample_facts {
  float amax, amax_no_nan; /* mx_tensor_amax with NaN counted and not */
  size_t first_block;      /* in observation.blocks */
} sample_facts;

/* Samples under one hypothesis of formats, block and rotation. */
typedef struct observation {
  const mx_sample *samples;
  size_t n_samples;
  mx_spec formats; /* elem, scale, block, form; had.size and had.sign, which x has been through already */
  size_t block_rows, block_cols;
  block_at *blocks;
  size_t n_blocks;
  sample_facts *facts;
  float **rotated; /* x of each sample after the rotation, NULL without one */
  uint32_t least_scale, largest_scale;
  uint32_t witness[8]; /* samples of different amax, for tensor scales */
  size_t n_witnesses;
} observation;

/* Some blocks, copied together. */
typedef struct block_set {
  size_t n, room;
  const observation *of;
  uint32_t *index; /* into observation.blocks, ascending */
} block_set;

typedef struct score {
  uint64_t scales, codes, nan_codes; /* that differ */
} score;

mx_status observation_init(observation *o, const mx_sample *samples, size_t n, const mx_spec *formats, size_t block_rows, size_t block_cols);
void observation_free(observation *o);
/** x of a sample as the rule sees it but for flush and dtype. */
const float *observation_x(const observation *o, size_t sample, size_t *ld);

mx_status set_add(block_set *s, uint32_t block); /* once each */
void set_free(block_set *s);

/** Count what spec gets wrong on a set; wrong (may be NULL, zeroed by the caller) is told each block that is wrong. With limit > 0 the count may
 *  stop once it has passed the limit. */
score set_score(const block_set *s, const mx_spec *spec, uint8_t *wrong, uint64_t limit);
/** The same over everything, with rows and tails as they are; wrong has n_blocks entries. */
score full_score(const observation *o, const mx_spec *spec, uint8_t *wrong, int n_threads);
/** Samples whose stored tensor scale spec does not give; among the first few of different amax, or among all. */
uint64_t tensor_scales_wrong(const observation *o, const mx_spec *spec, int all);

static inline uint64_t score_total(score s) { return s.scales * 4 + s.codes; }
static inline int score_less(score a, score b) {
  const uint64_t x = score_total(a), y = score_total(b);
  return x < y || (x == y && a.nan_codes < b.nan_codes);
}

#endif
