/* Declares presets as bases of bugs: what each gives, and what a modified run of it leaves unexplained. */
#ifndef MX_VERIFY_BUGS_BASE_H
#define MX_VERIFY_BUGS_BASE_H

#include "core/shortage.h"
#include "kernels/block/plan.h"
#include "mxgold/verify.h"
#include "verify/bugs/names.h"

/* A sample as a preset sees it. Scales on the grid of blocks, [down][across]. */
typedef struct part {
  const mx_sample *s;
  size_t rows, cols, block_rows, block_cols, down, across;
  float *x;              /* [rows][cols] after input.dtype, flush and rotation */
  mx_block_stats *stats; /* NULL where the rule has steps of its own (foursix, HiFloat4): such a preset is not run by blocks */
  uint8_t *codes;        /* what the preset gives */
  uint32_t *scales;
  uint32_t *seen; /* scales that are stored */
  float amax;     /* max|X| as the preset counts it */
  float tensor_scale;
  int has_tensor_scale;
} part;

typedef struct leaves {
  uint64_t codes, scales, tensor_scales;
} leaves;

static inline uint64_t left_total(leaves l) { return l.codes + l.scales + l.tensor_scales; }

/* A row of blocks: of a part, and of the parts. */
typedef struct at_row {
  size_t part, row;
} at_row;
enum { LOOKED_AT = 16 };

typedef struct base {
  mx_spec spec;
  const char *preset;
  part *parts;
  size_t n;
  leaves plain;           /* of the preset as it is */
  at_row rows[LOOKED_AT]; /* that a bug must explain, and some that it must leave right, spread over the data; of runs by blocks */
  size_t n_rows;
  uint64_t rows_wrong; /* what the preset leaves there */
  int n_threads;
  shortage *lack; /* of the call: where memory runs out below, it is noted there */
} base;

/* A run that is on trial: codes and scales of each part. */
typedef struct trial_run {
  uint8_t **codes;
  uint32_t **scales;
} trial_run;

/** Can the preset have made these shapes and codes? */
int mxi_base_fits(const mx_spec *spec, const mx_sample *samples, size_t n);
/** Run spec over every sample; by_blocks: also what runs by blocks need. 0 if it can't be run. */
int mxi_base_open(base *b, const mx_spec *spec, const char *preset, const mx_sample *samples, size_t n, int n_threads, int by_blocks,
                  shortage *lack);
void mxi_base_close(base *b);
/** Allocate memory for runs of b (0 if there is none), and free it. */
int mxi_run_open(trial_run *r, const base *b);
void mxi_run_close(trial_run *r, const base *b);
/** Codes and scales of part i that differ from what was seen, in rows of blocks [first, end). As elsewhere a NaN is a NaN, and codes under a NaN
 *  scale do not count. scales NULL: those of the part. */
leaves mxi_run_left(const base *b, size_t i, const uint8_t *codes, const uint32_t *scales, size_t first, size_t end);

/** A part with another x, in place of what the preset would read: x [rows][cols] is taken as it is, and run by mx_quantize(). 0 if that fails. */
int mxi_part_rerun(const base *b, const part *p, const float *x, uint8_t *codes, uint32_t *scales, const float *amax);
/** Codes of one element under a scale, as the preset has them. */
const mx_format *mxi_base_elem(const base *b);

/* A bug and what it leaves. */
typedef struct candidate {
  const char *name;
  char text[512];
  leaves l;
  int weak; /* 1: a description, not a cause; 2: of many words: less weak is better where both leave the same */
} candidate;

/* A bug must explain all but one in so many of what the preset leaves: two bugs at once leave some, and a wrong bug explains far less. */
enum { BUG_LEAVES_ONE_IN = 50 };

static inline int is_found(const candidate *c) { return c->name && !left_total(c->l) && !c->weak; }

/** The candidate becomes the best if it leaves less than one in BUG_LEAVES_ONE_IN of what the preset leaves, and less than the best so far. */
void mxi_offer(candidate *best, const base *b, const candidate *c);

/** The groups of bugs; each offers what it finds. */
void mxi_tensor_bugs(candidate *best, const base *b);
void mxi_map_bugs(candidate *best, const base *b);   /* codes and scales renamed, lanes and blocks in another place */
void mxi_step_bugs(candidate *best, const base *b);  /* thresholds between codes */
void mxi_twist_bugs(candidate *best, const base *b); /* another maximum, another divisor, rounded twice */
void mxi_input_bugs(candidate *best, const base *b); /* the input is not what the kernel was given */

/** x of each part, [rows][cols], is changed as `text` says, for the scales alone or for the elements alone; rotated: by a rotation. */
void mxi_mixed_bugs(candidate *best, const base *b, float *const *x, int rotated, const char *text);

/** "in rows 1, 3, 5, ..." : where blocks of a flag each ([down][across] of part 0) lie, at most size bytes. */
void mxi_where_of(char *out, size_t size, const base *b, uint8_t *const *flags);

#endif
