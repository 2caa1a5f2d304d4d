/* Computes the sizes of arrays, and reads their values as binary32. */
#include <string.h>

#include "io.h"

int mxi_io_size_array(mx_array *a) {
  uint64_t product = 1, bytes;
  int empty = 0;
  for (int i = 0; i < a->n_dims; i++) {
    if (a->shape[i] == 0)
      empty = 1;
    else if (__builtin_mul_overflow(product, a->shape[i], &product))
      return 0;
  }
  if (__builtin_mul_overflow(product, mx_dtype_bytes(a->dtype), &bytes) || bytes > INT64_MAX) return 0;
  a->n_values = empty ? 0 : product;
  a->n_bytes = empty ? 0 : bytes;
  return 1;
}

/* Values are converted in runs of a fixed length, so that the compiler can vectorise the loops at -O2; the tail is copied into a run of its
 * own. */
enum { RUN = 64 };

static void widen_bf16(float *out, const uint8_t *src) {
  uint16_t half[RUN];
  uint32_t bits[RUN];
  memcpy(half, src, sizeof half);
  for (int i = 0; i < RUN; i++) bits[i] = (uint32_t)half[i] << 16;
  memcpy(out, bits, sizeof bits);
}

/* Every binary16 value is a binary32 value, so integer operations suffice, except for subnormals: those get 2^-14 added and subtracted
 * again, which is an exact subtraction of normal numbers and so works in any rounding mode and with denormals flushed. NaN payloads are
 * kept. */
static void widen_f16(float *out, const uint8_t *src) {
  uint16_t half[RUN];
  uint32_t bits[RUN];
  memcpy(half, src, sizeof half);
  for (int i = 0; i < RUN; i++) {
    uint32_t sign = (uint32_t)(half[i] & 0x8000) << 16, mag = (uint32_t)(half[i] & 0x7fff) << 13;
    uint32_t small = mag + (113u << 23);
    float f;
    memcpy(&f, &small, 4);
    f -= 0x1p-14f;
    memcpy(&small, &f, 4);
    uint32_t normal = mag + (112u << 23), special = mag + (224u << 23);
    uint32_t is_small = (uint32_t) - (int32_t)(mag < (1u << 23)), is_special = (uint32_t) - (int32_t)(mag >= (31u << 23));
    /* When rounding down, 2^-14 - 2^-14 is -0, so the mask keeps only the magnitude. */
    bits[i] = sign | (small & 0x7fffffff & is_small) | (special & is_special) | (normal & ~is_small & ~is_special);
  }
  memcpy(out, bits, sizeof bits);
}

static void widen_all(float *out, const uint8_t *src, uint64_t n, void (*widen)(float *, const uint8_t *)) {
  uint64_t i = 0;
  for (; n - i >= RUN; i += RUN) widen(out + i, src + 2 * i);
  if (i == n) return;
  uint8_t tail[2 * RUN] = {0};
  float wide[RUN];
  memcpy(tail, src + 2 * i, 2 * (size_t)(n - i));
  widen(wide, tail);
  memcpy(out + i, wide, sizeof(float) * (size_t)(n - i));
}

/* Reads from the file, one piece at a time. */
static mx_status read_wide(float *out, const mx_array *a, uint64_t first, uint64_t n, void (*widen)(float *, const uint8_t *)) {
  uint8_t piece[1 << 15];
  const uint64_t most = sizeof piece / 2;
  for (uint64_t done = 0, here; done < n; done += here) {
    here = n - done < most ? n - done : most;
    const mx_status s = mx_array_read(piece, a, 2 * (first + done), 2 * here, NULL);
    if (s) return s;
    widen_all(out + done, piece, here, widen);
  }
  return MX_OK;
}

mx_status mx_array_read_f32(float *out, const mx_array *a, uint64_t first, uint64_t n, int bf16) {
  if (!a || (!out && n)) return MX_ERR_ARG;
  if (first > a->n_values || n > a->n_values - first) return MX_ERR_SHAPE;
  if (n == 0)
    return a->dtype == MX_F32 || a->dtype == MX_F16 || a->dtype == MX_BF16 || (a->dtype == MX_U16 && bf16) ? MX_OK : MX_ERR_UNSUPPORTED;
  void (*widen)(float *, const uint8_t *) = a->dtype == MX_F16                                    ? widen_f16
                                            : a->dtype == MX_BF16 || (a->dtype == MX_U16 && bf16) ? widen_bf16
                                                                                                  : NULL;
  if (!widen && a->dtype != MX_F32) return MX_ERR_UNSUPPORTED;
  const size_t width = mx_dtype_bytes(a->dtype);
  if (a->data && !widen)
    memcpy(out, a->data + first * width, sizeof(float) * (size_t)n);
  else if (a->data)
    widen_all(out, a->data + first * width, n, widen);
  else if (!widen)
    return mx_array_read(out, a, first * width, n * width, NULL);
  else
    return read_wide(out, a, first, n, widen);
  return MX_OK;
}
