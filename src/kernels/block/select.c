/* Computes the error of a candidate scale under select=foursix. SPEC 3, TECHNIQUES 4.5. */
#include <math.h>

#include "core/encode.h"
#include "kernels/block/select.h"

/* The value from which the error is computed: that of the code or, under wrap_negzero, the value before the code wrapped if the code was
 * made from x. */
static float meant_value(const mx_plan *p, const mx_block_scale *b, float x, uint32_t code) {
  const int twice = b->how == MX_BY_CHAIN && p->chain->again.n; /* a code made from a code */
  if (p->spec.elem_overflow != MX_OVERFLOW_WRAP_NEGZERO || twice) return (float)mx_decode(p->elem, code);
  const double y = mxi_scaled_value(p, b, x);
  if (isnan(y) || isinf(y)) return NAN;
  const double r = mxi_round_past_largest(p->elem, y, &p->encode, 0);
  return isinf(r) ? NAN : (float)r;
}

/* The value that a code's value stands for under a scale. */
static float scaled_back(const mx_plan *p, const mx_block_scale *b, float c) {
  if (!p->uses_chain && p->has_tensor_scale && p->spec.deq_arith == MX_DEQ_ARITH_TWO_STEP)
    return mxi_chain_step('*', (float)((double)c * b->used), (float)mxi_quotient_to_odd(p->g, p->norm));
  if (!p->uses_chain && p->has_tensor_scale && p->spec.deq_arith == MX_DEQ_ARITH_SCALE_FIRST)
    return mxi_chain_step('*', c, (float)(b->used * (double)(float)mxi_quotient_to_odd(p->g, p->norm)));
  if (!p->uses_chain) return (float)mxi_quotient_to_odd((double)c * b->used * p->g, p->norm);
  const float v = mxi_chain_step('*', c, b->sf);
  return p->has_tensor_scale ? mxi_chain_step('/', mxi_chain_step('*', v, p->vars[MX_VAR_A]), (float)p->target) : v;
}

/* The sum of errors so far. */
typedef struct tally {
  float lanes[8], sum;
} tally;

static inline void count(tally *t, const mx_spec *s, size_t i, float d) {
  const float e = s->select_error == MX_SELECT_ERROR_MSE ? d * d : fabsf(d);
  if (s->select_error == MX_SELECT_ERROR_ABSMAX)
    t->sum = isnan(t->sum) || e <= t->sum ? t->sum : e;
  else if (s->select_sum == MX_SELECT_SUM_TORCH16)
    t->lanes[i % 8] = i < 8 ? e : t->lanes[i % 8] + e;
  else
    t->sum = t->sum + e;
}

static float total(const tally *t, const mx_spec *s) {
  if (s->select_error == MX_SELECT_ERROR_ABSMAX || s->select_sum == MX_SELECT_SUM_SEQUENTIAL) return t->sum;
  float sum = t->lanes[0];
  for (int i = 1; i < 8; i++) sum = sum + t->lanes[i];
  return sum;
}

float mxi_candidate_error(const mx_plan *p, const mx_block_scale *b, float before, const float *x, const uint32_t *codes, size_t n) {
  tally t = {{0}, before};
  for (size_t i = 0; i < n; i++) count(&t, &p->spec, i, mxi_chain_step('-', scaled_back(p, b, meant_value(p, b, x[i], codes[i])), x[i]));
  return total(&t, &p->spec);
}

void mxi_six_values(float values[MX_SIX_VALUES], const mx_plan *p, const mx_block_scale *b) {
  static const float e2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 8};
  const float a = p->vars[MX_VAR_A], k = (float)p->target;
  float v[9];
  for (int c = 0; c < 9; c++) /* an ordinary scale, so there is no NaN */
    v[c] = !p->uses_chain ? scaled_back(p, b, e2m1[c]) : p->has_tensor_scale ? e2m1[c] * b->sf * a / k : e2m1[c] * b->sf;
  for (int c = 0; c < 8; c++) values[c] = v[c], values[8 + c] = -v[c];
  values[16] = v[8];
  values[17] = -v[8];
}

float mxi_six_error(const mx_plan *p, const float values[MX_SIX_VALUES], float factor, float before, const float *x, const uint8_t *codes,
                    size_t here, size_t n) {
  const int wraps = p->spec.elem_overflow == MX_OVERFLOW_WRAP_NEGZERO && !p->chain->again.n;
  tally t = {{0}, before};
  for (size_t i = 0; i < n; i++) {
    const float v = i < here ? x[i] : 0;
    const int wrapped = wraps && codes[i] == 8 && fabsf(v) * factor > 4; /* otherwise the code is a real -0 */
    count(&t, &p->spec, i, values[wrapped ? 16 + (signbit(v) != 0) : codes[i]] - v);
  }
  return total(&t, &p->spec);
}
