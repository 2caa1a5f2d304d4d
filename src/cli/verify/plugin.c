/* Runs a kernel under test in a child process for each case. What passes between parent and child is shared memory; each buffer ends at a page that
 * nobody may touch. */
#include "plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/progress.h"
#include "mxgold/plugin.h"

/* Exit statuses of the child, out of the way of what a kernel might exit with. */
enum { CHILD_DECLINED = 81, CHILD_LOAD = 82, CHILD_OK = 83, CHILD_FAILED = 84 };
enum { CANARY = 0x5C };    /* around each buffer as far as its pages go */
enum { GUARD_PAGES = 16 }; /* before and behind each: an address there tells whose it is */

typedef struct guarded {
  uint8_t *map, *at; /* at + n_bytes is the guard page, or less than 16 bytes before it */
  size_t mapped, n_bytes;
} guarded;

static size_t fence_bytes(void) { return GUARD_PAGES * (size_t)sysconf(_SC_PAGESIZE); }

static int guard(guarded *g, size_t n_bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (n_bytes + page - 1) / page * page + (n_bytes == 0) * page;
  const size_t fence = fence_bytes();
  g->mapped = fence + body + fence;
  g->map = mmap(NULL, g->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (g->map == MAP_FAILED) return 0;
  mprotect(g->map, fence, PROT_NONE);
  mprotect(g->map + fence + body, fence, PROT_NONE);
  g->at = g->map + fence + body - (n_bytes + 3) / 4 * 4; /* floats stay aligned: up to 3 bytes of slack */
  g->n_bytes = n_bytes;
  memset(g->map + fence, CANARY, body);
  memset(g->at, 0, n_bytes);
  return 1;
}

/* Has nobody written before or behind it? */
static int intact(const guarded *g) {
  const size_t fence = fence_bytes();
  for (const uint8_t *p = g->map + fence; p < g->at; p++)
    if (*p != CANARY) return 0;
  for (const uint8_t *p = g->at + g->n_bytes; p < g->map + g->mapped - fence; p++)
    if (*p != CANARY) return 0;
  return 1;
}

/* From here on any write to it is a fault of the kernel. */
static void read_only(const guarded *g) {
  const size_t fence = fence_bytes();
  mprotect(g->map + fence, g->mapped - 2 * fence, PROT_READ);
}

static void unguard(guarded *g) {
  if (g->map && g->map != MAP_FAILED) munmap(g->map, g->mapped);
}

/* What the child leaves in shared memory when it crashes or fails. */
typedef struct crash {
  volatile int code; /* si_code; of no meaning if the signal does not tell of an address */
  volatile int told;
  volatile int returned;
  volatile uintptr_t address;
  char why[300]; /* of a library that cannot be loaded */
} crash;

static crash *own_crash; /* of the child, which has one thread here and one kernel */

/* Note where, then end as by default. */
static void note(int number, siginfo_t *info, void *context) {
  (void)context;
  own_crash->code = info->si_code;
  own_crash->address = (uintptr_t)info->si_addr;
  own_crash->told = number == SIGSEGV || number == SIGBUS;
  signal(number, SIG_DFL);
  raise(number);
}

static void hold_to(int resource, uint64_t most) {
  struct rlimit limit;
  if (!most || getrlimit((__rlimit_resource_t)resource, &limit) || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= most)) return;
  limit.rlim_cur = limit.rlim_max = most;
  if (resource == RLIMIT_CPU) limit.rlim_max = most + 1; /* SIGXCPU first, which tells what it was */
  setrlimit((__rlimit_resource_t)resource, &limit);
}

/* The child that runs, 0 if none does: shared with the process above, which ends it where this one cannot. */
static volatile pid_t *running;

/* Ends the group of the child that its parent could not end. The child gave the page away, so that no kernel says whom to end. */
static void end_running(void) {
  if (*running > 1) kill(-*running, SIGKILL);
}

static void child(const char *path, const mxgold_job *job, crash *c, const plugin_limits *limits) {
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}, ours[] = {SIGINT, SIGTERM, SIGHUP};
  static char stack[65536]; /* of its own: the kernel's may be what is full */
  struct sigaction how = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  own_crash = c;
  how.sa_sigaction = note;
  sigemptyset(&how.sa_mask);
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) sigaction(fatal[i], &how, NULL); /* in place of a sanitizer's, too */
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) { /* the parent's files are not a child's to take away */
    struct sigaction was;
    if (!sigaction(ours[i], NULL, &was) && was.sa_handler != SIG_IGN) signal(ours[i], SIG_DFL);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody is left to look at it */
  setpgid(0, 0);                    /* what it starts ends with it */
  if (running) {
    *running = getpid(); /* before the kernel can stop who started it */
    munmap((void *)running, sizeof *running);
    running = NULL;
  }
  hold_to(RLIMIT_DATA, limits->memory);
  hold_to(RLIMIT_FSIZE, limits->file);
  hold_to(RLIMIT_CPU, limits->processor_seconds);
  signal(SIGXFSZ, SIG_DFL);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "mxgold_quantize") : NULL;
  if (!symbol) {
    const char *why = dlerror();
    snprintf(c->why, sizeof c->why, "%s", why ? why : "");
    _exit(CHILD_LOAD);
  }
  mxgold_quantize_fn *quantize;
  memcpy(&quantize, &symbol, sizeof quantize); /* ISO C has no cast from object to function pointer */
  c->returned = quantize(job);
  _exit(!c->returned ? CHILD_OK : c->returned == MXGOLD_DECLINED ? CHILD_DECLINED : CHILD_FAILED);
}

