/* Prints the tables of an ablation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"
#include "mxgold/version.h"
#include "cli/base/out.h"
#include "cli/base/shape.h"

static double share(uint64_t part, uint64_t all) { return all ? (double)part / (double)all : 0; }

/* Figures that only a machine reads. */
static void machine_figures(out *o, const ablate_row *r) {
  out_number(o, "cosine", ablate_left(r, mx_cosine(&r->sums)));
  out_u64(o, "values", r->sums.n);
  out_u64(o, "nan", r->sums.n_nan);
  out_u64(o, "inf", r->sums.n_inf);
  out_u64(o, "spoiled", r->sums.n_spoiled);
  out_number(o, "scale_log2_p05", r->scale_p05);
  out_number(o, "scale_log2_p50", r->scale_p50);
  out_number(o, "scale_log2_p95", r->scale_p95);
  out_text(o, "scale_histogram_log2", r->scales);
  out_number(o, "tensor_scale_factor", r->tensor_factor);
  out_i64(o, "repeats", r->repeats);
  out_number(o, "behind_low", r->behind.low);
  out_number(o, "behind_high", r->behind.high);
  out_bool(o, "matters", ablate_matters(r));
}

void ablate_behind_text(char *room, size_t size, const ablate_row *r) {
  if (ablate_is_lost(r))
    snprintf(room, size, "none left");
  else if (r->behind.low < 0 && isinf(r->behind.low) && isinf(r->behind.high))
    snprintf(room, size, "%.2f (few blocks) ~", r->behind.at);
  else
    snprintf(room, size, "%.2f (%.2f..%.2f)%s", r->behind.at, r->behind.low, r->behind.high, ablate_matters(r) ? "" : " ~");
}

void ablate_bias_text(char *room, size_t size, double bias, double low, double high) {
  if (!isfinite(bias))
    snprintf(room, size, "-");
  else if (low > 0)
    snprintf(room, size, "%.4f (%.4f..%.4f)", bias, low, high);
  else
    snprintf(room, size, "< %.4f", high);
}

void ablate_say_bias(out *o, int told, double bias, double low, double high) {
  const double none = (double)NAN;
  told = told && isfinite(bias); /* one draw does not tell bias from noise */
  out_number(o, "bias", told && low > 0 ? bias : none);
  out_number(o, "bias_low", told ? low : none);
  out_number(o, "bias_high", told ? high : none);
  out_number(o, "bias_below", told && !(low > 0) ? high : none);
}

/* dB behind the best, with its interval; * on the Pareto front of bits and error. */
static void behind(out *o, const ablate_result *res, const ablate_row *r, int is_best) {
  char text[80];
  if (is_best && !ablate_is_lost(r))
    snprintf(text, sizeof text, "best");
  else
    ablate_behind_text(text, sizeof text, r);
  out_text(o, "dB behind (95 %)", text);
  out_text(o, "front", ablate_on_front(res, r->tensor, r->spec) ? "*" : "");
}

static const char *note_of(char *room, size_t size, const ablate_result *res, const ablate_row *r) {
  const ablate_tensor *t = &res->tensors->at[r->tensor];
  return shape_note(room, size, t->rows, t->cols, &res->specs->at[r->spec].spec);
}

static void of_what_is_left(out *o, const char *key, const ablate_row *r, double figure, const char *format) {
  if (ablate_is_lost(r))
    out_text(o, key, "-");
  else
    out_f64(o, key, figure, format);
}

