/* Runs mxgold sweep SWEEP.json -o DIR: many training runs, each configuration with each seed, resumed where they were stopped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/out.h"
#include "cli/base/progress.h"
#include "cli/base/ranks.h"
#include "cli/base/stop.h"
#include "mpi.h"
#include "mxgold/sweep.h"

struct args {
  const char *sweep, *out, *shard, *budget;
  cli_u64 jobs, halving;
  int list, keep, json;
};

static const cli_option options[] = {
    {"SWEEP.json", 0, CLI_POS, offsetof(struct args, sweep), NULL, "the sweep: config, set, arms, grid, random, reference, seeds", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "DIR", "the sweep's folder: runs, journals, results.jsonl", NULL},
    {"jobs", 'j', CLI_U64, offsetof(struct args, jobs), "N",
     "runs beside each other, one thread each; as many as there are processors by default", NULL},
    {"shard", 0, CLI_STRING, offsetof(struct args, shard), "I/N",
     "do the I-th of N shares of the runs, I from 0: for job arrays, all in one folder", NULL},
    {"budget", 0, CLI_STRING, offsetof(struct args, budget), "TIME",
     "stop after so long, such as 30m, with checkpoints of what runs then: s, m, h", NULL},
    {"halving", 0, CLI_U64, offsetof(struct args, halving), "N",
     "successive halving: train all arms for a part of their steps, the better half for twice as many, until N are left", NULL},
    {"keep", 0, CLI_FLAG, offsetof(struct args, keep), NULL, "keep model.safetensors and state.safetensors of finished runs", NULL},
    {"list", 0, CLI_FLAG, offsetof(struct args, list), NULL, "print the runs and do nothing", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print the result, or the list, as JSON", NULL},
    {0},
};

/* What a call's functions hear and tell. */
typedef struct told {
  int terminal;
  struct drop {
    const char *arm; /* the sweep's */
    double share, loss;
  } * at;
  size_t n;
} told;

static void dropped(void *self, const char *arm, double share, double loss) {
  told *t = self;
  struct drop *more = realloc(t->at, (t->n + 1) * sizeof *more);
  if (!more) return; /* it is in results.jsonl */
  t->at = more;
  t->at[t->n++] = (struct drop){arm, share, loss};
}

static void report(void *self, const mx_sweep_progress *p) {
  if (!((const told *)self)->terminal) return;
  char spent[PROGRESS_TIME], left[PROGRESS_TIME];
  progress_bar(p->finished + p->failed, p->runs, "%zu of %zu runs done, %zu running, %zu failed or diverged, %s since the start, %s left",
               p->finished + p->failed, p->runs, p->running, p->failed, progress_time(spent, p->seconds), progress_time(left, p->seconds_left));
}

static int read_shard(mx_sweep_options *how, const char *text) {
  char rest;
  if (!text) return 1;
  return sscanf(text, "%zu/%zu%c", &how->shard, &how->shards, &rest) == 2 && how->shards && how->shard < how->shards;
}

static int read_budget(mx_sweep_options *how, const char *text) {
  char *end;
  if (!text) return 1;
  how->budget = strtod(text, &end);
  const double unit = !strcmp(end, "s") || !*end ? 1 : !strcmp(end, "m") ? 60 : !strcmp(end, "h") ? 3600 : 0;
  how->budget *= unit;
  return end != text && unit > 0 && how->budget > 0 && isfinite(how->budget);
}

static int list_runs(const mx_sweep *sweep, int json) {
  out *o = out_new();
  out_table(o, "runs");
  for (size_t i = 0; mx_sweep_run_at(sweep, i); i++) {
    const mx_sweep_run *r = mx_sweep_run_at(sweep, i);
    out_row(o);
    out_text(o, "arm", r->arm);
    out_u64(o, "seed", r->seed);
    out_text(o, "compared with", r->reference ? r->reference : "");
    out_text(o, "id", r->id);
  }
  out_end(o);
  return out_print(o, json);
}

