/* Compiles the encoder of single values for AVX-512. */
#include "kernels/codec_kernels.h"
#include "kernels/vectors_avx512.h"
#include "kernels/plain_avx512.h"

#define KERNEL mxi_encode_avx512
#define PLAINLY(out, x, n, lanes) plainly(out, x, n, lanes)

static size_t plainly(uint8_t *out, const float *x, size_t n, const mx_lanes *l);

#include "kernels/codec.inc.h"

/* Encodes sixty-four values at a time; those with a NaN or Inf among them go to the general code. */
static size_t plainly(uint8_t *out, const float *x, size_t n, const mx_lanes *l) {
  enum { NOT_FINITE = 0x99 }; /* for fpclass: quiet and signalling NaN, and Inf of both signs */
  const byte_way w = byte_way_of(l->man, l->emin << 23, 7 - __builtin_ctz((unsigned)l->sign), l->most);
  size_t i = 0;
  for (; n - i >= 64; i += 64) {
    __m512 y[4];
    __m512i c[4];
    __mmask16 special = 0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      y[k] = vf_load(x + i + (size_t)k * 16);
      special |= _mm512_fpclass_ps_mask(y[k], NOT_FINITE);
      c[k] = low_code(y[k], &w);
    }
    if (special)
      run(out + i, x + i, 64, l, 0, MX_ROUND_RNE);
    else
      _mm512_storeu_si512(out + i, merged(c, y, &w));
  }
  return i;
}
