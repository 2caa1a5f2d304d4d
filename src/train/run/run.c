/* Does a training run, from its configuration to its files. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mxgold/file.h"
#include "mxgold/isa.h"
#include "train/run/blas.h"
#include "train/run/data.h"
#include "train/run/digests.h"
#include "train/run/diverge.h"
#include "train/run/effects.h"
#include "train/run/files.h"
#include "train/run/high.h"
#include "train/run/folder.h"
#include "train/run/idle.h"
#include "train/run/metrics.h"
#include "train/run/rehearse.h"
#include "train/run/threshold.h"

typedef struct run {
  const mx_train_options *how;
  mxi_config config;
  mxi_data data;
  mxi_model *model;
  mx_linear_recipe high; /* of linears in high precision, if it is not the plain one */
  mxi_optim optim;
  mxi_metrics layers;
  mxi_threshold threshold;
  mxi_rehearsal rehearsal;
  int metrics_due, threshold_due; /* in the step under way */
  mxi_folder path;
  mxi_origin origin;
  mxi_lines metrics;
  mxi_digests digests;
  uint64_t step; /* that are done */
  mx_train_result *result;
  mxi_divergence divergence;
  double of_nothing;   /* what the loss of the step under way would be if the model knew nothing */
  int evaluated;       /* the last evaluation had rows */
  mxi_effects effects; /* in the first step */
  char silent[2048];   /* keys that change no bit of it, a blank between */
  uint16_t *sum;       /* train.accumulate_dtype=bf16: the sum of a step's gradients */
} run;

/* ---- beginning ---- */

static mx_status optim_new(run *r, mx_error *err) {
  mxi_model *m = r->model;
  r->optim = (mxi_optim){.config = r->config.optim};
  r->divergence.factor = r->config.train.divergence;
  r->optim.m = mxi_model_floats(m, m->n_values);
  r->optim.v = mxi_model_floats(m, m->n_values);
  r->optim.clip = mxi_model_take(m, m->n_params, sizeof(double));
  r->optim.norm = mxi_model_take(m, 2 * m->n_params, sizeof(double));
  const mxi_config *c = &r->config;
  r->optim.loss = (mxi_loss_scale){c->loss.dynamic ? c->loss.init : c->loss.scale, c->loss.backoff, c->loss.growth, 0};
  if (c->train.accumulate_dtype == MXI_SUM_BF16) r->sum = mxi_model_take(m, m->n_values, sizeof *r->sum);
  if (c->quantised && c->recipe.q2_ema != 0) {
    r->optim.ema.w = mxi_model_floats(m, m->n_values);
    r->optim.ema.decay = c->recipe.q2_ema;
  }
  if (c->quantised && c->recipe.tensor_hold > 1) m->holds = mxi_model_take(m, m->n_linears, sizeof *m->holds);
  return m->no_memory ? mx_fail(err, MX_ERR_NOMEM, "no memory for the optimiser") : MX_OK;
}

static mx_status make_model(run *r, const mx_exec *exec, mx_error *err) {
  const mxi_config *c = &r->config;
  const mxi_model_config model = {.kind = (mxi_model_kind)c->model.kind,
                                  .width = c->model.width,
                                  .layers = c->model.layers,
                                  .heads = c->model.heads,
                                  .ffn = c->model.ffn,
                                  .context = c->model.context,
                                  .vocab = r->data.table.classes ? r->data.table.classes
                                           : c->model.vocab      ? c->model.vocab
                                                                 : r->data.text.vocab,
                                  .inputs = r->data.table.inputs,
                                  .bias = c->model.bias,
                                  .tied = c->model.tied,
                                  .smooth = c->model.smooth,
                                  .act = (mxi_act)c->model.act};
  mx_sgemm *sgemm = NULL;
  if (c->gemm.fp32 == MXI_FP32_OPENBLAS) {
    const mx_status found = mxi_openblas(&sgemm, r->result->sgemm, sizeof r->result->sgemm, exec->n_threads, err);
    if (found) return found;
  }
  mx_status status = mxi_model_new(&r->model, &model, c->train.batch, c->quantised ? &c->recipe : NULL, exec, err);
  if (!status) r->model->sgemm = sgemm;
  if (!status && c->quantised) status = mxi_high_keep(&r->high, r->model, c, err);
  if (!status) status = optim_new(r, err);
  if (!status) status = mxi_metrics_open(&r->layers, r->model, c, err);
  if (!status) status = mxi_threshold_open(&r->threshold, r->model, c, err);
  if (!status) status = mxi_rehearsal_open(&r->rehearsal, r->model, &r->optim, c, err);
  if (!status) mxi_model_init(r->model, c->train.seed_init);
  return status;
}

