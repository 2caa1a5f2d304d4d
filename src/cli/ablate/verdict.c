/* Says in one sentence what a reader should take away from a table. */
#include <stdio.h>

#include "ablate.h"

/* The spec of least mean distance, and the next that gives other values. */
static void best_two(size_t *best, size_t *next, const ablate_result *r) {
  const size_t n = r->specs->n, none = n;
  *best = *next = none;
  for (size_t s = 0; s < n; s++) {
    const double own = r->summary[s].mean_behind;
    if (*best == none || own < r->summary[*best].mean_behind) *best = s;
  }
  for (size_t s = 0; s < n; s++) {
    if (ablate_same_everywhere(r, s, *best)) continue;
    if (*next == none || r->summary[s].mean_behind < r->summary[*next].mean_behind) *next = s;
  }
}

/* "the same values as NAME" in room, between two texts, of a spec that others give the values of; else "". */
static const char *same_of(char *room, size_t size, const ablate_result *r, size_t spec, const char *before, const char *after) {
  size_t n = 0, other = 0;
  for (size_t s = r->specs->n; s-- > 0;)
    if (s != spec && ablate_same_everywhere(r, s, spec)) n++, other = s;
  *room = 0;
  if (n == 1) snprintf(room, size, "%sthe same values as %s%s", before, r->specs->at[other].label, after);
  if (n > 1) snprintf(room, size, "%sthe same values as %s and %zu more%s", before, r->specs->at[other].label, n - 1, after);
  return room;
}

/* Specs of different bits serve different budgets, so those on the front are listed, fewest bits first; those of the same values once. */
static int front_of(char *room, size_t size, const ablate_result *r) {
  enum { NAMED = 5 };
  char same[600];
  double least = INFINITY, most = 0, after = 0;
  for (size_t s = 0; s < r->specs->n; s++) {
    const double bits = r->summary[s].bits;
    least = fmin(least, bits);
    most = fmax(most, bits);
  }
  if (most - least <= ABLATE_SAME_BITS) return 0;
  size_t used = (size_t)snprintf(room, size, "The best for their bits are "), named = 0, more = 0;
  for (size_t done = 0; done < r->specs->n;) { /* budgets in turn */
    double bits = INFINITY;
    for (size_t s = 0; s < r->specs->n; s++) {
      const double own = r->summary[s].bits;
      if (own > after && own < bits) bits = own;
    }
    for (size_t s = 0; s < r->specs->n; s++) {
      const ablate_summary a = r->summary[s];
      if (a.bits != bits) continue;
      done++;
      if (!ablate_on_front_of_all(r, s) || !isfinite(a.mean_behind) || ablate_shown_as(r, s) != s) continue;
      if (named == NAMED) {
        more++;
        continue;
      }
      if (used < size)
        used += (size_t)snprintf(room + used, size - used, "%s%s (%.2f bits, %.2f dB%s)", named ? ", " : "", r->specs->at[s].label, bits,
                                 a.mean_sqnr, same_of(same, sizeof same, r, s, ", ", ""));
      named++;
    }
    after = bits;
  }
  if (more && used < size) used += (size_t)snprintf(room + used, size - used, " and %zu more", more);
  if (used < size) snprintf(room + used, size - used, r->tensors->n > 1 ? ", by their means over %zu tensors." : ".", r->tensors->n);
  return named > 1;
}

void ablate_verdict(char *room, size_t size, const ablate_result *r) {
  size_t best, next;
  char of[64] = "", same[600];
  best_two(&best, &next, r);
  const ablate_summary a = r->summary[best];
  const char *name = r->specs->at[best].label;
  if (r->tensors->n > 1) snprintf(of, sizeof of, " on average over %zu tensors", r->tensors->n);
  if (isnan(a.mean_behind)) {
    snprintf(room, size, "Nothing is left to measure: every value is NaN or Inf.");
    return;
  }
  if (front_of(room, size, r)) return;
  same_of(same, sizeof same, r, best, " (", ")");
  if (next == r->specs->n) {
    snprintf(room, size, "%s%s takes %.3f bits a value and leaves an SQNR of %.2f dB%s.", name, same, a.bits, a.mean_sqnr, of);
    return;
  }
  const ablate_summary b = r->summary[next];
  mx_interval more;
  const int told = !ablate_between_all(&more, r, &(mx_column_pair){best, next}, 1) && isfinite(more.low) && more.low > 0;
  snprintf(room, size, "%s%s has the least error%s, an SQNR of %.2f dB at %.3f bits a value; next is %s, %.2f dB behind%s.", name, same, of,
           a.mean_sqnr, a.bits, r->specs->at[next].label, b.mean_behind - a.mean_behind,
           told ? "" : ", which the interval does not tell from none");
}
