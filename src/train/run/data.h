/* Declares what a run trains on, whatever it is: its batches, and room for one of them. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "mxgold/train.h"
#include "train/run/table.h"
#include "train/run/text.h"

typedef struct mxi_data {
  mxi_text text;   /* of models of a text */
  mxi_table table; /* of models of rows */
  int32_t *tokens, *target;
  float *x, *y;         /* of the batch under way */
  mx_train_data **keep; /* where the next run finds text and table; NULL: nowhere */
  char *key;            /* what they were made of */
} mxi_data;

/** Does this kind of model train on rows of numbers, and not on text? */
int mxi_data_is_table(const mxi_config *c);
/** keep: options.data of the run, or NULL. */
mx_status mxi_data_open(mxi_data *out, const mxi_config *c, mx_train_data **keep, const mx_exec *exec, mx_error *err);
/** Leaves text and table in *keep, if there is one. */
void mxi_data_free(mxi_data *d);
/** The digest of everything that is trained and evaluated on. */
void mxi_data_digest(char out[33], const mxi_data *d);
/** Batch number s of training; it is valid until the next one is asked for. */
mxi_batch mxi_data_batch(mxi_data *d, const mxi_config *c, uint64_t s);
/** Batch number s of an evaluation. batch.rows of it are new; 0: there are no more. */
mxi_batch mxi_data_validation(mxi_data *d, const mxi_config *c, uint64_t s);
/** How many batches an evaluation has at most. */
size_t mxi_data_validation_count(const mxi_config *c);

#endif
