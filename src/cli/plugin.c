/* A child for each case. What passes between parent and child is shared memory; each buffer ends at a page that nobody may touch. */
#include "plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mxgold/plugin.h"

/* Exit statuses of the child, out of the way of what a kernel might exit with. */
enum { CHILD_DECLINED = 81, CHILD_LOAD = 82, CHILD_OK = 83 };
enum { CANARY = 0x5C }; /* around each buffer as far as its pages go */

typedef struct guarded {
  uint8_t *map, *at; /* at + n_bytes is the guard page, or less than 16 bytes before it */
  size_t mapped, n_bytes;
} guarded;

static int guard(guarded *g, size_t n_bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (n_bytes + page - 1) / page * page + (n_bytes == 0) * page;
  g->mapped = page + body + page;
  g->map = mmap(NULL, g->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (g->map == MAP_FAILED) return 0;
  mprotect(g->map, page, PROT_NONE);
  mprotect(g->map + page + body, page, PROT_NONE);
  g->at = g->map + page + body - (n_bytes + 3) / 4 * 4; /* floats stay aligned: up to 3 bytes of slack */
  g->n_bytes = n_bytes;
  memset(g->map + page, CANARY, body);
  memset(g->at, 0, n_bytes);
  return 1;
}

/* Has nobody written before or behind it? */
static int intact(const guarded *g) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (const uint8_t *p = g->map + page; p < g->at; p++)
    if (*p != CANARY) return 0;
  for (const uint8_t *p = g->at + g->n_bytes; p < g->map + g->mapped - page; p++)
    if (*p != CANARY) return 0;
  return 1;
}

/* From here on a write is a fault of the one who writes. */
static void read_only(const guarded *g) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  mprotect(g->map + page, g->mapped - 2 * page, PROT_READ);
}

static void unguard(guarded *g) {
  if (g->map && g->map != MAP_FAILED) munmap(g->map, g->mapped);
}

static void child(const char *path, const mxgold_job *job) {
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], SIG_DFL); /* a sanitizer's handler would make an exit of a crash */
  setpgid(0, 0);                                                                       /* what it starts ends with it */
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "mxgold_quantize") : NULL;
  if (!symbol) _exit(CHILD_LOAD);
  mxgold_quantize_fn *quantize;
  memcpy(&quantize, &symbol, sizeof quantize); /* ISO C has no cast from object to function pointer */
  _exit(quantize(job) ? CHILD_DECLINED : CHILD_OK);
}

/* Wait, but not for ever. Returns 0 when the time was over. */
static int wait_for(pid_t pid, int *status, double seconds) {
  const struct timespec nap = {0, 500000};
  struct timespec start, t;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (;;) {
    const pid_t got = waitpid(pid, status, WNOHANG);
    if (got == pid) return 1;
    if (got < 0 && errno != EINTR) return 0;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if ((double)(t.tv_sec - start.tv_sec) + (double)(t.tv_nsec - start.tv_nsec) * 1e-9 > seconds) {
      if (kill(-pid, SIGKILL)) kill(pid, SIGKILL);
      waitpid(pid, status, 0);
      return 0;
    }
    nanosleep(&nap, NULL);
  }
}

/* Standard error of the child ends in a pipe that nobody reads until the child is gone: what does not fit is lost, and holds nothing up. */
static plugin_end run_child(const char *path, const mxgold_job *job, double seconds, int *by_signal, char *said, size_t n_said) {
  int ends[2] = {-1, -1}, status;
  if (pipe(ends)) return PLUGIN_TROUBLE;
  for (int i = 0; i < 2; i++) {
    fcntl(ends[i], F_SETFL, O_NONBLOCK);
    fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  }
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    child(path, job);
  }
  const int in_time = pid > 0 && wait_for(pid, &status, seconds);
  if (pid > 0) kill(-pid, SIGKILL); /* children of its own */
  const ssize_t n = pid > 0 ? read(ends[0], said, n_said - 1) : 0;
  said[n > 0 ? n : 0] = 0;
  close(ends[0]);
  close(ends[1]);
  if (pid < 0) return PLUGIN_TROUBLE;
  if (!in_time) return PLUGIN_LATE;
  if (WIFSIGNALED(status)) {
    *by_signal = WTERMSIG(status);
    return PLUGIN_SIGNAL;
  }
  const int code = WEXITSTATUS(status);
  return code == CHILD_OK ? PLUGIN_OK : code == CHILD_LOAD ? PLUGIN_LOAD : code == CHILD_DECLINED ? PLUGIN_DECLINED : PLUGIN_EXIT;
}

plugin_result plugin_run(const char *path, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *spec, double seconds) {
  plugin_result r = {.end = PLUGIN_TROUBLE};
  char text[4096];
  guarded in = {0}, codes = {0}, scales = {0}, scale = {0};
  if (mx_tensor_alloc(&r.tensor, rows, cols, spec)) return r;
  mx_tensor *t = &r.tensor;
  const size_t n_codes = t->rows * t->code_stride, n_scales = t->scale_rows * t->scale_cols * t->scale_bytes, n_x = rows * ld * sizeof *x;
  mx_spec_print(text, sizeof text, spec, 1);
  if (guard(&in, n_x) && guard(&codes, n_codes) && guard(&scales, n_scales) && guard(&scale, sizeof(float))) {
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
    r.end = run_child(path, &job, seconds, &r.signal, r.said, sizeof r.said);
    const struct {
      const char *name;
      const guarded *g;
    } own[] = {{"codes", &codes}, {"scales", &scales}, {"tensor_scale", &scale}};
    for (size_t i = 0; i < sizeof own / sizeof *own && r.end == PLUGIN_OK; i++)
      if (!intact(own[i].g)) r.end = PLUGIN_OUTSIDE, r.what = own[i].name;
    memcpy(t->codes, codes.at, n_codes);
    memcpy(t->scales, scales.at, n_scales);
    memcpy(&t->tensor_scale, scale.at, sizeof(float));
  }
  unguard(&in);
  unguard(&codes);
  unguard(&scales);
  unguard(&scale);
  if (r.end != PLUGIN_OK) mx_tensor_free(t);
  return r;
}
