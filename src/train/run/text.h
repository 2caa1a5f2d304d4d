/* Declares a text as tokens, and the windows of a batch. */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H

#include "train/run/config.h"

typedef struct mxi_text {
  int32_t *tokens; /* of the whole text */
  size_t n, n_train, vocab;
} mxi_text;

mx_status mxi_text_read(mxi_text *out, const mxi_config *c, mx_error *err);
void mxi_text_free(mxi_text *t);

/** Fill tokens and target of batch number s of training. Windows of context + 1 tokens; byte_mlp: target is the last alone. */
void mxi_text_batch(const mxi_text *t, const mxi_config *c, uint64_t s, int32_t *tokens, int32_t *target);
/** Batch number s of an evaluation: windows of the validation text, side by side, or data.eval_rows spread evenly over it. Returns how many of its
 *  rows are new; the rest repeat the first. Side by side a batch that is not full counts only if it is the first. */
size_t mxi_text_validation(const mxi_text *t, const mxi_config *c, uint64_t s, int32_t *tokens, int32_t *target);

#endif
