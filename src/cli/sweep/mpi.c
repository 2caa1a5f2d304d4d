/* Runs a sweep by the ranks of an MPI job: they ask rank 0 for runs. */
#include "mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef MXGOLD_MPI
#include <mpi.h>

#include "cli/base/ranks.h"

enum { ASK = 1, GIVE = 2 };
/* What is asked with, and answered where nothing is left. */
static const long ANOTHER = 0, LAST = -1;

static long ask(void *self) {
  long index;
  (void)self;
  MPI_Send(&ANOTHER, 1, MPI_LONG, 0, ASK, MPI_COMM_WORLD);
  MPI_Recv(&index, 1, MPI_LONG, 0, GIVE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return index;
}

/* Waits by looking now and then: a blocking receive keeps a processor busy that a run could have. Returns the rank. */
static int next_request(long *asked) {
  MPI_Status from;
  for (int any = 0; !any;) {
    MPI_Iprobe(MPI_ANY_SOURCE, ASK, MPI_COMM_WORLD, &any, &from);
    if (!any) nanosleep(&(struct timespec){0, 2000000}, NULL);
  }
  MPI_Recv(asked, 1, MPI_LONG, from.MPI_SOURCE, ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return from.MPI_SOURCE;
}

/* left[n] one at a time, until each of the other ranks has said that it asks no more. */
static void hand_out(const size_t *left, size_t n, const mx_sweep_options *o, int ranks) {
  const double began = MPI_Wtime();
  size_t given = 0, asked = 0;
  for (int workers = ranks - 1; workers;) {
    long what;
    const int from = next_request(&what);
    if (what == LAST) {
      workers--;
      continue;
    }
    const double seconds = MPI_Wtime() - began;
    const int stopped = (o->stop && *o->stop) || (o->budget > 0 && seconds > o->budget);
    const long index = given < n && !stopped ? (long)left[given++] : LAST;
    MPI_Send(&index, 1, MPI_LONG, from, GIVE, MPI_COMM_WORLD);
    /* Each rank asks once before its first run, and again when one is done. */
    const size_t first = (size_t)(ranks - 1), done = ++asked > first ? asked - first : 0;
    const mx_sweep_progress p = {.runs = n,
                                 .finished = done,
                                 .running = given - done,
                                 .seconds = seconds,
                                 .seconds_left = done ? seconds / (double)done * (double)(n - done) : -1};
    if (o->report) o->report(o->self, &p);
  }
}

static mx_status gone(int rank, mx_status status, const mx_error *err) {
  fprintf(stderr, "mxgold: sweep: rank %d: %s\n", rank, err->text);
  ranks_give_up(2);
  return status;
}

mx_status mpi_sweep(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, int rank, int ranks, mx_error *err) {
  size_t *left = NULL, n = 0;
  mx_sweep_lock *lock = NULL;
  mx_status status = rank ? MX_OK : mx_sweep_lock_take(&lock, options, err);
  if (!rank && !status) status = mx_sweep_left(&left, &n, sweep, options, err);
  if (status) return gone(rank, status, err);
  ranks_meet(); /* the folders are there now */
  if (rank) {
    if ((status = mx_sweep_work(sweep, options, ask, NULL, err))) return gone(rank, status, err);
    MPI_Send(&LAST, 1, MPI_LONG, 0, ASK, MPI_COMM_WORLD);
    return MX_OK;
  }
  hand_out(left, n, options, ranks);
  free(left);
  status = mx_sweep_collect(result, sweep, options, err);
  mx_sweep_lock_free(lock);
  return status;
}

#else

mx_status mpi_sweep(mx_sweep_result *result, const mx_sweep *sweep, const mx_sweep_options *options, int rank, int ranks, mx_error *err) {
  (void)rank;
  (void)ranks;
  return mx_sweep_execute(result, sweep, options, err);
}

#endif
