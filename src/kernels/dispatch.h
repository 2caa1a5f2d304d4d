/* Declares the table of kernels, with a row for each instruction set and a column for each operation. */
#ifndef MX_KERNELS_DISPATCH_H
#define MX_KERNELS_DISPATCH_H

#include "kernels/bytes.h"
#include "kernels/codec_kernels.h"
#include "kernels/differ.h"
#include "kernels/input.h"
#include "kernels/stages.h"
#include "kernels/values.h"

/* MX_KERNEL(column, type, what it does). If a column is NULL in the scalar row, the driver of the operation has the scalar code. */
#define MX_KERNEL_COLUMNS(MX_KERNEL)                                                                                                           \
  MX_KERNEL(stages, const mx_stage_kernels *, "quantize, tensor amax")                                                                         \
  MX_KERNEL(values, const mx_value_kernels *, "dequantize, decode_array")                                                                      \
  MX_KERNEL(encode, mx_encode_kernel *, "encode_array")                                                                                        \
  MX_KERNEL(bytes, const mx_byte_kernels *, "pack, unpack, layouts")                                                                           \
  MX_KERNEL(input, mx_input_kernel *, "hadamard, flush, input.dtype")                                                                          \
  MX_KERNEL(turn, mx_turn_kernel *, "transposed input")                                                                                        \
  MX_KERNEL(turned_amax, mx_turned_amax_kernel *, "tensor amax of rotated, transposed input")                                                  \
  MX_KERNEL(widen, mx_widen_kernel *, "16-bit input")                                                                                          \
  MX_KERNEL(differ, const mx_differ_kernels *, "diff")

typedef struct mx_kernels {
  uint32_t isa; /* MX_ISA_*, or 0 for scalar code */
#define MX_KERNEL(column, type, what) type column;
  MX_KERNEL_COLUMNS(MX_KERNEL)
#undef MX_KERNEL
} mx_kernels;

/** The row for a call that must not use the ISAs `off` (mx_exec.isa_mask): the best of mx_isa_usable(off). Never NULL. */
const mx_kernels *mxi_kernels_for(uint32_t off);

#endif
