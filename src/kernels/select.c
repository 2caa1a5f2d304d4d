/* select=foursix: which of two scales has the smaller error. SPEC 3, TECHNIQUES 4.5. */
#include <math.h>

#include "core/encode.h"
#include "kernels/select.h"

/* Value that the error counts: the code's, but under wrap_negzero what was meant before the code wrapped. */
static float meant_value(const mx_plan *p, const mx_block_scale *b, float x, uint32_t code) {
  if (p->spec.elem_overflow != MX_OVERFLOW_WRAP_NEGZERO) return (float)mx_decode(p->elem, code);
  const double y = mx_scaled_value(p, b, x);
  if (isnan(y) || isinf(y)) return NAN;
  const double r = mx_round_past_largest(p->elem, y, &p->encode, 0);
  return isinf(r) ? NAN : (float)r;
}

float mx_candidate_error(const mx_plan *p, const mx_block_scale *b, float before, const float *x, const uint32_t *codes, size_t n) {
  const mx_spec *s = &p->spec;
  float lanes[8] = {0}, sum = before;
  for (size_t i = 0; i < n; i++) {
    const float c = meant_value(p, b, x[i], codes[i]);
    float v;
    if (!p->uses_chain)
      v = (float)mx_quotient_to_odd((double)c * b->used * p->g, p->norm);
    else {
      v = mx_chain_step('*', c, b->sf);
      if (p->has_tensor_scale) v = mx_chain_step('/', mx_chain_step('*', v, p->vars[MX_VAR_A]), (float)p->target);
    }
    const float d = mx_chain_step('-', v, x[i]);
    const float e = s->select_error == MX_SELECT_ERROR_MSE ? d * d : fabsf(d);
    if (s->select_error == MX_SELECT_ERROR_ABSMAX)
      sum = isnan(sum) || e <= sum ? sum : e;
    else if (s->select_sum == MX_SELECT_SUM_TORCH16)
      lanes[i % 8] = i < 8 ? e : lanes[i % 8] + e;
    else
      sum = sum + e;
  }
  if (s->select_error == MX_SELECT_ERROR_ABSMAX || s->select_sum == MX_SELECT_SUM_SEQUENTIAL) return sum;
  sum = lanes[0];
  for (int i = 1; i < 8; i++) sum = sum + lanes[i];
  return sum;
}