/* Waits for a limited time. Returns 0 if the time ran out. */
static int wait_for(pid_t pid, int *status, double seconds) {
  const struct timespec nap = {0, 500000};
  const double start = progress_clock();
  for (;;) {
    const pid_t got = waitpid(pid, status, WNOHANG);
    if (got == pid) return 1;
    if (got < 0 && errno != EINTR) return 0;
    if (progress_clock() - start > seconds) {
      if (kill(-pid, SIGKILL)) kill(pid, SIGKILL);
      waitpid(pid, status, 0);
      return 0;
    }
    nanosleep(&nap, NULL);
  }
}

/* Standard output and error of the child end in a pipe that nobody reads until the child is gone: what does not fit is lost, and holds nothing up. Its
 * own children end with it; one that has left its group holds nothing of ours but that pipe. */
static plugin_end run_child(const char *path, const mxgold_job *job, crash *c, const plugin_limits *limits, int *by_signal, char *said,
                            size_t n_said) {
  int ends[2] = {-1, -1}, status;
  if (pipe(ends)) return PLUGIN_TROUBLE;
  for (int i = 0; i < 2; i++) {
    fcntl(ends[i], F_SETFL, O_NONBLOCK);
    fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  }
  const pid_t pid = fork();
  if (pid == 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    child(path, job, c, limits);
  }
  if (pid > 0) setpgid(pid, pid); /* whoever comes first */
  const int in_time = pid > 0 && wait_for(pid, &status, limits->seconds);
  if (pid > 0) kill(-pid, SIGKILL); /* children of its own */
  if (running) *running = 0;
  const ssize_t n = pid > 0 ? read(ends[0], said, n_said - 1) : 0;
  said[n > 0 ? n : 0] = 0;
  close(ends[0]);
  close(ends[1]);
  if (pid < 0) return PLUGIN_TROUBLE;
  if (!in_time) return PLUGIN_LATE;
  if (WIFSIGNALED(status)) {
    *by_signal = WTERMSIG(status);
    return *by_signal == SIGXCPU ? PLUGIN_LATE : PLUGIN_SIGNAL;
  }
  const int code = WEXITSTATUS(status);
  switch (code) {
  case CHILD_OK:
    return PLUGIN_OK;
  case CHILD_LOAD:
    return PLUGIN_LOAD;
  case CHILD_DECLINED:
    return PLUGIN_DECLINED;
  case CHILD_FAILED:
    return PLUGIN_FAILED;
  default:
    return PLUGIN_EXIT;
  }
}

/* Which buffer an address belongs to. */
typedef struct named {
  const char *name;
  const guarded *g;
} named;

static void locate(char *text, size_t size, const crash *c, const named *buffers, size_t n) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const uintptr_t at = c->address;
  *text = 0;
  if (!c->told || c->code <= 0) return; /* raised, not met */
  for (size_t i = 0; i < n; i++) {
    const guarded *g = buffers[i].g;
    const uintptr_t from = (uintptr_t)g->at, end = from + g->n_bytes;
    if (at < (uintptr_t)g->map || at >= (uintptr_t)g->map + g->mapped) continue;
    if (at >= end)
      snprintf(text, size, " at address 0x%zx, %zu bytes behind the end of %s", (size_t)at, (size_t)(at - end) + 1, buffers[i].name);
    else if (at < from)
      snprintf(text, size, " at address 0x%zx, %zu bytes before %s", (size_t)at, (size_t)(from - at), buffers[i].name);
    else
      snprintf(text, size, " at address 0x%zx, byte %zu of %s, which is read-only", (size_t)at, (size_t)(at - from), buffers[i].name);
    return;
  }
#ifdef SI_KERNEL
  if (c->code == SI_KERNEL) {
    snprintf(text, size, " at an address that no memory can have");
    return;
  }
#endif
  if (at < page)
    snprintf(text, size, " at address 0x%zx: a NULL pointer", (size_t)at);
  else
    snprintf(text, size, " at address 0x%zx, in none of its buffers", (size_t)at);
}

