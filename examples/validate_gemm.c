/* Shows how mxgold takes the place of the reference product in a BLAS tester.
 *
 * A tester of an MXFP4 GEMM has column-major matrices with leading dimensions, transposes, alpha and beta, packed codes and swizzled scales. This
 * program plays both parts: it makes such a problem, lets "the device" compute it (a plain C loop, with a bug when an argument is given), asks
 * mx_gemm_raw() for the exact bits, first of a few outputs and then of all, and says where the first difference is and how long the reference
 * took. Build: make examples. Run: build/release/examples/validate_gemm [bug] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mxgold/mxgold.h"

enum { M = 1500, N = 1500, K = 512, BLOCK = 32, KB = K / BLOCK, LDD = 1504 };

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The bug: an accumulator of ten bits of mantissa. */
static float shortened(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= ~UINT32_C(0x1FFF);
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* What the device under test would do for one output: a block's dot in integers, one fused multiply-add a block. */
static float device(const uint8_t *a, const uint8_t *b, const uint8_t *sa, const uint8_t *sb, int bug) {
  static const int doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  float acc = 0;
  for (int kb = 0; kb < KB; kb++) {
    int dot = 0;
    for (int k = kb * BLOCK; k < (kb + 1) * BLOCK; k++) dot += doubled[a[k / 2] >> k % 2 * 4 & 15] * doubled[b[k / 2] >> k % 2 * 4 & 15];
    const float term = ldexpf((float)dot, sa[kb] + sb[kb] - 2 * 127 - 2);
    acc += term;
    if (bug) acc = shortened(acc);
  }
  return acc;
}

int main(int argc, char **argv) {
  const int bug = argc > 1;
  (void)argv;
  const size_t n_a = (size_t)M * K / 2, n_b = (size_t)N * K / 2, n_scales = mx_layout_size(MX_LAYOUT_AMD_SHUFFLE, M, KB);
  uint8_t *a = malloc(n_a), *b = malloc(n_b), *sa = malloc(M * KB), *sb = malloc(N * KB), *shuffled = malloc(n_scales);
  float *got = calloc((size_t)LDD * N, 4), *want = calloc((size_t)LDD * N, 4);
  if (!a || !b || !sa || !sb || !shuffled || !got || !want) return 2;
  for (size_t i = 0; i < n_a; i++) a[i] = (uint8_t)mx_random(1, MX_STREAM_DATA, i);
  for (size_t i = 0; i < n_b; i++) b[i] = (uint8_t)mx_random(2, MX_STREAM_DATA, i);
  for (size_t i = 0; i < M * KB; i++) sa[i] = (uint8_t)(120 + mx_random(3, MX_STREAM_DATA, i) % 8);
  for (size_t i = 0; i < N * KB; i++) sb[i] = (uint8_t)(120 + mx_random(4, MX_STREAM_DATA, i) % 8);
  mx_layout_pack(shuffled, MX_LAYOUT_AMD_SHUFFLE, sa, M, KB, 0);

  /* A^T and B as column-major BLAS has them: both run along K. A's scales are pre-swizzled for gfx950, B's plain. D is column-major. */
  mx_gemm_problem p = {.M = M, .N = N, .K = K, .block = BLOCK, .order = MX_COL_MAJOR, .d = want, .ldd = LDD};
  p.a = (mx_gemm_operand){.elem = mx_elem_format(MX_ELEM_E2M1),
                          .transposed = 1,
                          .data = a,
                          .scale = mx_scale_format(MX_SCALE_E8M0),
                          .scales = shuffled,
                          .scale_layout = MX_LAYOUT_AMD_SHUFFLE};
  p.b = (mx_gemm_operand){.elem = mx_elem_format(MX_ELEM_E2M1), .data = b, .scale = mx_scale_format(MX_SCALE_E8M0), .scales = sb};

  for (size_t j = 0; j < N; j++)
    for (size_t i = 0; i < M; i++) got[j * LDD + i] = device(a + i * K / 2, b + j * K / 2, sa + i * KB, sb + j * KB, bug);

  mx_error err;
  /* A spot check: only these four. */
  const size_t pairs[4][2] = {{0, 0}, {M - 1, N - 1}, {17, 1203}, {755, 32}};
  float some[4];
  mx_gemm_problem spot = p;
  spot.d = some;
  spot.pairs = pairs;
  spot.n_pairs = 4;
  if (mx_gemm_raw(&spot, &err)) return fprintf(stderr, "%s\n", err.text), 2;
  for (int n = 0; n < 4; n++)
    printf("D(%zu, %zu): device %a, exact %a\n", pairs[n][0], pairs[n][1], (double)got[pairs[n][1] * LDD + pairs[n][0]], (double)some[n]);

  /* And all of it. */
  const double start = seconds();
  if (mx_gemm_raw(&p, &err)) return fprintf(stderr, "%s\n", err.text), 2;
  printf("reference of %d x %d x %d: %.4f s\n", M, N, K, seconds() - start);
  for (size_t j = 0; j < N; j++)
    for (size_t i = 0; i < M; i++)
      if (memcmp(&got[j * LDD + i], &want[j * LDD + i], 4)) {
        printf("first difference at (%zu, %zu): device %a, expected %a\n", i, j, (double)got[j * LDD + i], (double)want[j * LDD + i]);
        return 1;
      }
  puts("no difference");
  return 0;
}
