/* Computes values from codes over the lanes of vectors_*.h. The including file defines VALUES4 and look_up(), and gives the name of the
 * table in TABLE. */
#include <string.h>

#include "kernels/block/narrow.h"

#define INLINE static inline __attribute__((always_inline))

INLINE vf canonical(vf v) {
  return vi_float(vi_blend(vi_gt(vi_and(vf_bits(v), vi_set(0x7FFFFFFF)), vi_set(0x7F800000)), vi_set(0x7FC00000), vf_bits(v)));
}

INLINE vf quotient(vf v, vf f) {
  const vf zero = vf_set(0);
  return vf_blend(vm_and(vf_eq(v, zero), vf_eq(f, zero)), v, vf_div(v, f));
}

INLINE vf value_of(vf v, vf f, vf then, const mx_values_how how, const int check) {
  vf r = how == MX_VALUES_DIV || how == MX_VALUES_DIV_MUL ? quotient(v, f) : vf_mul(v, f);
  if (how == MX_VALUES_MUL_MUL || how == MX_VALUES_DIV_MUL) r = vf_mul(r, then);
  return check ? canonical(r) : r;
}

/* Computes n values, where n is a multiple of 4 W. */
INLINE void run(float *out, const uint8_t *codes, size_t n, const mx_values *t, const float *f, const double *wide, const int shift,
                const mx_values_how how, const int by_element, const int check) {
  const vf then = vf_set(t->then);
  for (size_t i = 0; i < n; i += 4 * W) {
    vf v[4];
    look_up(v, t, codes + i);
    for (size_t k = 0; k < 4; k++) {
      const size_t at = i + k * W, block = by_element ? 0 : at / 16 >> shift;
      if (how == MX_VALUES_WIDE)
        v[k] = check ? canonical(vf_times(v[k], wide[block])) : vf_times(v[k], wide[block]);
      else
        v[k] = value_of(v[k], by_element ? vf_load(f + at) : vf_set(f[block]), then, how, check);
      vf_store(out + at, v[k]);
    }
  }
}

static void whole(float *out, const uint8_t *codes, size_t n, const mx_values *t, const float *f, const double *wide, int shift) {
  if (t->how == MX_VALUES_WIDE && !t->may_be_invalid)
    run(out, codes, n, t, f, wide, shift, MX_VALUES_WIDE, 0, 0);
  else if (t->how == MX_VALUES_WIDE)
    run(out, codes, n, t, f, wide, shift, MX_VALUES_WIDE, 0, 1);
  else if (t->how == MX_VALUES_MUL && shift >= 0 && !t->may_be_invalid)
    run(out, codes, n, t, f, wide, shift, MX_VALUES_MUL, 0, 0);
  else if (t->how == MX_VALUES_MUL && shift >= 0)
    run(out, codes, n, t, f, wide, shift, MX_VALUES_MUL, 0, 1);
  else if (t->how == MX_VALUES_MUL)
    run(out, codes, n, t, f, wide, shift, MX_VALUES_MUL, 1, 1);
  else if (t->how == MX_VALUES_DIV && shift >= 0)
    run(out, codes, n, t, f, wide, shift, MX_VALUES_DIV, 0, 1);
  else if (t->how == MX_VALUES_DIV)
    run(out, codes, n, t, f, wide, shift, MX_VALUES_DIV, 1, 1);
  else if (shift >= 0)
    run(out, codes, n, t, f, wide, shift, t->how, 0, 1);
  else
    run(out, codes, n, t, f, wide, shift, t->how, 1, 1);
}

static void values(float *out, const uint8_t *codes, size_t n, const mx_values *t, const float *f, const double *wide, int shift) {
  const size_t step = 4 * W, here = n / step * step, rest = n - here;
  whole(out, codes, here, t, f, wide, shift);
  if (!rest) return;
  uint8_t c[4 * W] = {0};
  float v[4 * W], g[4 * W] = {0};
  double h[4] = {0};
  memcpy(c, codes + here, rest);
  for (size_t i = 0; i < rest; i++) { /* the factors of the rest, moved to start at 0 */
    const size_t at = shift < 0 ? here + i : (here + i) / 16 >> shift;
    if (t->how == MX_VALUES_WIDE)
      h[i / 16] = wide[at];
    else
      g[shift < 0 ? i : i / 16] = f[at];
  }
  whole(v, c, step, t, g, h, shift < 0 ? shift : 0);
  memcpy(out + here, v, rest * sizeof *v);
}

static void to_bf16(uint16_t *out, const float *x, size_t n) {
  size_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    vi v[2];
    for (size_t k = 0; k < 2; k++) {
      const vi bits = vf_bits(vf_load(x + i + k * W));
      v[k] = vi_srl(vi_add(bits, vi_add(vi_and(vi_srl(bits, 16), vi_set(1)), vi_set(0x7FFF))), 16);
    }
    vi_store_words(out + i, v);
  }
  for (; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    out[i] = (uint16_t)mxi_round_bits(bits, 16);
  }
}

static void unpack4(uint8_t *codes, const uint8_t *in, size_t n, int high_first) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) bytes32(codes + i, in + i / 2, high_first);
  for (; i < n; i++) codes[i] = in[i / 2] >> ((i % 2 != 0) != (high_first != 0) ? 4 : 0) & 15;
}

const mx_value_kernels TABLE = {values, VALUES4, to_bf16, unpack4};
