/* Compiles the product in binary64 for two lanes, which every 64-bit machine has. A product and a sum: the product is exact. */
#include <string.h>

typedef double vd __attribute__((vector_size(16)));
enum { W = 2, ROWS = 4, VECTORS = 2 };
#define TABLE mxi_product_scalar
static inline vd vd_load(const double *p) {
  vd x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline void vd_store(double *p, vd x) { memcpy(p, &x, sizeof x); }
static inline vd vd_set(double x) { return (vd){x, x}; }
static inline vd vd_fma(vd a, vd b, vd c) { return a * b + c; }

#include "ablate/product.inc.h"
