/* Makes the code of an element from its block's scale: step 10 of SPEC 3.2. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/block/plan.h"
#include "mxgold/random.h"

/* The real x * product / divisor, with the NaN rules of mxi_chain_step. */
static double exact_scaled(const mx_plan *p, double used, double x) {
  const int encode = p->spec.scale_form == MX_SCALE_FORM_ENCODE;
  const double second = encode ? used : p->norm, third = encode ? p->norm : used; /* x P N / (S g), or x P S N / g */
  if (isnan(x)) return x;
  if (isnan(second)) return second;
  if (isnan(third)) return third;
  if (isnan(p->g)) return p->g;
  const double pre = p->spec.elem_prescale != 0 ? (double)p->spec.elem_prescale : 1;
  double y;
  if (!isfinite(p->norm) || !isfinite(p->g)) { /* the tensor scale is Inf, and IEEE operations give the exact answer */
    y = x * pre * (encode ? used : 1) * p->norm / ((encode ? 1 : used) * p->g);
  } else if (encode)
    y = mxi_quotient_to_odd(x * pre * used * p->norm, p->g);
  else if (isinf(used))
    y = isinf(x) ? NAN : x * 0;
  else
    y = used == 0 && x != 0 ? copysign(INFINITY, x) : mxi_quotient_to_odd(x * pre * p->norm, used * p->g);
  return isnan(y) ? copysign(NAN, -1) : y;
}

double mxi_scaled_value(const mx_plan *p, const mx_block_scale *b, float x) {
  const mx_spec *s = &p->spec;
  float y = x;
  switch (b->how) {
  case MX_AS_IS:
    return x;
  case MX_TO_ZERO:
    return 0;
  case MX_TO_SIGNED_ZERO: /* even for an Inf */
    return isnan(x) ? x : copysignf(0, x);
  case MX_TIMES_ZERO:
    return mxi_chain_step('*', x, 0);
  case MX_TIMES_FLT_MAX:
    return mxi_chain_step('*', x, FLT_MAX);
  case MX_BY_CHAIN:
    for (int i = 0; i < p->chain->element.n; i++) y = mxi_chain_step(p->chain->element.op[i], y, b->factor[i]);
    return y;
  default:
    break;
  }
  const float used = (float)b->used;
  const int beyond =
      isinf(used) && isfinite(b->used); /* a power of two outside binary32 (scale.used=unclamped): only the real result is rounded */
  if (s->elem_prescale != 0 && s->elem_arith != MX_ELEM_ARITH_EXACT) y = mxi_chain_step('*', y, s->elem_prescale);
  switch (s->elem_arith) {
  case MX_ELEM_ARITH_DIV32:
    y = beyond ? (float)(y / b->used) : mxi_chain_step('/', y, used);
    break;
  case MX_ELEM_ARITH_RECIP32:
    y = mxi_chain_step('*', y, beyond ? (float)(1 / b->used) : mxi_chain_step('/', 1, used));
    break;
  case MX_ELEM_ARITH_MUL32:
    y = beyond ? (float)(y * b->used) : mxi_chain_step('*', y, used);
    break;
  default:
    if (s->input_dtype == MX_INPUT_DTYPE_FLOAT32) return exact_scaled(p, b->used, x);
    y = (float)exact_scaled(p, b->used, x);
  }
  return mxi_round_dtype(y, s->input_dtype);
}

/* a - b rounded once to binary32, by rounding to odd in binary64 first. */
static float difference(double a, double b) {
  double d = a - b;
  const double back = d - a, lost = (a - (d - back)) - (b + back);
  uint64_t bits;
  memcpy(&bits, &d, sizeof bits);
  if (isfinite(d) && lost != 0 && !(bits & 1)) d = nextafter(d, lost > 0 ? INFINITY : -INFINITY);
  return (float)d;
}

/* The distance of a code's value from y, or of its value times the scale from x, rounded to binary32. */
static float distance(const mx_plan *p, uint32_t code, double x, double y, double used) {
  const double v = (double)p->values[code];
  if (p->spec.elem_round == MX_ROUND_SCAN_Y) return fabsf((float)y - p->values[code]);
  return isinf((float)(v * used)) ? INFINITY : fabsf(difference(v * used, x));
}

/* Finds the nearest code for a finite `to` in a format whose magnitudes grow with their codes. Distances fall up to `to` and then rise, and
 * neighbours may be equal, so the first code with the least distance is next to `to` or below it. No value of the other sign is nearer than
 * code 0. */
