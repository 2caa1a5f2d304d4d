/* Rotates rows by SPEC 5: signs, butterflies of stride 1, 2, 4 ... n/2, each one rounded binary32 operation, then one multiplication by
 * rnd_f32(1/sqrt(n)). */
#include "rules.h"

#include <stdlib.h>

/* rnd_f32(1 / sqrt(2^k)): a power of two, or that times the root of 1/2, whose 64 leading bits are the largest s with s^2 < 2^127. */
static num root(unsigned k) {
  num half_root = num_pow2(-(int)(k / 2));
  if (k % 2 == 0) return half_root;
  uint64_t s = 0;
  for (int bit = 63; bit >= 0; bit--) {
    uint64_t t = s | UINT64_C(1) << bit;
    if ((unsigned __int128)t * t < (unsigned __int128)1 << 127) s = t;
  }
  num r = num_int(s); /* s * 2^-64 < sqrt(1/2) < (s + 1) * 2^-64 */
  r.exp += -64 + half_root.exp;
  r.sticky = 1;
  return num_round(r, NUM_F32);
}

static int negated(int sign, const uint8_t *signs, uint64_t seed, unsigned i) {
  static const uint8_t te[16] = {0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1};
  switch (sign) {
  case MX_HAD_SIGN_FIXED:
    return signs[i % 128 / 8] >> i % 8 & 1;
  case MX_HAD_SIGN_TE:
    return te[i % 16];
  case MX_HAD_SIGN_FRESH:
    return (int)(ref_random(seed, MX_STREAM_SIGN, i / 32) >> i % 32 & 1);
  default:
    return 0;
  }
}

num ref_rotation_factor(unsigned size) {
  unsigned k = 0;
  while (size >> (k + 1)) k++;
  return root(k);
}

void ref_butterflies(num *x, unsigned size) {
  for (unsigned stride = 1; stride < size; stride *= 2)
    for (unsigned i = 0; i < size; i++)
      if (!(i & stride)) {
        num a = x[i], b = x[i + stride];
        x[i] = num_add_r(a, b, NUM_F32);
        x[i + stride] = num_sub_r(a, b, NUM_F32);
      }
}

static void rotate_tile(num *x, unsigned size) {
  ref_butterflies(x, size);
  for (unsigned i = 0; i < size; i++) x[i] = num_mul_r(x[i], ref_rotation_factor(size), NUM_F32);
}

mx_status ref_hadamard(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                       const uint8_t *signs, uint64_t seed) {
  if (size < 2 || size > 1024 || (size & (size - 1)) || (sign == MX_HAD_SIGN_FIXED && !signs)) return MX_ERR_ARG;
  if (ld < cols || ld_out < cols) return MX_ERR_SHAPE;
  if ((!out || !src) && rows && cols) return MX_ERR_ARG;
  num *x = malloc(size * sizeof *x);
  if (!x) return MX_ERR_NOMEM;
  for (size_t r = 0; r < rows; r++)
    for (size_t first = 0; first < cols; first += size) {
      for (unsigned i = 0; i < size; i++) {
        x[i] = first + i < cols ? num_float(src[r * ld + first + i]) : num_zero(0);
        if (negated(sign, signs, seed, i)) x[i] = num_neg(x[i]);
      }
      rotate_tile(x, size);
      for (unsigned i = 0; i < size && first + i < cols; i++) out[r * ld_out + first + i] = num_result(x[i]);
    }
  free(x);
  return MX_OK;
}

/* The transpose of H S is S H, as H is symmetric: the butterflies without signs, and then the signs. A NaN has none. */
mx_status ref_hadamard_back(float *out, size_t ld_out, const float *src, size_t rows, size_t cols, size_t ld, unsigned size, int sign,
                            const uint8_t *signs, uint64_t seed) {
  if (sign == MX_HAD_SIGN_FIXED && !signs) return MX_ERR_ARG;
  if (size && cols % size) return MX_ERR_SHAPE;
  const mx_status status = ref_hadamard(out, ld_out, src, rows, cols, ld, size, MX_HAD_SIGN_NONE, NULL, 0);
  if (status) return status;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++)
      if (negated(sign, signs, seed, (unsigned)(c % size))) out[r * ld_out + c] = num_result(num_neg(num_float(out[r * ld_out + c])));
  return MX_OK;
}