/* Where the gradients go is looked at before the first step, not after hours of them. */
static mx_status check_gradients(const char *path, mx_error *err) {
  const size_t n = strlen(path), ending = strlen(".safetensors");
  if (n <= ending || strcmp(path + n - ending, ".safetensors"))
    return mx_fail(err, MX_ERR_ARG, "gradients: '%s', expected a name that ends in .safetensors", path);
  const char *slash = strrchr(path, '/');
  char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
  if (!folder) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  const mx_status status = access(folder, W_OK) ? mx_fail(err, MX_ERR_IO, "gradients: %s: %s", folder, strerror(errno)) : MX_OK;
  free(folder);
  return status;
}

/* Takes up the state of the run in the folder. */
static mx_status take_up(run *r, mx_error *err) {
  const mxi_config *c = &r->config;
  const mxi_origin own = r->origin;
  char *late = NULL;
  mx_status status = mxi_config_matches(c, r->path.config, err);
  if (!status) status = mxi_read_state(r->path.state, r->model, &r->optim, &r->divergence, &r->step, &late, &r->origin, err);
  if (!status && !mxi_threshold_parse(&r->threshold, r->model, late))
    status = mx_fail(err, MX_ERR_FORMAT, "%s: expected the state that a run of this configuration wrote", r->path.state);
  free(late);
  if (!status) status = mxi_metrics_resume(&r->layers, r->path.state, err);
  if (status) return status;
  if (*r->origin.data && strcmp(r->origin.data, own.data))
    return mx_fail(err, MX_ERR_CONFLICT, "%s: %s has other data than the run was begun with", r->path.state,
                   c->data.text   ? c->data.text
                   : c->data.file ? c->data.file
                                  : "this configuration");
  if (r->step > c->train.steps)
    return mx_fail(err, MX_ERR_CONFLICT, "train.steps is %zu, but %" PRIu64 " steps of the run are done", c->train.steps, r->step);
  if (r->how->gradients && r->step >= c->train.steps)
    return mx_fail(err, MX_ERR_ARG, "gradients: all %zu steps of the run are done, expected one that is left", c->train.steps);
  if (r->how->init && r->how->warn && *r->origin.begun && strcmp(r->origin.begun, own.begun)) r->how->warn(r->how->self, "init");
  return MX_OK;
}

static mx_status open_lines(run *r, int resume, mx_error *err) {
  mx_status status = mxi_lines_open(&r->metrics, r->path.metrics, resume, r->step, err);
  if (!status) status = mxi_lines_open(&r->digests.lines, r->path.digests, resume, r->step, err);
  if (!status && resume && *r->origin.lines && strcmp(r->origin.lines, r->digests.lines.chain))
    status = mx_fail(err, MX_ERR_FORMAT, "%s: its lines are not those that the run wrote", r->path.digests);
  return status;
}

