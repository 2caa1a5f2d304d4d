/* One line a preset: a digest of what quantise and dequantise give with the ISAs of this host, checked against the scalar code on the way. The same
 * program runs natively and, cross-compiled, under an emulator (make check-neon): the lines must be the same. No library but the C library. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"
#include "mxgold/quantize.h"

enum { ROWS = 33, COLS = 160, KINDS = 4 };

static uint64_t state = 20261121;
static uint32_t next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 32);
}

/* Plain numbers, ties, far exponents with special values, powers of two and their neighbours. */
static void fill(float *x, size_t n, int kind) {
  int exponent = 0;
  for (size_t i = 0; i < n; i++) {
    if (i % 16 == 0) exponent = (int)(next() % 24) - 12 + (kind == 2 ? (int)(next() % 240) - 120 : 0);
    float v = ldexpf((float)(int32_t)next(), exponent - 31);
    if (kind == 1) v = (float)((int)(next() % 97) - 48) / 8 * ldexpf(1, exponent / 4);
    if (kind == 2 && next() % 40 == 0) v = next() % 2 ? 0.0f : -0.0f;
    if (kind == 2 && next() % 100 == 0) v = next() % 3 ? ldexpf(v, -130) : next() % 2 ? INFINITY : copysignf(NAN, next() % 2 ? 1.0f : -1.0f);
    if (kind == 3) v = ldexpf(1.5f + (float)((int)(next() % 3) - 1) * 0x1p-23f, exponent) * (next() % 2 ? 1.0f : -1.0f);
    x[i] = v;
  }
}

static uint64_t digest(uint64_t h, const void *data, size_t n) { /* FNV-1a */
  for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)data)[i]) * UINT64_C(1099511628211);
  return h;
}

/* One tensor with and without vectors; returns 1 if they differ. */
static int one(uint64_t *h, const mx_spec *spec, const float *x, size_t cols) {
  static float y[2][ROWS * COLS];
  const mx_exec with = {.n_threads = 1}, without = {.n_threads = 1, .isa_mask = MX_ISA_ALL};
  mx_tensor a, b;
  if (mx_tensor_alloc(&a, ROWS, cols, spec) || mx_tensor_alloc(&b, ROWS, cols, spec)) exit(2);
  const mx_status s = mx_quantize(&a, x, ROWS, cols, cols, spec, &with, NULL), t = mx_quantize(&b, x, ROWS, cols, cols, spec, &without, NULL);
  int differ = s != t;
  if (!s && !t) {
    const size_t codes = a.rows * a.code_stride, scales = a.scale_rows * a.scale_cols * a.scale_bytes, values = ROWS * cols * sizeof(float);
    mx_dequantize(y[0], cols, &a, spec, &with);
    mx_dequantize(y[1], cols, &b, spec, &without);
    differ = memcmp(a.codes, b.codes, codes) || memcmp(a.scales, b.scales, scales) || memcmp(y[0], y[1], values);
    *h = digest(digest(digest(*h, a.codes, codes), a.scales, scales), y[0], values);
  }
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  return differ;
}

int main(void) {
  static const size_t cols[] = {160, 77, 16, 5};
  float *x = malloc(ROWS * COLS * sizeof *x);
  int differ = 0, lines = 0;
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec spec;
    if (mx_preset_at(i)->alias_of || mx_preset_find(&spec, mx_preset_at(i)->name, NULL)) continue;
    for (int stochastic = 0; stochastic < 2; stochastic++) {
      uint64_t h = UINT64_C(14695981039346656037);
      if (stochastic) spec.elem_round = MX_ROUND_SR, spec.seed = i;
      if (mx_spec_check(&spec, NULL)) continue;
      int bad = 0;
      for (int k = 0; k < KINDS; k++) {
        fill(x, ROWS * COLS, k);
        bad |= one(&h, &spec, x, cols[((size_t)k + i) % 4]);
      }
      printf("%016llx %s%s\n", (unsigned long long)h, mx_preset_at(i)->name, stochastic ? " stochastic" : "");
      if (bad) fprintf(stderr, "%s%s: vectors differ from the scalar code\n", mx_preset_at(i)->name, stochastic ? " stochastic" : "");
      differ |= bad;
      lines++;
    }
  }
  char used[64] = "";
  for (uint32_t bit = 1; bit & MX_ISA_ALL; bit <<= 1)
    if (mx_isa_usable(0) & bit) strcat(strcat(used, " "), mx_isa_name(bit));
  fprintf(stderr, "isa digests: %d lines, with%s: %s the scalar code\n", lines, *used ? used : " no vectors",
          differ ? "differ from" : "equal to");
  free(x);
  return differ;
}
