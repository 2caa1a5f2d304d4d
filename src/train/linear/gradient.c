/* Multiplies the result of a product, which is the gradient of the quantised operand, by the factors of the gradient rules: SPEC "Gradient rules". */
#include "train/linear/rules.h"

#include <math.h>

#include "mxgold/isa.h"

enum { AT_ONCE = 64 };

/* n elements of one block in one row, each with its own factor. */
static void piece(const mxi_ruled *m, float *g, const float *x, size_t n, double multiplier) {
  double v[AT_ONCE] = {0}, slope[AT_ONCE]; /* zeros for a compiler that cannot see n > 0 */
  for (size_t i = 0; i < n; i++) v[i] = mxi_gradient_scaled(&m->blocks, multiplier, x[i]);
  mxi_slopes(slope, m->elements, v, n);
  for (size_t i = 0; i < n; i++) {
    const int masked = m->trusted > 0 && !(fabs(v[i]) < m->trusted);
    g[i] = mxi_gradient_store((double)g[i] * slope[i] * (masked ? 0 : 1));
  }
}

static void row(const mxi_ruled *m, size_t r) {
  const mxi_blocks *b = &m->blocks;
  for (size_t j = 0; j < b->across; j++) {
    double stored;
    const double multiplier = mxi_block_multiplier(b, r / b->rows, j, &stored);
    const size_t end = (j + 1) * b->cols < b->tensor->cols ? (j + 1) * b->cols : b->tensor->cols;
    for (size_t c = j * b->cols; c < end; c += AT_ONCE)
      piece(m, m->g + r * m->ld + c, m->x.at + r * m->x.ld + c, end - c < AT_ONCE ? end - c : AT_ONCE, multiplier);
  }
}

mx_status mxi_gradient_apply(mxi_layer *y, int q, float *g, size_t ld, mxi_matrix values) {
  mxi_estimator elements;
  mxi_ruled m = {.r = y->r, .g = g, .ld = ld, .elements = &elements, .exec = &y->exec};
  const mx_status status = mxi_linear_as_quantised(&m.x, y, q, values);
  if (status) return status;
  mxi_blocks_of(&m.blocks, &y->t[q], &y->q[q]);
  if (mxi_gradient_of_scales(y->r) && !y->work.base) return mxi_gradient_tiles(&m, &y->work);
  if (!y->work.base) return MX_OK;
  mxi_estimator_of_elements(&elements, y->r, y->q[q].elem);
  if (y->r->grad_trust_mask) m.trusted = mx_format_max(mx_elem_format(y->q[q].elem));
  if (mxi_gradient_of_scales(y->r)) return mxi_gradient_tiles(&m, &y->work);
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(y->exec.n_threads)) if (m.x.rows * m.x.cols > 1 << 12)
  for (size_t r = 0; r < m.x.rows; r++) row(&m, r);
  return MX_OK;
}
