/* Rounds, flushes and rotates rows by scalar code. SPEC 3.2, 5. */
#include "kernels/input.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/block/plan.h"
#include "mxgold/random.h"

static int negated(unsigned i, int sign, const uint8_t *signs, uint64_t seed) {
  switch (sign) {
  case MX_HAD_SIGN_TE:
    return MX_HAD_TE >> (i % 16) & 1;
  case MX_HAD_SIGN_FIXED:
    return signs[i % 128 / 8] >> (i % 8) & 1;
  case MX_HAD_SIGN_FRESH:
    return (int)(mx_random(seed, MX_STREAM_SIGN, i / 32) >> (i % 32) & 1);
  default:
    return 0;
  }
}

void mxi_input_rotation(mx_input *in, unsigned size, int sign, const uint8_t *signs, uint64_t seed) {
  in->dtype = MX_INPUT_DTYPE_FLOAT32;
  in->flush = 0;
  in->had_size = size;
  if (!size) return;
  in->factor = (float)(1 / sqrt((double)size));
  in->signs = sign != MX_HAD_SIGN_NONE;
  for (unsigned i = 0; i < size || i < 16; i++) in->sign[i] = negated(i % size, sign, signs, seed) ? UINT32_C(1) << 31 : 0;
}

void mxi_input_init(mx_input *in, const mx_spec *s) {
  mxi_input_rotation(in, s->had_size, s->had_sign, s->had_signs, s->seed);
  in->dtype = s->input_dtype;
  in->flush = s->flush == MX_SWITCH_ON;
}

void mxi_widen_scalar(float *out, const uint16_t *x, size_t n, int dtype) {
  for (size_t i = 0; i < n; i++) {
    const uint32_t half = x[i], exponent = half >> 10 & 31, fraction = half & 0x3FF;
    uint32_t bits = half << 16;
    if (dtype != MX_INPUT_DTYPE_BFLOAT16) {
      bits = (half & 0x8000) << 16;
      if (exponent) {
        bits |= (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
      } else {
        const float small = (float)fraction * 0x1p-24f;
        uint32_t magnitude;
        memcpy(&magnitude, &small, sizeof small);
        bits |= magnitude;
      }
    }
    memcpy(out + i, &bits, sizeof bits);
  }
}

int mxi_turn_scalar(float *out, size_t ld_out, const float *x, size_t ld, size_t n_rows, size_t n_cols, const mx_input *in) {
  (void)in;
  for (size_t r = 0; r < n_rows; r++)
    for (size_t c = 0; c < n_cols; c++) out[r * ld_out + c] = x[c * ld + r];
  return 0;
}

static void rotate(float *t, const mx_input *in) {
  const unsigned size = in->had_size;
  for (unsigned i = 0; i < size; i++)
    if (in->sign[i]) t[i] = -t[i];
  for (unsigned stride = 1; stride < size; stride *= 2)
    for (unsigned i = 0; i < size; i++) {
      if (i & stride) continue;
      const float a = t[i], b = t[i + stride];
      t[i] = a + b;
      t[i + stride] = a - b;
    }
  for (unsigned i = 0; i < size; i++) t[i] = isnan(t[i]) ? NAN : t[i] * in->factor; /* the same NaN on every machine */
}

void mxi_input_scalar(float *out, const float *x, size_t n, const mx_input *in) {
  for (size_t i = 0; i < n; i++) {
    const float v = mxi_round_dtype(x[i], in->dtype);
    out[i] = in->flush && fabsf(v) < FLT_MIN ? copysignf(0, v) : v;
  }
  for (size_t i = 0; in->had_size && i < n; i += in->had_size) {
    float t[MX_HAD_MOST] = {0};
    const size_t here = n - i < in->had_size ? n - i : in->had_size;
    memcpy(t, out + i, here * sizeof *t);
    rotate(t, in);
    memcpy(out + i, t, here * sizeof *t);
  }
}
