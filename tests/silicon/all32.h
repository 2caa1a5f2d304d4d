/** Declares functions of one binary32 that the device computes over all 2^32 inputs, in order. */
#ifndef SIL_ALL32_H
#define SIL_ALL32_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Outputs of inputs first .. first+n-1 (bit patterns) into device memory; asynchronous; 0 or a CUDA error code. */
typedef int sil_all32(uint64_t first, size_t n, void *out);

/** Conversions, in the order of cvt.def. */
extern sil_all32 *const sil_cvt[];
/** rcp.approx.ftz.f32: 4 bytes an output. */
sil_all32 sil_rcp;

#ifdef __cplusplus
}
#endif
#endif
