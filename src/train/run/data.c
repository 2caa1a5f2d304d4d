/* Makes batches of a text or of a table. */
#include "train/run/data.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "mxgold/file.h"

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

/* ---- what a run leaves to the next ---- */

struct mx_train_data {
  mxi_text text;
  mxi_table table;
  char *key;
};

void mx_train_data_free(mx_train_data *kept) {
  if (!kept) return;
  mxi_text_free(&kept->text);
  mxi_table_free(&kept->table);
  free(kept->key);
  free(kept);
}

/* Everything that decides text and table, as text; a file by where it lies, its size and when it was written. NULL without memory. */
static char *key_of(const mxi_config *c) {
  const char *file = mxi_data_is_table(c) ? c->data.file : c->data.text;
  struct stat s = {0};
  if (file) stat(file, &s); /* if it is not there, reading it will say so */
  char *key, *data = json_dumps(json_object_get(c->json, "data"), JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
  if (!data || asprintf(&key, "%s kind %d vocab %zu context %zu batch %zu seed %zu file %s %ju %ju %jd %jd.%09ld", data, (int)c->model.kind,
                        c->model.vocab, c->model.context, c->train.batch, c->train.seed_data, file ? file : "", (uintmax_t)s.st_dev,
                        (uintmax_t)s.st_ino, (intmax_t)s.st_size, (intmax_t)s.st_mtim.tv_sec, s.st_mtim.tv_nsec) < 0)
    key = NULL;
  free(data);
  return key;
}

/* Text and table of an earlier run, if they were made of the same. */
static int take(mxi_data *d) {
  mx_train_data *kept = *d->keep;
  const int same = kept && !strcmp(kept->key, d->key);
  *d->keep = NULL;
  if (same) {
    d->text = kept->text, d->table = kept->table;
    kept->text = (mxi_text){0}, kept->table = (mxi_table){0};
  }
  mx_train_data_free(kept);
  return same;
}

static void leave(mxi_data *d) {
  mx_train_data *kept = calloc(1, sizeof *kept);
  if (!kept) return; /* then the next run makes them again */
  *kept = (mx_train_data){d->text, d->table, d->key};
  *d->keep = kept;
  d->text = (mxi_text){0}, d->table = (mxi_table){0}, d->key = NULL;
}

mx_status mxi_data_open(mxi_data *d, const mxi_config *c, mx_train_data **keep, const mx_exec *exec, mx_error *err) {
  *d = (mxi_data){.keep = keep};
  mx_status status = MX_OK;
  if (keep && !(d->key = key_of(c))) status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
  if (!status && (!keep || !take(d))) status = mxi_data_is_table(c) ? mxi_table_make(&d->table, c, exec, err) : mxi_text_read(&d->text, c, err);
  if (status) d->keep = NULL; /* nothing is whole */
  if (!status) status = room(d, c, err);
  if (status) mxi_data_free(d);
  return status;
}

void mxi_data_free(mxi_data *d) {
  if (d->keep) leave(d);
  mxi_text_free(&d->text);
  mxi_table_free(&d->table);
  free(d->tokens), free(d->target), free(d->x), free(d->y), free(d->key);
  *d = (mxi_data){0};
}

void mxi_data_digest(char out[33], const mxi_data *d) {
  const mxi_table *t = &d->table;
  const struct {
    const void *at;
    size_t n, size;
  } parts[] = {{d->text.tokens, d->text.n, sizeof *d->text.tokens},
               {t->x, t->n * t->features, sizeof *t->x},
               {t->y, t->n * t->values, sizeof *t->y},
               {t->label, t->n, sizeof *t->label}};
  char all[33 * sizeof parts / sizeof *parts] = "";
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (parts[i].at) mx_digest(all + strlen(all), parts[i].at, parts[i].n * parts[i].size);
  mx_digest(out, all, strlen(all));
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
