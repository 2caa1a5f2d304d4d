/* Runs all 2^32 floats through the functions of math.h.
 *
 *   exhaustive_math [NAME [STRIDE [REF]]]     NAME: one function, or "all"; STRIDE: only every STRIDE-th float (1)
 *
 * Compared with the C library, it finds the largest error in ulps, which formats/math.def states, and how many results are not correctly
 * rounded. Double functions decide where that is clear, long double functions where the error is near one half or the function near a root.
 * The bits of all vector ISAs are compared with each other and, on every REF-th (61) chunk, with the scalar code and the reference. Exit 1
 * if a bound or a bit does not hold. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/math.h"
#include "mxgold/isa.h"
#include "mxgold/math.h"

enum { CHUNK = 1 << 14 };

/* Defined both in double and in long double; l is the suffix. */
#define FUNCTIONS(real, l)                                                                                                                     \
  static real two_u##l(real x) { return (real)1.5957691216057307117597842397375L * x * (1 + (real)0.044715L * x * x); }                        \
  static real logistic##l(real x) { return 1 / (1 + exp##l(-x)); }                                                                             \
  static real normal##l(real x) { return erfc##l(-x * (real)0.70710678118654752440084436210485L) / 2; }                                        \
  static real value##l(int f, real x) {                                                                                                        \
    switch (f) {                                                                                                                               \
    case MX_MATH_EXP:                                                                                                                          \
      return exp##l(x);                                                                                                                        \
    case MX_MATH_LOG:                                                                                                                          \
      return log##l(x);                                                                                                                        \
    case MX_MATH_TANH:                                                                                                                         \
      return tanh##l(x);                                                                                                                       \
    case MX_MATH_ERF:                                                                                                                          \
      return erf##l(x);                                                                                                                        \
    case MX_MATH_SIN:                                                                                                                          \
      return sin##l(x);                                                                                                                        \
    case MX_MATH_COS:                                                                                                                          \
      return cos##l(x);                                                                                                                        \
    case MX_MATH_RSQRT:                                                                                                                        \
      return 1 / sqrt##l(x);                                                                                                                   \
    case MX_MATH_SIGMOID:                                                                                                                      \
      return logistic##l(x);                                                                                                                   \
    case MX_MATH_SILU:                                                                                                                         \
      return x == -INFINITY ? (real)-0.0 : x / (1 + exp##l(-x));                                                                               \
    case MX_MATH_GELU_TANH:                                                                                                                    \
      return x == -INFINITY ? (real)-0.0 : x / (1 + exp##l(-two_u##l(x)));                                                                     \
    default:                                                                                                                                   \
      return x == -INFINITY ? (real)-0.0 : x * normal##l(x);                                                                                   \
    }                                                                                                                                          \
  }                                                                                                                                            \
  static real slope##l(int f, real x) {                                                                                                        \
    if (isinf(x)) return f != MX_MATH_TANH && f != MX_MATH_SIGMOID && x > 0;                                                                   \
    switch (f) {                                                                                                                               \
    case MX_MATH_TANH:                                                                                                                         \
      return 4 * logistic##l(2 * x) * logistic##l(-2 * x);                                                                                     \
    case MX_MATH_SIGMOID:                                                                                                                      \
      return logistic##l(x) * logistic##l(-x);                                                                                                 \
    case MX_MATH_SILU:                                                                                                                         \
      return logistic##l(x) * (1 + x * logistic##l(-x));                                                                                       \
    case MX_MATH_GELU_TANH:                                                                                                                    \
      return logistic##l(two_u##l(x)) *                                                                                                        \
             (1 + x * logistic##l(-two_u##l(x)) * (real)1.5957691216057307117597842397375L * (1 + 3 * (real)0.044715L * x * x));               \
    default:                                                                                                                                   \
      return normal##l(x) + x * (real)0.39894228040143267793994605993438L * exp##l(-x * x / 2);                                                \
    }                                                                                                                                          \
  }
FUNCTIONS(double, )
FUNCTIONS(long double, l)

/* The error in units of the last place of a float of the size of `exact`. */
static double ulps(float y, long double exact) {
  if (y != y || exact != exact) return y != y && exact != exact ? 0 : INFINITY;
  if ((long double)y == exact) return 0;
  const long double mag = fabsl(exact);
  if (mag >= 0x1p128L) return isinf(y) && (y > 0) == (exact > 0) ? 0 : INFINITY;
  const int top = mag < 0x1p-126L ? -126 : ilogbl(mag);
  const long double near = isinf(y) ? copysignl(0x1p128L, (long double)y) : (long double)y;
  return (double)fabsl(ldexpl(near - exact, 23 - top));
}

/* The same if the error of the double itself does not matter: y is a normal number, or far outside their range (0.25 then stands for
 * anything less). Otherwise -1. */
static double clear_ulps(int f, int is_slope, float x, float y) {
  uint32_t bits;
  uint64_t place;
  double unit;
  memcpy(&bits, &y, sizeof bits);
  const uint32_t e = bits >> 23 & 255;
  const double exact = is_slope ? slope(f, (double)x) : value(f, (double)x);
  if (y != y && exact != exact) return 0;
  if (y == 0 && fabs(exact) < 0x1p-151) return is_slope || !signbit(y) == !signbit(exact) ? 0.25 : INFINITY;
  if (isinf(y) && fabs(exact) > 0x1p129) return (y > 0) == (exact > 0) ? 0 : INFINITY;
  if (e < 30 || e > 250 || (is_slope && x < 0 && e < 120)) return -1;
  memcpy(&place, &exact, sizeof place);
  place = ((UINT64_C(2046) + 23) << 52) - (place & UINT64_C(0x7FF) << 52);
  memcpy(&unit, &place, sizeof unit);
  const double off = fabs((double)y - exact) * unit;
  return off < 0.4999 ? off
                      : -1; /* farther than the error of the double, which is at most 2^-20 of an ulp if the function is not near a root */
}

typedef struct found {
  uint64_t n, not_nearest, differ;
  double worst;
  float at, by;
} found;

static void by(float *y, int f, int is_slope, const float *x, const float *one, size_t n, uint32_t isa) {
  const mx_exec exec = {.n_threads = 1, .isa_mask = mx_isa_only(isa)};
  if (is_slope ? mx_math_gradient(y, x, one, n, f, &exec) : mx_math_array(y, x, n, f, &exec)) abort();
}

static void chunk(found *all, int f, int is_slope, const float *x, size_t n, int with_reference) {
  static const uint32_t isas[] = {0, MX_ISA_AVX2, MX_ISA_AVX512, MX_ISA_NEON};
  float y[CHUNK], want[CHUNK], one[CHUNK];
  const uint32_t usable = mx_isa_usable(0);
  for (size_t i = 0; i < n; i++) one[i] = 1;
  if (with_reference && is_slope) ref_math_gradient(want, x, one, n, f);
  if (with_reference && !is_slope) ref_math_array(want, x, n, f);
  if (!with_reference)
    by(want, f, is_slope, x, one, n, usable & MX_ISA_AVX512 ? MX_ISA_AVX512 : usable & MX_ISA_AVX2 ? MX_ISA_AVX2 : usable & MX_ISA_NEON);
  for (int isa = !with_reference; isa < 4; isa++) {
    if (isas[isa] && !(usable & isas[isa])) continue;
    by(y, f, is_slope, x, one, n, isas[isa]);
    for (size_t i = 0; i < n; i++) all->differ += memcmp(y + i, want + i, sizeof *y) != 0;
  }
  for (size_t i = 0; i < n; i++) {
    double off = clear_ulps(f, is_slope, x[i], want[i]);
    if (off < 0) off = ulps(want[i], is_slope ? slopel(f, (long double)x[i]) : valuel(f, (long double)x[i]));
    all->not_nearest += off > 0.5;
    if (off > all->worst) all->worst = off, all->at = x[i], all->by = want[i];
  }
  all->n += n;
}

static int run(int f, int is_slope, uint64_t stride, uint64_t reference) {
  found all = {0};
  const uint64_t n_all = ((UINT64_C(1) << 32) + stride - 1) / stride;
  const double start = omp_get_wtime();
#pragma omp parallel
  {
    found mine = {0};
    float x[CHUNK];
#pragma omp for schedule(dynamic)
    for (uint64_t from = 0; from < n_all; from += CHUNK) {
      const size_t n = (size_t)(n_all - from < CHUNK ? n_all - from : CHUNK);
      for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)((from + i) * stride);
        memcpy(x + i, &bits, sizeof *x);
      }
      chunk(&mine, f, is_slope, x, n, from / CHUNK % reference == 0);
    }
#pragma omp critical
    {
      all.n += mine.n, all.not_nearest += mine.not_nearest, all.differ += mine.differ;
      if (mine.worst > all.worst) all.worst = mine.worst, all.at = mine.at, all.by = mine.by;
    }
  }
  const double bound = is_slope ? mx_math_gradient_ulps(f) : mx_math_ulps(f);
  const int holds = all.worst <= bound && !all.differ;
  printf("%-10s%s %10" PRIu64 " floats: at most %.9f ulp (at %a: %a), stated %g; %" PRIu64 " not the nearest, %" PRIu64
         " differ from the reference%s, %.0f s\n",
         mx_math_name(f), is_slope ? "'" : " ", all.n, all.worst, (double)all.at, (double)all.by, bound, all.not_nearest, all.differ,
         holds ? "" : ": DOES NOT HOLD", omp_get_wtime() - start);
  fflush(stdout);
  return !holds;
}

int main(int argc, char **argv) {
  const char *only = argc > 1 && strcmp(argv[1], "all") ? argv[1] : NULL;
  const uint64_t stride = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  const uint64_t reference = argc > 3 ? strtoull(argv[3], NULL, 10) : 61;
  int bad = 0, ran = 0;
  if (!stride || !reference) return 2;
  for (int f = 0; f < MX_MATH_COUNT; f++) {
    if (only && strcmp(only, mx_math_name(f))) continue;
    ran++;
    for (int is_slope = 0; is_slope <= (mx_math_gradient_ulps(f) > 0); is_slope++) bad |= run(f, is_slope, stride, reference);
  }
  if (!ran) fprintf(stderr, "exhaustive_math: no function is called %s\n", only);
  return ran ? bad : 2;
}