static mx_status begin(run *r, mx_error *err) {
  mx_status status = mxi_config_read(&r->config, r->how->config, r->how->set, r->how->n_set, err);
  const mx_exec exec = {.n_threads = r->how->n_threads};
  if (!status && r->how->gradients) status = check_gradients(r->how->gradients, err);
  if (!status) status = mxi_data_open(&r->data, &r->config, r->how->data, &exec, err);
  if (!status) status = make_model(r, &exec, err);
  if (!status && r->how->init) status = mxi_read_parameters(r->how->init, r->model, err);
  if (!status && r->optim.ema.w) memcpy(r->optim.ema.w, r->model->w, r->model->n_values * sizeof *r->model->w);
  if (!status) status = mxi_folder_open(&r->path, r->how->dir, err);
  if (status) return status;
  mxi_data_digest(r->origin.data, &r->data);
  mx_digest(r->origin.begun, r->model->w, r->model->n_values * sizeof *r->model->w);
  const int there = mxi_folder_has(r->path.state), resume = r->how->resume && there;
  r->result->replaced = !r->how->resume && (there || mxi_folder_has(r->path.metrics));
  if (resume) status = take_up(r, err);
  if (!status) status = open_lines(r, resume, err);
  return status ? status : mxi_config_write(&r->config, r->path.config, err);
}

/* ---- a step ---- */

/* Ends the run: `what` happened, in that part of the model. */
static void diverge(run *r, const char *what, const char *where) {
  mx_train_result *out = r->result;
  out->end = MX_TRAIN_DIVERGED;
  snprintf(out->where, sizeof out->where, "%s", where);
  snprintf(out->why, sizeof out->why, "%s %s", what, where);
}

static void look(void *self, mxi_shown what, const char *name, const float *x, size_t n) {
  char *first = self;
  (void)what;
  for (size_t i = 0; i < n && !*first; i++)
    if (!isfinite(x[i])) snprintf(first, MXI_NAME, "%s", name);
}

/* Runs the forward pass once more and checks each output. */
static void find_where(run *r, const mxi_batch *batch, uint64_t s) {
  mx_error ignored;
  double loss;
  char first[MXI_NAME] = "";
  r->model->show = look;
  r->model->show_self = first;
  mxi_model_forward(r->model, batch, r->config.train.seed_quant, s, 1, &loss, &ignored);
  r->model->show = NULL;
  diverge(r, "the loss is not finite; the first output that is not finite is that of", *first ? first : "loss");
}

