/* Makes batches of a text or of a table. */
#include "train/run/data.h"

#include <stdlib.h>

int mxi_data_is_table(const mxi_config *c) {
  return c->model.kind == MXI_GAUSSIAN || c->model.kind == MXI_DIGITS || c->model.kind == MXI_DIFFUSION;
}

static mx_status room(mxi_data *d, const mxi_config *c, mx_error *err) {
  const size_t B = c->train.batch, T = c->model.context;
  const int table = mxi_data_is_table(c);
  size_t tokens, inputs;
  if (__builtin_mul_overflow(B, T, &tokens) || __builtin_mul_overflow(B, d->table.inputs, &inputs))
    return mx_fail(err, MX_ERR_NOMEM, "no memory for a batch");
  d->target = calloc(table ? B : tokens, sizeof *d->target);
  if (table) {
    d->x = calloc(inputs, sizeof *d->x);
    d->y = calloc(B * (d->table.values + 1), sizeof *d->y);
  } else
    d->tokens = calloc(tokens, sizeof *d->tokens);
  return d->target && (table ? d->x && d->y : d->tokens != NULL) ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "no memory for a batch");
}

mx_status mxi_data_open(mxi_data *d, const mxi_config *c, const mx_exec *exec, mx_error *err) {
  *d = (mxi_data){0};
  mx_status status = mxi_data_is_table(c) ? mxi_table_make(&d->table, c, exec, err) : mxi_text_read(&d->text, c, err);
  if (!status) status = room(d, c, err);
  if (status) mxi_data_free(d);
  return status;
}

void mxi_data_free(mxi_data *d) {
  mxi_text_free(&d->text);
  mxi_table_free(&d->table);
  free(d->tokens), free(d->target), free(d->x), free(d->y);
  *d = (mxi_data){0};
}

static mxi_batch batch_of(const mxi_data *d, const mxi_config *c, size_t rows) {
  return (mxi_batch){.B = c->train.batch, .T = c->model.context, .rows = rows, .tokens = d->tokens, .target = d->target, .x = d->x, .y = d->y};
}

mxi_batch mxi_data_batch(mxi_data *d, const mxi_config *c, uint64_t s) {
  if (mxi_data_is_table(c))
    mxi_table_batch(&d->table, c, s, d->x, d->y, d->target);
  else
    mxi_text_batch(&d->text, c, s, d->tokens, d->target);
  return batch_of(d, c, c->train.batch);
}

mxi_batch mxi_data_validation(mxi_data *d, const mxi_config *c, uint64_t s) {
  const size_t rows = mxi_data_is_table(c) ? mxi_table_validation(&d->table, c, s, d->x, d->y, d->target)
                                           : mxi_text_validation(&d->text, c, s, d->tokens, d->target);
  return batch_of(d, c, rows);
}

size_t mxi_data_validation_count(const mxi_config *c) {
  return c->data.eval_rows ? (c->data.eval_rows - 1) / c->train.batch + 1 : c->train.eval_batches;
}
