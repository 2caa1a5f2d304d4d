/* Makes pieces of work on threads that sleep while they wait: those of OpenMP spin, which on a busy machine takes the processor from the thread that
 * is waited for. */
#include "pipeline.h"

#include <omp.h>
#include <pthread.h>

#include "mxgold/isa.h"

typedef struct line {
  const pipeline *p;
  pthread_mutex_t lock;
  pthread_cond_t moved;
  size_t next, kept; /* the next piece to be made; how many are kept */
  int busy, n_busy;  /* threads that make; how many may */
  mx_status status;
  mx_error *err;
  int desks; /* threads that found memory */
} line;

int pipeline_threads(size_t n_pieces, int wish) {
  const size_t most = (size_t)(mx_thread_count(wish));
  return (int)(n_pieces < 1 ? 1 : n_pieces < most ? n_pieces : most);
}

void pipeline_share(pipeline *p, size_t most_at_once, int wish) {
  const int all = mx_thread_count(wish);
  p->n_threads = pipeline_threads(most_at_once, all);
  p->inner = all / p->n_threads;
}

/* Waits until the piece's turn has come. 0 if an earlier one has failed. */
static int take_turn(line *l, size_t piece) {
  pthread_mutex_lock(&l->lock);
  while (l->kept != piece && !l->status) pthread_cond_wait(&l->moved, &l->lock);
  const int mine = !l->status;
  pthread_mutex_unlock(&l->lock);
  return mine;
}

static void finish_turn(line *l, mx_status status, const mx_error *why) {
  pthread_mutex_lock(&l->lock);
  l->kept++;
  if (status && !l->status) {
    l->status = status;
    if (l->err) *l->err = *why;
  }
  pthread_cond_broadcast(&l->moved);
  pthread_mutex_unlock(&l->lock);
}

/* The next piece, when fewer threads make than may. */
static size_t claim(line *l) {
  pthread_mutex_lock(&l->lock);
  while (l->busy == l->n_busy && !l->status && l->next < l->p->n_pieces) pthread_cond_wait(&l->moved, &l->lock);
  const int more = !l->status && l->next < l->p->n_pieces;
  const size_t piece = more ? l->next++ : l->p->n_pieces;
  l->busy += more;
  pthread_mutex_unlock(&l->lock);
  return piece;
}

static void made(line *l) {
  pthread_mutex_lock(&l->lock);
  l->busy--;
  pthread_cond_broadcast(&l->moved);
  pthread_mutex_unlock(&l->lock);
}

static void *work(void *arg) {
  line *l = arg;
  const pipeline *p = l->p;
  void *desk = p->desk(p->self);
  if (!desk) return NULL; /* the others go on */
  pthread_mutex_lock(&l->lock);
  l->desks++;
  pthread_mutex_unlock(&l->lock);
  const int before = omp_get_max_threads();
  if (p->inner) omp_set_num_threads(p->inner);
  for (size_t piece; (piece = claim(l)) < p->n_pieces;) {
    mx_error why = {0};
    mx_status status = p->make(p->self, desk, piece, &why);
    made(l);
    if (!take_turn(l, piece)) break;
    if (!status) status = p->keep(p->self, desk, piece, &why);
    finish_turn(l, status, &why);
  }
  omp_set_num_threads(before);
  p->leave(p->self, desk);
  return NULL;
}

mx_status pipeline_run(const pipeline *p, mx_error *err) {
  enum { MOST = 256 };
  line l = {.p = p, .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER, .err = err};
  pthread_t others[MOST];
  l.n_busy = pipeline_threads(p->n_pieces, p->n_threads);
  const int wanted = pipeline_threads(p->n_pieces, l.n_busy + p->n_spare) - 1;
  int n = 0;
  while (n < wanted && n < MOST && !pthread_create(&others[n], NULL, work, &l)) n++;
  work(&l);
  for (int i = 0; i < n; i++) pthread_join(others[i], NULL);
  pthread_cond_destroy(&l.moved);
  pthread_mutex_destroy(&l.lock);
  if (!l.desks) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  return l.status;
}
