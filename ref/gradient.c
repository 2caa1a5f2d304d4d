/* Gradient rules of an operand: one element after another, each from its own scaled value. */
#include "gradient.h"

#include <math.h>

#include "rules.h"

int ref_gradient_acts(const mx_linear_recipe *r, int q) {
  if (r->q[q].elem == MX_ELEM_NONE || (r->grad_operands == MX_GRAD_OF_X && q != MX_Q1) || (r->grad_operands == MX_GRAD_OF_W && q != MX_Q2))
    return 0;
  return r->grad_qprime != MX_QPRIME_STE || r->grad_trust_mask != 0;
}

static double to_double(num a) {
  return a.kind == NUM_ZERO ? 0 : a.kind == NUM_FINITE ? ldexp((double)a.sig, a.exp - 63) : a.kind == NUM_INF ? INFINITY : NAN;
}

/* What a code is multiplied by whose scale has the value `stored`, and whose tensor scale stands for over / under. */
static double multiplier(const mx_spec *s, double stored, double over, double under) {
  return s->scale_form == MX_SCALE_FORM_ENCODE ? over / (under * stored) : over * stored / under;
}

static double stored_scale(const mx_tensor *t, const mx_spec *s, size_t row, size_t col) {
  size_t height, width;
  ref_block_extent(s, t->rows, t->cols, &height, &width);
  const int columns = width == 1 && height > 1;
  const size_t at = columns ? row / height * t->scale_cols + col : row * t->scale_cols + col / width;
  uint64_t code = 0;
  for (size_t i = t->scale_bytes; i-- > 0;) code = code << 8 | t->scales[at * t->scale_bytes + i];
  return ref_decode(ref_scale_format(s->scale), code);
}

mx_status ref_gradient(float *g, const float *x, const mx_tensor *t, const mx_spec *spec, const mx_linear_recipe *r) {
  ref_plan plan;
  const mx_status status = ref_plan_make(&plan, spec, t->rows, t->cols);
  if (status) return status;
  num over = num_int(1), under = num_int(1);
  if (t->has_tensor_scale) ref_tensor_multiplier(&plan, num_float(t->tensor_scale), &over, &under);
  const double o = to_double(over), u = to_double(under), most = ref_format_max(ref_elem_format(spec->elem));
  const double prescale = spec->elem_prescale != 0 ? (double)spec->elem_prescale : 1;
  for (size_t row = 0; row < t->rows; row++)
    for (size_t col = 0; col < t->cols; col++) {
      const size_t i = row * t->cols + col;
      const double v = x[i] == 0 ? 0 : (double)x[i] * prescale / multiplier(spec, stored_scale(t, spec, row, col), o, u);
      double factor = ref_qprime(r, spec->elem, v);
      if (r->grad_trust_mask && !(fabs(v) < most)) factor = 0;
      g[i] = (float)((double)g[i] * factor);
    }
  return MX_OK;
}