static void print_dropped(out *o, const told *t, int machines) {
  out_table(o, "dropped_arms");
  for (size_t i = 0; i < t->n; i++) {
    out_row(o);
    out_text(o, machines ? "arm" : "dropped", t->at[i].arm);
    if (machines)
      out_number(o, "share", t->at[i].share);
    else
      out_f64(o, "after, % of its steps", 100 * t->at[i].share, "%.4g");
    out_figure(o, machines ? "loss" : "training loss", t->at[i].loss, "%.6g", machines);
  }
  out_end(o);
}

static int print_result(const struct args *a, const told *t, const mx_sweep_result *r) {
  out *o = out_new();
  out_text(o, "sweep", a->out);
  out_u64(o, "runs", r->runs);
  out_u64(o, "finished", r->before + r->finished);
  out_u64(o, "diverged", r->diverged);
  out_u64(o, "failed", r->failed);
  if (a->halving.given)
    out_u64(o, "dropped", r->dropped);
  else
    out_u64(o, a->json ? "done_before" : "done by an earlier call", r->before);
  out_u64(o, "left", r->left);
  if (a->halving.given) print_dropped(o, t, a->json);
  return out_print(o, a->json);
}

/* MX_ERR_CONFLICT: what halving cannot be combined with. */
static mx_status execute(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *how, const struct args *a, int rank, int ranks,
                         mx_error *err) {
  if (a->halving.given && ranks > 1) return mx_fail(err, MX_ERR_CONFLICT, "--halving compares all arms at each rung: it runs without mpirun");
  if (a->halving.given) return mx_sweep_halve(result, sweep, how, a->halving.v, err);
  return ranks > 1 ? mpi_sweep(result, sweep, how, rank, ranks, err) : mx_sweep_execute(result, sweep, how, err);
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  told t = {.terminal = isatty(STDERR_FILENO)};
  mx_sweep_options how = {.dir = a->out,
                          .n_jobs = a->jobs.v > 1 << 20 ? 1 << 20 : (int)a->jobs.v,
                          .keep = a->keep,
                          .stop = &cli_stop,
                          .report = report,
                          .dropped = dropped,
                          .self = &t};
  (void)ctx;
  if (!a->out && !a->list) return cli_error("sweep: no output, expected -o DIR");
  if (a->halving.given && a->shard) return cli_error("sweep: --halving compares all arms at each rung, which a --shard cannot");
  if (a->halving.given && !a->halving.v) return cli_error("sweep: --halving 0: expected how many arms are to be left");
  if (!read_shard(&how, a->shard)) return cli_error("sweep: --shard %s: expected I/N, I from 0 to N - 1", a->shard);
  if (!read_budget(&how, a->budget)) return cli_error("sweep: --budget %s: expected a time such as 90s, 30m or 2h", a->budget);
  mx_sweep *sweep;
  mx_sweep_result result;
  mx_error err;
  mx_status status = mx_sweep_read(&sweep, a->sweep, &err);
  if (status) return cli_fail(&err);
  if (a->list) {
    const int rc = list_runs(sweep, a->json);
    mx_sweep_free(sweep);
    return rc;
  }
  cli_stop_on_signals();
  int rank;
  const int ranks = ranks_begin(&rank);
  if (rank) t.terminal = 0;
  status = execute(&result, sweep, &how, a, rank, ranks, &err);
  ranks_end();
  if (t.terminal) progress_clear();
  const int rc = rank ? CLI_FINE : status ? cli_fail(&err) : print_result(a, &t, &result);
  free(t.at);
  mx_sweep_free(sweep);
  if (rank || status) return rc;
  if (rc || !result.left) return rc;
  cli_error("stopped with %zu of %zu runs left: the same command goes on", result.left, result.runs);
  return CLI_STOPPED;
}

const cli_command cmd_sweep = {
    options, sizeof(struct args), run,
    "Runs every configuration of a sweep with every seed, each on one thread, as many beside each other as there are processors. The folder "
    "may hold\n"
    "runs of earlier calls: what is finished is not done again, what was stopped goes on from its checkpoint. A run that diverges or fails is "
    "a result.\n"
    "SIGTERM, SIGINT and SIGUSR1 end it with checkpoints and exit status 3. mxgold report DIR says what the results mean."};
