/* Decides how many threads a call gets.
 *
 * OpenMP's runtime ends the process if it cannot start a thread, puts a table of the team on the stack, and in a child of fork() waits for
 * ever for threads that only the parent has. So the number is limited to a sensible one, the first call on a thread that wants more threads
 * than any before it finds out whether they can be started, and a child gets a single one.
 * OpenMP ends threads when a smaller team follows a larger one and starts others when it grows again, before the old ones are gone, and those
 * of several such turns can be on their way out. So a team is granted only if SPARE times as many threads could exist. Where address space is
 * limited, what was found out once says nothing later, because memory may have been allocated since: there must be plenty of it for more
 * than one thread. */
#include "kernels/threads.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int forked;      /* in a child of a process that had several threads */
static int had_threads; /* whether the process had several threads at the last fork(); the forking thread writes it before and reads it after */

/* The folder with the threads of a process has a link for each of them and two more. 0 without /proc. */
static unsigned long n_links(void) {
  struct stat tasks;
  return stat("/proc/self/task", &tasks) ? 0 : (unsigned long)tasks.st_nlink;
}

/* Without /proc, several threads are assumed. */
static void before_fork(void) {
  const unsigned long n = n_links();
  had_threads = !n || n > 3;
}

static void in_child(void) { forked |= had_threads; }

static __attribute__((constructor)) void watch_forks(void) { pthread_atfork(before_fork, NULL, in_child); }

enum { SPARE = 4 };

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

/* How many of n threads, including this one, can exist at a time; it starts them and lets them end. A thread that was joined counts against the
 * limit of its user for a moment more, which it waits for, a tenth of a second at most. */
static int can_start(int n) {
  const unsigned long before = n_links();
  pthread_t others[SPARE * MX_MOST_THREADS];
  gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
  int started = 0;
  while (started < n - 1 && started < SPARE * MX_MOST_THREADS && !pthread_create(&others[started], NULL, wait_at, &g)) started++;
  pthread_mutex_lock(&g.lock);
  g.open = 1;
  pthread_cond_broadcast(&g.opened);
  pthread_mutex_unlock(&g.lock);
  for (int i = 0; i < started; i++) pthread_join(others[i], NULL);
  for (int i = 0; i < 1000 && n_links() > before; i++) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
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

/* A thread takes a stack and a heap of its own, the rest is for what the caller allocates between two teams. */
static const unsigned long long SPACE_OF_A_THREAD = 256ull << 20, SPACE_BESIDE = 1ull << 30;

/* Is the address space limited, and so small that threads could soon not be started any more? */
static int space_is_short(int threads) {
  struct rlimit most;
  if (getrlimit(RLIMIT_AS, &most) || most.rlim_cur == RLIM_INFINITY) return 0;
  unsigned long long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  const int known = f && fscanf(f, "%llu", &pages) == 1;
  if (f) fclose(f);
  const unsigned long long used = pages * (unsigned long long)sysconf(_SC_PAGESIZE),
                           need = (unsigned)threads * SPACE_OF_A_THREAD + SPACE_BESIDE;
  return !known || used + need > most.rlim_cur;
}

int mxi_threads_granted(int wanted) {
  static _Thread_local int granted = 1;
  if (wanted < 2 || omp_get_active_level() >= omp_get_max_active_levels()) return wanted;
  if (space_is_short(wanted)) return 1;
  /* A machine with more processors than that can be trusted to start the threads. */
  if (wanted <= granted || wanted > MX_MOST_THREADS) return wanted;
  const int exist = can_start(SPARE * wanted), n = exist < 2 * SPARE ? 1 : exist / SPARE;
  if (n > granted) granted = n;
  return n;
}

int mx_thread_count(int n_threads) { return mxi_threads_granted(mxi_threads_wanted(n_threads)); }
