/* Declares what the files of a sweep share.
 *
 * space.c     from the sweep's file to its runs
 * names.c     keys that an object of the file may have
 * claims.c    what a sweep's file claims of its arms
 * journal.c   events of runs, written so that a kill at any moment loses one line at most
 * results.c   results.jsonl, from the journals alone
 * share.c     which runs are a call's
 * lock.c      no two processes of one machine do the same share
 * work.c      runs in one process
 * rung.c      what a run has come to after a part of its steps
 * execute.c   processes that take runs and do them
 * halving.c   successive halving: parts of runs, and which arms go on */
#ifndef SWEEP_INTERNAL_H
#define SWEEP_INTERNAL_H

#include <stdatomic.h>

#include "mxgold/sweep.h"

struct json_t;

struct mx_sweep {
  char *text;   /* the sweep's file */
  char *config; /* path of the configuration that every run starts from */
  mx_sweep_run *runs;
  size_t n_runs;
};

/** Only these names may stand in an object; names ends with NULL. where: the object's place in the file, "" for the whole. */
mx_status mxi_only(struct json_t *object, const char *const *names, const char *path, const char *where, mx_error *err);
/** Each claim is whole, and the arms that it names are the sweep's. claims may be NULL. */
mx_status mxi_claims_check(const mx_sweep *sweep, struct json_t *claims, const char *path, mx_error *err);

/* The final figures of a run, with the nine digits of its metrics.jsonl, because a run that is resumed after its last step has no others. */
enum { MXI_LOSS, MXI_VAL_LOSS, MXI_VAL_LOSS_FP32, MXI_VAL_ACCURACY, MXI_VAL_ACCURACY_FP32, MXI_FIGURES };
extern const char *const mxi_figure_names[MXI_FIGURES];

/* How a run ended, as the journal says it. */
typedef enum mxi_end { MXI_END_NONE, MXI_END_FINISHED, MXI_END_DIVERGED, MXI_END_FAILED } mxi_end;
typedef struct mxi_outcome {
  char id[33];
  mxi_end end;
  uint64_t steps;
  double figure[MXI_FIGURES]; /* NaN: none */
  char text[256];             /* where it diverged, or why it failed */
} mxi_outcome;

/* A run's training loss after a share of its steps, the mean of the last twentieth of them. */
typedef struct mxi_rung {
  char id[33];
  double share, loss;
  uint64_t steps;
} mxi_rung;

/* Outcomes of all journals of a folder, sorted by id, each once; and rungs, by id and share. */
typedef struct mxi_outcomes {
  mxi_outcome *at;
  size_t n;
  mxi_rung *rungs;
  size_t n_rungs;
} mxi_outcomes;
mx_status mxi_journals_read(mxi_outcomes *out, const char *dir, mx_error *err);
/** The outcome of a run; NULL if it has none yet. */
const mxi_outcome *mxi_outcome_of(const mxi_outcomes *all, const char *id);
/** The run's rung at this share; NULL if it has not got there. */
const mxi_rung *mxi_rung_of(const mxi_outcomes *all, const char *id, double share);
void mxi_outcomes_free(mxi_outcomes *all);

/** A journal of this process alone; returns a file descriptor, or -1 with errno. */
int mxi_journal_open(const char *dir);
/** One event, in one write: a run has begun (outcome->end NONE) or ended. */
mx_status mxi_journal_write(int journal, const mxi_outcome *outcome, mx_error *err);
/** The same for a run that has reached a rung. */
mx_status mxi_journal_write_rung(int journal, const mxi_rung *rung, mx_error *err);
/** steps of a share of a run's steps, at least 1; the loss from its metrics.jsonl, NaN if it has fewer steps. */
uint64_t mxi_rung_steps(double share, uint64_t steps);
mx_status mxi_rung_read(mxi_rung *rung, const char *run, mx_error *err);

/** Put pairs into a line of JSON: a number, null if it is not finite; the steps and figures of a run; "text", if there is one. Not 0: an allocation
 *  failed, so the line lacks something and must not be written. */
int mxi_put_number(struct json_t *line, const char *key, double number);
int mxi_put_outcome(struct json_t *line, const mxi_outcome *outcome);
int mxi_put_text(struct json_t *line, const char *text);
/** dropped [n_runs]: the share of its steps after which a run was dropped, 0: it was not; NULL: none was. */
mx_status mxi_results_write(const mx_sweep *sweep, const mxi_outcomes *all, const double *dropped, const char *dir, mx_error *err);

/** DIR/NAME, DIR itself for "", is there afterwards. */
mx_status mxi_make_folder(const char *dir, const char *name, mx_error *err);
/** The runs of a call's share without an outcome, each identity once; *runs: all of the share. The caller frees *tasks. Makes the folders. */
mx_status mxi_share(const mx_sweep_run ***tasks, size_t *n_tasks, size_t *runs, const mx_sweep *sweep, const mx_sweep_options *how,
                    mx_error *err);
void mxi_count(mx_sweep_result *out, const mx_sweep_run *const *tasks, size_t n, const mxi_outcomes *done);
/** mx_sweep_work(); share: of their steps, that runs are done to, below 1 a rung; ended[mxi_end] counts runs, NULL: nothing does. */
mx_status mxi_work(const mx_sweep *sweep, const mx_sweep_options *how, double share, long (*take)(void *self), void *self, atomic_size_t *ended,
                   mx_error *err);
/** tasks by processes, to a share of their steps. before: how many runs of the call are done already. */
mx_status mxi_execute_tasks(const mx_sweep *sweep, const mx_sweep_options *how, double share, const mx_sweep_run **tasks, size_t n_tasks,
                            size_t before, mx_error *err);

#endif
