/* Functions of float32 arrays: names, checks, threads; and sines of large numbers. */
#include "kernels/math/kernels.h"

#include <math.h>
#include <string.h>

#include "kernels/threads.h"

static const struct {
  const char *name, *doc;
  double ulps, gradient_ulps;
} rows[] = {
#define MX_MATH(id, name, ulps, gradient_ulps, what) {name, what, ulps, gradient_ulps},
#include "formats/math.def"
};

static int known(int function) { return (unsigned)function < MX_MATH_COUNT; }

const char *mx_math_name(int function) { return known(function) ? rows[function].name : NULL; }
const char *mx_math_doc(int function) { return known(function) ? rows[function].doc : NULL; }
double mx_math_ulps(int function) { return known(function) ? rows[function].ulps : -1; }
double mx_math_gradient_ulps(int function) { return known(function) ? rows[function].gradient_ulps : -1; }
int mx_math_find(const char *name) {
  for (int i = 0; name && i < MX_MATH_COUNT; i++)
    if (!strcmp(rows[i].name, name)) return i;
  return -1;
}

const mx_math_kernels *mxi_math_kernels_for(const mx_exec *exec) {
  const uint32_t usable = mx_isa_usable(exec ? exec->isa_mask : 0);
  (void)usable;
#if defined(__x86_64__)
  if (usable & MX_ISA_AVX512) return &mxi_math_avx512;
  if (usable & MX_ISA_AVX2) return &mxi_math_avx2;
#elif defined(__aarch64__)
  if (usable & MX_ISA_NEON) return &mxi_math_neon;
#endif
  return &mxi_math_scalar;
}

int mxi_math_threads(const mx_exec *exec, size_t values) {
  enum { LEAST = 1 << 14 }; /* tens of microseconds of the slower functions */
  const size_t n = (size_t)mxi_threads_wanted(exec ? exec->n_threads : 0), worth = values / LEAST;
  return mxi_threads_granted((int)(worth < 1 ? 1 : worth < n ? worth : n));
}

/* 2 / pi, the bits after the point. x = m 2^e, m of 24 bits: of the product those bits of 2 / pi alone matter that stand from 2^(1 - e) down, since
 * what is above gives whole turns; 128 of them leave an error below 2^-102. */
int mxi_math_reduce(double *rest, double x) {
  static const uint64_t two_over_pi[4] = {0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561};
  int e;
  const uint64_t m = (uint64_t)ldexp(frexp(fabs(x), &e), 24);
  e -= 24; /* at least 5 */
  const int skip = e - 2, word = skip / 64, bit = skip % 64;
  const uint64_t *from = two_over_pi + word;
  unsigned __int128 window = (unsigned __int128)from[0] << 64 | from[1];
  if (bit) window = window << bit | (word + 2 < 4 ? from[2] >> (64 - bit) : 0);
  const unsigned __int128 product = window * m;                                  /* units of 2^-126, modulo 4 */
  const unsigned __int128 up = product + ((unsigned __int128)1 << 125);          /* to the nearest quarter */
  const int quadrant = (int)(up >> 126);                                         /* of 2^126 units each */
  const __int128 f = (__int128)(product - ((unsigned __int128)quadrant << 126)); /* signed: the top quarter wraps around */
  const double high = (double)(int64_t)(f >> 64), low = (double)(uint64_t)f;
  const double r = (high * 0x1p64 + low) * 0x1p-126 * 0x1.921fb54442d18p+0;
  *rest = x < 0 ? -r : r;
  return x < 0 ? -quadrant : quadrant;
}

enum { CHUNK = 4096 };
static size_t length(size_t i, size_t n) { return n - i < CHUNK ? n - i : CHUNK; }

mx_status mx_math_array(float *y, const float *x, size_t n, int function, const mx_exec *exec) {
  if (!known(function) || (n && (!y || !x))) return MX_ERR_ARG;
  const mx_math_kernels *k = mxi_math_kernels_for(exec);
  const int n_threads = mxi_math_threads(exec, n);
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
  for (size_t i = 0; i < n; i += CHUNK) k->array[function](y + i, x + i, length(i, n));
  return MX_OK;
}

mx_status mx_math_gradient(float *dx, const float *x, const float *dy, size_t n, int function, const mx_exec *exec) {
  if (!known(function) || rows[function].gradient_ulps <= 0 || (n && (!dx || !x || !dy))) return MX_ERR_ARG;
  const mx_math_kernels *k = mxi_math_kernels_for(exec);
  const int n_threads = mxi_math_threads(exec, n);
#pragma omp parallel for schedule(static) num_threads(n_threads) if (n_threads > 1)
  for (size_t i = 0; i < n; i += CHUNK) k->gradient[function](dx + i, x + i, dy + i, length(i, n));
  return MX_OK;
}