static float widen(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Adds one batch's gradients to the sum in bfloat16 and sets them to zero; after the last batch the sum becomes the gradients. */
static void add_up(run *r, int last) {
  mxi_model *m = r->model;
  for (size_t i = 0; i < m->n_values; i++) m->g[i] += widen(r->sum[i]);
  mx_narrow(r->sum, m->g, m->n_values, MX_BF16, m->exec.n_threads);
  for (size_t i = 0; i < m->n_values; i++) m->g[i] = last ? widen(r->sum[i]) : 0;
}

/* Tells the linears of a step which average rounds Q2, and whether tensor scales are computed anew. */
static void tell_linears(run *r, int refresh) {
  mxi_model *m = r->model;
  m->ema = r->optim.ema.steps >= MXI_EMA_BEGINS ? r->optim.ema.w : NULL;
  for (size_t i = 0; m->holds && i < m->n_linears; i++) m->holds[i].refresh = refresh;
}

static void watch(void *self, size_t index, const float *dy, const float *x, int wants_dx) {
  run *r = self;
  const int refresh = r->model->holds && r->model->holds->refresh;
  tell_linears(r, 0); /* a measurement holds nothing */
  if (r->step == 0 && r->config.quantised) mxi_effects_linear(&r->effects, index, dy, x);
  if (r->metrics_due) mxi_metrics_linear(&r->layers, index, dy, x, wants_dx);
  if (r->threshold_due && !r->config.threshold.full) mxi_threshold_linear(&r->threshold, index, dy, x);
  tell_linears(r, refresh);
}

/* threshold.full: compares the gradients that train the model with those of an FP32 backward pass from the same forward pass. */
static mx_status whole_gradients(run *r, const mxi_batch *batch, uint64_t s, mx_error *err) {
  mxi_model *m = r->model;
  const mx_linear_counts counts = m->counts;
  float *const own = m->g, *const to[2] = {r->threshold.quantised, r->threshold.exact};
  mx_status status = MX_OK;
  m->show = NULL;
  for (int i = 0; i < 2 && !status; i++) {
    double loss;
    m->g = to[i];
    memset(m->g, 0, m->n_values * sizeof *m->g);
    status = mxi_model_forward(m, batch, r->config.train.seed_quant, s, 0, &loss, err);
    m->exact_backward = i;
    if (!status) status = mxi_model_backward(m, err);
    m->exact_backward = 0;
  }
  m->g = own;
  m->counts = counts;
  if (!status) mxi_threshold_gradients(&r->threshold, to[0], to[1]);
  return status;
}

/* Computes the mean loss and gradients of a step's batches. */
static mx_status gradients(run *r, double *loss, mx_error *err) {
  mxi_model *m = r->model;
  const size_t n = r->config.train.accumulate;
  memset(m->g, 0, m->n_values * sizeof *m->g);
  *loss = 0;
  r->of_nothing = 0;
  m->counts = (mx_linear_counts){0};
  m->loss_scale = (float)r->optim.loss.scale;
  const int rehearses = r->optim.ramp.rehearses, first = r->step == 0 && r->config.quantised && !rehearses;
  if (first) mxi_effects_begin(&r->effects, m, &r->config);
  tell_linears(r, m->holds && r->step % (uint64_t)r->config.recipe.tensor_hold == 0);
  if (r->sum) memset(r->sum, 0, m->n_values * sizeof *r->sum);
  for (size_t k = 0; k < n; k++) {
    const uint64_t s = r->step * n + k;
    double one;
    const mxi_batch batch = mxi_data_batch(&r->data, &r->config, s);
    mxi_digests_batch(&r->digests, m, r->step, k, n);
    if (rehearses) m->show = NULL;
    mx_status status = mxi_model_forward(m, &batch, r->config.train.seed_quant, s, 0, &one, err);
    if (!status && !isfinite(one)) {
      if (!rehearses) find_where(r, &batch, s);
      *loss = one;
      return MX_OK;
    }
    m->watch = k + 1 == n && (r->metrics_due || r->threshold_due || first) ? watch : NULL; /* a step's last batch */
    m->watch_self = r;
    if (!status) status = mxi_model_backward(m, err);
    m->watch = NULL;
    if (!status && k + 1 == n && r->threshold_due && r->config.threshold.full) status = whole_gradients(r, &batch, s, err);
    if (status) return status;
    if (r->sum) add_up(r, k + 1 == n);
    *loss += one / (double)n;
    r->of_nothing += mxi_loss_of_nothing(m, &batch) / (double)n;
  }
  const float share = (float)(1 / ((double)n * r->optim.loss.scale));
  for (size_t i = 0; share != 1 && i < m->n_values; i++) m->g[i] *= share;
  return MX_OK;
}

/* Mean loss over the validation batches, and the share of its classes that are right; how: 1 as it trains, 2 in FP32. */
static mx_status evaluate(run *r, int how, double *loss, double *accuracy, mx_error *err) {
  double total = 0;
  uint64_t rows = 0, hits = 0;
  for (size_t s = 0; s < mxi_data_validation_count(&r->config); s++) {
    const mxi_batch batch = mxi_data_validation(&r->data, &r->config, s);
    if (!batch.rows) break;
    double one;
    mxi_digests_evaluation(&r->digests, r->model, r->step, how, s);
    /* Random words of evaluations belong to step numbers that no step has. */
    const mx_status status = mxi_model_forward(r->model, &batch, r->config.train.seed_quant, (UINT64_C(1) << 35) + s, how, &one, err);
    if (status) return status;
    total += one * (double)batch.rows;
    rows += batch.rows;
    hits += r->model->hits;
  }
  r->evaluated = rows > 0;
  *loss = rows ? total / (double)rows : NAN;
  *accuracy = rows && r->data.table.classes ? (double)hits / (double)rows : NAN;
  return MX_OK;
}

static mx_status evaluate_both(run *r, mx_error *err) {
  mx_train_result *out = r->result;
  tell_linears(r, 0);
  mx_status status = evaluate(r, 2, &out->val_loss_fp32, &out->val_accuracy_fp32, err);
  out->val_loss = out->val_loss_fp32;
  out->val_accuracy = out->val_accuracy_fp32;
  if (!status && r->config.quantised) status = evaluate(r, 1, &out->val_loss, &out->val_accuracy, err);
  return status;
}

static mx_status checkpoint(run *r, mx_error *err) {
  if (fflush(r->metrics.to) || fflush(r->digests.lines.to)) return mx_fail(err, MX_ERR_IO, "%s: %s", r->how->dir, strerror(errno));
  char *late = mxi_threshold_print(&r->threshold);
  mxi_kept *kept = calloc(2 * r->model->n_linears + 1, sizeof *kept);
  const mx_status status = late && kept ? mxi_write_state(r->path.state, r->model, &r->optim, &r->divergence, r->step, late, &r->origin, kept,
                                                          mxi_metrics_state(kept, &r->layers), err)
                                        : mx_fail(err, MX_ERR_NOMEM, "out of memory");
  free(late);
  free(kept);
  return status ? status : mxi_write_parameters(r->path.model, r->model, 0, err);
}

/* Reports what techniques did in this step, and adapts the scale of the loss. */
static void print_techniques(run *r, int skip) {
  const mxi_config *c = &r->config;
  FILE *to = r->metrics.to;
  if (c->quantised && c->recipe.occ_alpha != 0) fprintf(to, ", \"occ_clamped\": %" PRIu64, r->model->counts.clamped);
  if (r->step == 0 && *r->silent) {
    fprintf(to, ", \"silent\": \"%s\"", r->silent);
    if (r->how->warn) r->how->warn(r->how->self, r->silent);
  }
  if (r->model->ema) fprintf(to, ", \"ema_steered\": %" PRIu64, r->model->counts.steered);
  if (r->optim.ramp.of) fprintf(to, ", \"ramp_slowed\": %" PRIu64, mxi_ramp_slowed(&r->optim.ramp, r->model));
  if (!c->loss.dynamic) return;
  fprintf(to, ", \"loss_scale\": %.9g, \"skipped\": %s", r->optim.loss.scale, skip ? "true" : "false");
  mxi_loss_scale_after(&r->optim.loss, skip);
}

static void add_silent(run *r, const char *names) {
  const size_t at = strlen(r->silent);
  if (*names) snprintf(r->silent + at, sizeof r->silent - at, "%s%s", at ? " " : "", names);
}

/* Are the first step's gradients the same to the bit with a knob off? Whatever the second computation changed is put back. */
static mx_status same_without(run *r, const char *name, const float *own, mx_error *err) {
  mxi_model *m = r->model;
  double ignored;
  const mx_linear_counts counts = m->counts;
  const int metrics_due = r->metrics_due, threshold_due = r->threshold_due;
  r->metrics_due = r->threshold_due = 0; /* a step that nobody sees */
  r->optim.ramp.rehearses = 1;
  const mx_status status = gradients(r, &ignored, err);
  r->optim.ramp.rehearses = 0;
  r->metrics_due = metrics_due;
  r->threshold_due = threshold_due;
  m->counts = counts;
  for (size_t i = 0; i < m->n_params && !status; i++)
    if (memcmp(m->g + m->params[i].offset, own + m->params[i].offset, m->params[i].rows * m->params[i].cols * sizeof *own)) return MX_OK;
  if (!status) add_silent(r, name);
  return status;
}

/* Knobs of the trainer that change every gradient, each by the first step's gradients without it. */
static mx_status try_without(run *r, const float *own, mx_error *err) {
  const mxi_config *c = &r->config;
  mxi_model *m = r->model;
  mx_status status = MX_OK;
  const double scale = r->optim.loss.scale;
  if (scale != 1) {
    r->optim.loss.scale = 1;
    status = same_without(r, c->loss.dynamic ? "loss.scaling" : "loss.scale", own, err);
    r->optim.loss.scale = scale;
  }
  uint16_t *const sum = r->sum;
  if (sum && !status) {
    r->sum = NULL;
    status = same_without(r, "train.accumulate_dtype", own, err);
    r->sum = sum;
  }
  if (!c->model.smooth || status) return status;
  float **smooth = malloc((m->n_linears + 1) * sizeof *smooth);
  if (!smooth) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t i = 0; i < m->n_linears; i++) smooth[i] = m->linears[i].smooth, m->linears[i].smooth = NULL;
  status = same_without(r, "model.smooth_swiglu", own, err);
  for (size_t i = 0; i < m->n_linears; i++) m->linears[i].smooth = smooth[i];
  free(smooth);
  return status;
}

