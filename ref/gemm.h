/** Declares the reference product: twins of mx_gemm() and mx_gemm_raw(). SPEC 4.
 *  Every operand is decoded whole into exact numbers; every sum is GMP's, rounded where the definition rounds. */
#ifndef REF_GEMM_H
#define REF_GEMM_H

#include "mxgold/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

mx_status ref_gemm(void *d, size_t ldd, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                   const mx_gemm_options *options, mx_error *err);
mx_status ref_gemm_raw(const mx_gemm_problem *problem, mx_error *err);

#ifdef __cplusplus
}
#endif
#endif
