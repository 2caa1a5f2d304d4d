/* Defines the entry points of GCC's OpenMP that the library calls, on a pool of POSIX threads.
 *
 * A wheel cannot have libgomp inside: libgomp.a is not made for shared objects (its thread-local storage is that of programs), and a libgomp.so.1 beside
 * the module would be one more runtime in a process that has torch's. The library needs sixteen functions, and these are they, hidden in the module:
 * parallel regions, loops that are handed out in pieces, barriers, named sections. Bits do not depend on how work is shared, so nothing here can change them.
 *
 * Each caller has a team of its own, of itself and workers from the pool: any number of Python threads may call at once. A region inside a region has one
 * thread. In a child of fork() the pool is empty. Locks are words that wait in the kernel (futex) after a short spin. */
#include <errno.h>
#include <fenv.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __clang__
#error "mxgold: this module is built with gcc: clang's OpenMP calls other functions"
#endif

extern void *mxp_no_stdin;

typedef unsigned long long ull;
typedef _Atomic unsigned word;

enum { SPINS = 2000, LOOPS = 8, MOST = 1024 };

static void pause_a_little(void) {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

/* Wait until *at is not `old`. */
static void wait_for_change(word *at, unsigned old) {
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(at, memory_order_acquire) != old) return;
    pause_a_little();
  }
  while (atomic_load_explicit(at, memory_order_acquire) == old)
    syscall(SYS_futex, (unsigned *)(void *)at, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

static void wake(word *at, int n) { syscall(SYS_futex, (unsigned *)(void *)at, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0); }

/* A lock: 0 free, 1 taken, 2 taken and waited for. */
static void lock(word *at) {
  unsigned free_ = 0;
  if (atomic_compare_exchange_strong(at, &free_, 1)) return;
  for (int i = 0; i < SPINS; i++) {
    free_ = 0;
    if (atomic_compare_exchange_weak(at, &free_, 1)) return;
    pause_a_little();
  }
  while (atomic_exchange(at, 2)) syscall(SYS_futex, (unsigned *)(void *)at, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void unlock(word *at) {
  if (atomic_exchange(at, 0) == 2) wake(at, 1);
}

/* A loop whose pieces are handed out. Threads may be in different loops at a time (nowait), so a team has room for several. */
typedef struct loop {
  word users;          /* threads that have left it */
  _Atomic ull ordinal; /* which loop of the region it is, counted from 1; 0: free */
  _Atomic ull next;    /* first iteration that nobody has, counted from 0 */
  ull n, chunk;
  long start, step;  /* of loops over long */
  ull ustart, ustep; /* of loops over unsigned long long; step wraps around for those that go down */
} loop;

typedef struct team {
  void (*work)(void *);
  void *data;
  unsigned n;
  word left;           /* workers that are not yet done */
  word arrived, round; /* of the barrier */
  word opening;        /* held while a loop is set up */
  loop loops[LOOPS];
} team;

/* A thread in a team. */
typedef struct member {
  team *team;
  unsigned id;
  ull loops; /* entered so far */
  loop *at;
} member;

static _Thread_local member self;

/* A thread of the pool: it sleeps on `calls`, and has `task` when that changes. */
typedef struct worker {
  word calls;
  member task;
  struct worker *next;
} worker;

static word pool_lock;
static worker *idle;

static void barrier_of(team *t) {
  const unsigned round = atomic_load(&t->round);
  if (atomic_fetch_add(&t->arrived, 1) + 1 == t->n) {
    atomic_store(&t->arrived, 0);
    atomic_fetch_add(&t->round, 1);
    wake(&t->round, INT_MAX);
  } else
    wait_for_change(&t->round, round);
}

static void *work_for_ever(void *arg) {
  worker *w = arg;
  unsigned calls = 0;
  fesetenv(FE_DFL_ENV);
  for (;;) {
    wait_for_change(&w->calls, calls++);
    team *t = w->task.team;
    self = w->task;
    t->work(t->data);
    self = (member){0};
    lock(&pool_lock);
    w->next = idle;
    idle = w;
    unlock(&pool_lock);
    if (atomic_fetch_sub(&t->left, 1) == 1) wake(&t->left, 1); /* the team is gone after this */
  }
  return NULL;
}

static void forget_pool(void) { /* in a child of fork() */
  atomic_store(&pool_lock, 0);
  idle = NULL;
}

static void hold_pool(void) { lock(&pool_lock); }
static void release_pool(void) { unlock(&pool_lock); }
static __attribute__((constructor)) void watch_forks(void) { pthread_atfork(hold_pool, release_pool, forget_pool); }

/* A worker that waits for its first call; NULL if the system gives no more threads. Signals are the interpreter's. */
static worker *start_worker(void) {
  enum { LINE = 64, ROOM = 2 * LINE };
  _Static_assert(sizeof(worker) <= ROOM, "a worker has lines of the cache to itself");
  worker *w = aligned_alloc(LINE, ROOM);
  pthread_t thread;
  pthread_attr_t how;
  sigset_t all, before;
  if (!w) return NULL;
  *w = (worker){0};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&how);
  pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
  const int failed = pthread_create(&thread, &how, work_for_ever, w);
  pthread_attr_destroy(&how);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!failed) return w;
  free(w);
  return NULL;
}

static worker *take_worker(void) {
  lock(&pool_lock);
  worker *w = idle;
  if (w) idle = w->next;
  unlock(&pool_lock);
  return w ? w : start_worker();
}

/* What stands in for stdin in libjansson.a (python/python.mk). */
void *mxp_no_stdin;

/* --- omp.h --- */

/* Both are asked once, when the module is loaded, as libgomp does. */
static int n_processors = 1, n_default = 1;
static __attribute__((constructor)) void ask_processors(void) {
  cpu_set_t set;
  const char *text = getenv("OMP_NUM_THREADS");
  const long wanted = text ? strtol(text, NULL, 10) : 0, online = sysconf(_SC_NPROCESSORS_ONLN);
  n_processors = !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) ? CPU_COUNT(&set) : online > 0 ? (int)online : 1;
  n_default = wanted > 0 && wanted < MOST ? (int)wanted : n_processors;
}

