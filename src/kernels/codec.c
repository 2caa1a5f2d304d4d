/* Encodes and decodes arrays of single values: threads take pieces, a kernel does whole vectors, and the rest is done one value at a time. */
#include "mxgold/codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "kernels/threads.h"

enum { PIECE = 1 << 14 };

static uint32_t magnitude(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7FFFFFFF;
}

static void store(void *out, size_t at, uint64_t code, int wide) {
  if (wide)
    ((uint16_t *)out)[at] = (uint16_t)code;
  else
    ((uint8_t *)out)[at] = (uint8_t)code;
}

/* Roundings that round twice differ from rounding to nearest at a single magnitude, the float just below half of the smallest step, whose
 * sum with 1/2 is rounded up to 1. This returns its bits, or 0 if the format has no such float among the normal binary32 numbers. *plain is
 * the rounding of all other floats. */
static uint32_t rounded_twice(mx_encoding *plain, const mx_format *f, const mx_encoding *how) {
  *plain = *how;
  if ((how->round != MX_ROUND_RNA_F32 && how->round != MX_ROUND_RNE_F32) || f->kind == MX_KIND_EXP) return 0;
  const int half = (f->kind == MX_KIND_INT ? -f->man_bits : 1 - f->bias - f->man_bits) - 1 + 127;
  if (half < 2) return 0;
  plain->round = how->round == MX_ROUND_RNE_F32 ? MX_ROUND_RNE : MX_ROUND_RNA;
  return ((uint32_t)half << 23) - 1;
}

mx_status mx_encode_array(void *out, const float *x, size_t n, const mx_format *f, const mx_encoding *how, const mx_exec *exec) {
  if (!f || !how || f->bits > 16 || (n && (!out || !x))) return MX_ERR_ARG;
  if (how->round == MX_ROUND_SR || how->round >= MX_ROUND_SCAN_Y) return MX_ERR_ARG;
  const int wide = f->bits > 8;
  mx_lanes lanes;
  mx_encoding plain;
  const uint32_t twice = rounded_twice(&plain, f, how);
  mx_encode_kernel *kernel = mxi_lanes_init(&lanes, f, &plain) ? mxi_kernels_for(exec ? exec->isa_mask : 0)->encode : NULL;
#pragma omp parallel for schedule(static) num_threads(mx_threads(exec, n, kernel ? MX_THREAD_VALUES : MX_THREAD_SCALAR))
  for (size_t at = 0; at < n; at += PIECE) {
    const size_t end = n - at < PIECE ? n : at + PIECE;
    size_t i = at;
    if (kernel) {
      i += kernel((uint8_t *)out + (at << wide), x + at, end - at, &lanes, wide);
      for (size_t k = at; twice && k < i; k++)
        if (magnitude(x[k]) == twice) store(out, k, mx_encode(f, (double)x[k], how, 0), wide);
    }
    for (; i < end; i++) store(out, i, mx_encode(f, (double)x[i], how, 0), wide);
  }
  return MX_OK;
}

/* Decodes one-byte codes as the elements of a tensor with scale 1. */
static void decode_bytes(float *out, const uint8_t *codes, size_t n, const mx_format *f, const mx_exec *exec) {
  static const float one = 1;
  const mx_value_kernels *kernels = mxi_kernels_for(exec ? exec->isa_mask : 0)->values;
  mx_values t = {.how = MX_VALUES_MUL, .keeps_nan = 1};
  mxi_values_tables(&t, f);
#pragma omp parallel for schedule(static) num_threads(mx_threads(exec, n, MX_THREAD_VALUES))
  for (size_t i = 0; i < n; i += MX_VALUES_MOST)
    kernels->values(out + i, codes + i, n - i < MX_VALUES_MOST ? n - i : MX_VALUES_MOST, &t, &one, NULL, 31);
}

mx_status mx_decode_array(float *out, const void *codes, size_t n, const mx_format *f, const mx_exec *exec) {
  if (!f || f->bits > 16 || (n && (!out || !codes))) return MX_ERR_ARG;
  if (f->bits <= 8) {
    decode_bytes(out, codes, n, f, exec);
    return MX_OK;
  }
  const uint32_t all = (1u << f->bits) - 1;
  float *table = malloc(((size_t)all + 1) * sizeof *table);
  if (!table) return MX_ERR_NOMEM;
  for (uint32_t c = 0; c <= all; c++) table[c] = (float)mx_decode(f, c);
#pragma omp parallel for schedule(static) num_threads(mx_threads(exec, n, MX_THREAD_VALUES))
  for (size_t i = 0; i < n; i++) out[i] = table[((const uint16_t *)codes)[i] & all];
  free(table);
  return MX_OK;
}
