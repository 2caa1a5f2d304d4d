/* The late switch to high precision: what Fprop quantised is kept as numbers, and the two gradients are products of these in the FP32 chain. */
#include <string.h>

#include "train/models/model.h"

int mxi_model_keep_quantised(mxi_model *m) {
  for (size_t i = 0; i < m->n_linears; i++) {
    mxi_model_linear *l = &m->linears[i];
    const size_t x = l->recipe->q[MX_Q1].had_size, w = l->recipe->q[MX_Q2].had_size, most = x > w ? x : w ? w : 1;
    if (l->recipe->off[MX_FPROP] || (l->recipe->q[MX_Q1].elem == MX_ELEM_NONE && l->recipe->q[MX_Q2].elem == MX_ELEM_NONE)) continue;
    l->kept_ld = (l->I + most - 1) / most * most; /* a rotation fills up its last tile */
    l->kept_x = mxi_model_floats(m, l->T * l->kept_ld);
    l->kept_w = mxi_model_floats(m, l->O * l->kept_ld);
  }
  return m->no_memory;
}

/* x was H S x0: H once more, then S. Row 0 of a matrix of ones, rotated with signs and without, tells S. */
static mx_status rotate_back(float *x, size_t rows, size_t ld, const mx_spec *s) {
  enum { MOST = 1024 };
  float sign[MOST];
  if (s->had_size > MOST) return MX_ERR_UNSUPPORTED;
  for (unsigned i = 0; i < s->had_size; i++) sign[i] = 1;
  mx_status status = mx_hadamard(sign, s->had_size, sign, 1, s->had_size, s->had_size, s->had_size, s->had_sign, s->had_signs, s->seed);
  if (!status) status = mx_hadamard(sign, s->had_size, sign, 1, s->had_size, s->had_size, s->had_size, MX_HAD_SIGN_NONE, NULL, 0);
  if (!status) status = mx_hadamard(x, ld, x, rows, ld, ld, s->had_size, MX_HAD_SIGN_NONE, NULL, 0);
  for (size_t r = 0; r < rows && !status; r++)
    for (size_t c = 0; c < ld; c++) x[r * ld + c] = sign[c % s->had_size] < 0 ? -x[r * ld + c] : x[r * ld + c];
  return status;
}

void mxi_model_keep_operand(void *self, int q, const mx_tensor *tensor, const mx_spec *spec) {
  mxi_model *m = self;
  const mxi_model_linear *l = &m->linears[m->under_way];
  if (q != MX_Q1 && q != MX_Q2) return;
  float *to = q == MX_Q1 ? l->kept_x : l->kept_w;
  mx_status status = mx_dequantize(to, l->kept_ld, tensor, spec, &m->exec);
  const double prescale = spec->elem == MX_ELEM_NONE || spec->elem_prescale == 0 ? 1 : (double)spec->elem_prescale;
  for (size_t r = 0; r < tensor->rows && !status && prescale != 1; r++)
    for (size_t c = 0; c < tensor->cols; c++) to[r * l->kept_ld + c] = (float)((double)to[r * l->kept_ld + c] / prescale);
  if (!status && spec->had_size) status = rotate_back(to, tensor->rows, l->kept_ld, spec);
  if (status) m->kept_status = status;
}