int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_num_procs(void);
int omp_get_max_threads(void);
int omp_get_active_level(void);
int omp_get_max_active_levels(void);

int omp_get_thread_num(void) { return (int)self.id; }
int omp_get_num_threads(void) { return self.team ? (int)self.team->n : 1; }
int omp_get_num_procs(void) { return n_processors; }
int omp_get_max_threads(void) { return n_default; }
int omp_get_active_level(void) { return self.team && self.team->n > 1; }
int omp_get_max_active_levels(void) { return 1; }

/* --- regions --- */

void GOMP_parallel(void (*work)(void *), void *data, unsigned n_threads, unsigned flags);
void GOMP_barrier(void);

void GOMP_parallel(void (*work)(void *), void *data, unsigned n_threads, unsigned flags) {
  (void)flags;
  const member before = self;
  unsigned n = n_threads ? n_threads : (unsigned)omp_get_max_threads();
  if (n > MOST) n = MOST;
  if (before.team && before.team->n > 1) n = 1;
  worker *hired[MOST];
  unsigned got = 1;
  while (got < n && (hired[got] = take_worker())) got++;
  team t = {.work = work, .data = data, .n = got};
  atomic_store(&t.left, got - 1);
  for (unsigned i = 1; i < got; i++) {
    hired[i]->task = (member){.team = &t, .id = i};
    atomic_fetch_add_explicit(&hired[i]->calls, 1, memory_order_release);
    wake(&hired[i]->calls, 1);
  }
  self = (member){.team = &t};
  work(data);
  for (unsigned left; (left = atomic_load(&t.left));) wait_for_change(&t.left, left);
  self = before;
}

void GOMP_barrier(void) {
  if (self.team && self.team->n > 1) barrier_of(self.team);
}

/* --- loops --- */

