/* Compiles the product in binary64 for AVX-512: twenty-four accumulators, three vectors of B, one of A. */
#include <immintrin.h>

typedef __m512d vd;
enum { W = 8, ROWS = 8, VECTORS = 3 };
#define TABLE mxi_product_avx512
static inline vd vd_load(const double *p) { return _mm512_loadu_pd(p); }
static inline void vd_store(double *p, vd x) { _mm512_storeu_pd(p, x); }
static inline vd vd_set(double x) { return _mm512_set1_pd(x); }
static inline vd vd_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }

#include "ablate/product.inc.h"