static void for_a_reader(out *o, const ablate_result *res, const ablate_row *r, int is_best) {
  char text[SHAPE_NOTE];
  out_text(o, "preset", res->specs->at[r->spec].label);
  out_f64(o, "bits", r->bits, "%.3f");
  if (r->sums.n)
    out_f64(o, "SQNR dB", mx_sqnr(&r->sums), "%.3f");
  else
    out_text(o, "SQNR dB", "none left");
  behind(o, res, r, is_best);
  of_what_is_left(o, "MSE", r, mx_mse(&r->sums), "%.3e");
  of_what_is_left(o, "gain", r, mx_gain(&r->sums), "%.4f");
  out_f64(o, "saturated %", 100 * share(r->saturated, r->n_codes), "%.3f");
  of_what_is_left(o, "underflow %", r, 100 * share(r->sums.n_underflow, r->sums.n), "%.3f");
  out_f64(o, "entropy", r->entropy, "%.3f");
  snprintf(text, sizeof text, "%.0f..%.0f", r->scale_p05, r->scale_p95);
  out_text(o, "stored scale, log2", text);
  if (mx_spec_is_random(&res->specs->at[r->spec].spec)) {
    if (!ablate_is_lost(r) && isfinite(r->bias)) {
      ablate_bias_text(text, sizeof text, r->bias, r->bias_low, r->bias_high);
      out_text(o, "bias", text);
    } else {
      of_what_is_left(o, "bias", r, r->bias, "%.4f");
    }
  }
  if (r->sums.n_nan + r->sums.n_inf + r->sums.n_spoiled) {
    snprintf(text, sizeof text, "%llu, spoiling %llu", (unsigned long long)(r->sums.n_nan + r->sums.n_inf) / (unsigned)r->repeats,
             (unsigned long long)r->sums.n_spoiled / (unsigned)r->repeats);
    out_text(o, "NaN and Inf", text);
  }
  const char *note = note_of(text, sizeof text, res, r);
  char same[600], both[sizeof same + SHAPE_NOTE + 2];
  ablate_same_text(same, sizeof same, res, r);
  snprintf(both, sizeof both, "%s%s%s", same, *same && *note ? "; " : "", note);
  if (*both) out_text(o, "note", both);
}

static void for_a_machine(out *o, const ablate_result *res, const ablate_row *r) {
  out_text(o, "spec", res->specs->at[r->spec].label);
  out_number(o, "bits", r->bits);
  out_number(o, "sqnr_db", ablate_left(r, mx_sqnr(&r->sums)));
  out_number(o, "behind_db", r->behind.at);
  out_bool(o, "pareto", ablate_on_front(res, r->tensor, r->spec));
  out_number(o, "mse", ablate_left(r, mx_mse(&r->sums)));
  out_number(o, "max_error", ablate_left(r, r->sums.max_error));
  out_number(o, "max_relative", ablate_left(r, r->sums.max_relative));
  out_number(o, "relative_error", ablate_left(r, mx_relative_error(&r->sums)));
  out_number(o, "gain", ablate_left(r, mx_gain(&r->sums)));
  const int drawn = mx_spec_is_random(&res->specs->at[r->spec].spec); /* without chance all of the error is bias */
  ablate_say_bias(o, drawn && !ablate_is_lost(r), r->bias, r->bias_low, r->bias_high);
  out_number(o, "saturated", share(r->saturated, r->n_codes));
  out_number(o, "underflow", ablate_left(r, share(r->sums.n_underflow, r->sums.n)));
  out_number(o, "zeros", share(r->zero, r->n_codes));
  out_number(o, "entropy", r->entropy);
  machine_figures(o, r);
  char text[SHAPE_NOTE];
  snprintf(text, sizeof text, "%llu", (unsigned long long)ablate_spec_of(&res->specs->at[r->spec], &res->tensors->at[r->tensor]).seed);
  out_text(o, "seed", text);
  out_text(o, "same_values_as", r->same_as ? res->specs->at[r->same_as - 1].label : "");
  out_text(o, "digest", res->digest[r->tensor]);
  out_u64(o, "rows", res->tensors->at[r->tensor].rows);
  out_u64(o, "columns", res->tensors->at[r->tensor].cols);
  out_text(o, "note", note_of(text, sizeof text, res, r));
}

static void one_row(out *o, const ablate_result *res, const ablate_row *r, int is_best, int json) {
  out_row(o);
  out_text(o, "tensor", res->tensors->at[r->tensor].name);
  if (json)
    for_a_machine(o, res, r);
  else
    for_a_reader(o, res, r, is_best);
}

static int by_error(const void *a, const void *b) {
  const ablate_row *x = *(const ablate_row *const *)a, *y = *(const ablate_row *const *)b;
  const double ex = ablate_error(x), ey = ablate_error(y);
  return ex != ey ? (ex > ey) - (ex < ey) : (x->spec > y->spec) - (x->spec < y->spec);
}

static void out_keys(out *o, const mx_spec *spec) {
  char keys[4096];
  mx_spec_print(keys, sizeof keys, spec, 1);
  out_text(o, "keys", keys);
}

/* So many of the tensors. */
static void of_all(out *o, const char *key, size_t n, const ablate_result *res, int json) {
  char text[64];
  snprintf(text, sizeof text, "%zu of %zu", n, res->tensors->n);
  if (json)
    out_u64(o, key, n);
  else
    out_text(o, key, text);
}

