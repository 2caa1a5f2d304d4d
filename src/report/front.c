/* Finds the arms that no other with the same reference beats: none costs no more in every respect and has a lower loss. */
#include <math.h>

#include "report/internal.h"

/* Does a cost no more than b in bits, time of products and overhead? */
static int costs_no_more(const mx_cost *a, const mx_cost *b) {
  return a->bits <= b->bits && a->product_time <= b->product_time && a->overhead <= b->overhead;
}

static int is_same(const mx_cost *a, const mx_cost *b) { return costs_no_more(a, b) && costs_no_more(b, a); }

void mxi_front(mx_report *r) {
  for (size_t i = 0; i < r->n_arms; i++) {
    mx_report_arm *a = &r->arms[i].told;
    const double loss = a->behind[MX_EVAL_QUANTISED].mean;
    double lowest = INFINITY; /* loss of those that beat it */
    a->front = !isnan(loss);
    for (size_t k = 0; k < r->n_arms && !isnan(loss); k++) {
      const mx_report_arm *b = &r->arms[k].told;
      const double with = b->behind[MX_EVAL_QUANTISED].mean;
      if (k == i || isnan(with) || r->arms[k].reference != r->arms[i].reference || !costs_no_more(&b->cost, &a->cost)) continue;
      if (with > loss || (with == loss && is_same(&a->cost, &b->cost))) continue;
      a->front = 0;
      if (with < lowest) lowest = with, a->beaten_by = b->name;
    }
  }
}
