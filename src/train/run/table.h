/* Declares rows of numbers to train on: each a task's features and what is to be predicted, shuffled anew in each epoch. */
#ifndef TRAIN_TABLE_H
#define TRAIN_TABLE_H

#include "train/run/config.h"

typedef struct mxi_table {
  size_t n, n_train;       /* rows; the first n_train are trained on */
  size_t features, values; /* of a row as it is kept; numbers to predict */
  size_t inputs;           /* of a model: the features, of diffusion the embedding of time beside them */
  size_t classes;          /* 0: numbers are predicted */
  float *x;                /* [n][features] */
  float *y;                /* [n][values] */
  int32_t *label;          /* [n] */
  float *time;             /* diffusion: embeddings of its steps, [timesteps][inputs - features] */
  double *keep, *add;      /* diffusion: shares of a point and of its noise, [timesteps] */
  uint32_t *order;         /* the permutation of epoch `epoch`, [n_train] */
  uint32_t *picked;        /* the rows of the batch under way, [batch] */
  uint64_t epoch;
} mxi_table;

/* Purposes of the random words of the data: the seed of a purpose is mx_linear_seed(train.seed_data, epoch or batch, purpose, 14). */
enum { MXI_USE_FEATURES, MXI_USE_WEIGHTS, MXI_USE_ORDER, MXI_USE_PLACE, MXI_USE_NOISE, MXI_USE_TIME, MXI_USE_EPSILON, MXI_USES };
static inline uint64_t mxi_table_seed(const mxi_config *c, uint64_t index, int use) {
  return mx_linear_seed(c->train.seed_data, index, (uint32_t)use, 14);
}

/** Make or read the rows of the configuration's task. */
mx_status mxi_table_make(mxi_table *out, const mxi_config *c, const mx_exec *exec, mx_error *err);
void mxi_table_free(mxi_table *t);

/** Batch number s of training: x [batch][inputs], and y [batch][values] or label [batch]. */
void mxi_table_batch(mxi_table *t, const mxi_config *c, uint64_t s, float *x, float *y, int32_t *label);
/** Batch number s of an evaluation: rows of the validation part in their order, all or data.eval_rows spread evenly over it. Returns how many of
 *  its rows are new; the rest repeat the first. */
size_t mxi_table_validation(mxi_table *t, const mxi_config *c, uint64_t s, float *x, float *y, int32_t *label);

/* The tasks, each filling what belongs to it. */
mx_status mxi_regression_make(mxi_table *t, const mxi_config *c, const mx_exec *exec, mx_error *err);
mx_status mxi_digits_read(mxi_table *t, const mxi_config *c, mx_error *err);
mx_status mxi_points_make(mxi_table *t, const mxi_config *c, const mx_exec *exec, mx_error *err);
/** diffusion: points t->picked of batch s with noise, and the embeddings of their times, as x; the noise as y. An evaluation's draws are its own. */
void mxi_points_noise(const mxi_table *t, const mxi_config *c, uint64_t s, int evaluation, float *x, float *y);

#endif
