/* Declares samples as the rule sees them, cut into blocks that are sorted into classes by what decides their scale. */
#ifndef MX_VERIFY_TRIAL_OBSERVE_H
#define MX_VERIFY_TRIAL_OBSERVE_H

#include "core/shortage.h"
#include "kernels/block/plan.h"
#include "mxgold/verify.h"

/* n / by, rounded up. */
static inline size_t up(size_t n, size_t by) { return n / by + (n % by != 0); }

/* Is it a number that binary16 or bfloat16 could hold? Its quotients with others of that kind have few digits by nature. */
static inline int mxi_is_short(float x) {
  enum { BITS = 11 };
  int exponent;
  const float m = ldexpf(frexpf(x, &exponent), BITS);
  return m == floorf(m);
}

/* Classes of blocks, by what decides their scale. */
typedef enum block_class { BLOCK_PLAIN, BLOCK_SMALL, BLOCK_LARGE, BLOCK_ZERO, BLOCK_INF, BLOCK_NAN, BLOCK_CLASSES } block_class;

typedef struct block_at {
  uint32_t sample;
  uint32_t row, col; /* of its first element */
  uint32_t scale;    /* code seen */
  mx_block_stats stats;
  uint8_t kind; /* block_class */
} block_at;

typedef struct sample_facts {
  mx_block_stats whole; /* of the tensor */
  size_t first_block;   /* in observation.blocks */
} sample_facts;

/* Samples under one hypothesis of formats, block, rotation and input.dtype. */
typedef struct observation {
  const mx_sample *samples;
  size_t n_samples;
  mx_spec formats; /* elem, scale, block, form, input.dtype, had.* */
  size_t block_rows, block_cols;
  block_at *blocks;
  size_t n_blocks;
  sample_facts *facts;
  float **own; /* x of each sample after input.dtype and the rotation, NULL where that is x itself */
  uint32_t least_scale, largest_scale;
  struct value_cache *cache; /* of values.h; NULL: none */
  struct memo *memo;         /* of memo.h; NULL: none */
  uint32_t witness[8];       /* samples of different amax, for tensor scales */
  size_t n_witnesses;
  shortage *lack; /* of the call */
} observation;

/** Could spec have made the sample? The number and size of its scales must fit, and no code may have bits that its format lacks. */
int mxi_sample_fits(const mx_spec *spec, const mx_sample *s);
/** Makes the observation. MX_ERR_NOMEM is noted in lack, as is all memory that runs out under o later. */
mx_status mxi_observation_init(observation *o, const mx_sample *samples, size_t n, const mx_spec *formats, size_t block_rows, size_t block_cols,
                               int n_threads, shortage *lack);
void mxi_observation_free(observation *o);
/** x of a sample as the rule sees it, before flush; ld is its row stride. */
const float *mxi_observation_x(const observation *o, size_t sample, size_t *ld);
/** The keys that the observation supposes: formats, block, rotation, type. */
void mxi_observation_put_formats(mx_spec *spec, const observation *o);
/** max|X| of a sample as spec counts it. */
float mxi_observation_amax(const observation *o, size_t sample, const mx_spec *spec);
/** Rows and columns of a block that the sample has. */
void mxi_observation_extent(const observation *o, const block_at *b, size_t *rows, size_t *cols);
/** Stored code of the scale of the block at an element. */
uint32_t mxi_observation_scale(const observation *o, const mx_sample *s, size_t row, size_t col);

#endif
