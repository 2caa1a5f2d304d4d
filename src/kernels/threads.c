/* Decides how many threads a call gets.
 *
 * OpenMP's runtime ends the process if it cannot start a thread, puts a table of the team on the stack, and in a child of fork() waits for
 * ever for threads that only the parent has. So the number is limited to a sensible one, the first call on a thread that wants more threads
 * than any before it finds out whether they can be started, and a child gets a single one. */
#include "kernels/threads.h"

#include <omp.h>
#include <pthread.h>
#include <sys/stat.h>

static int forked;      /* in a child of a process that had several threads */
static int had_threads; /* whether the process had several threads at the last fork(); the forking thread writes it before and reads it after */

/* The folder with the threads of a process has a link for each of them and two more. Without /proc, several threads are assumed. */
static void before_fork(void) {
  struct stat tasks;
  had_threads = stat("/proc/self/task", &tasks) || tasks.st_nlink > 3;
}

static void in_child(void) { forked |= had_threads; }

static __attribute__((constructor)) void watch_forks(void) { pthread_atfork(before_fork, NULL, in_child); }

typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t opened;
  int open;
} gate;

static void *wait_at(void *arg) {
  gate *g = arg;
  pthread_mutex_lock(&g->lock);
  while (!g->open) pthread_cond_wait(&g->opened, &g->lock);
  pthread_mutex_unlock(&g->lock);
  return NULL;
}

/* How many of n threads, including this one, can exist at a time; it starts them and lets them end. */
static int can_start(int n) {
  pthread_t others[MX_MOST_THREADS];
  gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
  int started = 0;
  while (started < n - 1 && started < MX_MOST_THREADS && !pthread_create(&others[started], NULL, wait_at, &g)) started++;
  pthread_mutex_lock(&g.lock);
  g.open = 1;
  pthread_cond_broadcast(&g.opened);
  pthread_mutex_unlock(&g.lock);
  for (int i = 0; i < started; i++) pthread_join(others[i], NULL);
  return started + 1;
}

int mxi_threads_wanted(int n_threads) {
  if (forked) return 1;
  const int n = n_threads > 0 ? n_threads : omp_get_max_threads();
  if (n <= MX_MOST_THREADS)
    return n; /* because OpenMP asks the system for the number of processors at every call, which would slow down small products */
  const int processors = omp_get_num_procs(), most = processors > MX_MOST_THREADS ? processors : MX_MOST_THREADS;
  return n < most ? n : most;
}

int mxi_threads_granted(int wanted) {
  static _Thread_local int started = 1; /* OpenMP keeps the threads that it has started */
  if (wanted <= started || omp_get_active_level() >= omp_get_max_active_levels()) return wanted;
  /* A machine with more processors than that can be trusted to start the threads. */
  if (wanted > MX_MOST_THREADS) return wanted;
  const int n = can_start(wanted);
  if (n > started) started = n;
  return n;
}

int mx_thread_count(int n_threads) { return mxi_threads_granted(mxi_threads_wanted(n_threads)); }
