/* Declares the inner loops of the sums, which a vector ISA may do with the same bits, since lane i % 4 takes value i in each. */
#ifndef MX_ABLATE_SUMS_SUMS_H
#define MX_ABLATE_SUMS_SUMS_H

#include <stddef.h>
#include <stdint.h>

enum { SUM_LANES = 4 };

/* What one pass over a piece finds. */
typedef struct sum_scan {
  double xx[SUM_LANES], yy[SUM_LANES], xy[SUM_LANES], ee[SUM_LANES], max_error[SUM_LANES];
  uint64_t under; /* values that became 0 */
  int far;        /* one that did not is off by more than its own size, or was it 0? */
  int bad;        /* NaN or Inf: the rest means nothing */
} sum_scan;

typedef struct sum_kernels {
  /* Of all n pairs where n is a multiple of `step`; the caller does the rest. *s is zeroed before. */
  void (*scan)(sum_scan *s, const float *x, const float *y, size_t n);
  /* Largest |x - y| / |x| over x != 0. */
  double (*relative)(const float *x, const float *y, size_t n);
  size_t step;
} sum_kernels;

#if defined(__x86_64__)
extern const sum_kernels mxi_sum_kernels_avx2;
#endif

#endif