/* The state of this thread's next loop: set up by the first that comes to it, free again when all have left it. */
static loop *enter(ull n, ull chunk, long start, long step, ull ustart, ull ustep) {
  team *t = self.team;
  const ull ordinal = ++self.loops;
  loop *l = &t->loops[ordinal % LOOPS];
  while (atomic_load(&l->ordinal) != ordinal) {
    lock(&t->opening);
    if (!atomic_load(&l->ordinal)) {
      l->n = n, l->chunk = chunk ? chunk : 1;
      l->start = start, l->step = step, l->ustart = ustart, l->ustep = ustep;
      atomic_store(&l->users, 0);
      atomic_store(&l->next, 0);
      atomic_store(&l->ordinal, ordinal);
    }
    unlock(&t->opening);
    if (atomic_load(&l->ordinal) != ordinal) sched_yield(); /* an earlier loop still has it */
  }
  return self.at = l;
}

static void leave(void) {
  loop *l = self.at;
  if (atomic_fetch_add(&l->users, 1) + 1 == self.team->n) atomic_store(&l->ordinal, 0);
}

/* The next piece: iterations [first, last), counted from 0. */
static bool piece(ull *first, ull *last) {
  loop *l = self.at;
  ull at = atomic_load(&l->next), to;
  do {
    if (at >= l->n) return false;
    to = l->n - at > l->chunk ? at + l->chunk : l->n;
  } while (!atomic_compare_exchange_weak(&l->next, &at, to));
  *first = at;
  *last = to;
  return true;
}

/* A loop outside any region has a team of one. */
static _Thread_local team alone;
static void have_team(void) {
  if (self.team) return;
  alone = (team){.n = 1};
  self = (member){.team = &alone};
}

bool GOMP_loop_nonmonotonic_dynamic_next(long *first, long *last);
bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *first, long *last);
bool GOMP_loop_ull_nonmonotonic_dynamic_next(ull *first, ull *last);
bool GOMP_loop_ull_nonmonotonic_dynamic_start(bool up, ull start, ull end, ull step, ull chunk, ull *first, ull *last);
void GOMP_loop_end(void);
void GOMP_loop_end_nowait(void);

bool GOMP_loop_nonmonotonic_dynamic_next(long *first, long *last) {
  ull a, b;
  if (!piece(&a, &b)) return false;
  *first = self.at->start + (long)a * self.at->step;
  *last = self.at->start + (long)b * self.at->step;
  return true;
}

bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *first, long *last) {
  const ull span = step > 0 ? end > start ? (ull)end - (ull)start : 0 : end < start ? (ull)start - (ull)end : 0;
  const ull size = step > 0 ? (ull)step : (ull)0 - (ull)step;
  have_team();
  enter(span / size + (span % size != 0), chunk > 0 ? (ull)chunk : 1, start, step, 0, 0);
  return GOMP_loop_nonmonotonic_dynamic_next(first, last);
}

bool GOMP_loop_ull_nonmonotonic_dynamic_next(ull *first, ull *last) {
  ull a, b;
  if (!piece(&a, &b)) return false;
  *first = self.at->ustart + a * self.at->ustep;
  *last = self.at->ustart + b * self.at->ustep;
  return true;
}

bool GOMP_loop_ull_nonmonotonic_dynamic_start(bool up, ull start, ull end, ull step, ull chunk, ull *first, ull *last) {
  const ull span = up ? end > start ? end - start : 0 : end < start ? start - end : 0, size = up ? step : 0 - step;
  have_team();
  enter(span / size + (span % size != 0), chunk, 0, 0, start, step);
  return GOMP_loop_ull_nonmonotonic_dynamic_next(first, last);
}

void GOMP_loop_end(void) {
  leave();
  GOMP_barrier();
}
void GOMP_loop_end_nowait(void) { leave(); }

/* --- sections that one thread is in at a time --- */

void GOMP_critical_start(void);
void GOMP_critical_end(void);
void GOMP_critical_name_start(void **name);
void GOMP_critical_name_end(void **name);
void GOMP_atomic_start(void);
void GOMP_atomic_end(void);

static word unnamed, atomics;
void GOMP_critical_start(void) { lock(&unnamed); }
void GOMP_critical_end(void) { unlock(&unnamed); }
/* The compiler gives each name a pointer's room, which is zero at first: the lock lies there. */
void GOMP_critical_name_start(void **name) { lock((word *)(void *)name); }
void GOMP_critical_name_end(void **name) { unlock((word *)(void *)name); }
void GOMP_atomic_start(void) { lock(&atomics); }
void GOMP_atomic_end(void) { unlock(&atomics); }
