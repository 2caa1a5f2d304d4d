/* Rounds, flushes and rotates rows over the lanes of vectors_*.h. The including file gives the names of the kernels: KERNEL, TURN for the
 * transpose, TURNED_AMAX for its largest magnitude, and WIDEN for 16-bit inputs. */
#include <float.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { PART = 128 }; /* elements whose butterflies stay in registers */

INLINE vi magnitude_of(vi bits) { return vi_and(bits, vi_set(0x7FFFFFFF)); }

/* Rounds any number to the nearest bfloat16 or binary16; a NaN stays. */
INLINE vi rounded(vi bits, const int dtype) {
  const vi a = magnitude_of(bits), inf = vi_set(0x7F800000);
  vi r;
  if (dtype == MX_INPUT_DTYPE_BFLOAT16)
    r = vi_and(vi_add(bits, vi_add(vi_and(vi_srl(bits, 16), vi_set(1)), vi_set(0x7FFF))), vi_set((int32_t)0xFFFF0000));
  else { /* adds the power of two whose last place is that of binary16 */
    const vi magic = vi_add(vi_and(vi_max(vi_min(a, vi_set(143 << 23)), vi_set(113 << 23)), inf), vi_set(13 << 23));
    const vi m = vf_bits(vf_sub(vf_add(vi_float(a), vi_float(magic)), vi_float(magic)));
    r = vi_or(vi_blend(vi_gt(a, vi_set(0x477FEFFF)), inf, m), vi_and(bits, vi_set(INT32_MIN))); /* Inf from 65520 on */
  }
  return vi_blend(vi_gt(a, inf), bits, r);
}

INLINE vi taken(const float *x, const int dtype, const int flush) {
  vi v = vf_bits(vf_load(x));
  if (dtype != MX_INPUT_DTYPE_FLOAT32) v = rounded(v, dtype);
  if (flush) v = vi_blend(vi_gt(vi_set(0x00800000), magnitude_of(v)), vi_and(v, vi_set(INT32_MIN)), v);
  return v;
}

#include "kernels/rotate.inc.h"

/* Does the stages with strides 1 .. size / 2 on n elements that fit into registers; last: the tile is then complete. n is size, or W for
 * smaller tiles. */
INLINE void butterflies(float *out, const float *x, const uint32_t *sign, float factor, const unsigned size, const int dtype, const int flush,
                        const int last, const int signs) {
  enum { MOST = PART / W };
  const int count = size > W ? (int)(size / W) : 1;
  vf t[MOST];
#pragma GCC unroll 32
  for (int k = 0; k < count; k++) {
    const vi v = taken(x + k * W, dtype, flush);
    t[k] = vi_float(signs ? vi_xor(v, vi_load(sign + k * W)) : v);
  }
#pragma GCC unroll 4
  for (unsigned stride = 1; stride < W; stride *= 2)
    if (stride < size) {
#pragma GCC unroll 32
      for (int k = 0; k < count; k++) t[k] = vf_butterfly(t[k], stride);
    }
#pragma GCC unroll 8
  for (int step = 1; step < count; step *= 2) {
#pragma GCC unroll 32
    for (int k = 0; k < count; k++)
      if (!(k & step)) {
        const vf a = t[k], b = t[k + step];
        t[k] = vf_add(a, b);
        t[k + step] = vf_sub(a, b);
      }
  }
#pragma GCC unroll 32
  for (int k = 0; k < count; k++) vf_store(out + k * W, last ? finished(t[k], vf_set(factor)) : t[k]);
}

/* Does whole tiles of at most PART elements, or whole vectors of smaller tiles. */
INLINE void small_tiles(float *out, const float *x, size_t n, const mx_input *in, const unsigned size, const int dtype, const int flush) {
  const size_t step = size > W ? size : W;
  if (in->signs)
    for (size_t i = 0; i < n; i += step) butterflies(out + i, x + i, in->sign, in->factor, size, dtype, flush, 1, 1);
  else
    for (size_t i = 0; i < n; i += step) butterflies(out + i, x + i, in->sign, in->factor, size, dtype, flush, 1, 0);
}

