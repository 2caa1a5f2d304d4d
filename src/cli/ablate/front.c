/* Decides which specs are on the Pareto front of bits and error. How two specs compare depends on their bits and on the interval of the difference
 * of their errors, and on no third spec. */
#include <stdlib.h>

#include "ablate.h"

/* How specs are compared: for one tensor, or over all. */
typedef struct field {
  const ablate_result *r;
  size_t tensor; /* ALL: over all */
} field;
static const size_t ALL = SIZE_MAX;

static double bits_of(const field *f, size_t spec) {
  return f->tensor == ALL ? f->r->summary[spec].bits : ablate_row_at(f->r, f->tensor, spec)->bits;
}

/* Is there nothing to compare? */
static int is_out(const field *f, size_t spec) {
  return f->tensor == ALL ? isnan(f->r->summary[spec].mean_behind) : ablate_is_lost(ablate_row_at(f->r, f->tensor, spec));
}

/* By how many dB b is worse than a. Over all tensors: the mean, weighted by values, over the tensors on which both or neither have an error; if
 * there is none, the spec that is without an error more often is better by infinity. */
static double worse_by(const field *f, size_t a, size_t b) {
  if (f->tensor != ALL) return ablate_difference(ablate_row_at(f->r, f->tensor, a), ablate_row_at(f->r, f->tensor, b));
  double sum = 0, all = 0, without_end = 0;
  for (size_t t = 0; t < f->r->tensors->n; t++) {
    const ablate_row *x = ablate_row_at(f->r, t, a), *y = ablate_row_at(f->r, t, b);
    if (ablate_is_void(x)) continue;
    const double by = ablate_difference(x, y), n = (double)(f->r->tensors->at[t].rows * f->r->tensors->at[t].cols);
    if (isfinite(by))
      sum += by * n, all += n;
    else
      without_end += by > 0 ? n : -n;
  }
  return all > 0 ? sum / all : without_end > 0 ? INFINITY : without_end < 0 ? -INFINITY : 0;
}

/* Does `other` dominate `own`? It does with fewer bits, unless its error is more by more than the interval of their difference, and with the same
 * bits if its error is less by more than that. If the answer depends on that interval, *ask is the pair, the better first, and the answer holds if
 * the two can be told apart. */
enum { NO, YES, YES_IF_TOLD, NO_IF_TOLD };
static int dominates(const field *f, size_t other, size_t own, mx_column_pair *ask) {
  const double more = bits_of(f, other) - bits_of(f, own);
  if (other == own || is_out(f, other) || more > ABLATE_SAME_BITS) return NO;
  const double by = worse_by(f, other, own);
  const int fewer = more < -ABLATE_SAME_BITS;
  if (by > 0) {
    *ask = (mx_column_pair){other, own};
    return fewer ? YES : YES_IF_TOLD;
  }
  *ask = (mx_column_pair){own, other};
  return !fewer ? NO : by < 0 ? NO_IF_TOLD : YES;
}

/* Is a difference more than its interval? Without one (few blocks, one of the two without an error) every difference is. */
static int is_told(const mx_interval *i) { return !isfinite(i->low) || !isfinite(i->high) || i->low > 0; }

/* The pairs of specs whose interval decides whether a spec is on the front. */
typedef struct question {
  size_t own;
  int if_told;
} question;

typedef struct questions {
  question *of;
  mx_column_pair *pairs;
  size_t n, room;
} questions;

static int ask(questions *q, size_t own, int if_told, mx_column_pair pair) {
  if (q->n == q->room) {
    const size_t room = 2 * q->room + 64;
    question *of = realloc(q->of, room * sizeof *of);
    if (of) q->of = of;
    mx_column_pair *pairs = realloc(q->pairs, room * sizeof *pairs);
    if (pairs) q->pairs = pairs;
    if (!of || !pairs) return 0;
    q->room = room;
  }
  q->of[q->n] = (question){own, if_told};
  q->pairs[q->n++] = pair;
  return 1;
}

/* If a spec is dominated without any interval, no interval is computed for it. */
static int ask_of(questions *q, unsigned char *front, const field *f, size_t own) {
  const size_t before = q->n;
  front[own] = !is_out(f, own);
  for (size_t other = 0; other < f->r->specs->n && front[own]; other++) {
    mx_column_pair pair;
    const int answer = dominates(f, other, own, &pair);
    if (answer == YES) front[own] = 0;
    if ((answer == YES_IF_TOLD || answer == NO_IF_TOLD) && !ask(q, own, answer == YES_IF_TOLD, pair)) return 0;
  }
  if (!front[own]) q->n = before;
  return 1;
}

static mx_status front_of(unsigned char *front, const field *f) {
  questions q = {0};
  mx_status status = MX_OK;
  for (size_t s = 0; s < f->r->specs->n && !status; s++) status = ask_of(&q, front, f, s) ? MX_OK : MX_ERR_NOMEM;
  mx_interval *told = malloc(q.n * sizeof *told + 1);
  if (!told) status = MX_ERR_NOMEM;
  if (!status && q.n)
    status = f->tensor == ALL ? ablate_between_all(told, f->r, q.pairs, q.n) : ablate_between(told, f->r, f->tensor, q.pairs, q.n);
  for (size_t i = 0; i < q.n && !status; i++)
    if (is_told(&told[i]) == q.of[i].if_told) front[q.of[i].own] = 0;
  free(told);
  free(q.of);
  free(q.pairs);
  return status;
}

mx_status ablate_find_front(const ablate_result *r, size_t tensor) { return front_of(r->front + tensor * r->specs->n, &(field){r, tensor}); }

mx_status ablate_find_front_of_all(const ablate_result *r) {
  unsigned char *front = r->front + r->tensors->n * r->specs->n;
  if (r->tensors->n > 1) return front_of(front, &(field){r, ALL});
  for (size_t s = 0; s < r->specs->n; s++) front[s] = r->front[s];
  return MX_OK;
}
