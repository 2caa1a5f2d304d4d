/* Processes that take runs and do them, one thread a run: several small runs beside each other finish sooner than threads inside one. */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mxgold/isa.h"
#include "mxgold/train.h"
#include "sweep/internal.h"

enum { NO_TASK = -1, TRIES = 2 };

/* What the parent and its processes see of each other. */
typedef struct shared {
  atomic_size_t next, finished, diverged, failed; /* next: of tasks */
  volatile sig_atomic_t stop;
  atomic_long doing[MX_MOST_THREADS]; /* the task that a process is at, or NO_TASK */
} shared;

typedef struct sweep_call {
  const mx_sweep *sweep;
  const mx_sweep_options *how;
  const mx_sweep_run **tasks; /* runs that are to be done, each identity once */
  size_t n_tasks;
  unsigned char *tries; /* how often a process died over a task */
  shared *seen;
  int n_jobs;
  pid_t job[MX_MOST_THREADS]; /* 0: none */
} sweep_call;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static mx_status make_folder(const char *dir, const char *name, mx_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name);
  return mkdir(path, 0777) && errno != EEXIST ? mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno)) : MX_OK;
}

/* ---- in a process of its own ---- */

static void remove_state(const char *run) {
  static const char *const files[] = {"model.safetensors", "state.safetensors"};
  char path[4224];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", run, files[i]);
    unlink(path);
  }
}

/* One run. What is the machine's fault, memory or disk, is no outcome of the run: it ends the process. */
static mx_status do_run(const sweep_call *c, const mx_sweep_run *r, int journal, mx_error *err) {
  mxi_outcome o = {.end = MXI_END_NONE};
  memcpy(o.id, r->id, sizeof o.id);
  mx_status status = mxi_journal_write(journal, &o, err);
  if (status) return status;
  char folder[4096];
  snprintf(folder, sizeof folder, "%s/runs/%s", c->how->dir, r->id);
  const mx_train_options how = {
      .config = r->config, .dir = folder, .set = r->set, .n_set = r->n_set, .resume = 1, .n_threads = 1, .stop = &c->seen->stop};
  mx_train_result result;
  mx_error why;
  status = mx_train_run(&result, &how, &why);
  if (status == MX_ERR_IO || status == MX_ERR_NOMEM) return mx_fail(err, status, "%s", why.text);
  if (!status && result.end == MX_TRAIN_INTERRUPTED) return MX_OK;
  o.end = status ? MXI_END_FAILED : result.end == MX_TRAIN_DIVERGED ? MXI_END_DIVERGED : MXI_END_FINISHED;
  o.steps = result.steps;
  o.loss = result.loss;
  o.val_loss = result.val_loss;
  o.val_loss_fp32 = result.val_loss_fp32;
  if (o.end != MXI_END_FINISHED) snprintf(o.text, sizeof o.text, "%.255s", status ? why.text : result.where);
  if (!c->how->keep) remove_state(folder);
  if ((status = mxi_journal_write(journal, &o, err))) return status;
  atomic_fetch_add(o.end == MXI_END_FINISHED ? &c->seen->finished : o.end == MXI_END_DIVERGED ? &c->seen->diverged : &c->seen->failed, 1);
  return MX_OK;
}

/* Runs until none is left; `first` is one that an earlier process died over. */
static int work(const sweep_call *c, int slot, long first) {
  mx_error err;
  const int journal = mxi_journal_open(c->how->dir);
  mx_status status = journal < 0 ? mx_fail(&err, MX_ERR_IO, "%s/journal: %s", c->how->dir, strerror(errno)) : MX_OK;
  while (!status && !c->seen->stop) {
    const size_t task = first != NO_TASK ? (size_t)first : atomic_fetch_add(&c->seen->next, 1);
    first = NO_TASK;
    if (task >= c->n_tasks) break;
    atomic_store(&c->seen->doing[slot], (long)task);
    status = do_run(c, c->tasks[task], journal, &err);
    atomic_store(&c->seen->doing[slot], NO_TASK);
  }
  if (journal >= 0) close(journal);
  if (status) fprintf(stderr, "mxgold: sweep: %s\n", err.text);
  return status ? 2 : 0;
}

