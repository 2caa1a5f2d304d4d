/* Switches to high precision late in a run: what Fprop quantised is kept as numbers, and the two gradients are products of these in the FP32
 * chain, after a rounding to bfloat16 if the configuration asks for it. */
#include "mxgold/ablate.h"
#include "train/models/model.h"

void mxi_model_keep_operand(void *self, int q, const mx_tensor *tensor, const mx_spec *spec) {
  mxi_model *m = self;
  const mxi_model_linear *l = &m->linears[m->under_way];
  if (q != MX_Q1 && q != MX_Q2) return;
  float *to = q == MX_Q1 ? l->kept_x : l->kept_w;
  mx_status status = mx_dequantize(to, l->kept_ld, tensor, spec, &m->exec);
  const double prescale = mx_spec_is_plain(spec) || spec->elem_prescale == 0 ? 1 : (double)spec->elem_prescale;
  for (size_t r = 0; r < tensor->rows && !status && prescale != 1; r++)
    for (size_t c = 0; c < tensor->cols; c++) to[r * l->kept_ld + c] = (float)((double)to[r * l->kept_ld + c] / prescale);
  if (!status && spec->had_size)
    status =
        mx_hadamard_back(to, l->kept_ld, to, tensor->rows, l->kept_ld, l->kept_ld, spec->had_size, spec->had_sign, spec->had_signs, spec->seed);
  if (!status && m->late_dy) status = mx_fake_quantize(to, to, tensor->rows, l->kept_ld, &m->late_recipe->q[q], &m->exec, NULL, NULL);
  if (status) m->kept_status = status;
}
