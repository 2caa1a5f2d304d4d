/* Measures what quantisation does to each linear. Everything is computed beside the step, so that a run's bits do not depend on what is measured. */
#include "train/run/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/file.h"
#include "mxgold/math.h"
#include "train/run/files.h"

/* Step numbers that no training reaches, for the draws of a second rounding. */
static const uint64_t second_draw = UINT64_C(1) << 34;

int mxi_metrics_due(const mxi_metrics *t, uint64_t step) { return t->wanted && step % t->config->metrics.every == 0; }

/* Is name among the patterns, separated by commas or blanks? A "*" at either end of one stands for any rest. */
static int among(const char *patterns, const char *name) {
  static const char *const between = ", ";
  if (!patterns) return 1;
  for (const char *at = patterns + strspn(patterns, between); *at; at += strspn(at, between)) {
    const size_t n = strcspn(at, between);
    const size_t all = strlen(name), first = at[0] == '*' && n > 1, last = at[n - 1] == '*', core = n - first - last;
    const size_t from = first && core < all ? all - core : 0;
    if (first && last ? memmem(name, all, at + 1, core) != NULL
                      : core <= all && (first || last || core == all) && !memcmp(name + from, at + first, core))
      return 1;
    at += n;
  }
  return 0;
}

static mx_status take_memory(mxi_metrics *t, mxi_model *m, mx_error *err) {
  const size_t most = mxi_again_most(m);
  mxi_products *const sets[] = {&t->exact, &t->first, &t->second};
  for (int i = 0; i < 3; i++) *sets[i] = (mxi_products){mxi_model_floats(m, most), mxi_model_floats(m, most), mxi_model_floats(m, most)};
  t->error = mxi_model_take(m, m->n_linears, sizeof *t->error);
  t->codes = mxi_model_take(m, m->n_linears, sizeof *t->codes);
  t->code_cols = mxi_model_take(m, m->n_linears, sizeof *t->code_cols);
  return m->no_memory ? mx_fail(err, MX_ERR_NOMEM, "no memory for metrics") : mxi_again_open(&t->again, m, err);
}

mx_status mxi_metrics_open(mxi_metrics *t, mxi_model *m, const mxi_config *c, mx_error *err) {
  *t = (mxi_metrics){.config = c};
  if (!c->metrics.every || !c->quantised) return MX_OK;
  int any = 0;
  t->wanted = mxi_model_take(m, m->n_linears, 1);
  for (size_t i = 0; i < m->n_linears && t->wanted; i++) any |= t->wanted[i] = (unsigned char)among(c->metrics.layers, m->linears[i].name);
  if (!any) return mx_fail(err, MX_ERR_KEY, "metrics.layers: no linear is named '%s'; the first is %s", c->metrics.layers, m->linears[0].name);
  t->to = open_memstream(&t->text, &t->size);
  return t->to ? take_memory(t, m, err) : mx_fail(err, MX_ERR_NOMEM, "no memory for metrics");
}

void mxi_metrics_close(mxi_metrics *t) {
  for (size_t i = 0; t->error && t->again.model && i < t->again.model->n_linears; i++) free(t->error[i]), free(t->codes[i]);
  if (t->to) fclose(t->to);
  free(t->text);
  *t = (mxi_metrics){0};
}

/* ---- operands ---- */

/* Value (r, c) of an operand: Q1 and Q6 are of x, Q2 and Q4 of W, Q3 and Q5 of dy; the later of each is transposed. */
static mx_status source_of(const mxi_metrics *t, int q, float *out, const mx_tensor *tensor, const mx_spec *spec) {
  const mxi_model *m = t->again.model;
  const mxi_model_linear *l = &m->linears[t->index];
  const float *const matrix[MX_OPERANDS] = {t->x, m->w + m->params[l->weight].offset, t->dy, m->w + m->params[l->weight].offset, t->dy, t->x};
  const size_t extent[MX_OPERANDS][2] = {{l->T, l->I}, {l->O, l->I}, {l->T, l->O}, {l->I, l->O}, {l->O, l->T}, {l->I, l->T}};
  const size_t rows = extent[q][0], cols = extent[q][1];
  for (size_t r = 0; r < tensor->rows; r++)
    for (size_t c = 0; c < tensor->cols; c++)
      out[r * tensor->cols + c] = r >= rows || c >= cols ? 0 : q < MX_Q4 ? matrix[q][r * cols + c] : matrix[q][c * rows + r];
  if (!spec->had_size) return MX_OK;
  return mx_hadamard(out, tensor->cols, out, tensor->rows, tensor->cols, tensor->cols, spec->had_size, spec->had_sign, spec->had_signs,
                     spec->seed);
}

