/* Runs mxgold report DIR: what the results of a sweep mean. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/out.h"
#include "report.h"

struct args {
  const char *dir, *html, *image;
  cli_f64 confidence;
  cli_list weights;
  int csv, json;
};

static const cli_option options[] = {
    {"DIR", 0, CLI_POS, offsetof(struct args, dir), NULL, "the folder of a sweep", NULL},
    {"confidence", 0, CLI_F64, offsetof(struct args, confidence), "C", "of the intervals and of what counts as resolved; 0.95 by default",
     NULL},
    {"weight", 0, CLI_LIST, offsetof(struct args, weights), "TECHNIQUE=W",
     "what a technique counts in the score, 1 by default: grad.config, grad.qprime, hadamard, grad.scale_qprime, sr, tensor_scale, "
     "grad.tensor, "
     "stablespam, loss_scaling; may be repeated",
     NULL},
    {"html", 0, CLI_STRING, offsetof(struct args, html), "FILE.html",
     "a page with pictures too: differences with intervals, the front, loss curves with bands", NULL},
    {"png", 0, CLI_STRING, offsetof(struct args, image), "CHART.png|.svg",
     "a picture: differences with intervals, loss curves with bands; needs gnuplot", NULL},
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
  if (a->diverged + a->failed + a->missing + a->dropped) {
    char text[128];
    const int n = snprintf(text, sizeof text, "%zu diverged, %zu failed, %zu missing", a->diverged, a->failed, a->missing);
    if (a->dropped) snprintf(text + n, sizeof text - (size_t)n, ", %zu dropped", a->dropped);
    out_text(o, "not finished", text);
  }
  out_f64(o, "validation loss", a->loss[MX_EVAL_QUANTISED].mean, "%.4f");
  difference(o, "behind the reference", &a->behind[MX_EVAL_QUANTISED]);
  out_text(o, "", word(a, MX_EVAL_QUANTISED));
  difference(o, "with an FP32 forward pass", &a->behind[MX_EVAL_FP32]);
  percent(o, "extra steps, %", &a->extra_steps);
  if (a->accuracy[MX_EVAL_QUANTISED].n) {
    out_f64(o, "accuracy, %", 100 * a->accuracy[MX_EVAL_QUANTISED].mean, "%.2f");
    out_f64(o, "with an FP32 forward pass, %", 100 * a->accuracy[MX_EVAL_FP32].mean, "%.2f");
  }
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
  static const char *const reached[6] = {"reached_n", "reached_mean", "reached_sd", "reached_low", "reached_high", "reached_p"};
  static const char *const accuracy[MX_EVALS][6] = {
      {"accuracy_n", "accuracy_mean", "accuracy_sd", "accuracy_low", "accuracy_high", "accuracy_p"},
      {"accuracy_fp32_n", "accuracy_fp32_mean", "accuracy_fp32_sd", "accuracy_fp32_low", "accuracy_fp32_high", "accuracy_fp32_p"}};
  out_text(o, "arm", a->name);
  out_text(o, "reference", a->reference ? a->reference : "");
  out_u64(o, "runs", a->runs);
  out_u64(o, "finished", a->finished);
  out_u64(o, "diverged", a->diverged);
  out_u64(o, "failed", a->failed);
  out_u64(o, "missing", a->missing);
  out_u64(o, "dropped", a->dropped);
  for (int e = 0; e < MX_EVALS; e++) {
    mean_numbers(o, loss[e], &a->loss[e]);
    mean_numbers(o, behind[e], &a->behind[e]);
    out_number(o, e ? "p_holm_fp32" : "p_holm", a->p[e]);
    out_text(o, e ? "verdict_fp32" : "verdict", word(a, e));
  }
  mean_numbers(o, extra, &a->extra_steps);
  mean_numbers(o, reached, &a->reached);
  for (int e = 0; e < MX_EVALS; e++) mean_numbers(o, accuracy[e], &a->accuracy[e]);
  out_number(o, "bits", a->cost.bits);
  out_number(o, "product_time", a->cost.product_time);
  out_number(o, "overhead", a->cost.overhead);
  out_u64(o, "front", (uint64_t)a->front);
  out_text(o, "beaten_by", a->beaten_by ? a->beaten_by : "");
  out_number(o, "gain", a->gain);
  out_number(o, "omega", a->omega);
  out_number(o, "score", a->score);
}

/* ---- claims ---- */

