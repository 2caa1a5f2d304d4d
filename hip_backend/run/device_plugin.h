/** Declares the C ABI of a kernel under test whose operands are on a device. Define mxgold_quantize_device() and link it with device_plugin.cc
 *  into a shared object; `mxgold test --plugin` then runs it. The adapter opens the device, copies the case there and the result back.
 *
 *  Worked example: examples/device_kernel.cc; docs/guide/HIP.md, "Put your own GPU kernel under test". */
#ifndef MXH_DEVICE_PLUGIN_H
#define MXH_DEVICE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "hip_backend/run/device_api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MXGOLD_DEVICE_PLUGIN_ABI = 1 };

typedef struct mxgold_device_job {
  uint32_t abi;          /* MXGOLD_DEVICE_PLUGIN_ABI */
  const char *spec;      /* "key=value key=value", every key */
  size_t rows, cols, ld; /* of x, whose row stride is ld >= cols; what lies between cols and ld must not be used */
  const float *x;        /* device, [rows][ld], read only */
  uint8_t *codes;        /* device, [rows][code_stride]: out, zeroed */
  size_t code_stride;    /* bytes per row */
  uint8_t *scales;       /* device, [scale_rows][scale_cols][scale_bytes]: out, zeroed */
  size_t scale_rows, scale_cols, scale_bytes;
  float *tensor_scale; /* host, out; leave it alone if the spec has none */
  mxh_device *device;  /* owns the memory; its kind is "hip" (hipMalloc in this process), "cuda" or "host" */
} mxgold_device_job;

/** Launches the kernel. Return 0, or 1 (MXGOLD_DECLINED) if the kernel does not do this spec (say why on stderr); anything else is a
 *  failure. The adapter waits for the device and checks it: a launch that failed is a failure whatever is returned. It also prints what the
 *  host runtime reports. */
int mxgold_quantize_device(const mxgold_device_job *job);

#ifdef __cplusplus
}
#endif
#endif