/* ---- in the parent ---- */

static mx_status start(sweep_call *c, int slot, long first, mx_error *err) {
  atomic_store(&c->seen->doing[slot], NO_TASK);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid < 0) return mx_fail(err, MX_ERR_NOMEM, "a process cannot be started: %s", strerror(errno));
  if (!pid) _exit(work(c, slot, first));
  c->job[slot] = pid;
  return MX_OK;
}

/* A run that its process does not survive a second time has failed. */
static mx_status give_up(const sweep_call *c, long task, int how, mx_error *err) {
  mxi_outcome o = {.end = MXI_END_FAILED};
  memcpy(o.id, c->tasks[task]->id, sizeof o.id);
  snprintf(o.text, sizeof o.text, "its process was ended by signal %d", WTERMSIG(how));
  const int journal = mxi_journal_open(c->how->dir);
  if (journal < 0) return mx_fail(err, MX_ERR_IO, "%s/journal: %s", c->how->dir, strerror(errno));
  const mx_status status = mxi_journal_write(journal, &o, err);
  close(journal);
  atomic_fetch_add(&c->seen->failed, 1);
  return status;
}

/* A process has ended. One that was killed costs its run a try: another takes it up from its last checkpoint. */
static mx_status ended(sweep_call *c, int slot, int how, mx_error *err) {
  const long task = atomic_load(&c->seen->doing[slot]);
  c->job[slot] = 0;
  if (WIFEXITED(how)) return WEXITSTATUS(how) ? mx_fail(err, MX_ERR_IO, "a process ended with exit status %d", WEXITSTATUS(how)) : MX_OK;
  if (c->seen->stop) return MX_OK;
  if (task == NO_TASK) return start(c, slot, NO_TASK, err);
  if (++c->tries[task] < TRIES) return start(c, slot, task, err);
  const mx_status status = give_up(c, task, how, err);
  return status ? status : start(c, slot, NO_TASK, err);
}

static void say(const sweep_call *c, size_t before, double began) {
  if (!c->how->report) return;
  const double seconds = now() - began;
  const size_t finished = atomic_load(&c->seen->finished), failed = atomic_load(&c->seen->failed) + atomic_load(&c->seen->diverged);
  const size_t done = finished + failed;
  mx_sweep_progress p = {.runs = before + c->n_tasks, .finished = before + finished, .failed = failed, .seconds = seconds, .seconds_left = -1};
  for (int i = 0; i < c->n_jobs; i++) p.running += c->job[i] && atomic_load(&c->seen->doing[i]) != NO_TASK;
  if (done) p.seconds_left = seconds / (double)done * (double)(c->n_tasks - done);
  c->how->report(c->how->self, &p);
}

static mx_status watch(sweep_call *c, size_t before, mx_error *err) {
  const double began = now();
  double told = began;
  mx_status status = MX_OK;
  for (int i = 0; i < c->n_jobs && !status; i++) status = start(c, i, NO_TASK, err);
  for (;;) {
    int how, any = 0;
    for (int i = 0; i < c->n_jobs; i++) {
      if (!c->job[i]) continue;
      any = 1;
      if (waitpid(c->job[i], &how, WNOHANG) != c->job[i]) continue;
      mx_error why;
      const mx_status one = ended(c, i, how, &why);
      if (one && !status) status = mx_fail(err, one, "%s", why.text), c->seen->stop = 1;
    }
    if (!any) break;
    if ((c->how->stop && *c->how->stop) || (c->how->budget > 0 && now() - began > c->how->budget)) c->seen->stop = 1;
    if (now() - told > .5) say(c, before, began), told = now();
    nanosleep(&(struct timespec){0, 5000000}, NULL);
  }
  say(c, before, began);
  return status;
}

static int compare_runs(const void *a, const void *b) {
  const mx_sweep_run *x = *(const mx_sweep_run *const *)a, *y = *(const mx_sweep_run *const *)b;
  const int by_id = strcmp(x->id, y->id);
  return by_id ? by_id : (x > y) - (x < y);
}

