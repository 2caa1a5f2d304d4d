/* Makes fixed inputs of math.h and dense.h, and digests of the results. */
#include "math_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/dense.h"
#include "mxgold/file.h"
#include "mxgold/math.h"

static const uint32_t special[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x3F800000,
                                   0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FC12345,
                                   0x4D800000, 0xCD800000, 0x4D7FFFFF, 0x42B17218, 0xC2CFF1B5, 0x40000000, 0x3F3504F3, 0x3F3504F4, 0x41400000};
enum { SPECIAL = sizeof special / sizeof *special };

size_t math_inputs(float *x, size_t n, uint32_t stride) {
  size_t at = 0;
  for (; at < SPECIAL && at < n; at++) memcpy(x + at, &special[at], sizeof *x);
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32 && at < n; bits += stride) {
    const uint32_t b = (uint32_t)bits;
    memcpy(x + at++, &b, sizeof *x);
  }
  return at;
}

void math_inputs_random(float *x, size_t n, uint32_t seed) {
  uint32_t state = seed * 2654435761u + 1;
  for (size_t i = 0; i < n; i++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    uint32_t bits = (state & 0x807FFFFF) | (64 + (state >> 9) % 100) << 23;
    if (i % 37 == 36) bits = special[state % SPECIAL];
    memcpy(x + i, &bits, sizeof *x);
  }
}

/* tests/test_math.c compares the library with the reference, and the reference with MPFR; these digests hold all
 * machines and compilers to the same bits. */
static const struct {
  const char *what, *digest;
} rows[] = {
#define MATH_DIGEST(what, digest) {what, digest},
#include "math_digests.h"
};

static size_t hold(const char *what, const void *data, size_t n) {
  char digest[33];
  mx_digest(digest, data, n);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].what, what) && !strcmp(rows[i].digest, digest)) return 0;
  printf("    {\"%s\", \"%s\"}, /* not this */\n", what, digest);
  return 1;
}

size_t math_digests(uint32_t isa_mask) {
  enum { N = 1 << 16, ROWS = 64, COLS = 251, T = 50 };
  const mx_exec exec = {.n_threads = 2, .isa_mask = isa_mask};
  float *x = malloc(N * sizeof *x), *dy = malloc(N * sizeof *x), *y = malloc(N * sizeof *x);
  double sums[2 * ROWS];
  size_t differ = 0;
  if (!x || !dy || !y) abort();
  const size_t n = math_inputs(x, N, 65551);
  math_inputs_random(dy, n, 11);
  for (int f = 0; f < MX_MATH_COUNT; f++) {
    char what[40];
    mx_math_array(y, x, n, f, &exec);
    differ += hold(mx_math_name(f), y, n * sizeof *y);
    snprintf(what, sizeof what, "%s'", mx_math_name(f));
    if (!mx_math_gradient(y, x, dy, n, f, &exec)) differ += hold(what, y, n * sizeof *y);
  }
  for (size_t i = 0; i < N; i++) x[i] = (float)((int)(i * 7919 % 4001) - 2000) * 0x1.234p-9f;
  mx_math_row_sums(sums, x, COLS, NULL, 0, ROWS, COLS, &exec);
  mx_math_row_sums(sums + ROWS, x, COLS, dy, COLS, ROWS, COLS, &exec);
  differ += hold("row_sums", sums, sizeof sums);
  mx_math_row_sums(sums, x, N, x, N, 1, N, &exec);
  differ += hold("squares", sums, sizeof *sums);
  mx_math_column_sums(y, 0, x, COLS, x, COLS, ROWS, COLS, &exec);
  differ += hold("column_sums", y, COLS * sizeof *y);
  mx_math_softmax(y, COLS, sums, x, COLS, ROWS, COLS, 0.3f, T, &exec);
  differ += hold("softmax", y, ROWS * COLS * sizeof *y);
  differ += hold("log_sum", sums, ROWS * sizeof *sums);
  mx_math_softmax_backward(y, COLS, y, COLS, x, COLS, ROWS, COLS, 0.3f, T, &exec);
  differ += hold("softmax_backward", y, ROWS * COLS * sizeof *y);
  for (int part = MX_DENSE_WHOLE; part <= MX_DENSE_A_UPPER; part++) {
    char what[40];
    const mx_dense p = {77, 45, 101, x, 101, 1, x + 500, 1, 45, y, 47, .accumulate = part == 1, .part = part, .bias = part % 2 ? NULL : x};
    void *workspace = malloc(mx_dense_workspace(&p, &exec) + 1);
    if (!workspace) abort();
    memcpy(y, x, N * sizeof *y);
    if (mx_dense_gemm(&p, workspace, &exec, NULL)) abort();
    snprintf(what, sizeof what, "dense %d", part);
    differ += hold(what, y, 77 * 47 * sizeof *y);
    free(workspace);
  }
  free(x), free(dy), free(y);
  return differ;
}
