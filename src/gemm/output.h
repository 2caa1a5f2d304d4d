/* Defines how one output of D is stored: where it stands, and its C and bias. It is in a header because both walks over D call it for each
 * output. */
#ifndef MX_GEMM_OUTPUT_H
#define MX_GEMM_OUTPUT_H

#include "gemm/internal.h"

static inline float mxg_c_at(const mxg_plan *plan, const void *c, size_t i, size_t j) {
  return c && plan->beta != 0 ? mxi_gemm_load(c, plan->col_major ? j * plan->ldc + i : i * plan->ldc + j, plan->o.c_type) : 0;
}

static inline float mxg_bias_at(const mxg_plan *plan, size_t i, size_t j) {
  return plan->o.bias ? plan->o.bias[plan->o.bias_of_rows ? i : j] : 0;
}

static inline size_t mxg_d_at(const mxg_plan *plan, size_t i, size_t j) { return plan->col_major ? j * plan->ldd + i : i * plan->ldd + j; }

/** Makes D(i, j) from its sum: combines it with C and bias, rounds it, and stores it at `at`. */
static inline void mxg_put_at(const mxg_plan *plan, void *d, size_t at, const void *c, size_t i, size_t j, float acc) {
  mxi_gemm_store(d, at, plan->o.out, mxi_gemm_combine(plan, acc, mxg_c_at(plan, c, i, j), mxg_bias_at(plan, i, j)));
}

/** The same, stored at its place in D. */
static inline void mxg_put(const mxg_plan *plan, void *d, const void *c, size_t i, size_t j, float acc) {
  mxg_put_at(plan, d, mxg_d_at(plan, i, j), c, i, j, acc);
}

#endif