/* Finds keys that are on and change no bit of the first step, whose gradients have been computed: keys of quantisation by running linears again;
 * the factor of the loss, the type of the sum and Smooth-SwiGLU by computing gradients again; clipping by the norm; and keys that no such run reads
 * by rule. */
static mx_status find_silent(run *r, double norm, mx_error *err) {
  const mxi_config *c = &r->config;
  mxi_model *m = r->model;
  char names[1024];
  *r->silent = 0;
  if (c->quantised && !mxi_effects_acts(m))
    add_silent(r, "quant");
  else if (c->quantised && mxi_effects_names(names, sizeof names, &r->effects))
    add_silent(r, names);
  mxi_effects_end(&r->effects);
  if (c->optim.clip > 0 && !((float)(c->optim.clip / (norm + 1e-6)) < 1)) add_silent(r, "optimizer.clip");
  if (mxi_config_idle(names, sizeof names, c)) add_silent(r, names);
  if (r->how->init && !mxi_config_is_default(c, "train.seed_init")) add_silent(r, "train.seed_init");
  if (r->optim.loss.scale == 1 && !r->sum && !c->model.smooth) return MX_OK;
  const size_t of_holds = m->holds ? m->n_linears * sizeof *m->holds : 0;
  float *own = malloc(m->n_values * sizeof *own + 1);
  mx_linear_hold *holds = malloc(of_holds + 1);
  mx_status status = own && holds ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "out of memory");
  if (!status) {
    memcpy(own, m->g, m->n_values * sizeof *own);
    if (of_holds) memcpy(holds, m->holds, of_holds);
    status = try_without(r, own, err);
    memcpy(m->g, own, m->n_values * sizeof *own);
    if (of_holds) memcpy(m->holds, holds, of_holds);
  }
  free(own);
  free(holds);
  return status;
}

