/** Runs sweeps: many training runs, each configuration with each seed, on all processors, in any number of processes and on any number of machines,
 *  resumed where they were stopped.
 *
 *  A sweep is a JSON file:
 *      {"config": "llama.json",                      the configuration that every run starts from, beside the sweep
 *       "set": {"train.steps": 200},                 keys of every run
 *       "arms": [{"name": "F", "set": {"quant.recipe": "recipe-ocp", "quant.gemms": ["fprop"]}}, ...],
 *       "grid": {"optimizer.lr": [1e-3, 3e-3], ...}, every combination of the values, of every arm; a value that is an object sets several keys
 *                                                    and has a name: {"name": "H16", "set": {...}}
 *       "random": {"arms": 20, "seed": 1},           so many combinations of the grid, drawn; without it all
 *       "reference": {"quant": null},                keys of the arm that the others are compared with, before the grid's; false: none
 *       "seeds": 8,                                  train.seed 1 to 8, or a list of them
 *       "about": "...",                              for readers
 *       "claims": [{"says": "Wgrad costs more than Fprop", "source": "arXiv 2605.09825", "less": "F", "more": "W", "of": "val_loss_fp32"}]}
 *  A claim says that the loss of one arm is less than that of another; mxgold report holds it against the results. "less" and "more" are names of arms, or of
 *  two values of one axis: then the claim is asked for every combination of the other axes. "of" is val_loss, unless it is val_loss_fp32.
 *  "within": X in the claim says that the two differ by less than X instead.
 *  Keys are those of `mxgold train --set`. The reference is run for each combination of those axes of the grid that change no key of "quant".
 *
 *  Each run is known by its identity, a hash of its resolved configuration and of the bytes of its data (mx_train_identity()), so that a run that two arms
 *  share, or that an earlier sweep in the same folder finished, is not done again.
 *
 *  In the folder are
 *      runs/ID/        what mx_train_run() writes
 *      journal/        one file a process, one line an event, only ever appended to; a line that a kill cut off is not read
 *      sweep.json      the sweep's file
 *      results.jsonl   one line a run, in the sweep's order, made anew from all journals. It has the nine digits of metrics.jsonl and no times, so
 *                      that its bytes are the same for any number of processes, machines and interruptions.
 *  Oracle: tests/cli/sweep.sh. */
#ifndef MXGOLD_SWEEP_H
#define MXGOLD_SWEEP_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** A sweep: its file, read, and its runs. */
typedef struct mx_sweep mx_sweep;

/** A value of an axis of the grid: the axis's key and the value's name. The arm that a run belongs to is a value of the axis "arms". */
typedef struct mx_sweep_level {
  const char *axis, *level;
} mx_sweep_level;

/** One run of a sweep. */
typedef struct mx_sweep_run {
  const char *arm;        /* its name */
  const char *reference;  /* name of the arm that it is compared with; NULL: it is a reference, or there is none */
  uint64_t seed;          /* train.seed */
  const char *id;         /* 32 hexadecimal digits */
  const char *config;     /* path of the configuration it starts from */
  const char *const *set; /* n_set times "KEY=VALUE" */
  size_t n_set;
  const mx_sweep_level *levels; /* n_levels of them, in the sweep's order; a reference has those that it shares with its arms */
  size_t n_levels;
} mx_sweep_run;

/** How far a sweep has come, as it is reported while it runs. */
typedef struct mx_sweep_progress {
  size_t runs, finished, failed, running; /* of this call's share; failed: ended by an error or diverged */
  double seconds, seconds_left;           /* since the call began; estimated, negative before the first run ends */
} mx_sweep_progress;

/** Where and how the runs are done; the zero struct with dir does all of them on all processors. */
typedef struct mx_sweep_options {
  const char *dir;             /* created if it does not exist */
  size_t shard, shards;        /* run the runs i with i % shards == shard; shards 0: all */
  int n_jobs;                  /* runs beside each other, each on one thread; 0: as many as there are processors */
  double budget;               /* seconds after which running runs write a checkpoint and the call ends; 0: none */
  int keep;                    /* 1: keep model.safetensors and state.safetensors of finished runs; 0: remove them */
  volatile sig_atomic_t *stop; /* set: running runs write a checkpoint and the call ends; may be NULL */
  void (*report)(void *self, const mx_sweep_progress *now); /* about twice a second; may be NULL */
  /* mx_sweep_halve(): an arm was dropped after this share of its steps, with this mean training loss (infinite: a run failed or diverged). May be NULL. */
  void (*dropped)(void *self, const char *arm, double share, double loss);
  void *self;
} mx_sweep_options;