/* Counts what has changed in W's codes since the measurement before. Codes are compared and not values, because a tensor scale that moves a little
 * moves every value. */
static void compare_weights(mxi_metrics *t, const mx_tensor *tensor, const mx_spec *spec) {
  const mx_format *format = mx_elem_format(spec->elem);
  const size_t n = tensor->rows * tensor->cols;
  const int first = !t->codes[t->index];
  float *before = first ? t->codes[t->index] = calloc(n + 1, sizeof *before) : t->codes[t->index];
  size_t changed = 0, flipped = 0;
  if (!before) t->status = mx_fail(&t->err, MX_ERR_NOMEM, "no memory for metrics");
  t->code_cols[t->index] = tensor->cols;
  for (size_t i = 0; i < n && before; i++) {
    const uint32_t code = mx_code_at(tensor, spec, i / tensor->cols, i % tensor->cols);
    if ((float)code != before[i]) {
      changed++;
      flipped += mx_decode(format, code) * mx_decode(format, (uint32_t)before[i]) < 0;
    }
    before[i] = (float)code; /* at most 8 bits */
  }
  if (first) return;
  t->changed = (double)changed / (double)n;
  t->flipped = (double)flipped / (double)n;
}

static mx_status look(mxi_metrics *t, int q, const mx_tensor *tensor, const mx_spec *spec, float *x, float *y) {
  const mx_exec *exec = &t->again.model->exec;
  const size_t n = tensor->rows * tensor->cols;
  mxi_operand_metrics *o = &t->operand[q];
  mx_error_sums sums = {0};
  mx_code_counts *counts = calloc(1, sizeof *counts);
  mx_status status = counts ? source_of(t, q, x, tensor, spec) : MX_ERR_NOMEM;
  if (!status) status = mx_dequantize(y, tensor->cols, tensor, spec, exec);
  if (!status) status = mx_code_counts_add(counts, tensor, spec, x, y, exec->n_threads);
  const double prescale = spec->elem_prescale == 0 ? 1 : (double)spec->elem_prescale;
  for (size_t i = 0; i < n && prescale != 1 && !status; i++) y[i] = (float)((double)y[i] / prescale);
  if (!status) {
    mx_error_sums_add(&sums, x, y, n, exec->n_threads);
    *o = (mxi_operand_metrics){.seen = 1,
                               .saturated = (double)counts->saturated / (double)counts->n,
                               .underflow = (double)sums.n_underflow / (double)n,
                               .error = mx_relative_error(&sums)};
    o->has_terms = !mx_error_terms_add(&o->terms, x, y, tensor->rows, tensor->cols, spec) && o->terms.total > 0;
    if (q == MX_Q2) compare_weights(t, tensor, spec);
  }
  free(counts);
  return status;
}

static void operand(void *self, int q, const mx_tensor *tensor, const mx_spec *spec) {
  mxi_metrics *t = self;
  const mx_linear_recipe *r = t->again.model->linears[t->index].recipe;
  const int of_forward = (q == MX_Q4 || q == MX_Q6) && r->requant != MX_REQUANT_HP; /* what it was made of is not at hand */
  if (mx_spec_is_plain(spec) || of_forward || t->status) return;
  float *room = malloc(2 * tensor->rows * tensor->cols * sizeof *room + 1);
  t->status = room ? look(t, q, tensor, spec, room, room + tensor->rows * tensor->cols) : MX_ERR_NOMEM;
  if (t->status) mx_fail(&t->err, t->status, "Q%d: %s", q + 1, mx_status_text(t->status));
  free(room);
}

/* ---- text ---- */

static double dot(const float *a, const float *b, size_t n, const mx_exec *exec) {
  double sum = NAN;
  mx_math_row_sums(&sum, a, n, b, n, 1, n, exec);
  return sum;
}

static void subtract(float *a, const float *from, size_t n) {
  for (size_t i = 0; i < n; i++) a[i] -= from[i];
}

