/** Defines the C ABI of a kernel under test: `mxgold test --plugin ./kernel.so` loads a shared object that defines mxgold_quantize.
 *
 *  The kernel runs in a child process. Its buffers end at a guard page, so that a read or write past the end faults at that instruction. A
 *  crash, a fault or a kernel that does not return in time is a finding, not a failure of the tool. Unless options say otherwise the child may
 *  take 10 s, 16 GiB of data, 1 GiB per file and an hour of processor time. A kernel that ends or stops its parent process is reported by the process
 *  above that. */
#ifndef MXGOLD_PLUGIN_H
#define MXGOLD_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum { MXGOLD_PLUGIN_ABI = 1, MXGOLD_DECLINED = 1, MXGOLD_FAILED = -1 };

/** One matrix to quantise, with room for what the kernel makes of it. */
typedef struct mxgold_job {
  uint32_t abi;          /* MXGOLD_PLUGIN_ABI */
  const char *spec;      /* "key=value key=value", every key */
  size_t rows, cols, ld; /* of x, row stride ld >= cols; what lies between cols and ld is not data */
  const float *x;        /* [rows][ld], read only */
  uint8_t *codes;        /* [rows][code_stride]: out, zeroed; what lies behind the last column is compared too and must be codes of +0 */
  size_t code_stride;    /* bytes per row */
  uint8_t *scales;       /* [scale_rows][scale_cols][scale_bytes]: out */
  size_t scale_rows, scale_cols, scale_bytes;
  float *tensor_scale; /* out; set to 1 if the spec has none */
} mxgold_job;

/** Fill codes, scales and tensor_scale, and return 0. MXGOLD_DECLINED says that the kernel does not support this spec; the case is left out.
 *  Anything else, such as MXGOLD_FAILED, says that it tried and failed, which is a finding. */
typedef int mxgold_quantize_fn(const mxgold_job *job);
int mxgold_quantize(const mxgold_job *job);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
