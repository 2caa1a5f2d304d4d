/* Executes the runs of a call in several processes. Each takes the next run when it has finished one. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mxgold/isa.h"
#include "sweep/internal.h"

enum { NO_TASK = -1, TRIES = 2 };

/* What the parent and its processes share. */
typedef struct shared {
  atomic_size_t next;                      /* of tasks */
  atomic_size_t ended[MXI_END_FAILED + 1]; /* runs, by how they ended */
  volatile sig_atomic_t stop;
  atomic_int said;                    /* 0; 1: a process writes why; 2: it is written */
  mx_error why;                       /* of the first process that failed */
  atomic_long doing[MX_MOST_THREADS]; /* the task that a process is at, or NO_TASK */
} shared;

typedef struct sweep_call {
  const mx_sweep *sweep;
  const mx_sweep_options *how;
  double share;               /* of its steps: each run stops after them */
  const mx_sweep_run **tasks; /* runs that are to be done, each identity once */
  size_t n_tasks;
  unsigned char *tries; /* how often a process died over a task */
  shared *seen;
  int n_jobs;
  pid_t job[MX_MOST_THREADS]; /* 0: none */
} sweep_call;

typedef struct worker {
  const sweep_call *call;
  int slot;
  long first;
} worker;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- in a process of its own ---- */

static long next_task(void *self) {
  worker *w = self;
  const size_t task = w->first != NO_TASK ? (size_t)w->first : atomic_fetch_add(&w->call->seen->next, 1);
  w->first = NO_TASK;
  const int any = task < w->call->n_tasks;
  atomic_store(&w->call->seen->doing[w->slot], any ? (long)task : NO_TASK);
  return any ? (long)(w->call->tasks[task] - w->call->sweep->runs) : -1;
}

/* Does runs until none is left; `first` is a run in which an earlier process died. */
static int work(const sweep_call *c, int slot, long first) {
  worker w = {c, slot, first};
  mx_sweep_options how = *c->how;
  how.stop = &c->seen->stop;
  mx_error err;
  const mx_status status = mxi_work(c->sweep, &how, c->share, next_task, &w, c->seen->ended, &err);
  int nobody = 0;
  if (status && atomic_compare_exchange_strong(&c->seen->said, &nobody, 1)) {
    c->seen->why = err;
    atomic_store(&c->seen->said, 2);
  }
  return status ? 2 : 0;
}

/* ---- in the parent ---- */

static mx_status start(sweep_call *c, int slot, long first, mx_error *err) {
  atomic_store(&c->seen->doing[slot], NO_TASK);
  fflush(NULL);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return mx_fail(err, MX_ERR_NOMEM, "a process cannot be started: %s", strerror(errno));
  if (!pid) {
    /* A worker that outlives its parent would do runs that a resumed call does too. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(getppid() == parent ? work(c, slot, first) : 2);
  }
  c->job[slot] = pid;
  return MX_OK;
}

/* Records a run as failed, because its process was killed by a signal during it for the last of its TRIES. */
static mx_status give_up(const sweep_call *c, long task, int how, mx_error *err) {
  mxi_outcome o = {.end = MXI_END_FAILED};
  memcpy(o.id, c->tasks[task]->id, sizeof o.id);
  snprintf(o.text, sizeof o.text, "its process was ended by signal %d", WTERMSIG(how));
  const int journal = mxi_journal_open(c->how->dir);
  if (journal < 0) return mx_fail(err, MX_ERR_IO, "%s/journal: %s", c->how->dir, strerror(errno));
  const mx_status status = mxi_journal_write(journal, &o, err);
  close(journal);
  atomic_fetch_add(&c->seen->ended[MXI_END_FAILED], 1);
  return status;
}

/* A process has ended. If it was killed, its run loses one try, and another process continues it from its last checkpoint. */
static mx_status ended(sweep_call *c, int slot, int how, mx_error *err) {
  const long task = atomic_load(&c->seen->doing[slot]);
  c->job[slot] = 0;
  if (WIFEXITED(how) && !WEXITSTATUS(how)) return MX_OK;
  if (WIFEXITED(how) && atomic_load(&c->seen->said) == 2) return mx_fail(err, c->seen->why.status, "%s", c->seen->why.text);
  if (WIFEXITED(how)) return mx_fail(err, MX_ERR_IO, "a process ended with exit status %d", WEXITSTATUS(how));
  if (c->seen->stop) return MX_OK;
  if (task == NO_TASK) return start(c, slot, NO_TASK, err);
  if (++c->tries[task] < TRIES) return start(c, slot, task, err);
  const mx_status status = give_up(c, task, how, err);
  return status ? status : start(c, slot, NO_TASK, err);
}

static void say(const sweep_call *c, size_t before, double began) {
  if (!c->how->report) return;
  const double seconds = now() - began;
  const size_t finished = atomic_load(&c->seen->ended[MXI_END_FINISHED]),
               failed = atomic_load(&c->seen->ended[MXI_END_FAILED]) + atomic_load(&c->seen->ended[MXI_END_DIVERGED]);
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

/* Which of this call's runs are done now. */
static mx_status collect(mx_sweep_result *out, const mx_sweep *sweep, const mx_sweep_options *how, const mx_sweep_run *const *tasks,
                         size_t n_tasks, size_t before, mx_error *err) {
  mxi_outcomes done;
  mx_status status = mxi_journals_read(&done, how->dir, err);
  if (status) return status;
  mxi_count(out, tasks, n_tasks, &done);
  out->runs += out->before = before;
  status = mxi_results_write(sweep, &done, NULL, how->dir, err);
  mxi_outcomes_free(&done);
  return status;
}

mx_status mxi_execute_tasks(const mx_sweep *sweep, const mx_sweep_options *how, double share, const mx_sweep_run **tasks, size_t n_tasks,
                            size_t before, mx_error *err) {
  sweep_call c = {.sweep = sweep, .how = how, .share = share, .tasks = tasks, .n_tasks = n_tasks, .seen = MAP_FAILED};
  mx_status status = prepare(&c, err);
  if (!status && n_tasks) status = watch(&c, before, err);
  if (c.seen != MAP_FAILED) munmap(c.seen, sizeof *c.seen);
  free(c.tries);
  return status;
}

mx_status mx_sweep_execute(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, mx_error *err) {
  if (!result || !sweep || !options || !options->dir) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  const mx_sweep_run **tasks = NULL;
  size_t n_tasks = 0, runs = 0;
  mx_sweep_lock *lock;
  mx_status status = mx_sweep_lock_take(&lock, options, err);
  if (status) return status;
  status = mxi_share(&tasks, &n_tasks, &runs, sweep, options, err);
  if (!status) {
    status = mxi_execute_tasks(sweep, options, 1, tasks, n_tasks, runs - n_tasks, err);
    mx_error late;
    const mx_status collected = collect(result, sweep, options, tasks, n_tasks, runs - n_tasks, &late);
    if (!status && collected) status = mx_fail(err, collected, "%s", late.text);
  }
  free(tasks);
  mx_sweep_lock_free(lock);
  return status;
}