static double rate(const run *r) {
  const mxi_config *c = &r->config;
  return mxi_threshold_rate(&r->threshold, mxi_schedule_rate(&c->schedule, c->optim.lr, r->step + 1, c->train.steps), c->optim.lr, r->step);
}

/* Updates the parameters by the gradients. Returns 1 for a step that dynamic scaling of the loss skips. */
static int update(run *r, double lr, double norm) {
  const mxi_config *c = &r->config;
  mxi_model *m = r->model;
  if (c->loss.dynamic && !mxi_gradients_are_finite(m)) return 1;
  if (c->optim.clip > 0) mxi_gradient_clip(m, norm, c->optim.clip);
  mxi_optim_step(&r->optim, m, lr);
  if (r->optim.ema.w) mxi_ema_step(&r->optim.ema, m);
  return 0;
}

/* A step that Q-Ramping measures and takes back. */
static mx_status rehearse(void *self, uint64_t step, int *finite, mx_error *err) {
  run *r = self;
  const uint64_t now = r->step;
  double loss;
  r->step = step;
  const mx_status status = gradients(r, &loss, err);
  *finite = !status && isfinite(loss);
  if (*finite) {
    const int skip = update(r, rate(r), 0); /* it excludes clipping, which has need of the norm */
    if (r->config.loss.dynamic) mxi_loss_scale_after(&r->optim.loss, skip);
  }
  r->step = now;
  return status;
}

