/* Finds the rule and the seed of kernels that round at random. Only the seed tells formats and types apart that allow the same draws, so a few
 * seeds are tried under each of them first, and many later. */
#include "verify/identify/chance.h"

#include "verify/identify/inquiry_parts.h"

#include <math.h>
#include <string.h>

/* An inquiry may have the right rule if it leaves at most this many times as much unexplained as the best one, and a little more. A wider limit
 * costs further searches for a seed, the most expensive work of all; a narrower one loses the right inquiry if a type or a format explains the draws
 * nearly as well. */
static const double LIKELY_TIMES = 4, LIKELY_BY = 0.1;
static int is_likely(const chance *c, const inquiry *q) { return q->residue <= LIKELY_TIMES * c->least + LIKELY_BY; }

/* Counts the keys of a spec that are not the default, and the digits of its numbers: of two specs that allow the same draws the plainer one is
 * right. */
static size_t length_of(const mx_spec *s) {
  char text[4096];
  mx_spec_print(text, sizeof text, s, 0);
  return strlen(text);
}

/* Tries those that have a seed but do not give every byte with it once more and harder; the one that leaves least comes first. */
static inquiry *harder_with_seed(inquiry *all, const size_t *ruled, size_t n_ruled, deadline until) {
  for (size_t tried = 0; tried < n_ruled && !deadline_over(until); tried++) {
    inquiry *next = NULL;
    for (size_t k = 0; k < n_ruled; k++) {
      inquiry *q = &all[ruled[k]];
      if (q->seeded == 1 && (!next || mxi_attempt_better(&q->best, &next->best))) next = q;
    }
    if (!next) return NULL;
    next->seeded = 2;
    next->s.lenient = 0;
    mxi_inquiry_finish(next, 1);
    next->s.lenient = 1;
    if (mxi_attempt_exact(&next->best)) return next;
  }
  return NULL;
}

/* Rules of the scales that are asked of each inquiry. */
enum { ASKED_CORES = 4 };

static int elements_may_be_drawn(const search *s, const mx_spec *core) {
  mx_spec t = *core;
  for (t.elem_arith = 0; t.elem_arith < MX_ELEM_ARITH_COUNT; t.elem_arith++)
    if (!mx_spec_check(&t, NULL) && mxi_random_elements_may_be(s, &t)) return 1;
  return 0;
}

int mxi_chance_is_in_sight(const inquiry *all, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < all[i].cores.n && k < ASKED_CORES; k++) {
      const mx_spec *core = &all[i].cores.spec[k];
      if (mxi_random_scales_may_be(&all[i].s, core)) return 1;
      size_t like = 0;
      while (!mxi_same_to_elements(&all[i].cores.spec[like], core)) like++;
      if (like == k && elements_may_be_drawn(&all[i].s, core)) return 1;
    }
  return 0;
}

inquiry *mxi_chance_with_usual_seed(chance *c, inquiry *all, size_t n, deadline until) {
  if (c->asked) return NULL;
  c->asked = 1;
  c->least = INFINITY;
  for (size_t i = 0; i < n; i++) /* a deterministic rule that fits is the better explanation */
    c->none |= all[i].residue < INFINITY && !mxi_inquiry_far_off(&all[i]);
  for (size_t i = 0; i < n && !c->none; i++) {
    c->random[i] = all[i].residue < INFINITY && mxi_inquiry_looks_random(&all[i]);
    if (c->random[i]) c->least = fmin(c->least, all[i].residue);
  }
  for (size_t i = 0; i < n; i++) {
    if (!c->random[i] || !is_likely(c, &all[i]) || deadline_over(until)) continue;
    if (!mxi_inquiry_random_rule(&all[i], 0)) continue;
    c->ruled[c->n_ruled++] = i;
    if (mxi_inquiry_seed(&all[i], 0)) return &all[i];
  }
  for (size_t k = 0; k < c->n_ruled && !deadline_over(until); k++)
    if (!all[c->ruled[k]].seeded && mxi_inquiry_seed(&all[c->ruled[k]], 1)) return &all[c->ruled[k]];
  return NULL;
}

inquiry *mxi_chance_inquiry(chance *c, inquiry *all, size_t n, deadline until) {
  inquiry *usual = mxi_chance_with_usual_seed(c, all, n, until);
  if (usual || c->none) return usual;
  uint8_t *random = c->random;
  size_t *ruled = c->ruled, n_ruled = c->n_ruled;
  /* Changes two keys at once if one alone does not help, beginning with the spec that lacks least, until a rule fits. */
  for (size_t tried = 0; !n_ruled && tried < n && !deadline_over(until); tried++) {
    size_t next = n;
    for (size_t i = 0; i < n; i++)
      if (random[i] == 1 && is_likely(c, &all[i]) && (next == n || all[i].rule_lacks < all[next].rule_lacks)) next = i;
    if (next == n) break;
    random[next] = 2;
    if (!mxi_inquiry_random_rule(&all[next], 1)) continue;
    ruled[n_ruled++] = next;
    if (mxi_inquiry_seed(&all[next], 0)) return &all[next];
  }
  for (size_t i = 0; i < n; i++) {
    int is_ruled = 0;
    for (size_t k = 0; k < n_ruled; k++) is_ruled |= ruled[k] == i;
    if (random[i] && !is_ruled) all[i].s.lenient = 0, all[i].level = 1;
    random[i] = (uint8_t)is_ruled;
  }
  for (int many = 0; many <= 2; many++) { /* those that have a seed first: it is the stronger evidence */
    for (size_t k = 0; many && k < n_ruled && !deadline_over(until); k++)
      if (!(many == 1 && k < c->n_ruled) && !all[ruled[k]].seeded && mxi_inquiry_seed(&all[ruled[k]], many)) return &all[ruled[k]];
    inquiry *q = harder_with_seed(all, ruled, n_ruled, until);
    if (q) return q;
  }
  inquiry *best = NULL;
  for (size_t i = 0; i < n; i++) {
    if (!random[i]) continue;
    all[i].level = 2;
    if (all[i].seeded && mxi_attempt_badness(&all[i].best) * ONE_IN < all[i].o.n_blocks &&
        (!best || !best->seeded || mxi_attempt_better(&all[i].best, &best->best)))
      best = &all[i];
    if (all[i].seeded || (best && best->seeded)) continue;
    if (mxi_inquiry_estimate(&all[i]) && (!best || length_of(&all[i].random) < length_of(&best->random))) best = &all[i];
  }
  return best;
}
