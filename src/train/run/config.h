/* Declares a training configuration: JSON in, a struct with every default filled in, JSON with every key out. */
#ifndef TRAIN_CONFIG_H
#define TRAIN_CONFIG_H

#include "mxgold/mma.h"
#include "mxgold/train.h"
#include "train/models/model.h"
#include "train/optim/optim.h"

enum { MXI_BYTES, MXI_CHARS, MXI_TOP95 };
enum { MXI_RANDOM_ORDER, MXI_SEQUENTIAL };
enum { MXI_FP32_CHAIN, MXI_FP32_OPENBLAS };
enum { MXI_MOONS, MXI_SWISS_ROLL };
enum { MXI_QAF_NEVER, MXI_QAF_STEP, MXI_QAF_THRESHOLD };
enum { MXI_QAF_F32, MXI_QAF_BF16 };
enum { MXI_SUM_F32, MXI_SUM_BF16 };

/* The recipe without one KEY=VALUE of quant.set or quant.operands, to see what the key does. */
typedef struct mxi_variant {
  char name[64]; /* "had.size", "Q3:elem.round" */
  int same;      /* it is the run's recipe: other keys say what it does */
  mx_linear_recipe recipe;
} mxi_variant;

typedef struct mxi_config {
  struct {
    int kind, act, bias, tied, smooth;
    size_t width, layers, heads, ffn, context, vocab;
  } model;
  struct {
    char *text, *file;
    double split, noise, beta_first, beta_last;
    int order, tokens, points;
    size_t rows, features, timesteps, eval_rows;
  } data;
  struct {
    size_t steps, batch, accumulate, seed, seed_data, seed_init, seed_quant, eval_every, eval_batches, checkpoint_every;
    int accumulate_dtype;
    double divergence;
  } train;
  struct {
    int fp32;
  } gemm;
  struct {
    size_t every;
    char *layers;
  } metrics;
  struct {
    size_t every;
    int full;
  } threshold;
  struct {
    int when, forward, dtype;
    size_t step, patience, warmup;
    double lr;
  } qaf; /* the late switch to high precision */
  struct {
    int dynamic;
    double scale, init, backoff;
    size_t growth;
  } loss;
  mxi_optim_config optim;
  mxi_schedule schedule;
  int quantised;           /* there is a "quant" */
  mx_linear_recipe recipe; /* of it */
  mx_mma_model unit;
  mxi_variant *variants;
  size_t n_variants;
  char **high; /* quant.high: linears that stay in high precision */
  size_t n_high;
  void *json; /* the resolved configuration, a json_t */
} mxi_config;

/** Does the configuration have the value of this key that it would have without the key? */
int mxi_config_is_default(const mxi_config *c, const char *key);
/** Read path, apply `set`, check. Paths in it become absolute or relative to the configuration's folder. */
mx_status mxi_config_read(mxi_config *out, const char *path, const char *const *set, size_t n_set, mx_error *err);
void mxi_config_free(mxi_config *c);
/** Write the resolved configuration. */
mx_status mxi_config_write(const mxi_config *c, const char *path, mx_error *err);
/** May a run of `c` be resumed from a state whose config.json is `path`? Everything but train.steps and evaluation must agree. */
mx_status mxi_config_matches(const mxi_config *c, const char *path, mx_error *err);

#endif
