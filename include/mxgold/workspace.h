/** Keeps memory between calls, so that the next call of the same sizes allocates nothing. */
#ifndef MXGOLD_WORKSPACE_H
#define MXGOLD_WORKSPACE_H

#include <stddef.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** Pieces of memory, taken from the heap when a call first needs them and given back to the workspace, not to the heap, when it ends. Name it in
 *  mx_exec.workspace: mx_quantize(), mx_quantize_transposed(), mx_quantize_both(), mx_dequantize(), mx_tensor_amax() and mx_gemm() then take theirs
 *  from it, and so do mx_linear_forward() and mx_linear_backward() for the calls that they make. A call whose sizes, specs and number of threads were
 *  seen before allocates nothing; the bits are the same with and without. Only tiles of a product whose scales are too far apart for a product of codes
 *  take memory when the first of them comes. Products of matrix units (MX_GEMM_FUSED) and mx_gemm_bounds() take memory of their own.
 *  Threads: any number of calls may share one workspace at the same time; it then grows to what they hold together.   Oracle: tests/test_nomem.c, which counts allocations. */
typedef struct mx_workspace mx_workspace;
/** An empty one; NULL: no memory. */
mx_workspace *mx_workspace_new(void);
/** Free it with all of its memory, after the last call that names it. NULL is allowed. */
void mx_workspace_free(mx_workspace *workspace);
/** Bytes that it holds. */
size_t mx_workspace_bytes(const mx_workspace *workspace);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
