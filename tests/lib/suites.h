/* Declares deterministic inputs that show what a quantiser does: the same floats on every machine, for tests and for golden vectors.
 *
 * A suite is a function of (suite, spec): `ties` puts elements on the midpoints of their own block's scale, so it asks a quantiser what that scale
 * is; golden generation passes ref/ alone. */
#ifndef TESTS_SUITES_H
#define TESTS_SUITES_H

#include "mxgold/quantize.h"

typedef enum suite {
  SUITE_RANDOM,    /* normal values in blocks of very different size */
  SUITE_TIES,      /* midpoints of the block's own scale, and one ulp to either side */
  SUITE_BOUNDARY,  /* block maxima around every power of two, 6 and 7 times it, and the steps of the scale formats */
  SUITE_SPECIAL,   /* zeros of both signs, subnormals, the smallest and largest floats */
  SUITE_NONFINITE, /* NaN and Inf among numbers */
  SUITE_TAILS,     /* a row length that no block divides */
  SUITE_ROW,       /* one row */
  SUITE_COLUMN,    /* one column */
  SUITE_EMPTY,     /* no element */
  SUITE_COUNT
} suite;

/* What a suite needs of an implementation. */
typedef struct suite_oracle {
  mx_status (*quantize)(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec,
                        mx_error *err);
  mx_status (*dequantize)(float *out, size_t ld, const mx_tensor *tensor, const mx_spec *spec, const mx_exec *exec);
} suite_oracle;

const char *suite_name(suite s);
/* A malloc'ed [rows][cols] matrix; the caller frees it. Never NULL: aborts without memory. */
float *suite_make(size_t *rows, size_t *cols, suite s, const mx_spec *spec, const suite_oracle *oracle);

#endif
