/* A product's result, the gradient of what an operand became, is multiplied by the gradient rules' factors: SPEC "Gradient rules". */
#include "train/linear/gradient.h"

#include <string.h>

#include "mxgold/isa.h"

/* The scaled value of x. */
static double scaled_value(const mxi_blocks *b, double multiplier, float x) { return x == 0 ? 0 : (double)x * b->prescale / multiplier; }

/* One row of a row of blocks: each element's own factor. trusted: the trust mask's bound, 0 without one. */
static void row(float *g, const float *x, const mxi_blocks *b, size_t i, const mxi_estimator *e, double trusted) {
  for (size_t j = 0; j < b->across; j++) {
    double stored;
    const double multiplier = mxi_block_multiplier(b, i, j, &stored);
    const size_t end = (j + 1) * b->cols < b->tensor->cols ? (j + 1) * b->cols : b->tensor->cols;
    for (size_t c = j * b->cols; c < end; c++) {
      const double v = scaled_value(b, multiplier, x[c]);
      const double factor = trusted > 0 && !(fabs(v) < trusted) ? 0 : mxi_slope(e, v);
      g[c] = (float)((double)g[c] * factor);
    }
  }
}

/* The operand's values as they were quantised: rotated, filled up to whole tiles. */
static mx_status as_quantised(mxi_matrix *out, mxi_layer *y, int q, mxi_matrix x) {
  const mx_spec *s = &y->q[q];
  *out = x;
  if (!s->had_size) return MX_OK;
  const size_t wide = y->t[q].cols;
  *out = (mxi_matrix){mxi_arena_take(&y->work, x.rows * wide, sizeof(float)), x.rows, wide, wide};
  if (!out->at) return MX_OK;
  for (size_t r = 0; r < x.rows; r++) {
    memcpy(out->at + r * wide, x.at + r * x.ld, x.cols * sizeof(float));
    memset(out->at + r * wide + x.cols, 0, (wide - x.cols) * sizeof(float));
  }
  return mx_hadamard(out->at, wide, out->at, x.rows, wide, wide, s->had_size, s->had_sign, s->had_signs, s->seed);
}

mx_status mxi_gradient_apply(mxi_layer *y, int q, float *g, size_t ld, mxi_matrix values) {
  mxi_matrix x;
  const mx_status status = as_quantised(&x, y, q, values);
  if (status || !y->work.base) return status;
  mxi_blocks b;
  mxi_blocks_of(&b, &y->t[q], &y->q[q]);
  mxi_estimator e;
  mxi_estimator_of_elements(&e, y->r, y->q[q].elem);
  const double trusted = y->r->grad_trust_mask ? mx_format_max(mx_elem_format(y->q[q].elem)) : 0;
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(y->exec.n_threads)) if (x.rows * x.cols > 1 << 12)
  for (size_t r = 0; r < x.rows; r++) row(g + r * ld, x.at + r * x.ld, &b, r / b.rows, &e, trusted);
  return MX_OK;
}