/* Measures how a product differs from the FP32 one: a and b become their errors. before: the error of a at the measurement before (NULL: none). */
static void product(mxi_metrics *t, const char *name, const float *exact, float *a, float *b, size_t n, const float *before) {
  const mx_exec *e = &t->again.model->exec;
  subtract(a, exact, n);
  if (b != a) subtract(b, exact, n);
  const double dd = dot(exact, exact, n, e), ed = dot(a, exact, n, e), ee = dot(a, a, n, e), eb = dot(a, b, n, e);
  fprintf(t->to, ", \"%s\": {", name);
  mxi_json_number(t->to, "", "norm", sqrt(dd));
  mxi_json_number(t->to, ", ", "noise", sqrt(ee));
  mxi_json_number(t->to, ", ", "gain", 1 + ed / dd);
  mxi_json_number(t->to, ", ", "bias", sqrt(eb > 0 ? eb / dd : 0));
  mxi_json_number(t->to, ", ", "cosine", (dd + ed) / sqrt(dd * (dd + 2 * ed + ee)));
  if (before) mxi_json_number(t->to, ", ", "correlation", dot(a, before, n, e) / sqrt(ee * dot(before, before, n, e)));
  fputc('}', t->to);
}

static void operands(mxi_metrics *t) {
  for (int q = 0; q < MX_OPERANDS; q++) {
    const mxi_operand_metrics *o = &t->operand[q];
    if (!o->seen) continue;
    fprintf(t->to, ", \"Q%d\": {", q + 1);
    mxi_json_number(t->to, "", "saturated", o->saturated);
    mxi_json_number(t->to, ", ", "underflow", o->underflow);
    mxi_json_number(t->to, ", ", "error", o->error);
    const double all = o->terms.total;
    if (o->has_terms) {
      mxi_json_number(t->to, ", ", "scale", o->terms.scale / all);
      mxi_json_number(t->to, ", ", "dead", o->terms.dead / all);
      mxi_json_number(t->to, ", ", "grid", o->terms.grid / all);
      mxi_json_number(t->to, ", ", "scale_grid", o->terms.scale_grid / all);
      mxi_json_number(t->to, ", ", "scale_dead", o->terms.scale_dead / all);
    }
    if (q == MX_Q2 && t->changed >= 0) {
      mxi_json_number(t->to, ", ", "changed", t->changed);
      mxi_json_number(t->to, ", ", "flipped", t->flipped);
    }
    fputc('}', t->to);
  }
}

static int is_random(const mx_linear_recipe *r) {
  int any = 0;
  for (int q = 0; q < MX_OPERANDS; q++) any |= mx_spec_is_random(&r->q[q]);
  return any;
}

/* The error of dw is kept for the next measurement. */
static void keep_error(mxi_metrics *t, size_t n) {
  float **kept = &t->error[t->index];
  if (!*kept && !(*kept = malloc(n * sizeof **kept))) {
    t->status = mx_fail(&t->err, MX_ERR_NOMEM, "no memory for metrics");
    return;
  }
  memcpy(*kept, t->first.dw, n * sizeof **kept);
}

static void write_linear(mxi_metrics *t, int wants_dx, const mxi_products *b) {
  const mxi_model_linear *l = &t->again.model->linears[t->index];
  fprintf(t->to, "%s\"%s\": {\"T\": %zu", t->any ? ", " : ", \"layers\": {", l->name, l->T);
  t->any = 1;
  if (!l->recipe->off[MX_FPROP]) product(t, "fprop", t->exact.y, t->first.y, b->y, l->T * l->O, NULL);
  if (!l->recipe->off[MX_DGRAD] && wants_dx) product(t, "dgrad", t->exact.dx, t->first.dx, b->dx, l->T * l->I, NULL);
  if (!l->recipe->off[MX_WGRAD]) {
    product(t, "wgrad", t->exact.dw, t->first.dw, b->dw, l->O * l->I, t->error[t->index]);
    keep_error(t, l->O * l->I);
  }
  operands(t);
  fputc('}', t->to);
}

void mxi_metrics_linear(mxi_metrics *t, size_t index, const float *dy, const float *x, int wants_dx) {
  const mxi_model *m = t->again.model;
  const mx_linear_recipe *r = m->linears[index].recipe;
  if (!t->wanted[index] || t->status || (r->off[0] && r->off[1] && r->off[2])) return;
  memset(t->operand, 0, sizeof t->operand);
  t->changed = t->flipped = -1;
  t->index = index;
  t->dy = dy;
  t->x = x;
  const mxi_products no_dx = {t->first.y, wants_dx ? t->first.dx : NULL, t->first.dw};
  mx_status status = mxi_again_run(&t->again, &t->exact, index, dy, x, 1, m->step, NULL, NULL, &t->err);
  if (!status) status = mxi_again_run(&t->again, &no_dx, index, dy, x, 0, m->step, operand, t, &t->err);
  const int two = is_random(r);
  if (!status && two) status = mxi_again_run(&t->again, &t->second, index, dy, x, 0, m->step + second_draw, NULL, NULL, &t->err);
  if (!t->status) t->status = status;
  if (!t->status) write_linear(t, wants_dx, two ? &t->second : &t->first);
}

