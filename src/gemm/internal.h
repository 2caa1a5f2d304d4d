/* Declares what the calls of the block-scaled product share. SPEC section 4.
 *
 * gemm.c, raw.c   the two calls: checks, and operands as mxg_operand
 * run.c           tiles, threads, and the choice of a tile's kernel: from tile/ on decoded panels, from codes/ on packed codes
 * fused.c         matrix-unit models: operands in the form that mma/ takes */
#ifndef MX_GEMM_INTERNAL_H
#define MX_GEMM_INTERNAL_H

#include "gemm/tile/tile.h"

/** MX_GEMM_FUSED: checks that the model takes these operands; runs one matrix of the batch, all of D or only the listed outputs. */
mx_status mxi_gemm_fused_check(const mxg_plan *plan, mx_error *err);
mx_status mxi_gemm_fused_run(const mxg_plan *plan, void *d, const void *c);
mx_status mxi_gemm_fused_pairs(const mxg_plan *plan, void *d, const void *c, const size_t (*pairs)[2], size_t n, int threads);

/** Computes one matrix of the batch: all of D, or the listed pairs into d[0 .. n_pairs). c may be NULL if the options do not use it. */
mx_status mxi_gemm_run(const mxg_plan *plan, void *d, const void *c, const size_t (*pairs)[2], size_t n_pairs);
/** Fills in the fields of the plan that follow from a, b and the options, and makes the checks that both calls need. */
mx_status mxi_gemm_plan_init(mxg_plan *plan, mx_error *err);

/** Makes the plan of mx_gemm(), with operands at the first matrix of the batch, or moves it to matrix t: rows [t * rows, (t + 1) * rows) of
 *  the tensor. */
mx_status mxi_gemm_plan_of_tensors(mxg_plan *plan, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                                   const mx_gemm_options *options, size_t ldd, mx_error *err);
void mxi_gemm_move_to(mxg_operand *o, const mx_tensor *whole, size_t t, size_t rows);

#endif
