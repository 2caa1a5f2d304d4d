/* Declares what the calls of the block-scaled product share. SPEC section 4.
 *
 * gemm, raw   the two calls: checks, and operands as mxg_operand
 * run         tiles, threads, and which kernel a tile may use: those of tile/ on decoded panels, those of codes/ on packed codes
 * fused       matrix-unit models: operands as mma/ wants them */
#ifndef MX_GEMM_INTERNAL_H
#define MX_GEMM_INTERNAL_H

#include "gemm/tile/tile.h"

/** MX_GEMM_FUSED: whether the model takes these operands; one matrix of the batch, whole or the listed outputs. */
mx_status mxi_gemm_fused_check(const mxg_plan *plan, mx_error *err);
mx_status mxi_gemm_fused_run(const mxg_plan *plan, void *d, const void *c);
mx_status mxi_gemm_fused_pairs(const mxg_plan *plan, void *d, const void *c, const size_t (*pairs)[2], size_t n, int threads);

/** One matrix of the batch: all of D, or the listed pairs into d[0 .. n_pairs). d and c are NULL-safe as the options say. */
mx_status mxi_gemm_run(const mxg_plan *plan, void *d, const void *c, const size_t (*pairs)[2], size_t n_pairs);
/** The plan's own fields from a, b, options; checks what both calls check. */
mx_status mxi_gemm_plan_init(mxg_plan *plan, mx_error *err);

/** The plan of mx_gemm(), operands at the first matrix of the batch; and matrix t: rows [t * rows, (t + 1) * rows) of the tensor. */
mx_status mxi_gemm_plan_of_tensors(mxg_plan *plan, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                                   const mx_gemm_options *options, size_t ldd, mx_error *err);
void mxi_gemm_move_to(mxg_operand *o, const mx_tensor *whole, size_t t, size_t rows);

#endif
