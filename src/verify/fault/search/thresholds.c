/* Finds thresholds of the rounding: between which neighbours elements go up too early or too late, and from which number on they do. */
#include "verify/fault/search/thresholds.h"

#include <math.h>
#include <stdlib.h>

#include "verify/fault/elements.h"

/* Two neighbours between which some code is wrong. */
typedef struct gap {
  uint32_t low;    /* the magnitude of the smaller one */
  double down, up; /* the largest quotient between them that went down, the smallest that went up */
  int met;         /* some quotient of that size went down: else it is the smaller neighbour, which none is equal to or which goes up */
  uint64_t held;   /* wrong codes in blocks that are not fitted to */
} gap;

/* Neighbours that ties alone are wrong between count as one fault where all of them go the same way. */
enum { MOST_GAPS = 16 };

typedef struct gaps {
  gap at[MOST_GAPS];
  size_t n;
} gaps;

static gap *gap_between(gaps *g, uint32_t low) {
  for (size_t i = 0; i < g->n; i++)
    if (g->at[i].low == low) return &g->at[i];
  return NULL;
}

/* Lists the neighbours where codes are wrong. Returns 0 if there are many, or a code is wrong by more than a step. */
static int read_gaps(gaps *g, const view *v) {
  const fault_run *r = &v->r;
  for (size_t i = 0; i < r->rows * r->cols; i++) {
    const uint32_t own = v->codes[i], seen = v->s->codes[i];
    if (own == seen) continue;
    const uint32_t a = mxi_fault_magnitude(r->plan.elem, own), b = mxi_fault_magnitude(r->plan.elem, seen), low = a < b ? a : b;
    const int one_sign = mxi_fault_with_sign(r->plan.elem, a, signbit(r->x[i]) != 0) == own &&
                         mxi_fault_with_sign(r->plan.elem, b, signbit(r->x[i]) != 0) == seen;
    if (a + b != 2 * low + 1 || !one_sign) return 0;
    gap *at = gap_between(g, low);
    if (!at && g->n == MOST_GAPS) return 0;
    if (!at) {
      at = &g->at[g->n++];
      *at = (gap){.low = low, .down = mx_decode(r->plan.elem, low), .up = mx_decode(r->plan.elem, low + 1)};
    }
    at->held += !mxi_is_for_fit(i / r->cols / r->block_rows, i % r->cols / r->block_cols);
  }
  return g->n != 0;
}

/* Narrows each gap by the quotients in it. Returns 0 if one that went down lies beyond one that went up. */
static int narrow(gaps *g, view *v) {
  const mx_format *e = v->r.plan.elem;
  double *all = mxi_view_quotients(v);
  if (!all) return 0;
  for (size_t k = 0; k < v->r.rows * v->r.cols; k++) {
    const uint32_t seen = mxi_fault_magnitude(e, v->s->codes[k]);
    const double y = fabs(all[k]);
    for (size_t i = 0; i < g->n; i++) {
      gap *at = &g->at[i];
      if (seen != at->low && seen != at->low + 1) continue;
      if (!(y >= mx_decode(e, at->low) && y < mx_decode(e, at->low + 1))) continue;
      if (seen == at->low && y >= at->down) at->down = y, at->met = 1;
      if (seen != at->low && y < at->up) at->up = y;
    }
  }
  free(all);
  for (size_t i = 0; i < g->n; i++)
    if (g->at[i].down > g->at[i].up || (g->at[i].down == g->at[i].up && g->at[i].met)) return 0;
  return 1;
}

/* One in so many intervals as narrow as this holds a number as plain as that by chance. */
static const double BY_CHANCE = 0.1;

/* The plainest number between two, the ends with them: a multiple of 1 / 2^k of the distance of neighbours, or one of few digits. bits: what it costs.
 * Returns 0 if chance may have put it there. */
static int plainest(double *out, double *bits, double down, double up, double step) {
  enum { FINEST = 12, MOST_DIGITS = 5 };
  for (int k = 0; k <= FINEST; k++) {
    const double unit = ldexp(step, -k), c = ceil(down / unit) * unit;
    if (c > up) continue;
    *out = c, *bits = k + 1;
    if ((up - down) / unit < BY_CHANCE) return 1;
    break;
  }
  for (int digits = 0; digits <= MOST_DIGITS; digits++) {
    const double unit = pow(10, digits), c = ceil(down * unit) / unit;
    if (c > up || (double)(float)c < down || (double)(float)c > up) continue;
    *out = c, *bits = 3.33 * digits + 4;
    return (up - down) * unit < BY_CHANCE;
  }
  return 0;
}

static void take(thresholds *out, mx_fault f, double cost, uint64_t held) {
  if (!out->n || held < out->held) out->held = held;
  f.region = (mx_region){.of = MX_REGION_ALL};
  out->fault[out->n++] = f;
  out->cost += cost;
}

static int take_number(thresholds *out, const mx_format *e, const gap *at) {
  double c, bits;
  if (!plainest(&c, &bits, at->down, at->up, mx_decode(e, at->low + 1) - mx_decode(e, at->low))) return 0;
  /* A number that no quotient is equal to goes to the even code, as nearest numbers do. */
  const int beyond = ((double)(float)c == at->down && at->met) || ((double)(float)c != at->up && at->low % 2 == 0);
  take(out, (mx_fault){.op = beyond ? MX_FAULT_ELEMENT_BEYOND : MX_FAULT_ELEMENT_THRESHOLD, .number = c}, 13 + e->bits + bits,
       at->held * (e->bits - 2));
  return 1;
}

void mxi_find_thresholds(thresholds *out, view *v) {
  const mx_format *e = v->r.plan.elem;
  const size_t room = MX_FAULTS - v->n_first;
  gaps g = {.n = 0};
  *out = (thresholds){.n = 0};
  if (!room || !read_gaps(&g, v) || !narrow(&g, v)) return;
  size_t others = 0, zero = 0, away = 0;
  uint64_t held = 0; /* of ties */
  int is_tie[MOST_GAPS];
  for (size_t i = 0; i < g.n; i++) {
    const double middle = (mx_decode(e, g.at[i].low) + mx_decode(e, g.at[i].low + 1)) / 2;
    zero += g.at[i].down == middle;
    away += g.at[i].up == middle;
    is_tie[i] = g.at[i].down == middle || g.at[i].up == middle;
    others += !is_tie[i];
    held += is_tie[i] ? g.at[i].held * (e->bits - 2) : 0;
  }
  const int one_rule = zero + away > 1 && (!zero || !away); /* one tie that is wrong is a threshold as well */
  if (others + (one_rule ? 1 : zero + away) > room) return;
  for (size_t i = 0; i < g.n; i++)
    if ((!is_tie[i] || !one_rule) && !take_number(out, e, &g.at[i])) {
      out->n = 0;
      return;
    }
  if (one_rule) take(out, (mx_fault){.op = zero ? MX_FAULT_ELEMENT_TIES_ZERO : MX_FAULT_ELEMENT_TIES_AWAY}, 13, held);
}
