/* mxgold report DIR: what the results of a sweep mean. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/base/cli.h"
#include "cli/base/out.h"
#include "report.h"

struct args {
  const char *dir, *html;
  cli_f32 confidence;
  int csv, json;
};

static const cli_option options[] = {
    {"DIR", 0, CLI_POS, offsetof(struct args, dir), NULL, "the folder of a sweep", NULL},
    {"confidence", 0, CLI_F32, offsetof(struct args, confidence), "C", "of the intervals and of what counts as resolved; 0.95 by default",
     NULL},
    {"html", 0, CLI_STRING, offsetof(struct args, html), "FILE.html", "a page with pictures too: differences with intervals, loss curves",
     NULL},
    {"csv", 0, CLI_FLAG, offsetof(struct args, csv), NULL, "print the arms as comma-separated values, every figure in all its digits", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print it as JSON, every figure in all its digits", NULL},
    {0},
};

static const char *word(const mx_report_arm *a, int eval) {
  if (!a->reference) return "reference";
  if (isnan(a->p[eval])) return a->finished ? "too few seeds" : "no run finished";
  return a->resolved[eval] > 0 ? "worse" : a->resolved[eval] < 0 ? "better" : "not resolved";
}

/* "+0.0123 (0.0101 to 0.0145)", "" without one. */
static void difference(out *o, const char *key, const mx_mean *m) {
  char text[96] = "";
  if (m->n > 1)
    snprintf(text, sizeof text, "%+.4f (%.4f to %.4f)", m->mean, m->low, m->high);
  else if (m->n)
    snprintf(text, sizeof text, "%+.4f", m->mean);
  out_text(o, key, text);
}

static void percent(out *o, const char *key, const mx_mean *m) {
  char text[96] = "";
  if (m->n && !isnan(m->mean))
    snprintf(text, sizeof text, m->n > 1 ? "%+.1f (%.1f to %.1f)" : "%+.1f", 100 * m->mean, 100 * m->low, 100 * m->high);
  out_text(o, key, text);
}

static void row_for_readers(out *o, const mx_report_arm *a) {
  out_text(o, "arm", a->name);
  out_u64(o, "seeds", a->finished);
  if (a->diverged + a->failed + a->missing) {
    char text[64];
    snprintf(text, sizeof text, "%zu diverged, %zu failed, %zu missing", a->diverged, a->failed, a->missing);
    out_text(o, "not finished", text);
  }
  out_f64(o, "validation loss", a->loss[MX_EVAL_QUANTISED].mean, "%.4f");
  difference(o, "behind the reference", &a->behind[MX_EVAL_QUANTISED]);
  out_text(o, "", word(a, MX_EVAL_QUANTISED));
  difference(o, "with an FP32 forward pass", &a->behind[MX_EVAL_FP32]);
  percent(o, "extra steps, %", &a->extra_steps);
}

static void mean_numbers(out *o, const char *const key[6], const mx_mean *m) {
  const double values[] = {m->mean, m->sd, m->low, m->high, m->p};
  out_u64(o, key[0], m->n);
  for (int i = 0; i < 5; i++) out_number(o, key[i + 1], values[i]);
}

static void row_for_machines(out *o, const mx_report_arm *a) {
  static const char *const loss[MX_EVALS][6] = {
      {"loss_n", "loss_mean", "loss_sd", "loss_low", "loss_high", "loss_p"},
      {"loss_fp32_n", "loss_fp32_mean", "loss_fp32_sd", "loss_fp32_low", "loss_fp32_high", "loss_fp32_p"}};
  static const char *const behind[MX_EVALS][6] = {
      {"behind_n", "behind_mean", "behind_sd", "behind_low", "behind_high", "behind_p"},
      {"behind_fp32_n", "behind_fp32_mean", "behind_fp32_sd", "behind_fp32_low", "behind_fp32_high", "behind_fp32_p"}};
  static const char *const extra[6] = {"extra_steps_n",   "extra_steps_mean", "extra_steps_sd",
                                       "extra_steps_low", "extra_steps_high", "extra_steps_p"};
  out_text(o, "arm", a->name);
  out_text(o, "reference", a->reference ? a->reference : "");
  out_u64(o, "runs", a->runs);
  out_u64(o, "finished", a->finished);
  out_u64(o, "diverged", a->diverged);
  out_u64(o, "failed", a->failed);
  out_u64(o, "missing", a->missing);
  for (int e = 0; e < MX_EVALS; e++) {
    mean_numbers(o, loss[e], &a->loss[e]);
    mean_numbers(o, behind[e], &a->behind[e]);
    out_number(o, e ? "p_holm_fp32" : "p_holm", a->p[e]);
    out_text(o, e ? "verdict_fp32" : "verdict", word(a, e));
  }
  mean_numbers(o, extra, &a->extra_steps);
  out_number(o, "gain", a->gain);
  out_number(o, "omega", a->omega);
  out_number(o, "score", a->score);
}

static out *table(const mx_report *r, const char *verdict, int machines) {
  out *o = out_new();
  if (verdict) out_text(o, "verdict", verdict);
  out_table(o, "arms");
  for (size_t i = 0; mx_report_arm_at(r, i); i++) {
    out_row(o);
    (machines ? row_for_machines : row_for_readers)(o, mx_report_arm_at(r, i));
  }
  out_end(o);
  return o;
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  mx_report *r;
  mx_error err;
  (void)ctx;
  if (mx_report_read(&r, a->dir, a->confidence.given ? (double)a->confidence.v : .95, &err)) return cli_fail(&err);
  char verdict[2048];
  mx_report_verdict(verdict, sizeof verdict, r);
  int rc = CLI_FINE;
  if (a->html) {
    out *o = table(r, NULL, 0);
    rc = report_page(a->html, r, o, verdict);
    out_free(o);
  }
  if (!rc) rc = a->csv ? out_print_csv(table(r, NULL, 1), "arms") : out_print(table(r, verdict, a->json), a->json);
  mx_report_free(r);
  return rc;
}

const cli_command cmd_report = {
    options, sizeof(struct args), run,
    "Compares each arm of a sweep with its reference, seed by seed: the same data and initial weights. Intervals are Student's t over the "
    "seeds; \"worse\" and\n"
    "\"better\" are differences whose p value, corrected by Holm's method for the number of arms, is below 1 - confidence. Extra steps are how "
    "many more\n"
    "the arm needed to reach the loss it ended with than the reference did. docs/guide/SWEEP.md says how to read it."};