/* Has this step's loss or gradient left all bounds? Dynamic scaling of the loss lowers its factor while a gradient is not finite, as long as it can. */
static int has_diverged(run *r, double loss, double norm) {
  const mxi_model *m = r->model;
  const mxi_loss_scale *scale = &r->optim.loss;
  if (!isfinite(norm) && !(r->config.loss.dynamic && scale->scale * scale->backoff >= FLT_MIN)) {
    const char *first = mxi_gradient_not_finite(m);
    diverge(r, "a gradient is not finite; the first of the backward pass is that of", first ? first : "all");
  } else if (mxi_divergence_after(&r->divergence, loss, r->of_nothing)) {
    char what[192];
    snprintf(what, sizeof what,
             "the loss, %.6g, is above %.6g times the %.6g of a model that knows nothing for the %dth step in a row; the largest gradient is "
             "that of",
             loss, r->divergence.factor, r->of_nothing, MXI_DIVERGE_STEPS);
    diverge(r, what, mxi_gradient_largest(m));
  }
  return r->result->end == MX_TRAIN_DIVERGED;
}

/* The line of the step that ends the run; a resume does that step again, and cuts it off. */
static void write_diverged(run *r, double loss, double norm) {
  FILE *to = r->metrics.to;
  fprintf(to, "{\"step\": %" PRIu64, r->step);
  mxi_json_number(to, ", ", "loss", loss);
  mxi_json_number(to, ", ", "lr", rate(r));
  mxi_json_number(to, ", ", "grad_norm", norm);
  fprintf(to, ", \"diverged\": \"%s\"}\n", r->result->why); /* names of parameters and numbers: nothing to escape */
}

