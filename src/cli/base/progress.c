/* Shows the progress of long work on a terminal. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

double progress_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_rate(const progress *p, double elapsed) {
  const double mib = 1 << 20;
  fprintf(stderr, "%.1f MiB, %.0f MiB/s", (double)p->done / mib, elapsed > 0 ? (double)p->done / mib / elapsed : 0.0);
}

void progress_start(progress *p, const cli_context *ctx, const char *what, uint64_t total_bytes) {
  *p = (progress){.what = what, .total = total_bytes, .terminal = isatty(STDERR_FILENO), .verbose = ctx->verbose};
  p->last = p->start = progress_clock();
}

void progress_start_steps(progress *p, const cli_context *ctx, const char *what, uint64_t total_steps) {
  progress_start(p, ctx, what, total_steps);
  p->timed = 1;
}

static void print_time_left(const progress *p, double elapsed) {
  if (!p->done || p->done > p->total) return;
  const double left = elapsed * (double)(p->total - p->done) / (double)p->done;
  if (left < 90)
    fprintf(stderr, ", %.0f s left", left);
  else
    fprintf(stderr, ", %.0f min left", left / 60);
}

void progress_at(progress *p, uint64_t done) {
  p->done = done;
  if (!p->terminal) return;
  const double now = progress_clock(), elapsed = now - p->start;
  if (now - p->last < 0.1 || (!p->verbose && elapsed < 1)) return;
  p->last = now;
  p->shown = 1;
  progress_clear();
  fprintf(stderr, "%s: %3.0f%%", p->what, p->total ? 100.0 * (double)done / (double)p->total : 100.0);
  if (p->timed) {
    print_time_left(p, elapsed);
  } else {
    fputs(", ", stderr);
    print_rate(p, elapsed);
  }
  fflush(stderr);
}

void progress_end(progress *p) {
  if (p->shown) progress_clear();
  if (!p->verbose) return;
  const double elapsed = progress_clock() - p->start;
  fprintf(stderr, "%s: ", p->what);
  if (!p->timed) {
    print_rate(p, elapsed);
    fputs(", ", stderr);
  }
  fprintf(stderr, "%.3f s\n", elapsed);
}

void progress_clear(void) {
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

void progress_bar(uint64_t done, uint64_t total, const char *format, ...) {
  enum { WIDTH = 24 };
  char bar[WIDTH + 1];
  for (uint64_t i = 0; i < WIDTH; i++) bar[i] = i * total < done * WIDTH ? '#' : '.';
  bar[WIDTH] = 0;
  progress_clear();
  fprintf(stderr, "[%s] ", bar);
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fflush(stderr);
}

const char *progress_time(char text[PROGRESS_TIME], double seconds) {
  if (seconds < 0) return strcpy(text, "?");
  const unsigned long s = (unsigned long)(seconds + .5);
  if (s >= 3600)
    snprintf(text, PROGRESS_TIME, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(text, PROGRESS_TIME, "%lu:%02lu", s / 60, s % 60);
  return text;
}
