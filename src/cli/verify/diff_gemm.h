/* Declares diff --gemm, which judges a product. */
#ifndef CLI_VERIFY_DIFF_GEMM_H
#define CLI_VERIFY_DIFF_GEMM_H

#include "cli/spec/product.h"

typedef struct diff_gemm_args {
  const char *a, *b, *d, *junit;
  product_form product;
  int bound, json, nan_bits, equal_zeros;
} diff_gemm_args;

/** Judge D and print. CLI_FINE, CLI_DIFFERS or CLI_TROUBLE. */
int diff_gemm(const diff_gemm_args *args);

#endif
