/** Training: a model, data and a recipe of quantisation from a configuration in JSON, run step by step, the same bits of every weight at every step for any
 *  number of threads and any ISA.
 *
 *  Parameters, activations, optimiser state and every product that is not quantised are binary32, products in mx_dense_gemm()'s chain; linears of the
 *  recipe are mx_linear_forward() and mx_linear_backward().
 *  Oracle: tests/test_train.c (layers against central differences in binary64), bench/torch_train.py (PyTorch from the same weights). */
#ifndef MXGOLD_TRAIN_H
#define MXGOLD_TRAIN_H

#include <signal.h>
#include <stdint.h>

#include "status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

typedef enum mx_train_end {
  MX_TRAIN_FINISHED,    /* every step was run */
  MX_TRAIN_INTERRUPTED, /* *options.stop was set: a checkpoint was written, and resume goes on from it */
  MX_TRAIN_DIVERGED     /* the loss is no number: result.where names the first linear whose output is not finite */
} mx_train_end;

/** What a run was, once it ended. */
typedef struct mx_train_result {
  mx_train_end end;
  uint64_t steps;                 /* that were run, those before a resume included */
  double loss;                    /* of the last step, before its update */
  double val_loss, val_loss_fp32; /* of the last evaluation, with the quantised and with an FP32 forward pass; NaN if there was none */
  char where[96];
} mx_train_result;

/** A step, as it is reported while it runs. */
typedef struct mx_train_step {
  uint64_t step, steps;
  double loss, lr, grad_norm;
} mx_train_step;

typedef struct mx_train_options {
  const char *config;     /* path of the configuration; its relative paths are beside it */
  const char *dir;        /* the run's folder, made if it is not there */
  const char *const *set; /* n_set times "KEY=VALUE": keys of the configuration, "train.steps=5" */
  size_t n_set;
  const char *init;                                      /* a .safetensors file of the parameters; NULL: drawn */
  const char *gradients;                                 /* where the gradients of the last step go, before clipping; NULL: nowhere */
  int resume;                                            /* 1: go on from the state in dir, if there is one */
  int all_digests;                                       /* 1: digests.txt has a line for each parameter and output of a linear */
  int n_threads;                                         /* 0: all processors */
  volatile sig_atomic_t *stop;                           /* set: end after this step; may be NULL */
  void (*report)(void *self, const mx_train_step *step); /* may be NULL */
  void *self;
} mx_train_options;

/** Run a configuration. dir then holds config.json (every key, recipes spelled out), metrics.jsonl (a line a step), digests.txt, model.safetensors and
 *  state.safetensors, each whole or as it was.
 *  Returns MX_OK with *result filled; MX_ERR_KEY (an unknown key: the nearest ones are named), MX_ERR_CONFLICT, MX_ERR_ARG (a value out of range),
 *  MX_ERR_SHAPE (init or state of other shapes), MX_ERR_IO, MX_ERR_FORMAT, MX_ERR_NOMEM, each with a line.
 *  Threads: reentrant in folders of their own. */
mx_status mx_train_run(mx_train_result *result, const mx_train_options *options, mx_error *err);

/** The first step, and of it the first parameter or output, in which two runs' digests part. *step is UINT64_MAX where they do not; name has room for 96
 *  characters and is "" for digests of all parameters together. MX_ERR_IO, MX_ERR_FORMAT. */
mx_status mx_train_compare(uint64_t *step, char *name, const char *dir_a, const char *dir_b, mx_error *err);

/** The index-th key of a configuration, NULL past the last: name, what it may be, default as text. */
typedef struct mx_config_key {
  const char *name, *choices, *fallback, *doc;
} mx_config_key;
const mx_config_key *mx_config_key_at(size_t index);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
