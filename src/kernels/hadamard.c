/* Hadamard rotation: SPEC 5. */
#include <math.h>
#include <string.h>

#include "mxgold/quantize.h"
#include "mxgold/random.h"

enum { MAX_SIZE = 1024 };

/* Bit i set: element i of a tile is negated. */
static void sign_bits(uint8_t out[MAX_SIZE / 8], unsigned size, int sign, const uint8_t *signs, uint64_t seed) {
  static const uint8_t te[2] = {0xE8, 0xD7}; /* [1 1 1 -1 1 -1 -1 -1 -1 -1 -1 1 -1 1 -1 -1], element 0 in bit 0 */
  memset(out, 0, MAX_SIZE / 8);
  for (unsigned i = 0; i < size; i++) {
    int negative = 0;
    if (sign == MX_HAD_SIGN_TE) negative = te[i % 16 / 8] >> (i % 8) & 1;
    if (sign == MX_HAD_SIGN_FIXED) negative = signs[i % 128 / 8] >> (i % 8) & 1;
    if (sign == MX_HAD_SIGN_FRESH) negative = mx_random(seed, MX_STREAM_SIGN, i / 32) >> (i % 32) & 1;
    if (negative) out[i / 8] |= (uint8_t)(1 << i % 8);
  }
}

static void tile(float *t, unsigned size, const uint8_t *negative, float factor) {
  for (unsigned i = 0; i < size; i++)
    if (negative[i / 8] >> (i % 8) & 1) t[i] = -t[i];
  for (unsigned stride = 1; stride < size; stride *= 2)
    for (unsigned i = 0; i < size; i++) {
      if (i & stride) continue;
      const float a = t[i], b = t[i + stride];
      t[i] = a + b;
      t[i + stride] = a - b;
    }
  for (unsigned i = 0; i < size; i++) t[i] = isnan(t[i]) ? NAN : t[i] * factor; /* one NaN, whatever the machine's */
}

mx_status mx_hadamard(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                      const uint8_t *signs, uint64_t seed) {
  if (size < 2 || size > MAX_SIZE || (size & (size - 1)) || (rows && cols && (!out || !src)) || (sign == MX_HAD_SIGN_FIXED && !signs))
    return MX_ERR_ARG;
  if (ld < cols || ld_out < cols) return MX_ERR_SHAPE;
  uint8_t negative[MAX_SIZE / 8];
  sign_bits(negative, size, sign, signs, seed);
  const float factor = (float)(1 / sqrt((double)size));
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c += size) {
      float t[MAX_SIZE] = {0};
      const size_t n = cols - c < size ? cols - c : size;
      memcpy(t, src + r * ld + c, n * sizeof *t);
      tile(t, size, negative, factor);
      memcpy(out + r * ld_out + c, t, n * sizeof *t);
    }
  return MX_OK;
}
