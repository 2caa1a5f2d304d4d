/* Draws the inputs of checkasm from one generator: the same on every machine. */
#include <math.h>

#include "checkasm.h"
#include "checkasm_parts.h"

static uint64_t state = 20261121;
uint32_t checkasm_next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 32);
}

void checkasm_fill(float *x, size_t n, int kind) {
  int exponent = 0;
  for (size_t i = 0; i < n; i++) {
    if (i % 16 == 0) exponent = (int)(checkasm_next() % 24) - 12 + (kind == 2 ? (int)(checkasm_next() % 240) - 120 : 0);
    float v = ldexpf((float)(int32_t)checkasm_next(), exponent - 31);
    if (kind == 1) v = (float)((int)(checkasm_next() % 97) - 48) / 8 * ldexpf(1, exponent / 4); /* ties */
    if (kind == 2 && checkasm_next() % 40 == 0) v = checkasm_next() % 2 ? 0.0f : -0.0f;
    if (kind == 2 && checkasm_next() % 100 == 0)
      v = checkasm_next() % 3 ? ldexpf(v, -130) : checkasm_next() % 2 ? INFINITY : copysignf(NAN, checkasm_next() % 2 ? 1.0f : -1.0f);
    if (kind == 3)
      v = ldexpf(1.5f + (float)((int)(checkasm_next() % 3) - 1) * 0x1p-23f, exponent) *
          (checkasm_next() % 2 ? 1.0f : -1.0f); /* around a threshold */
    if (kind == 4 && checkasm_next() % 4 == 0)
      v = ldexpf(checkasm_next() % 2 ? 1.0f : -1.0f, exponent + (int)(checkasm_next() % 4)); /* powers of two */
    x[i] = v;
  }
}