/* Which spec is best for how many tensors, of all and at its bits, and how far behind each is on average. */
static void summary(out *o, const ablate_result *res, int json) {
  out_table(o, "specs");
  for (size_t s = 0; s < res->specs->n; s++) {
    const ablate_summary a = res->summary[s];
    out_row(o);
    out_text(o, json ? "spec" : "preset", res->specs->at[s].label);
    if (json) out_keys(o, &res->specs->at[s].spec);
    out_figure(o, "bits", a.bits, "%.3f", json);
    of_all(o, json ? "best_for" : "best for", a.best_for, res, json);
    of_all(o, json ? "equal_to_best_for" : "as good for", a.equal_for, res, json);
    of_all(o, json ? "pareto_for" : "on the front for", a.front_for, res, json);
    out_figure(o, json ? "mean_behind_db" : "mean dB behind", a.mean_behind, "%.3f", json);
    out_figure(o, json ? "worst_behind_db" : "worst", a.worst_behind, "%.3f", json);
  }
  out_end(o);
}

/* Tensors of a checkpoint or a pattern that are in no row. */
static void left_out(out *o, const ablate_tensors *t, int json) {
  if (!t->n_left_out && !json) return;
  out_table(o, json ? "tensors_left_out" : "tensors left out");
  for (size_t i = 0; i < t->n_left_out; i++) {
    const mx_array *a = t->left_out[i].array;
    out_row(o);
    out_text(o, json ? "tensor" : "tensor left out", a->name);
    out_text(o, "dtype", mx_dtype_name(a->dtype));
    out_shape(o, "shape", a->shape, a->n_dims);
    out_text(o, "why", t->left_out[i].why);
  }
  out_end(o);
  out_u64(o, json ? "n_tensors" : "tensors measured", t->n);
  out_u64(o, json ? "n_left_out" : "tensors left out", t->n_left_out);
}

/* Presets whose first row says little by itself. */
static void note_single_draws(out *o, const ablate_result *res) {
  for (size_t s = 0; s < res->specs->n; s++)
    if (mx_spec_is_random(&res->specs->at[s].spec) && ablate_row_at(res, 0, s)->repeats == 1) {
      out_text(o, "bias", "not told from noise by one repeat: --repeats 2 or more");
      return;
    }
}

void ablate_say_origin(out *o, const ablate_specs *s, int repeats, int json) {
  if (json) out_text(o, "mxgold", MX_VERSION);
  if (json || s->seed) out_u64(o, "seed", s->seed);
  if (json) out_u64(o, "repeats_asked", (uint64_t)(repeats > 0 ? repeats : 8));
}

void ablate_say_left_out(out *o, const ablate_specs *s, int json) {
  if (!s->left_out) return;
  out_table(o, json ? "left_out" : "left out");
  for (const char *at = s->left_out; *at;) {
    char line[1024];
    const size_t n = strcspn(at, "\n");
    snprintf(line, sizeof line, "%.*s", (int)n, at);
    out_row(o);
    out_text(o, json ? "why" : "left out", line);
    at += n + (at[n] == '\n');
  }
  out_end(o);
}

out *ablate_document(const ablate_result *res, int json) {
  const ablate_row **row = malloc(res->specs->n * sizeof *row);
  out *o = row ? out_new() : NULL;
  if (!o) {
    free(row);
    return NULL;
  }
  ablate_say_origin(o, res->specs, res->repeats, json);
  out_table(o, "measurements");
  for (size_t i = 0; i < res->tensors->n; i++) {
    const size_t t = res->order[i];
    for (size_t s = 0; s < res->specs->n; s++) row[s] = ablate_row_at(res, t, s);
    qsort(row, res->specs->n, sizeof *row, by_error);
    for (size_t s = 0; s < res->specs->n; s++) one_row(o, res, row[s], s == 0, json);
  }
  out_end(o);
  free(row);
  if (json || res->specs->n > 1) summary(o, res, json);
  ablate_say_left_out(o, res->specs, json);
  left_out(o, res->tensors, json);
  if (!json) note_single_draws(o, res);
  if (!json && res->specs->n > 1)
    out_text(o, "stored scale", "as the file holds it: comparable between presets only where neither has a tensor scale");
  return o;
}