mx_status mxi_metrics_text(mxi_metrics *t, FILE *to, mx_error *err) {
  if (t->status) return mx_fail(err, t->status, "metrics: %s", t->err.text);
  if (!t->any) return MX_OK;
  fputc('}', t->to);
  if (fflush(t->to)) return mx_fail(err, MX_ERR_NOMEM, "no memory for metrics");
  fwrite(t->text, 1, t->size, to);
  rewind(t->to);
  t->any = 0;
  return MX_OK;
}

/* ---- over a resume ---- */

static const char *const error_name = "metrics.error.", *const codes_name = "metrics.codes.";

static mxi_kept kept_as(const char *prefix, const mxi_model_linear *l, size_t cols, const float *values) {
  mxi_kept kept = {.rows = l->O, .cols = cols, .values = values};
  snprintf(kept.name, sizeof kept.name, "%s%s", prefix, l->name);
  return kept;
}

size_t mxi_metrics_state(mxi_kept *kept, const mxi_metrics *t) {
  size_t n = 0;
  for (size_t i = 0; t->wanted && i < t->again.model->n_linears; i++) {
    const mxi_model_linear *l = &t->again.model->linears[i];
    if (t->error[i]) kept[n++] = kept_as(error_name, l, l->I, t->error[i]);
    if (t->codes[i]) kept[n++] = kept_as(codes_name, l, t->code_cols[i], t->codes[i]);
  }
  return n;
}

/* The matrix of a linear, if the state has it. most: the largest whole number that may be in it; 0: any number. */
static mx_status take_back(float **out, const mx_file *file, const char *prefix, const mxi_model_linear *l, size_t cols, unsigned most,
                           mx_error *err) {
  const mxi_kept kept = kept_as(prefix, l, cols, NULL);
  const mx_array *a;
  mx_error ignored;
  if (mx_file_find(&a, file, kept.name, &ignored)) return MX_OK;
  const char *path = mx_file_path(file);
  if (a->n_dims != 2 || a->shape[0] != kept.rows || a->shape[1] != cols)
    return mx_fail(err, MX_ERR_SHAPE, "%s: %s: expected the shape [%zu, %zu]", path, kept.name, kept.rows, cols);
  const size_t n = kept.rows * cols;
  float *x = malloc((n + 1) * sizeof *x);
  mx_status status = x ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "no memory for metrics");
  if (!status && mx_array_read_f32(x, a, 0, n, 0))
    status = mx_fail(err, MX_ERR_UNSUPPORTED, "%s: %s is %s, expected f32", path, kept.name, mx_dtype_name(a->dtype));
  for (size_t i = 0; i < n && most && !status; i++)
    if (!(x[i] >= 0 && x[i] <= (float)most && x[i] == floorf(x[i])))
      status = mx_fail(err, MX_ERR_FORMAT, "%s: %s: expected codes of at most %u", path, kept.name, most);
  *out = status ? NULL : x;
  if (status) free(x);
  return status;
}

mx_status mxi_metrics_resume(mxi_metrics *t, const char *path, mx_error *err) {
  mx_file *file;
  if (!t->wanted) return MX_OK;
  mx_status status = mx_file_open(&file, path, err);
  if (status) return status;
  for (size_t i = 0; i < t->again.model->n_linears && !status; i++) {
    const mxi_model_linear *l = &t->again.model->linears[i];
    const mx_spec *w = &l->recipe->q[MX_Q2];
    const size_t tile = w->had_size ? w->had_size : 1;
    if (!t->wanted[i]) continue;
    t->code_cols[i] = (l->I + tile - 1) / tile * tile; /* a rotation fills up its last tile */
    if (!l->recipe->off[MX_WGRAD]) status = take_back(&t->error[i], file, error_name, l, l->I, 0, err);
    if (!status && !mx_spec_is_plain(w))
      status = take_back(&t->codes[i], file, codes_name, l, t->code_cols[i], (1u << mx_elem_format(w->elem)->bits) - 1, err);
  }
  mx_file_close(file);
  return status;
}