static const char *claim_word(const mx_report_claim *c) {
  return c->agrees > 0 ? "agrees" : c->agrees < 0 ? "disagrees" : isnan(c->difference.low) ? "too few seeds" : "cannot tell";
}

static void claim_row(out *o, const mx_report_claim *c, int machines) {
  static const char *const keys[6] = {"difference_n", "difference_mean", "difference_sd", "difference_low", "difference_high", "difference_p"};
  out_text(o, machines ? "says" : "claim", c->says);
  if (machines) out_text(o, "source", c->source);
  out_text(o, "less", c->less);
  out_text(o, "more", c->more);
  if (machines) {
    out_text(o, "of", c->eval == MX_EVAL_FP32 ? "val_loss_fp32" : "val_loss");
    out_number(o, "within", c->within > 0 ? c->within : NAN);
    mean_numbers(o, keys, &c->difference);
    out_number(o, "p_holm", c->p);
  } else {
    out_text(o, "forward", c->eval == MX_EVAL_FP32 ? "FP32" : "quantised");
    difference(o, "less - more", &c->difference);
  }
  out_text(o, machines ? "verdict" : "", claim_word(c));
}

static void claims(out *o, const mx_report *r, int machines) {
  if (!mx_report_claim_at(r, 0)) return;
  out_table(o, "claims");
  for (size_t i = 0; mx_report_claim_at(r, i); i++) {
    out_row(o);
    claim_row(o, mx_report_claim_at(r, i), machines);
  }
  out_end(o);
}

/* ---- knobs ---- */

/* A value's name without the "axis=" that plain values begin with. */
static const char *level_name(const char *axis, const char *level) {
  const size_t n = strlen(axis);
  return !strncmp(level, axis, n) && level[n] == '=' ? level + n + 1 : level;
}

static void knob(out *o, const char *key, const char *axis, const char *level, const char *base) {
  char text[512];
  snprintf(text, sizeof text, "%s: %s instead of %s", axis, level_name(axis, level), level_name(axis, base));
  out_text(o, key, text);
}

static void effect_for_machines(out *o, const mx_report_effect *f) {
  static const char *const keys[MX_EVALS][6] = {{"n", "mean", "sd", "low", "high", "p"},
                                                {"fp32_n", "fp32_mean", "fp32_sd", "fp32_low", "fp32_high", "fp32_p"}};
  out_text(o, "axis", f->axis);
  out_text(o, "value", level_name(f->axis, f->level));
  out_text(o, "instead_of", level_name(f->axis, f->base));
  if (f->with_axis) {
    out_text(o, "with_axis", f->with_axis);
    out_text(o, "with_value", level_name(f->with_axis, f->with_level));
    out_text(o, "with_instead_of", level_name(f->with_axis, f->with_base));
  }
  out_u64(o, "combinations", f->cells);
  for (int e = 0; e < MX_EVALS; e++) {
    mean_numbers(o, keys[e], &f->mean[e]);
    out_number(o, e ? "fp32_p_holm" : "p_holm", f->p[e]);
  }
}

static const char *effect_word(const mx_report_effect *f) {
  const int way = f->resolved[MX_EVAL_QUANTISED];
  if (isnan(f->p[MX_EVAL_QUANTISED])) return "too few seeds";
  return f->with_axis ? way > 0   ? "worse together"
                        : way < 0 ? "better together"
                                  : "not resolved"
         : way > 0    ? "worse"
         : way < 0    ? "better"
                      : "not resolved";
}

static void effect_for_readers(out *o, const mx_report_effect *f) {
  knob(o, "knob", f->axis, f->level, f->base);
  if (f->with_axis) knob(o, "together with", f->with_axis, f->with_level, f->with_base);
  difference(o, "effect", &f->mean[MX_EVAL_QUANTISED]);
  out_text(o, "", effect_word(f));
  difference(o, "with an FP32 forward pass", &f->mean[MX_EVAL_FP32]);
  out_u64(o, "combinations", f->cells);
}

