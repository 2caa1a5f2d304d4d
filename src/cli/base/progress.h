/* Declares how the progress of long work is shown on a terminal. */
#ifndef CLI_BASE_PROGRESS_H
#define CLI_BASE_PROGRESS_H

#include <stdint.h>

#include "cli.h"

typedef struct progress {
  const char *what;
  uint64_t total, done;                /* bytes */
  double start, last;                  /* of progress_clock() */
  int terminal, verbose, shown, timed; /* timed: done and total are not bytes, and time is said in place of a rate */
} progress;

/** Seconds on a clock that is never set back, from some moment on: for differences. */
double progress_clock(void);
/** Begin. A line with share and rate is kept up to date on standard error if that is a terminal, from the start under -v, else after a second. */
void progress_start(progress *p, const cli_context *ctx, const char *what, uint64_t total_bytes);
/** The same of work that is not a stream of bytes, counted in steps: a share and the time left, as long as what is left goes at the rate so far. */
void progress_start_steps(progress *p, const cli_context *ctx, const char *what, uint64_t total_steps);
/** `done` bytes or steps are behind us. Cheap: looks at the clock, prints ten times a second at most. From one thread. */
void progress_at(progress *p, uint64_t done);
/** Take the line away; under -v say time and rate, on a terminal or not. */
void progress_end(progress *p);

/** Show on standard error, in place of the line that stands there: a bar of what is done, and the text that follows. For callers that know that it is a
 *  terminal. */
void progress_bar(uint64_t done, uint64_t total, const char *format, ...) __attribute__((format(printf, 3, 4)));
/** Take the line of a terminal away. */
void progress_clear(void);
enum { PROGRESS_TIME = 24 };
/** Seconds as h:mm:ss, or m:ss below an hour; "?" if negative: unknown. Returns text. */
const char *progress_time(char text[PROGRESS_TIME], double seconds);

#endif
