/* Applies functions to float32 arrays: looks up names, checks arguments and divides the work among threads. */
#include "kernels/math/kernels.h"

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
  enum { LEAST = 1 << 14 }; /* tens of microseconds for the slower functions */
  const size_t n = (size_t)mxi_threads_wanted(exec ? exec->n_threads : 0), worth = values / LEAST;
  return mxi_threads_granted((int)(worth < 1 ? 1 : worth < n ? worth : n));
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
