/* Measures Chmiel's threshold, and switches to high precision late in a run. TECHNIQUES 4.1b. */
#include "train/run/threshold.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "mxgold/math.h"
#include "train/run/files.h"
#include "train/run/high.h"

static const double keep = .9; /* of an average from measurement to measurement */

static int is_measured(const mxi_threshold *t, size_t index) {
  const mxi_model_linear *l = &t->again.model->linears[index];
  return !l->high && !l->recipe->off[MX_WGRAD];
}

mx_status mxi_threshold_open(mxi_threshold *t, mxi_model *m, const mxi_config *c, mx_error *err) {
  *t = (mxi_threshold){.config = c, .late = UINT64_MAX};
  if (!c->quantised) return MX_OK;
  if (c->qaf.when != MXI_QAF_NEVER) {
    const int is_narrow = c->qaf.dtype == MXI_QAF_BF16;
    mx_status status = is_narrow ? mxi_high_bf16(&t->recipe, err) : MX_OK;
    if (!status) status = mxi_model_late(m, is_narrow ? &t->recipe : mxi_model_plain(), err);
    if (status) return status;
    if (!c->qaf.forward && mxi_model_keep_quantised(m)) return mx_fail(err, MX_ERR_NOMEM, "no memory for qaf");
  }
  t->signal = mxi_model_take(m, m->n_linears, sizeof *t->signal);
  t->noise = mxi_model_take(m, m->n_linears, sizeof *t->noise);
  if (c->threshold.every) {
    const size_t most = c->threshold.full ? m->n_values : mxi_again_most(m);
    t->exact = mxi_model_floats(m, most);
    t->quantised = mxi_model_floats(m, most);
    t->other = mxi_model_floats(m, c->threshold.full ? 0 : most);
  }
  return m->no_memory ? mx_fail(err, MX_ERR_NOMEM, "no memory for the threshold") : mxi_again_open(&t->again, m, err);
}

int mxi_threshold_due(const mxi_threshold *t, uint64_t step) {
  if (!t->exact || t->late != UINT64_MAX || step % t->config->threshold.every) return 0;
  for (size_t i = 0; i < t->again.model->n_linears; i++)
    if (is_measured(t, i)) return 1;
  return 0;
}

static void measure(mxi_threshold *t, size_t index, float *quantised, const float *exact) {
  const mxi_model_linear *l = &t->again.model->linears[index];
  const mx_exec *e = &t->again.model->exec;
  const size_t n = l->O * l->I;
  double signal = 0, noise = 0;
  for (size_t i = 0; i < n; i++) quantised[i] -= exact[i];
  mx_math_row_sums(&signal, exact, n, exact, n, 1, n, e);
  mx_math_row_sums(&noise, quantised, n, quantised, n, 1, n, e);
  t->signal[index] = keep * t->signal[index] + (1 - keep) * signal;
  t->noise[index] = keep * t->noise[index] + (1 - keep) * noise;
  t->fresh = 1;
}

void mxi_threshold_linear(mxi_threshold *t, size_t index, const float *dy, const float *x) {
  if (t->status || !is_measured(t, index)) return;
  const uint64_t step = t->again.model->step;
  const mxi_products exact = {t->other, NULL, t->exact}, quantised = {t->other, NULL, t->quantised};
  t->status = mxi_again_run(&t->again, &exact, index, dy, x, 1, step, NULL, NULL, &t->err);
  if (!t->status) t->status = mxi_again_run(&t->again, &quantised, index, dy, x, 0, step, NULL, NULL, &t->err);
  if (!t->status) measure(t, index, t->quantised, t->exact);
}

void mxi_threshold_gradients(mxi_threshold *t, const float *quantised, const float *exact) {
  const mxi_model *m = t->again.model;
  for (size_t i = 0; i < m->n_linears; i++) {
    const size_t at = m->params[m->linears[i].weight].offset;
    if (is_measured(t, i)) measure(t, i, (float *)quantised + at, exact + at);
  }
}

void mxi_threshold_close_step(mxi_threshold *t) {
  if (!t->fresh) return;
  t->count++;
  t->below = mxi_threshold_all(t) < sqrt(3) ? t->below + 1 : 0;
}

/* Both averages lack the same share of their beginning, 1 - .9^count, so the quotient has no need of a correction. */
double mxi_threshold_ratio(const mxi_threshold *t, size_t index) { return sqrt(t->signal[index] / t->noise[index]); }

double mxi_threshold_all(const mxi_threshold *t) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < t->again.model->n_linears; i++) signal += t->signal[i], noise += t->noise[i];
  return sqrt(signal / noise);
}

void mxi_threshold_text(mxi_threshold *t, FILE *to) {
  if (!t->fresh) return;
  t->fresh = 0;
  mxi_json_number(to, ", ", "rho_all", mxi_threshold_all(t));
  fputs(", \"rho\": {", to);
  for (size_t i = 0, any = 0; i < t->again.model->n_linears; i++) {
    if (!is_measured(t, i)) continue;
    mxi_json_number(to, any++ ? ", " : "", t->again.model->linears[i].name, mxi_threshold_ratio(t, i));
  }
  fputc('}', to);
}

static void apply(const mxi_threshold *t, mxi_model *m) { m->late = t->config->qaf.forward ? MXI_LATE_ALL : MXI_LATE_BACKWARD; }

void mxi_threshold_switch(mxi_threshold *t, mxi_model *m, uint64_t step) {
  const mxi_config *c = t->config;
  if (!c->quantised || t->late != UINT64_MAX) return;
  const int now = c->qaf.when == MXI_QAF_STEP ? step >= c->qaf.step : c->qaf.when == MXI_QAF_THRESHOLD && t->below >= c->qaf.patience;
  if (!now) return;
  t->late = step;
  apply(t, m);
}

double mxi_threshold_rate(const mxi_threshold *t, double rate, double peak, uint64_t step) {
  const mxi_config *c = t->config;
  if (t->late == UINT64_MAX || step < t->late) return rate;
  const uint64_t since = step - t->late + 1;
  if (c->qaf.lr > 0) rate *= c->qaf.lr / peak;
  return since < c->qaf.warmup ? rate * ((double)since / (double)c->qaf.warmup) : rate;
}

char *mxi_threshold_print(const mxi_threshold *t) {
  char *text = NULL;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  if (!to) return NULL;
  fprintf(to, "%" PRIu64 " %" PRIu64 " %" PRIu64, t->count, t->below, t->late);
  for (size_t i = 0; t->signal && i < t->again.model->n_linears; i++) fprintf(to, " %a %a", t->signal[i], t->noise[i]);
  if (!fclose(to)) return text;
  free(text);
  return NULL;
}

int mxi_threshold_parse(mxi_threshold *t, mxi_model *m, const char *text) {
  int read;
  if (!text || sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &t->count, &t->below, &t->late, &read) != 3) return 0;
  text += read;
  for (size_t i = 0; t->signal && i < 2 * m->n_linears; i++) {
    char *end;
    const double value = strtod(text, &end);
    if (end == text) return 0;
    *(i % 2 ? &t->noise[i / 2] : &t->signal[i / 2]) = value;
    text = end;
  }
  if (t->late != UINT64_MAX) apply(t, m);
  return 1;
}