static mx_status one_step(run *r, mx_error *err) {
  const mxi_config *c = &r->config;
  mxi_model *m = r->model;
  double loss, norm;
  mxi_threshold_switch(&r->threshold, m, r->step);
  r->metrics_due = r->threshold_due = 0;
  if (mxi_rehearsal_due(&r->rehearsal, r->step)) {
    const mx_status status = mxi_rehearsal_run(&r->rehearsal, r->step, rehearse, r, err);
    if (status) return status;
  }
  r->metrics_due = mxi_metrics_due(&r->layers, r->step);
  r->threshold_due = mxi_threshold_due(&r->threshold, r->step);
  mx_status status = gradients(r, &loss, err);
  if (!status && r->threshold.status) status = mx_fail(err, r->threshold.status, "threshold: %s", r->threshold.err.text);
  r->result->loss = loss;
  if (!status && r->result->end == MX_TRAIN_DIVERGED) write_diverged(r, loss, NAN);
  if (status || r->result->end == MX_TRAIN_DIVERGED) return status;
  const int last = r->step + 1 == c->train.steps;
  if (last && r->how->gradients && (status = mxi_write_parameters(r->how->gradients, m, 1, err))) return status;
  if ((status = mxi_gradient_norm(&norm, m))) return mx_fail(err, status, "norm of the gradients: %s", mx_status_text(status));
  mxi_digests_gradients(&r->digests, m);
  if (has_diverged(r, loss, norm)) {
    write_diverged(r, loss, norm);
    return MX_OK;
  }
  if (r->step == 0 && (status = find_silent(r, norm, err))) return status;
  const double lr = rate(r);
  const int skip = update(r, lr, norm);
  fprintf(r->metrics.to, "{\"step\": %" PRIu64 ", \"loss\": %.9g, \"lr\": %.9g", r->step, loss, lr);
  mxi_json_number(r->metrics.to, ", ", "grad_norm", norm);
  print_techniques(r, skip);
  if (r->threshold.late != UINT64_MAX) fputs(", \"qaf\": true", r->metrics.to);
  mxi_threshold_close_step(&r->threshold);
  mxi_threshold_text(&r->threshold, r->metrics.to);
  if ((status = mxi_metrics_text(&r->layers, r->metrics.to, err))) return status;
  mxi_digests_parameters(&r->digests, m);
  if (last || (c->train.eval_every && (r->step + 1) % c->train.eval_every == 0)) {
    status = evaluate_both(r, err);
    if (!status && r->evaluated) {
      mxi_json_number(r->metrics.to, ", ", "val_loss", r->result->val_loss);
      mxi_json_number(r->metrics.to, ", ", "val_loss_fp32", r->result->val_loss_fp32);
    }
    if (!status && !isnan(r->result->val_accuracy))
      fprintf(r->metrics.to, ", \"val_accuracy\": %.9g, \"val_accuracy_fp32\": %.9g", r->result->val_accuracy, r->result->val_accuracy_fp32);
  }
  fputs("}\n", r->metrics.to);
  if (r->how->report) {
    const mx_train_step s = {r->step, c->train.steps, loss, lr, norm};
    r->how->report(r->how->self, &s);
  }
  r->step++;
  memcpy(r->origin.lines, r->digests.lines.chain, sizeof r->origin.lines); /* lines of a step that is not done are cut off by a resume */
  if (!status && c->train.checkpoint_every && r->step % c->train.checkpoint_every == 0) status = checkpoint(r, err);
  return status;
}

static mx_status steps(run *r, mx_error *err) {
  mx_status status = MX_OK;
  if (r->step >= r->config.train.steps) status = mxi_last_metrics(r->result, r->path.metrics, err);
  while (!status && r->step < r->config.train.steps) {
    status = one_step(r, err);
    if (r->result->end == MX_TRAIN_DIVERGED) break;
    if (!status && r->how->stop && *r->how->stop && r->step < r->config.train.steps) {
      r->result->end = MX_TRAIN_INTERRUPTED;
      break;
    }
  }
  r->result->steps = r->step;
  return status ? status : checkpoint(r, err);
}

/* Calls that are not told how many threads to use take as many as OpenMP would: no more than the run may. Returns how many those were. */
static int hold_threads(int n) {
  const int before = omp_get_max_threads();
  if (n > 0) omp_set_num_threads(n < MX_MOST_THREADS ? n : MX_MOST_THREADS);
  return before;
}

mx_status mx_train_run(mx_train_result *result, const mx_train_options *options, mx_error *err) {
  if (!result || !options || !options->config || !options->dir) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  *result = (mx_train_result){.loss = NAN, .val_loss = NAN, .val_loss_fp32 = NAN, .val_accuracy = NAN, .val_accuracy_fp32 = NAN};
  run r = {.how = options, .result = result, .digests.all = options->all_digests};
  const int threads_before = hold_threads(options->n_threads);
  mx_status status = begin(&r, err);
  if (!status) status = steps(&r, err);
  mx_error late;
  const mx_status metrics = mxi_lines_close(&r.metrics, &late), digests = mxi_lines_close(&r.digests.lines, &late);
  if (!status && (metrics || digests)) status = mx_fail(err, MX_ERR_IO, "%s", late.text);
  mxi_metrics_close(&r.layers);
  mxi_effects_end(&r.effects); /* of a first step that did not come to its end */
  mxi_model_free(r.model);
  mxi_data_free(&r.data);
  mxi_config_free(&r.config);
  mxi_folder_close(&r.path);
  omp_set_num_threads(threads_before);
  return status;
}
