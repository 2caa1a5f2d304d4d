/* The tables of an ablation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"
#include "out.h"

static double share(uint64_t part, uint64_t all) { return all ? (double)part / (double)all : 0; }

/* Figures that only a machine reads. */
static void machine_figures(out *o, const ablate_row *r) {
  out_f64(o, "cosine", mx_cosine(&r->sums), "%.6f");
  out_u64(o, "values", r->sums.n);
  out_u64(o, "nan", r->sums.n_nan);
  out_u64(o, "inf", r->sums.n_inf);
  out_u64(o, "spoiled", r->sums.n_spoiled);
  out_f64(o, "scale_log2_p05", r->scale_p05, "%.0f");
  out_f64(o, "scale_log2_p50", r->scale_p50, "%.0f");
  out_f64(o, "scale_log2_p95", r->scale_p95, "%.0f");
  out_text(o, "scale_histogram_log2", r->scales);
  out_i64(o, "repeats", r->repeats);
  out_f64(o, "behind_low", r->behind.low, "%.2f");
  out_f64(o, "behind_high", r->behind.high, "%.2f");
  out_bool(o, "matters", ablate_matters(&r->behind));
}

static void interval(out *o, const ablate_row *r, int is_best) {
  char text[64];
  if (is_best)
    snprintf(text, sizeof text, "best");
  else
    snprintf(text, sizeof text, "%.2f..%.2f%s", r->behind.low, r->behind.high, ablate_matters(&r->behind) ? "" : " ~");
  out_text(o, "95 %", text);
}

static void one_row(out *o, const ablate_result *res, const ablate_row *r, int is_best, int json) {
  out_row(o);
  out_text(o, "tensor", res->tensors->at[r->tensor].name);
  out_text(o, json ? "spec" : "preset", res->specs->at[r->spec].label);
  out_f64(o, "bits", r->bits, "%.3f");
  out_f64(o, json ? "sqnr_db" : "SQNR dB", mx_sqnr(&r->sums), "%.3f");
  out_f64(o, json ? "behind_db" : "behind", r->behind.at, "%.3f");
  if (!json) interval(o, r, is_best);
  out_f64(o, json ? "mse" : "MSE", mx_mse(&r->sums), "%.3e");
  out_f64(o, json ? "max_error" : "max err", r->sums.max_error, "%.3g");
  out_f64(o, json ? "max_relative" : "max rel", r->sums.max_relative, "%.3g");
  out_f64(o, json ? "relative_error" : "rel err", mx_relative_error(&r->sums), "%.4f");
  if (!json) out_f64(o, "1-cos", 1 - mx_cosine(&r->sums), "%.1e");
  out_f64(o, "gain", mx_gain(&r->sums), "%.4f");
  out_f64(o, "bias", r->bias, "%.4f");
  out_f64(o, json ? "saturated" : "sat %", (json ? 1 : 100) * share(r->saturated, r->n_codes), "%.3f");
  out_f64(o, json ? "underflow" : "under %", (json ? 1 : 100) * share(r->sums.n_underflow, r->sums.n), "%.3f");
  out_f64(o, json ? "zeros" : "zeros %", (json ? 1 : 100) * share(r->zero, r->n_codes), "%.2f");
  out_f64(o, "entropy", r->entropy, "%.3f");
  if (json) {
    machine_figures(o, r);
    return;
  }
  char scales[48];
  snprintf(scales, sizeof scales, "%.0f..%.0f", r->scale_p05, r->scale_p95);
  out_text(o, "log2 scale", scales);
  if (r->sums.n_nan + r->sums.n_inf + r->sums.n_spoiled) {
    snprintf(scales, sizeof scales, "%llu, spoiling %llu", (unsigned long long)(r->sums.n_nan + r->sums.n_inf) / (unsigned)r->repeats,
             (unsigned long long)r->sums.n_spoiled / (unsigned)r->repeats);
    out_text(o, "NaN and Inf", scales);
  }
}

static int by_error(const void *a, const void *b) {
  const ablate_row *x = *(const ablate_row *const *)a, *y = *(const ablate_row *const *)b;
  const double ex = x->sums.ee / x->repeats, ey = y->sums.ee / y->repeats;
  return ex != ey ? (ex > ey) - (ex < ey) : (x->spec > y->spec) - (x->spec < y->spec);
}

/* Which spec is best for how many tensors, and how far behind each is on average. */
static void summary(out *o, const ablate_result *res, int json) {
  out_table(o, "specs");
  for (size_t s = 0; s < res->specs->n; s++) {
    size_t wins = 0, ties = 0;
    double behind = 0, worst = 0, bits = 0;
    for (size_t t = 0; t < res->tensors->n; t++) {
      const ablate_row *r = ablate_row_at(res, t, s);
      const int is_best = ablate_best(res, t) == s;
      wins += (size_t)is_best;
      ties += !is_best && !ablate_matters(&r->behind);
      behind += r->behind.at;
      bits += r->bits / (double)res->tensors->n;
      if (r->behind.at > worst) worst = r->behind.at;
    }
    out_row(o);
    out_text(o, json ? "spec" : "preset", res->specs->at[s].label);
    out_f64(o, "bits", bits, "%.3f");
    out_u64(o, json ? "best_for" : "best for", wins);
    out_u64(o, json ? "equal_to_best_for" : "as good for", ties);
    out_f64(o, json ? "mean_behind_db" : "mean dB behind", behind / (double)res->tensors->n, "%.3f");
    out_f64(o, json ? "worst_behind_db" : "worst", worst, "%.3f");
  }
  out_end(o);
}

int ablate_print(const ablate_result *res, int json) {
  out *o = out_new();
  const ablate_row **row = malloc(res->specs->n * sizeof *row);
  if (!row) return cli_error("out of memory");
  out_table(o, "measurements");
  for (size_t i = 0; i < res->tensors->n; i++) {
    const size_t t = res->order[i];
    for (size_t s = 0; s < res->specs->n; s++) row[s] = ablate_row_at(res, t, s);
    qsort(row, res->specs->n, sizeof *row, by_error);
    for (size_t s = 0; s < res->specs->n; s++) one_row(o, res, row[s], s == 0, json);
  }
  out_end(o);
  free(row);
  if (res->specs->n > 1) summary(o, res, json);
  if (res->specs->left_out) {
    out_table(o, json ? "left_out" : "left out");
    for (const char *at = res->specs->left_out; *at;) {
      char line[1024];
      const size_t n = strcspn(at, "\n");
      snprintf(line, sizeof line, "%.*s", (int)n, at);
      out_row(o);
      out_text(o, json ? "why" : "left out", line);
      at += n + (at[n] == '\n');
    }
    out_end(o);
  }
  return out_print(o, json);
}
