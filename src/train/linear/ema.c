/* Rounds elements by Q-EMA (q2.ema, arXiv 2502.20853): of an element's two neighbours in the format, Q2 takes the one that is nearer to the
 * weight's moving average. */
#include <math.h>
#include <string.h>

#include "mxgold/isa.h"
#include "mxgold/layout.h"
#include "train/linear/internal.h"

enum { TOP = 7, SIGN = 8, ONES = 0x22 }; /* of e2m1: the largest code, the sign's bit, two codes of 1 */
static const double grid[TOP + 1] = {0, .5, 1, 1.5, 2, 3, 4, 6};

mx_status mxi_ema_check(const mx_linear_recipe *r, mx_error *err) {
  const mx_spec *s = &r->q[MX_Q2];
  if (r->q2_ema == 0) return MX_OK;
  if (!(r->q2_ema < 1)) return mx_fail(err, MX_ERR_CONFLICT, "q2.ema=%.9g: expected a decay below 1, or off", r->q2_ema);
  if (mxi_linear_is_plain(r, MX_FPROP)) return MX_OK;
  if (s->elem != MX_ELEM_E2M1)
    return mx_fail(err, MX_ERR_CONFLICT, "q2.ema rounds elements of e2m1, and Q2 has elem=%s", mx_elem_format(s->elem)->name);
  if (s->scale_rule == MX_SCALE_RULE_HIF4) return mx_fail(err, MX_ERR_CONFLICT, "q2.ema does not know scale.rule=hif4");
  return MX_OK;
}

/* The code of w under a scale; `nearest` is the code of its nearest value. There is no division, so every comparison is exact. */
static uint8_t towards(float w, float average, double prescale, double scale, uint8_t nearest, const mx_spec *s) {
  if (!isfinite(w) || !isfinite(average) || !isfinite(scale) || !(scale > 0)) return nearest;
  const double y = prescale * fabs((double)w), e = w < 0 ? -prescale * (double)average : w > 0 ? prescale * (double)average : 0;
  uint8_t code = 0;
  while (code < TOP && grid[code + 1] * scale <= y) code++;
  if (code < TOP && e >= (grid[code] + grid[code + 1]) / 2 * scale) code++;
  if (code == nearest % SIGN) return nearest;
  return w < 0 && (code || s->elem_zero_sign != MX_ZERO_SIGN_DROP_ALL) ? code | SIGN : code;
}

/* Rotates a matrix as the operand is rotated, into the arena. */
static mx_status rotated(mxi_layer *y, mxi_matrix *x, const mx_spec *s) {
  if (!s->had_size) return MX_OK;
  float *out = mxi_arena_take(&y->work, x->rows * x->cols, sizeof *out);
  const mxi_matrix from = *x;
  *x = (mxi_matrix){out, from.rows, from.cols, from.cols};
  return out ? mx_hadamard(out, x->ld, from.at, from.rows, from.cols, from.ld, s->had_size, s->had_sign, s->had_signs, s->seed) : MX_OK;
}

mx_status mxi_linear_follow(mxi_layer *y, mxi_matrix w, mx_error *err) {
  const mx_linear *l = y->l;
  const mx_spec *s = &y->q[MX_Q2];
  mx_tensor *t = &y->t[MX_Q2], ones = *t;
  if (y->r->q2_ema == 0 || (y->work.base && !l->ema.data)) return MX_OK;
  const mx_linear_in in = y->work.base ? l->ema : (mx_linear_in){.dtype = MX_BF16};
  const mxi_matrix average = mxi_linear_values(y, in, l->O, l->I);
  mxi_matrix e = mxi_linear_widened(y, average, w.rows, w.cols);
  mx_status status = rotated(y, &w, s);
  if (!status) status = rotated(y, &e, s);
  float *scales = mxi_arena_take(&y->work, t->rows * t->cols, sizeof *scales);
  uint8_t *codes = mxi_arena_take(&y->work, t->rows, t->cols_padded);
  uint32_t *moved = mxi_arena_take(&y->work, t->rows, sizeof *moved);
  ones.codes = mxi_arena_take(&y->work, t->rows, t->code_stride);
  if (status || !y->work.base) return status ? mx_fail(err, status, "Q2: %s", mx_status_text(status)) : MX_OK;
  memset(ones.codes, ONES, t->rows * t->code_stride);
  if ((status = mx_dequantize(scales, t->cols, &ones, s, &y->exec))) return mx_fail(err, status, "Q2: %s", mx_status_text(status));
  const double prescale = s->elem_prescale == 0 ? 1 : (double)s->elem_prescale;
  size_t block_rows, block;
  mx_spec_block(s, t->rows, t->cols, &block_rows, &block);
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(y->exec.n_threads)) if (t->rows * t->cols > 1 << 12)
  for (size_t r = 0; r < t->rows; r++) {
    uint8_t *row = codes + r * t->cols_padded;
    memset(row, 0, t->cols_padded);
    moved[r] = 0;
    for (size_t c = 0; c < t->cols; c++) {
      const uint8_t nearest = (uint8_t)mx_code_at(t, s, r, c);
      row[c] = towards(w.at[r * w.ld + c], e.at[r * e.ld + c], prescale, (double)scales[r * t->cols + c], nearest, s);
      moved[r] += row[c] != nearest;
    }
    mx_pack4(t->codes + r * t->code_stride, row, t->cols_padded, s->nibble, block);
  }
  for (size_t r = 0; r < t->rows && l->counts; r++) l->counts->steered += moved[r];
  return MX_OK;
}