static uint32_t scan_beside(const mx_plan *p, double to, double x, double y, double used) {
  const int by_y = p->spec.elem_round == MX_ROUND_SCAN_Y;
  const uint32_t sign = signbit(to) ? 1u << (p->elem->bits - 1) : 0;
  uint32_t below = 0;
  for (uint32_t above = (uint32_t)p->elem->max_code + 1; above - below > 1;) {
    const uint32_t middle = (below + above) / 2;
    if ((double)p->values[middle] * (by_y ? 1 : used) <= fabs(to))
      below = middle;
    else
      above = middle;
  }
  const float least = distance(p, below ? sign | below : 0, x, y, used); /* 0 without a sign, since the code of -0 may be a NaN */
  if (below < p->elem->max_code) {
    const float next = distance(p, sign | (below + 1), x, y, used);
    if (next < least) return sign | (below + 1);
  }
  while (below && !(distance(p, below > 1 ? sign | (below - 1) : 0, x, y, used) > least)) below--;
  return below ? sign | below : 0;
}

/* The same for an integer format, whose negative codes come last: distances fall up to `to` and rise beyond it, so its neighbours have the
 * least ones. */
static uint32_t scan_steps(const mx_plan *p, double to, double x, double y, double used) {
  const int most = (1 << (p->elem->bits - 1)) - 1, mask = 2 * most + 1;
  const double step = (double)p->values[1] * (p->spec.elem_round == MX_ROUND_SCAN_Y ? 1 : used), about = floor(to / step);
  const int near = about >= most ? most : about <= -most - 1 ? -most - 1 : (int)about;
  float least = INFINITY;
  int best = 0;
  for (int v = near - 1; v <= near + 2; v++) {
    if (v < -most - 1 || v > most) continue;
    const float d = distance(p, (uint32_t)(v & mask), x, y, used);
    if (d < least) least = d, best = v;
  }
  if (isinf(least)) return 0;
  int below = -most - 2; /* further away than the nearest one, if it is a step at all */
  while (best - below > 1) {
    const int middle = below + (best - below) / 2;
    if (distance(p, (uint32_t)(middle & mask), x, y, used) <= least)
      best = middle;
    else
      below = middle;
  }
  if (best < 0 && distance(p, 0, x, y, used) <= least) return 0;
  return (uint32_t)(best & mask);
}

/* The first code, in the order of codes, with the least distance; a NaN or infinite distance never wins. */
static uint32_t scan(const mx_plan *p, double x, double y, double used) {
  const mx_format *f = p->elem;
  const double to = p->spec.elem_round == MX_ROUND_SCAN_Y ? (double)(float)y : x;
  uint32_t best = 0;
  float least = INFINITY;
  const int grows = f->sign_bits && (f->kind == MX_KIND_FLOAT || f->kind == MX_KIND_FNUZ);
  if (grows && isfinite(to) && used > 0 && isfinite(used)) return scan_beside(p, to, x, y, used);
  if (f->kind == MX_KIND_INT && f->sign_bits && isfinite(to) && used > 0 && isfinite(used)) return scan_steps(p, to, x, y, used);
  for (uint32_t c = 0; c < 1u << f->bits; c++) {
    const float d = distance(p, c, x, y, used);
    if (d < least || c == 0) least = isnan(d) ? INFINITY : d, best = c;
  }
  return best;
}

static uint32_t random_of(const mx_plan *p, uint64_t index) {
  const mx_spec *s = &p->spec;
  if (s->sr_source == MX_SR_SOURCE_GIVEN) return s->given_bits[index];
  if (s->sr_source == MX_SR_SOURCE_AMD_LFSR) {
    const uint32_t seed = mx_random(s->seed, MX_STREAM_ELEMENT, index / 2);
    return (index % 2 ? mx_random_lfsr(seed) : seed) >> (32 - p->encode.sr_bits);
  }
  return mx_random(s->seed, MX_STREAM_ELEMENT, index) >> (32 - p->encode.sr_bits);
}

uint32_t mxi_element_code(const mx_plan *p, const mx_block_scale *b, float x, uint64_t index) {
  return mxi_element_code_of(p, b, x, mxi_scaled_value(p, b, x), index);
}

uint32_t mxi_element_code_of(const mx_plan *p, const mx_block_scale *b, float x, double y, uint64_t index) {
  const int round = p->spec.elem_round, scans = round == MX_ROUND_SCAN_Y || round == MX_ROUND_SCAN_X;
  const uint32_t random = round == MX_ROUND_SR ? random_of(p, index) : 0;
  const double used = b->how == MX_BY_CHAIN ? (double)b->sf : b->used;
  uint32_t code = scans ? scan(p, (double)x, y, used) : (uint32_t)mx_encode(p->elem, y, &p->encode, random);
  if (b->how == MX_BY_CHAIN && p->chain->again.n) {
    float q = (float)mx_decode(p->elem, code);
    if (isnan(q) && p->elem->kind == MX_KIND_FNUZ) q = NAN; /* the NaN of FNUZ is the code of -0, but has no sign */
    for (int i = 0; i < p->chain->again.n; i++) q = mxi_chain_step(p->chain->again.op[i], q, b->again[i]);
    code = scans ? scan(p, (double)x, (double)q, used) : (uint32_t)mx_encode(p->elem, (double)q, &p->encode, random);
  }
  return code;
}