/** How the runs of one call ended. */
typedef struct mx_sweep_result {
  size_t runs;                               /* different runs of this call's share */
  size_t before, finished, diverged, failed; /* that an earlier call finished; that this call did */
  size_t left;                               /* not done, because the call was stopped */
  size_t dropped;                            /* by mx_sweep_halve() */
} mx_sweep_result;

/** Read a sweep and work out its runs, each once, references first, then by arm and seed.
 *  Returns MX_OK; MX_ERR_IO, MX_ERR_FORMAT (JSON), MX_ERR_KEY (an unknown key; the nearest are named), MX_ERR_ARG (a wrong value), any error of a
 *  configuration, with the arm that has it; MX_ERR_NOMEM. Free with mx_sweep_free(). */
mx_status mx_sweep_read(mx_sweep **out, const char *path, mx_error *err);
void mx_sweep_free(mx_sweep *sweep);
/** The index-th run; NULL past the last. */
const mx_sweep_run *mx_sweep_run_at(const mx_sweep *sweep, size_t index);

/** What keeps other processes of this machine from the same runs: a file in DIR/lock with this process's number, machine and share. Take it before runs are done;
 *  mx_sweep_execute() and mx_sweep_halve() do so themselves. Shares without a common run go on beside each other. A lock whose process has died, however it did, is taken over.
 *  Locks of other machines are not looked at.
 *  options: dir, which is made if need be, shard, shards.   Returns MX_OK; MX_ERR_CONFLICT: a process that lives does one of these runs; MX_ERR_IO, MX_ERR_NOMEM.
 *  Threads: not two calls at once in one process for one folder.   Oracle: tests/cli/sweep.sh. */
typedef struct mx_sweep_lock mx_sweep_lock;
mx_status mx_sweep_lock_take(mx_sweep_lock **lock, const mx_sweep_options *options, mx_error *err);
void mx_sweep_lock_free(mx_sweep_lock *lock);

/** Do the runs that are not done, seed by seed, so that runs with the same data follow each other. Processes are forked, so call it before the program uses threads of its own. A run that fails or diverges is a result
 *  and no error. Writes results.jsonl at the end.
 *  Returns MX_OK, MX_ERR_IO, MX_ERR_NOMEM, MX_ERR_FORMAT (a journal that is not one), MX_ERR_CONFLICT (another process does these runs).
 *  Threads: several calls, in any processes, may share a folder if they have different shards. */
mx_status mx_sweep_execute(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, mx_error *err);

/** Successive halving, for many arms. All arms are trained for 1 / 2^k of their steps, then the better half of them for twice as many, and so on until
 *  `keep` are left; those and their references are trained to the end. Arms are compared by the training loss over the last twentieth of their steps so
 *  far, the mean of their seeds. An arm with a run that failed or diverged is dropped first; of two equal arms the later one is. Runs go on from where
 *  they were, so a run that is not dropped has the bits that it has without halving. In results.jsonl a dropped run ends as "dropped", with its steps and
 *  loss at that point. Called again after a kill, this comes to the same results; mx_sweep_execute() in the same folder trains the dropped runs to the end.

 *  Returns as mx_sweep_execute(); MX_ERR_CONFLICT with options.shards.   Source: Jamieson, Talwalkar, arXiv 1502.07943. */
mx_status mx_sweep_halve(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, size_t keep, mx_error *err);

/* The same in parts, for programs that hand out runs in a way of their own (src/cli/sweep/mpi.c). */

/** Indices of the runs of options' share that have no outcome yet, each identity once, seed by seed and within a seed in the
 *  sweep's order. The folder is made if need be.
 *  left  of *n; the caller frees it with free().   Errors as for mx_sweep_execute(). */
mx_status mx_sweep_left(size_t **left, size_t *n, const mx_sweep *sweep, const mx_sweep_options *options, mx_error *err);
/** Do the runs whose indices take() returns, in this process, one after the other, until it returns a negative number or *options.stop is set. A run that is
 *  stopped writes a checkpoint. options: dir, keep, stop. */
mx_status mx_sweep_work(const mx_sweep *sweep, const mx_sweep_options *options, long (*take)(void *self), void *self, mx_error *err);
/** Write results.jsonl from all journals and count the runs of options' share; before is 0. */
mx_status mx_sweep_collect(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