plugin_result plugin_run(const char *path, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                         const plugin_limits *limits) {
  plugin_result r = {.end = PLUGIN_TROUBLE};
  char text[4096];
  guarded in = {0}, codes = {0}, scales = {0}, scale = {0}, note_page = {0};
  if (mx_tensor_alloc(&r.tensor, rows, cols, spec)) return r;
  mx_tensor *t = &r.tensor;
  const size_t n_codes = t->rows * t->code_stride, n_scales = t->scale_rows * t->scale_cols * t->scale_bytes, n_x = rows * ld * sizeof *x;
  mx_spec_print(text, sizeof text, spec, 1);
  if (guard(&in, n_x) && guard(&codes, n_codes) && guard(&scales, n_scales) && guard(&scale, sizeof(float)) &&
      guard(&note_page, sizeof(crash) + 15)) {
    memcpy(in.at, x, n_x);
    read_only(&in);
    memset(scales.at, PLUGIN_POISON, n_scales); /* a scale that is never written shows */
    *(float *)(void *)scale.at = 1;
    const mxgold_job job = {.abi = MXGOLD_PLUGIN_ABI,
                            .spec = text,
                            .rows = rows,
                            .cols = cols,
                            .ld = ld,
                            .x = (const float *)(const void *)in.at,
                            .codes = codes.at,
                            .code_stride = t->code_stride,
                            .scales = scales.at,
                            .scale_rows = t->scale_rows,
                            .scale_cols = t->scale_cols,
                            .scale_bytes = t->scale_bytes,
                            .tensor_scale = (float *)(void *)scale.at};
    const named own[] = {{"codes", &codes}, {"scales", &scales}, {"tensor_scale", &scale}, {"x", &in}};
    crash *c = (crash *)(void *)((uintptr_t)(note_page.at + 15) & ~(uintptr_t)15);
    memset(c, 0, sizeof *c);
    r.end = run_child(path, &job, c, limits, &r.signal, r.said, sizeof r.said);
    r.returned = c->returned;
    memcpy(r.why, c->why, sizeof r.why);
    if (r.end == PLUGIN_SIGNAL) locate(r.where, sizeof r.where, c, own, sizeof own / sizeof *own);
    for (size_t i = 0; i < 3 && r.end == PLUGIN_OK; i++)
      if (!intact(own[i].g)) r.end = PLUGIN_OUTSIDE, r.what = own[i].name;
    memcpy(t->codes, codes.at, n_codes);
    memcpy(t->scales, scales.at, n_scales);
    memcpy(&t->tensor_scale, scale.at, sizeof(float));
  }
  unguard(&in);
  unguard(&codes);
  unguard(&scales);
  unguard(&scale);
  unguard(&note_page);
  if (r.end != PLUGIN_OK) mx_tensor_free(t);
  return r;
}

int plugin_supervise(const char *path, int (*work)(void *self), void *self) {
  static const int ours[] = {SIGINT, SIGTERM, SIGHUP};
  enum { OURS = sizeof ours / sizeof *ours, GRACE = 3 }; /* seconds to end in after a signal */
  sigset_t block, before;
  int status = 0, told = 0;
  double when = 0;
  running = mmap(NULL, sizeof *running, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (running == MAP_FAILED) {
    running = NULL;
    return cli_error("test: cannot start a process: %s", strerror(errno));
  }
  sigemptyset(&block);
  sigaddset(&block, SIGCHLD);
  for (size_t i = 0; i < OURS; i++) {
    struct sigaction was;
    if (!sigaction(ours[i], NULL, &was) && was.sa_handler != SIG_IGN) sigaddset(&block, ours[i]);
  }
  sigprocmask(SIG_BLOCK, &block, &before);
  fflush(NULL);
  const pid_t pid = fork();
  if (!pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);            /* a kernel that signals its parent's group does not reach who waits */
    signal(SIGTTOU, SIG_IGN); /* a terminal may stop a group that is not its own for what it prints */
    sigprocmask(SIG_SETMASK, &before, NULL);
    const int rc = work(self);
    _exit(fflush(stdout) || ferror(stdout) ? cli_error("standard output: cannot write: %s", strerror(errno)) : rc);
  }
  const int why = errno;
  /* Signals stay blocked and are taken here, so that none comes between a look at the process and the wait for it. */
  while (pid > 0 && !waitpid(pid, &status, WNOHANG | WUNTRACED)) {
    const int number = sigtimedwait(&block, NULL, &(struct timespec){1, 0});
    if (number > 0 && number != SIGCHLD) {
      if (!told) when = progress_clock();
      kill(pid, told = number);
    }
    if (told && progress_clock() - when > GRACE) kill(pid, SIGKILL);
  }
  const int stopped = pid > 0 && WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
  if (stopped) { /* nobody would make it go on */
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  }
  end_running();
  munmap((void *)running, sizeof *running);
  running = NULL;
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (pid < 0) return cli_error("test: cannot start a process: %s", strerror(why));
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (stopped)
    return cli_error("%s: the process that ran the kernel was stopped by signal %d: does the kernel signal its parent?", path, stopped);
  if (told) return cli_error("%s: interrupted by signal %d: the process that ran the kernel did not end by itself", path, told);
  return cli_error("%s: the process that ran the kernel was ended by signal %d: does the kernel signal its parent?", path, WTERMSIG(status));
}
