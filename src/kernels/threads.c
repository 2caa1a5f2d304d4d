/* Decides how many threads a call gets.
 *
 * OpenMP's runtime ends the process when a thread cannot be started, puts a table of the team on the stack, and waits for ever in a child of fork() for
 * threads that only the parent has. So the number is held to what is sensible, the first call that wants more threads than any before it on its
 * thread finds out whether they can be started, and a child gets one. */
#include "kernels/threads.h"

#include <omp.h>
#include <pthread.h>
#include <sys/stat.h>

static int forked;      /* in a child of a process that had several threads */
static int had_threads; /* the state at the last fork(), written before it and read after it by the thread that forks */

/* The folder of a process's threads has a link for each of them and two more. Where there is no /proc, more than one is assumed. */
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

/* How many of n threads, with this one, can be there at a time: they are started, and end. */
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
  if (n <= MX_MOST_THREADS) return n; /* OpenMP asks the system for its processors at every call, which small products would feel */
  const int processors = omp_get_num_procs(), most = processors > MX_MOST_THREADS ? processors : MX_MOST_THREADS;
  return n < most ? n : most;
}

int mxi_threads_granted(int wanted) {
  static _Thread_local int started = 1; /* OpenMP keeps the threads that it has */
  if (wanted <= started || omp_get_active_level() >= omp_get_max_active_levels()) return wanted;
  /* A machine with more processors than that starts threads without being asked. */
  if (wanted > MX_MOST_THREADS) return wanted;
  const int n = can_start(wanted);
  if (n > started) started = n;
  return n;
}

int mx_thread_count(int n_threads) { return mxi_threads_granted(mxi_threads_wanted(n_threads)); }
