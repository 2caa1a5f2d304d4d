/* Draws the random numbers that suites are made of. */
#include <string.h>

#include "mxgold/random.h"
#include "verify/suites/gen.h"

uint32_t mxi_gen_bits(gen *g) { return mx_random(g->seed, MX_STREAM_DATA, g->drawn++); }

uint32_t mxi_gen_below(gen *g, uint32_t n) { return (uint32_t)((uint64_t)mxi_gen_bits(g) * n >> 32); }

float mxi_gen_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

float mxi_gen_normal(gen *g) {
  int64_t sum = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t b = mxi_gen_bits(g);
    sum += (int64_t)(b & 0xFFFF) + (int64_t)(b >> 16) - 65535;
  }
  return (float)sum * 0x1.3988e2p-16f; /* 8 uniforms have a deviation of 53510 */
}

float mxi_gen_nudge(float x, int ulps) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const int64_t m = (int64_t)(bits & 0x7FFFFFFF) + ulps;
  if (m < 0 || m >= 0x7F800000) return 0;
  return mxi_gen_from_bits((bits & 0x80000000u) | (uint32_t)m);
}

float mxi_gen_any_finite(gen *g) {
  const uint32_t bits = mxi_gen_bits(g);
  return (bits >> 23 & 0xFF) == 0xFF ? mxi_gen_from_bits(bits & 0xFF7FFFFFu) : mxi_gen_from_bits(bits);
}