/* The runs of this call's share that have no outcome yet, each identity once, in the sweep's order. */
static mx_status choose(sweep_call *c, const mxi_outcomes *done, size_t *runs, mx_error *err) {
  const mx_sweep *s = c->sweep;
  const size_t shards = c->how->shards ? c->how->shards : 1;
  const mx_sweep_run **sorted = calloc(s->n_runs + 1, sizeof *sorted);
  unsigned char *again = calloc(s->n_runs + 1, 1);
  c->tasks = calloc(s->n_runs + 1, sizeof *c->tasks);
  *runs = 0;
  const int made = sorted && again && c->tasks;
  for (size_t i = 0; i < s->n_runs && made; i++) sorted[i] = &s->runs[i];
  if (made) qsort(sorted, s->n_runs, sizeof *sorted, compare_runs);
  for (size_t i = 1; i < s->n_runs && made; i++) again[sorted[i] - s->runs] = !strcmp(sorted[i]->id, sorted[i - 1]->id);
  for (size_t i = 0, distinct = 0; i < s->n_runs && made; i++) {
    if (again[i] || distinct++ % shards != (c->how->shards ? c->how->shard : 0)) continue;
    ++*runs;
    if (!mxi_outcome_of(done, s->runs[i].id)) c->tasks[c->n_tasks++] = &s->runs[i];
  }
  free(sorted);
  free(again);
  return made ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "out of memory");
}

static mx_status prepare(sweep_call *c, mx_error *err) {
  c->seen = mmap(NULL, sizeof *c->seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  c->tries = calloc(c->n_tasks + 1, 1);
  if (c->seen == MAP_FAILED || !c->tries) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  const size_t jobs = c->how->n_jobs > 0 ? (size_t)c->how->n_jobs : processors > 0 ? (size_t)processors : 1;
  const size_t most = jobs < MX_MOST_THREADS ? jobs : MX_MOST_THREADS;
  c->n_jobs = (int)(c->n_tasks < most ? c->n_tasks : most);
  return MX_OK;
}

static mx_status collect(mx_sweep_result *out, const sweep_call *c, size_t before, mx_error *err) {
  mxi_outcomes done;
  mx_status status = mxi_journals_read(&done, c->how->dir, err);
  if (status) return status;
  *out = (mx_sweep_result){.runs = before + c->n_tasks, .before = before};
  for (size_t i = 0; i < c->n_tasks; i++) {
    const mxi_outcome *o = mxi_outcome_of(&done, c->tasks[i]->id);
    ++*(!o ? &out->left : o->end == MXI_END_FINISHED ? &out->finished : o->end == MXI_END_DIVERGED ? &out->diverged : &out->failed);
  }
  status = mxi_results_write(c->sweep, &done, c->how->dir, err);
  mxi_outcomes_free(&done);
  return status;
}

mx_status mx_sweep_execute(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, mx_error *err) {
  if (!result || !sweep || !options || !options->dir) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (options->shards && options->shard >= options->shards)
    return mx_fail(err, MX_ERR_ARG, "shard %zu of %zu: expected one from 0 to %zu", options->shard, options->shards, options->shards - 1);
  sweep_call c = {.sweep = sweep, .how = options, .seen = MAP_FAILED};
  mxi_outcomes done = {0};
  size_t runs = 0;
  mx_status status = make_folder(options->dir, "", err);
  if (!status) status = make_folder(options->dir, "runs", err);
  if (!status) status = make_folder(options->dir, "journal", err);
  if (!status) status = mxi_journals_read(&done, options->dir, err);
  if (!status) status = choose(&c, &done, &runs, err);
  mxi_outcomes_free(&done);
  if (!status) status = prepare(&c, err);
  if (!status && c.n_tasks) status = watch(&c, runs - c.n_tasks, err);
  mx_error late;
  const mx_status collected = c.tries ? collect(result, &c, runs - c.n_tasks, &late) : MX_OK;
  if (!status && collected) status = mx_fail(err, collected, "%s", late.text);
  if (c.seen != MAP_FAILED) munmap(c.seen, sizeof *c.seen);
  free(c.tries);
  free(c.tasks);
  return status;
}
