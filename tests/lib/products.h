/* Declares products for golden vectors: every accumulation model on mixes of elements and scales, by the reference alone. */
#ifndef TESTS_PRODUCTS_H
#define TESTS_PRODUCTS_H

#include <stddef.h>

/* operation "gemm:MODEL", mix "A*B", what the numbers are like, and D's bytes. */
typedef void product_fn(void *to, const char *operation, const char *mix, const char *inputs, const void *d, size_t n_bytes);

/* Calls fn for each, in a fixed order. Aborts without memory. */
void products_each(product_fn *fn, void *to);

#endif
