/* Declares what the suites share. Each fills x[n][rows][ld], which holds zeros. */
#ifndef MX_VERIFY_SUITES_GEN_H
#define MX_VERIFY_SUITES_GEN_H

#include "mxgold/verify.h"

typedef struct gen {
  const mx_spec *spec;
  size_t n, rows, cols, ld, block_rows, block_cols;
  float *x;
  uint64_t seed, drawn;
  int own_cols;   /* the caller named no length */
  size_t longest; /* mxi_gen_order() that refuses: the longest rows that it can do */
} gen;

/** Next 32 random bits: stream "data" of the seed. */
uint32_t mxi_gen_bits(gen *g);
/** Uniform in [0, n). */
uint32_t mxi_gen_below(gen *g, uint32_t n);
/** Approximately normal, exactly the same everywhere: a sum of uniforms, no libm. */
float mxi_gen_normal(gen *g);
/** The float `ulps` away (toward larger magnitudes if positive), 0 for what leaves the finite numbers. */
float mxi_gen_nudge(float x, int ulps);
float mxi_gen_from_bits(uint32_t bits);
/** A finite float of any exponent. */
float mxi_gen_any_finite(gen *g);

mx_status mxi_gen_random(gen *g);
mx_status mxi_gen_ties(gen *g);
mx_status mxi_gen_boundary(gen *g);
mx_status mxi_gen_codes(gen *g);
mx_status mxi_gen_special(gen *g);
mx_status mxi_gen_tails(gen *g);
mx_status mxi_gen_padding(gen *g);
mx_status mxi_gen_layout(gen *g);
mx_status mxi_gen_order(gen *g);
mx_status mxi_gen_cancel(gen *g);

/** The shape that a suite would have, before there is memory for it. MX_ERR_NOMEM (overflow). Not of suite minimal. */
mx_status mxi_gen_plan(gen *g, int suite, const mx_spec *spec, size_t rows, size_t cols, uint64_t seed, mx_error *err);

/** Shapes that depend on the spec. */
size_t mxi_gen_codes_rows(const mx_spec *spec, size_t cols);
size_t mxi_gen_boundary_rows(const mx_spec *spec, size_t cols);
size_t mxi_gen_special_count(void);

/** Suite minimal, which chooses its own tensors. */
mx_status mxi_minimal_cases(mx_cases *out, uint64_t seed);

#endif
