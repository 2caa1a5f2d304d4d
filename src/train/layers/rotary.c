/* Computes the rotary position embedding (RoPE), rotate-half. */
#include <math.h>

#include "mxgold/ablate.h"
#include "train/layers/layers.h"
#include "train/layers/parallel.h"

/* 2^x in binary64 from +, * and ldexp: the tables must not depend on a C library. Error below 4e-16 of the value. */
static double exp2_of(double x) {
  const double whole = floor(x), y = (x - whole) * 0.69314718055994530942;
  double term = 1, sum = 1;
  for (int i = 1; i < 24; i++) sum += term *= y / i;
  return ldexp(sum, (int)whole);
}

/* Sine and cosine of an angle up to about 10^6, to some 10^-16 of absolute error: two parts of pi / 2, then the series. */
static void sine_and_cosine(double *s, double *c, double x) {
  const double quarter = floor(x * 0.63661977236758134308 + 0.5);
  const double y = fma(-quarter, 6.123233995736766036e-17, fma(-quarter, 1.5707963267948965580, x));
  double sine = 0, cosine = 0, term = 1;
  for (int i = 0; i < 24; i += 2) {
    cosine += term;
    term *= y / (i + 1);
    sine += term;
    term *= -y / (i + 2);
  }
  switch ((long long)quarter & 3) {
  case 0:
    *s = sine, *c = cosine;
    break;
  case 1:
    *s = cosine, *c = -sine;
    break;
  case 2:
    *s = -sine, *c = -cosine;
    break;
  default:
    *s = -cosine, *c = sine;
  }
}

void mxi_rotary_tables(float *cosine, float *sine, size_t T, size_t D, double base) {
  const double octaves = mx_log2(base);
  for (size_t i = 0; i < D / 2; i++) {
    const double rate = exp2_of(-octaves * (double)(2 * i) / (double)D);
    for (size_t t = 0; t < T; t++) {
      double s, c;
      sine_and_cosine(&s, &c, (double)t * rate);
      sine[t * (D / 2) + i] = (float)s;
      cosine[t * (D / 2) + i] = (float)c;
    }
  }
}

void mxi_rotary(float *x, const float *cosine, const float *sine, size_t N, size_t T, size_t C, size_t D, int back, const mx_exec *exec) {
  const size_t half = D / 2;
  const float sign = back ? -1.0f : 1.0f;
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, N *C))
  for (size_t n = 0; n < N; n++) {
    const float *c = cosine + n % T * half, *s = sine + n % T * half;
    for (float *a = x + n * C; a < x + (n + 1) * C; a += D) {
      float *b = a + half;
#pragma omp simd
      for (size_t i = 0; i < half; i++) {
        const float u = a[i], v = b[i], t = sign * s[i];
        a[i] = u * c[i] - v * t;
        b[i] = v * c[i] + u * t;
      }
    }
  }
}
