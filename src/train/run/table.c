/* Holds rows of numbers to train on: the order of an epoch, and batches. */
#include "train/run/table.h"

#include <stdlib.h>
#include <string.h>

#include "mxgold/random.h"

mx_status mxi_table_make(mxi_table *t, const mxi_config *c, const mx_exec *exec, mx_error *err) {
  *t = (mxi_table){.epoch = UINT64_MAX};
  mx_status status = c->model.kind == MXI_GAUSSIAN ? mxi_regression_make(t, c, exec, err)
                     : c->model.kind == MXI_DIGITS ? mxi_digits_read(t, c, err)
                                                   : mxi_points_make(t, c, exec, err);
  if (status) return status;
  t->n_train = (size_t)(c->data.split * (double)t->n);
  if (t->n_train < c->train.batch)
    return mx_fail(err, MX_ERR_DATA, "train.batch is %zu, expected at most the %zu rows to train on", c->train.batch, t->n_train);
  t->order = malloc(t->n_train * sizeof *t->order);
  t->picked = malloc(c->train.batch * sizeof *t->picked);
  return t->order && t->picked ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "no memory for the order of %zu rows", t->n_train);
}

void mxi_table_free(mxi_table *t) {
  free(t->x), free(t->y), free(t->label), free(t->time), free(t->keep), free(t->add), free(t->order), free(t->picked);
  *t = (mxi_table){0};
}

/* The order of an epoch, Fisher and Yates': for i = n_train - 1 down to 1 entries i and (two words of draw i, the low one first) mod (i + 1) change
 * places. It is a function of the seed and the epoch alone, so that a resumed run has it too. */
static void shuffle(mxi_table *t, const mxi_config *c, uint64_t epoch) {
  if (t->epoch == epoch) return;
  t->epoch = epoch;
  for (size_t i = 0; i < t->n_train; i++) t->order[i] = (uint32_t)i;
  const uint64_t seed = mxi_table_seed(c, epoch, MXI_USE_ORDER);
  for (size_t i = t->n_train; c->data.order == MXI_RANDOM_ORDER && i-- > 1;) {
    const uint64_t draw = mx_random(seed, MX_STREAM_DATA, 2 * i) | (uint64_t)mx_random(seed, MX_STREAM_DATA, 2 * i + 1) << 32;
    const size_t j = (size_t)(draw % (i + 1));
    const uint32_t kept = t->order[i];
    t->order[i] = t->order[j];
    t->order[j] = kept;
  }
}

/* Rows t->picked of a batch. */
static void gather(const mxi_table *t, const mxi_config *c, uint64_t s, int evaluation, float *x, float *y, int32_t *label) {
  if (t->time) {
    mxi_points_noise(t, c, s, evaluation, x, y);
    return;
  }
  for (size_t i = 0; i < c->train.batch; i++) {
    const size_t r = t->picked[i];
    memcpy(x + i * t->features, t->x + r * t->features, t->features * sizeof *x);
    if (t->label)
      label[i] = t->label[r];
    else
      memcpy(y + i * t->values, t->y + r * t->values, t->values * sizeof *y);
  }
}

void mxi_table_batch(mxi_table *t, const mxi_config *c, uint64_t s, float *x, float *y, int32_t *label) {
  const size_t B = c->train.batch, whole = t->n_train / B; /* what is left of an epoch is dropped */
  shuffle(t, c, s / whole);
  memcpy(t->picked, t->order + s % whole * B, B * sizeof *t->picked);
  gather(t, c, s, 0, x, y, label);
}

size_t mxi_table_validation(mxi_table *t, const mxi_config *c, uint64_t s, float *x, float *y, int32_t *label) {
  const size_t B = c->train.batch, rest = t->n - t->n_train, n = c->data.eval_rows && c->data.eval_rows < rest ? c->data.eval_rows : rest;
  const size_t first = s * B, rows = first >= n ? 0 : n - first < B ? n - first : B;
  for (size_t i = 0; i < B && rows; i++) {
    const size_t row = first + (i < rows ? i : 0);
    t->picked[i] = (uint32_t)(t->n_train + (size_t)((unsigned __int128)row * rest / n));
  }
  if (rows) gather(t, c, s, 1, x, y, label);
  return rows;
}