/* Readers get the interactions that are resolved, machines all. */
static void effects(out *o, const mx_report *r, int interactions, int machines) {
  const mx_report_effect *f;
  size_t any = 0;
  for (size_t i = 0; (f = mx_report_effect_at(r, i)); i++)
    any |= (f->with_axis != NULL) == interactions && (machines || !interactions || f->resolved[0]);
  if (!any) return;
  out_table(o, interactions ? "interactions" : "effects");
  for (size_t i = 0; (f = mx_report_effect_at(r, i)); i++) {
    if ((f->with_axis != NULL) != interactions || !(machines || !interactions || f->resolved[MX_EVAL_QUANTISED])) continue;
    out_row(o);
    (machines ? effect_for_machines : effect_for_readers)(o, f);
  }
  out_end(o);
}

/* ---- cost ---- */

/* Cheapest first is the order of the sweep; what is beaten is left to --json. */
static void front(out *o, const mx_report *r) {
  out_table(o, "front of loss against cost");
  for (size_t i = 0; mx_report_arm_at(r, i); i++) {
    const mx_report_arm *a = mx_report_arm_at(r, i);
    if (!a->front) continue;
    out_row(o);
    out_text(o, "arm", a->name);
    difference(o, "behind the reference", &a->behind[MX_EVAL_QUANTISED]);
    out_f64(o, "bits", a->cost.bits, "%.3f");
    out_f64(o, "time of products", a->cost.product_time, "%.3f");
    out_f64(o, "operations", a->cost.overhead, "%.2f");
    out_f64(o, "score", a->score, "%+.4f");
  }
  out_end(o);
}

static out *table(const mx_report *r, const char *verdict, int machines) {
  out *o = out_new();
  if (verdict) out_text(o, "verdict", verdict);
  if (machines) {
    out_table(o, "weights");
    for (int k = 0; k < MX_TECHNIQUES; k++) {
      out_row(o);
      out_text(o, "technique", mx_technique_name(k));
      out_number(o, "weight", mx_report_weight(r, k));
    }
    out_end(o);
  }
  out_table(o, "arms");
  for (size_t i = 0; mx_report_arm_at(r, i); i++) {
    out_row(o);
    (machines ? row_for_machines : row_for_readers)(o, mx_report_arm_at(r, i));
  }
  out_end(o);
  claims(o, r, machines);
  effects(o, r, 0, machines);
  effects(o, r, 1, machines);
  if (!machines) front(o, r);
  return o;
}

static mx_status weigh(mx_report *r, const cli_list *weights, mx_error *err) {
  mx_status status = MX_OK;
  for (size_t i = 0; i < weights->n && !status; i++) {
    const char *equals = strchr(weights->items[i], '=');
    char name[64], *end = NULL;
    const double weight = equals ? strtod(equals + 1, &end) : 0;
    if (!equals || end == equals + 1 || *end || (size_t)(equals - weights->items[i]) >= sizeof name)
      return mx_fail(err, MX_ERR_ARG, "--weight %s: expected TECHNIQUE=W, such as sr=0.5", weights->items[i]);
    snprintf(name, sizeof name, "%.*s", (int)(equals - weights->items[i]), weights->items[i]);
    mx_error why;
    if ((status = mx_report_weigh(r, name, weight, &why))) mx_fail(err, status, "--weight %s: %s", weights->items[i], why.text);
  }
  return status;
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  mx_report *r;
  mx_error err;
  (void)ctx;
  if (a->image && report_image_check(a->image)) return CLI_TROUBLE;
  if (mx_report_read(&r, a->dir, a->confidence.given ? a->confidence.v : .95, &err)) return cli_fail(&err);
  if (weigh(r, &a->weights, &err)) {
    mx_report_free(r);
    return cli_fail(&err);
  }
  char verdict[2048];
  mx_report_verdict(verdict, sizeof verdict, r);
  int rc = CLI_FINE;
  if (a->html) {
    out *o = table(r, NULL, 0);
    rc = report_page(a->html, r, o, verdict);
    out_free(o);
  }
  if (!rc && a->image) rc = report_image(a->image, r, verdict);
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
