/** Computes the approximate reciprocal that fast NVFP4 quantisers use, bit for bit. */
#ifndef MXGOLD_RCP_H
#define MXGOLD_RCP_H

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** What NVIDIA's rcp.approx.ftz.f32 (one MUFU.RCP) gives on sm_90, as bit patterns of binary32. It differs from the correctly rounded
 *  reciprocal in 13.2 % of all fractions, by one unit.
 *  bits  any binary32. NaN gives 0x7FFFFFFF; Inf a zero, zero and subnormals an Inf, results below 2^-126 a zero, each with the input's sign.
 *  Threads: reentrant.
 *  Source: outputs of an NVIDIA H200 for all 2^32 inputs; formats/rcp_sm90.def.   Oracle: tests/silicon/h200/all32.digests (make silicon-check),
 *  `all32` on the device. It was not compared with other generations. */
uint32_t mx_rcp_approx_sm90(uint32_t bits);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
