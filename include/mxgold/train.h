/** Trains a model under a quantisation recipe, step by step, as a JSON configuration says. Every weight has the same bits at every step for any number
 *  of threads and any ISA.
 *
 *  Parameters, activations, optimiser state and every product that is not quantised are binary32; such products are mx_dense_gemm()'s. The
 *  quantised linear layers run mx_linear_forward() and mx_linear_backward().
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

/** How a run ended. */
typedef enum mx_train_end {
  MX_TRAIN_FINISHED,    /* every step was run */
  MX_TRAIN_INTERRUPTED, /* *options.stop was set: a checkpoint was written, and resume continues from it */
  MX_TRAIN_DIVERGED /* a loss or a gradient is not finite, or the loss explodes (train.divergence): result.where and .why say where and how */
} mx_train_end;

/** The result of a run. */
typedef struct mx_train_result {
  mx_train_end end;
  uint64_t steps;                 /* that were run, including those before a resume */
  double loss;                    /* of the last step, before its update */
  double val_loss, val_loss_fp32; /* of the last evaluation, with the quantised and with an FP32 forward pass; NaN if there was none */
  /* of the last evaluation: share of the rows whose largest output is the label's; NaN where nothing has a label */
  double val_accuracy, val_accuracy_fp32;
  /* MX_TRAIN_DIVERGED: the part of the model whose output or gradient is the first that is not finite, or the parameter whose gradient is the largest;
   * otherwise "" */
  char where[96];
  char why[288];  /* MX_TRAIN_DIVERGED: the same as a clause that says what happened there; otherwise "" */
  int replaced;   /* 1: dir held a run, which this one has replaced */
  char sgemm[96]; /* gemm.fp32=openblas: the library that computed unquantised products; else "" */
} mx_train_result;

/** A step, as it is reported while it runs. */
typedef struct mx_train_step {
  uint64_t step, steps;
  double loss, lr, grad_norm;
} mx_train_step;

/** The rows or tokens that a run was trained on, kept for the next run on the same: what a sweep makes once for many runs. The zero pointer is empty. */
typedef struct mx_train_data mx_train_data;
void mx_train_data_free(mx_train_data *data);

/** What to train, where, and whom to tell; the zero struct with config and dir is a run from the start on all processors. */
typedef struct mx_train_options {
  const char *config;     /* path of the configuration; its relative paths are beside it */
  const char *dir;        /* the run's folder, created if it does not exist */
  const char *const *set; /* n_set times "KEY=VALUE": keys of the configuration, "train.steps=5" */
  size_t n_set;
  const char *init;                                      /* a .safetensors file of the parameters; NULL: random */
  const char *gradients;                                 /* where the gradients of the last step go, before clipping; NULL: nowhere */
  int resume;                                            /* 1: continue from the state in dir, if there is one */
  int all_digests;                                       /* 1: digests.txt has a line for each parameter, activation and gradient */
  int n_threads;                                         /* 0: all processors */
  mx_train_data **data;                                  /* what an earlier run left, used if this run's data are the same, then this run's;
                                                          * NULL: made for this run alone. Not for two runs at once. */
  volatile sig_atomic_t *stop;                           /* set: end after this step; may be NULL */
  void (*report)(void *self, const mx_train_step *step); /* may be NULL */
  /* Called with the keys, separated by blanks, that are on and yet change no bit of the first step. How each is tested: a training key, or a KEY=VALUE of
   * quant.set and quant.operands, is set back by itself and every linear layer is run again; loss.scale, loss.scaling, train.accumulate_dtype and
   * model.smooth_swiglu are switched off and the gradients computed again; optimizer.clip is compared with the norm; a key that only another optimiser,
   * schedule or switch would read, or that has nothing to act on in any step, is known by a rule. "quant": no product is quantised; "init": a resume
   * does not read options.init, and it is another than the run was begun with. May be NULL. */
  void (*warn)(void *self, const char *keys);
  void *self;
} mx_train_options;

/** Run a configuration. dir then holds config.json (every key, recipes written out), metrics.jsonl (a line per step), digests.txt,
 *  model.safetensors and state.safetensors. metrics.jsonl and digests.txt grow while the run goes on; the others are complete or as they were before.
 *  Returns MX_OK with *result filled; MX_ERR_KEY (an unknown key: the nearest ones are named), MX_ERR_CONFLICT, MX_ERR_ARG (a value out of range),
 *  MX_ERR_SHAPE (init or state has other shapes), MX_ERR_IO, MX_ERR_FORMAT (a damaged file of the run, or of init, too), MX_ERR_NOMEM, each with a
 *  line in err. A folder in which another run is writing is refused (MX_ERR_CONFLICT), and so is a resume of a run with another configuration or
 *  other data.
 *  Threads: reentrant if each call has its own folder. */
mx_status mx_train_run(mx_train_result *result, const mx_train_options *options, mx_error *err);

/** What decides a run's bits, as one hash: XXH3-128, as 32 hexadecimal digits, of the resolved configuration with its data and initial weights by the
 *  digest of their bytes. Two ways to write one recipe have one identity; paths, threads and options.dir play no part.
 *  Uses config, set and init of options. Errors as mx_train_run()'s for the configuration. Threads: reentrant. */
mx_status mx_train_identity(char id[33], const mx_train_options *options, mx_error *err);

/** Find the first step, and the first parameter or output in it, at which the digests of two runs differ. *step is UINT64_MAX if they do not
 *  differ in the steps that both have; name has room for 96 characters and is "" for digests of all parameters together. MX_ERR_IO, MX_ERR_FORMAT,
 *  MX_ERR_CONFLICT: one run alone was told all_digests. */
mx_status mx_train_compare(uint64_t *step, char *name, const char *dir_a, const char *dir_b, mx_error *err);

/** The index-th key of a configuration, NULL past the last: its name, possible values, default as text, meaning and source
 *  ("" where there is nothing to quote). */
typedef struct mx_config_key {
  const char *name, *choices, *fallback, *doc, *source;
} mx_config_key;
const mx_config_key *mx_config_key_at(size_t index);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