/* Does one tile of more than PART elements. */
static void large_tile(float *t, const mx_input *in) {
  const vf factor = vf_set(in->factor);
  for (unsigned i = 0; i < in->had_size; i += PART) butterflies(t + i, t + i, in->sign + i, in->factor, PART, MX_INPUT_DTYPE_FLOAT32, 0, 0, 1);
  for (unsigned stride = PART; stride < in->had_size; stride *= 2)
    for (unsigned i = 0; i < in->had_size; i += W) {
      if (i & stride) continue;
      const vf a = vf_load(t + i), b = vf_load(t + i + stride);
      vf_store(t + i, vf_add(a, b));
      vf_store(t + i + stride, vf_sub(a, b));
    }
  for (unsigned i = 0; i < in->had_size; i += W) vf_store(t + i, finished(vf_load(t + i), factor));
}

INLINE void changed(float *out, const float *x, size_t n, const int dtype, const int flush) {
  for (size_t i = 0; i < n; i += W) vi_store(out + i, taken(x + i, dtype, flush));
}

/* Does n elements, which are whole tiles and whole vectors. */
INLINE void typed(float *out, const float *x, size_t n, const mx_input *in, const int dtype, const int flush) {
  switch (in->had_size) {
  case 0:
    changed(out, x, n, dtype, flush);
    return;
  case 2:
    small_tiles(out, x, n, in, 2, dtype, flush);
    return;
  case 4:
    small_tiles(out, x, n, in, 4, dtype, flush);
    return;
  case 8:
    small_tiles(out, x, n, in, 8, dtype, flush);
    return;
  case 16:
    small_tiles(out, x, n, in, 16, dtype, flush);
    return;
  case 32:
    small_tiles(out, x, n, in, 32, dtype, flush);
    return;
  case 64:
    small_tiles(out, x, n, in, 64, dtype, flush);
    return;
  case 128:
    small_tiles(out, x, n, in, 128, dtype, flush);
    return;
  default:
    changed(out, x, n, dtype, flush);
    for (size_t i = 0; i < n; i += in->had_size) large_tile(out + i, in);
  }
}

static void whole(float *out, const float *x, size_t n, const mx_input *in) {
  if (in->dtype == MX_INPUT_DTYPE_FLOAT32 && !in->flush)
    typed(out, x, n, in, MX_INPUT_DTYPE_FLOAT32, 0);
  else { /* in two steps, so that the rotation is one of binary32 */
    if (in->dtype == MX_INPUT_DTYPE_FLOAT32)
      changed(out, x, n, MX_INPUT_DTYPE_FLOAT32, 1);
    else if (in->dtype == MX_INPUT_DTYPE_BFLOAT16 && !in->flush)
      changed(out, x, n, MX_INPUT_DTYPE_BFLOAT16, 0);
    else if (in->dtype == MX_INPUT_DTYPE_BFLOAT16)
      changed(out, x, n, MX_INPUT_DTYPE_BFLOAT16, 1);
    else if (!in->flush)
      changed(out, x, n, MX_INPUT_DTYPE_FLOAT16, 0);
    else
      changed(out, x, n, MX_INPUT_DTYPE_FLOAT16, 1);
    if (in->had_size) typed(out, out, n, in, MX_INPUT_DTYPE_FLOAT32, 0);
  }
}

void KERNEL(float *out, const float *x, size_t n, const mx_input *in) {
  const size_t step = in->had_size > 16 ? in->had_size : 16, here = n / step * step, rest = n - here;
  whole(out, x, here, in);
  if (!rest) return;
  float t[MX_HAD_MOST] = {0};
  memcpy(t, x + here, rest * sizeof *t);
  whole(t, t, step, in);
  memcpy(out + here, t, rest * sizeof *t);
}

/* Whether the W rows that are transposed together are a tile of the rotation, and nothing else is done to them. */
INLINE int is_tile(const mx_input *in) { return W == 16 && in->had_size == W && in->dtype == MX_INPUT_DTYPE_FLOAT32 && !in->flush; }

INLINE void load_rows(vf t[W], const float *x, size_t ld) {
#pragma GCC unroll 16
  for (size_t k = 0; k < W; k++) {
    __builtin_prefetch(x + (k + MX_TURN_AHEAD) * ld, 0, 2);
    t[k] = vf_load(x + k * ld);
  }
}

