/* Declares pieces of work that are made on all processors and kept in order: while one thread writes, the others make the next pieces. */
#ifndef CLI_BASE_PIPELINE_H
#define CLI_BASE_PIPELINE_H

#include <stddef.h>

#include "mxgold/status.h"

/** make() runs on any thread, for pieces in any order, with a desk that no other thread has; keep() runs for one piece at a time, first to last. Both
 *  say in *err what is wrong. desk() gives memory for one thread, NULL if there is none; leave() takes it back. */
typedef struct pipeline {
  size_t n_pieces;
  int n_threads; /* that make at a time; 0: all processors */
  int n_spare;   /* threads and desks besides, so that what is made and waits to be kept holds nobody up */
  int inner;     /* OpenMP threads within a piece; 0: as many as there would be */
  void *self;
  void *(*desk)(void *self);
  void (*leave)(void *self, void *desk);
  mx_status (*make)(void *self, void *desk, size_t piece, mx_error *err);
  mx_status (*keep)(void *self, void *desk, size_t piece, mx_error *err);
} pipeline;

/** Returns MX_OK, or the first failure in the order of the pieces, said in *err; nothing is kept after it. */
mx_status pipeline_run(const pipeline *p, mx_error *err);
/** Divide the caller's wish, or all processors, among at most so many pieces at once: n_threads, and what is over to each as inner. */
void pipeline_share(pipeline *p, size_t most_at_once, int wish);
/** Threads for so many pieces: the caller's wish, or as many as there are processors; one a piece. */
int pipeline_threads(size_t n_pieces, int wish);

#endif
