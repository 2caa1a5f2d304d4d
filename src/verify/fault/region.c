/* Decides whether a block, or an element, is in the region of a fault. */
#include <math.h>

#include "verify/fault/run.h"

int mxi_region_has_numbers(int of) { return of >= MX_REGION_ROWS && of <= MX_REGION_SCALE; }

static int in_numbers(const mx_region *r, uint64_t i) { return r->modulus ? r->set[i % r->modulus] : i >= r->first && i <= r->last; }

int mxi_region_has_block(const fault_run *r, const mx_region *g, size_t d, size_t a) {
  const size_t k = d * r->across + a;
  switch (g->of) {
  case MX_REGION_ROWS:
    return in_numbers(g, d * r->block_rows);
  case MX_REGION_COLUMNS:
    return in_numbers(g, a * r->block_cols);
  case MX_REGION_BLOCKS:
    return in_numbers(g, a);
  case MX_REGION_ORDER:
    return in_numbers(g, k);
  case MX_REGION_SCALE:
    return in_numbers(g, r->plain[k]);
  case MX_REGION_TAIL:
    return r->cols % r->block_cols && a + 1 == r->across;
  case MX_REGION_ZERO:
    return r->stats[k].amax_finite == 0;
  case MX_REGION_SUBNORMAL:
    return r->subnormal[k];
  default:
    return 1; /* of elements */
  }
}

int mxi_region_has_element(const fault_run *r, const mx_region *g, size_t row, size_t col) {
  switch (g->of) {
  case MX_REGION_ALL:
    return 1;
  case MX_REGION_ROWS:
    return in_numbers(g, row);
  case MX_REGION_COLUMNS:
    return in_numbers(g, col);
  case MX_REGION_ELEMENTS:
    return in_numbers(g, row % r->block_rows * r->block_cols + col % r->block_cols);
  case MX_REGION_MEMORY:
    return in_numbers(g, (uint64_t)row * r->cols + col);
  case MX_REGION_NEGATIVE:
    return signbit(r->x[row * r->cols + col]) != 0;
  case MX_REGION_POSITIVE:
    return !signbit(r->x[row * r->cols + col]);
  case MX_REGION_SCALE:
  case MX_REGION_ZERO:
  case MX_REGION_SUBNORMAL:
    if (!r->plain) return 1; /* no scale is known yet */
    return mxi_region_has_block(r, g, row / r->block_rows, col / r->block_cols);
  default:
    return mxi_region_has_block(r, g, row / r->block_rows, col / r->block_cols);
  }
}

int mxi_fault_block_in(const fault_run *r, const mx_fault *f, size_t d, size_t a) {
  return mxi_region_has_block(r, &f->region, d, a) && (f->also.of == MX_REGION_ALL || mxi_region_has_block(r, &f->also, d, a));
}

int mxi_fault_element_in(const fault_run *r, const mx_fault *f, size_t row, size_t col) {
  return mxi_region_has_element(r, &f->region, row, col) && (f->also.of == MX_REGION_ALL || mxi_region_has_element(r, &f->also, row, col));
}

int mxi_fault_is_everywhere(const mx_fault *f) { return f->region.of == MX_REGION_ALL && f->also.of == MX_REGION_ALL; }

int mxi_fault_of_elements(const mx_fault *f) { return mxi_region_of_elements(&f->region) || mxi_region_of_elements(&f->also); }

const mx_plan *mxi_fault_plan(const fault_run *r, size_t d, size_t a) {
  if (!r->groups || !mxi_fault_block_in(r, r->of_groups, d, a)) return &r->plan;
  return &r->groups[d * r->block_rows / r->group];
}
