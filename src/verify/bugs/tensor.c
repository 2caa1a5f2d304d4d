/* Finds what a tensor scale is instead, where codes and scales agree and the tensor scale alone does not. */
#include <math.h>
#include <stdio.h>

#include "verify/bugs/base.h"

static int close_to(double a, double b) { return b != 0 && fabs(a / b - 1) < 4e-7; }

/* Says what the stored number t is beside the right one e, for max|X| = a. `weak` accepts a statement about their quotient alone. */
static const char *relation(char *room, size_t size, int *weak, const base *b, double t, double e, double a) {
  const double f = mx_format_max(mxi_base_elem(b)), m = mx_format_max(mx_scale_format(b->spec.scale));
  const struct {
    double value;
    const char *words;
  } known[] = {{-e, "the right one negated"}, {1 / e, "its reciprocal"},
               {a, "max|X| itself"},          {a / (f * m), "max|X| / (F M)"},
               {f * m / a, "F M / max|X|"},   {a / m, "max|X| / M"},
               {m / a, "M / max|X|"},         {a / f, "max|X| / F"},
               {f / a, "F / max|X|"},         {1, "1, as if there were no tensor scale"},
               {e * e, "its square"},         {sqrt(e), "its square root"}};
  if (isnan(t)) return "no number";
  if (isinf(t)) return "infinite";
  if (t == 0) return "zero";
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (close_to(t, known[i].value)) {
      snprintf(room, size, "%s%s", known[i].words, i > 2 && i < 9 ? " (F and M: the largest element and the largest scale)" : "");
      return room;
    }
  int exponent;
  if (t > 0 && e > 0 && close_to(frexp(t / e, &exponent), 0.5)) {
    snprintf(room, size, "the right one times 2^%d", exponent - 1);
    return room;
  }
  *weak = 1;
  snprintf(room, size, "%.6g times the right one", t / e);
  return room;
}

void mxi_tensor_bugs(candidate *best, const base *b) {
  if (b->plain.codes || b->plain.scales || !b->plain.tensor_scales) return;
  candidate c = {.name = BUG(TENSOR_SCALE_ALONE)};
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    const double made = p->has_tensor_scale ? (double)p->tensor_scale : 1, t = (double)p->s->tensor_scale;
    if (!p->s->has_tensor_scale || t == made || (isnan(t) && isnan(made))) continue;
    char room[160];
    snprintf(c.text, sizeof c.text, "stores the tensor scale %.9g, which should be %.9g: it is %s; every code and every scale is right", t,
             made, relation(room, sizeof room, &c.weak, b, t, made, (double)p->amax));
    mxi_offer(best, b, &c);
    return;
  }
}
