/* Compiles the product in binary64 for AVX2: twelve accumulators, three vectors of B, one of A. */
#include <immintrin.h>

typedef __m256d vd;
enum { W = 4, ROWS = 4, VECTORS = 3 };
#define TABLE mxi_product_avx2
static inline vd vd_load(const double *p) { return _mm256_loadu_pd(p); }
static inline void vd_store(double *p, vd x) { _mm256_storeu_pd(p, x); }
static inline vd vd_set(double x) { return _mm256_set1_pd(x); }
static inline vd vd_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }

#include "ablate/product.inc.h"