INLINE void turned(float *out, size_t ld_out, const float *x, size_t ld, size_t n_rows, size_t n_cols, const mx_input *in, const int rotates) {
  const size_t rows = n_rows / W * W, cols = n_cols / W * W;
  for (size_t c = 0; c < cols; c += W)
    for (size_t r = 0; r < rows; r += W) {
      vf t[W];
      load_rows(t, x + c * ld + r, ld);
      if (rotates) {
        rotate_down(t, in, W);
#pragma GCC unroll 16
        for (size_t k = 0; k < W; k++) t[k] = finished(t[k], vf_set(in->factor));
      }
      vf_transpose(t);
#pragma GCC unroll 16
      for (size_t k = 0; k < W; k++) vf_store(out + (r + k) * ld_out + c, t[k]);
    }
  for (size_t r = 0; r < n_rows; r++)
    for (size_t c = r < rows ? cols : 0; c < n_cols; c++) out[r * ld_out + c] = x[c * ld + r];
}

int TURN(float *out, size_t ld_out, const float *x, size_t ld, size_t n_rows, size_t n_cols, const mx_input *in) {
  const int rotates = is_tile(in) && n_rows % W == 0 && n_cols % W == 0;
  if (rotates)
    turned(out, ld_out, x, ld, n_rows, n_cols, in, 1);
  else
    turned(out, ld_out, x, ld, n_rows, n_cols, in, 0);
  return rotates;
}

/* Multiplying by the factor and rounding keeps the order of magnitudes, so that the largest alone is multiplied; and of a + b and a - b, which end a
 * rotation, the larger magnitude is |a| + |b|. A NaN counts as larger than Inf. */
int32_t TURNED_AMAX(int32_t *before, const float *x, size_t ld, size_t n_rows, size_t n_cols, const mx_input *in) {
  vi plain = vi_set(0), most = vi_set(0);
  if (!is_tile(in) || n_rows % W || n_cols % W) return -1;
  for (size_t c = 0; c < n_cols; c += W)
    for (size_t r = 0; r < n_rows; r += W) {
      vf t[W];
      load_rows(t, x + c * ld + r, ld);
#pragma GCC unroll 16
      for (size_t k = 0; k < W; k++) plain = vi_max(plain, magnitude_of(vf_bits(t[k])));
      rotate_down(t, in, W / 2);
#pragma GCC unroll 16
      for (size_t k = 0; k < W / 2; k++) {
        const vf a = vi_float(magnitude_of(vf_bits(t[k]))), b = vi_float(magnitude_of(vf_bits(t[k + W / 2])));
        most = vi_max(most, vf_bits(vf_add(a, b)));
      }
    }
  *before = vi_hmax(plain);
  const vf largest = finished(vi_float(vi_set(vi_hmax(most))), vf_set(in->factor));
  return vi_hmax(vf_bits(largest));
}

INLINE vi widened(vi half, const int dtype) {
  if (dtype == MX_INPUT_DTYPE_BFLOAT16) return vi_sll(half, 16);
  const vi sign = vi_sll(vi_and(half, vi_set(0x8000)), 16), mag = vi_sll(vi_and(half, vi_set(0x7FFF)), 13);
  const vf small = vf_sub(vi_float(vi_add(mag, vi_set(113 << 23))), vf_set(0x1p-14f)); /* subnormals: 2^-14 is added and subtracted again */
  const vi normal = vi_add(mag, vi_set(112 << 23)), special = vi_add(mag, vi_set(224 << 23));
  vi bits = vi_blend(vi_gt(vi_set(1 << 23), mag), magnitude_of(vf_bits(small)), normal);
  bits = vi_blend(vi_gt(mag, vi_set((31 << 23) - 1)), special, bits);
  return vi_or(bits, sign);
}

INLINE void widen_as(float *out, const uint16_t *x, size_t n, const int dtype) {
  size_t i = 0;
  for (; i + W <= n; i += W) vi_store(out + i, widened(vi_load_words(x + i), dtype));
  if (i == n) return;
  uint16_t half[W] = {0};
  float last[W];
  memcpy(half, x + i, (n - i) * sizeof *half);
  vi_store(last, widened(vi_load_words(half), dtype));
  memcpy(out + i, last, (n - i) * sizeof *last);
}

void WIDEN(float *out, const uint16_t *x, size_t n, int dtype) {
  if (dtype == MX_INPUT_DTYPE_BFLOAT16)
    widen_as(out, x, n, MX_INPUT_DTYPE_BFLOAT16);
  else
    widen_as(out, x, n, MX_INPUT_DTYPE_FLOAT16);
}
