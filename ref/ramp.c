/* Computes Q-Ramping, one rounded binary32 operation at a time: docs/reference/SPEC.md, "Techniques of training". */
#include "ramp.h"

#include <string.h>

#include "num.h"

static num add(num a, num b) { return num_add_r(a, b, NUM_F32); }
static num mul(num a, num b) { return num_mul_r(a, b, NUM_F32); }
static num over(num a, num b) { return num_div_r(a, b, NUM_F32); }
static num f32(double x) { return num_round(num_double(x), NUM_F32); }

uint32_t ref_ramp_period(float moved, float jumped, double k1, double k2, double every) {
  const num of = over(over(num_float(jumped), f32(k1)), add(num_float(moved), f32(1e-8)));
  if (num_is_nan(of)) return 1;
  if (of.kind == NUM_INF || num_cmp(of, num_int(1u << 30)) >= 0) return k2 > 0 ? (uint32_t)every : 1;
  const num steps = add(mul(f32(k2), num_round(num_int((uint64_t)num_floor(of)), NUM_F32)), num_int(1));
  return num_cmp(steps, num_double(every)) < 0 ? (uint32_t)num_to_float(steps) : (uint32_t)every;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Is the root of x below (that of the two floats' mean)? Exact: a square has 50 bits. */
static int below(num x, float a, float b) {
  const num mean = num_double(((double)a + (double)b) / 2), both[] = {mean, mean};
  return num_cmp(x, num_ratio(both, 2, NULL, 0)) < 0;
}

/* The binary32 nearest to the root, found by halving among the bits of binary32. No root lies half-way. */
static num root(num x) {
  if (x.kind != NUM_FINITE || x.sign) return x.kind == NUM_FINITE ? num_nan(1) : x;
  uint32_t low = 0, high = 0x7F800000 - 1;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    const num s[] = {num_float(float_of(middle)), num_float(float_of(middle))};
    if (num_cmp(num_ratio(s, 2, NULL, 0), x) <= 0)
      low = middle;
    else
      high = middle;
  }
  return num_float(float_of(below(x, float_of(low), float_of(high)) ? low : high));
}

void ref_ramp_step(ref_ramped *e, float g, int adds, const ref_adam *a) {
  if (adds) e->sum = num_result(add(num_float(e->sum), num_float(g)));
  e->count++;
  e->w = num_result(mul(num_float(e->w), num_float(a->decay)));
  if (e->count % e->period != 0) return;
  const num n = num_int(e->count), mean = over(num_float(e->sum), n);
  const num m = add(mul(num_float(a->keep1), num_float(e->m)), mul(num_float(a->take1), mean));
  const num v = add(mul(num_float(a->keep2), num_float(e->v)), mul(num_float(a->take2), mul(mean, mean)));
  const num by = over(m, add(over(root(v), num_float(a->root2)), num_float(a->eps)));
  e->w = num_result(add(num_float(e->w), num_neg(mul(mul(num_float(a->rate), n), by))));
  e->m = num_result(m);
  e->v = num_result(v);
  e->sum = 0;
  e->count = 0;
}
