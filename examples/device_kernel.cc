/* Shows how a kernel on a device is put under the harness. This one launches native_mxfp4, which uses gfx950's own instructions. Put your launch in its
 * place: a HIP kernel by hipLaunchKernel, hipBLASLt, a Triton kernel's compiled function. The pointers of the job are device pointers, in a process of
 * their own.
 *
 *   make device-plugin
 *   mxgold test --plugin build/release/device_kernel.so --set scale.rule=even
 *
 * On a machine without a gfx950: MXGOLD_DEVICE=host runs the same source on the CPU host runtime. -DBUG_ROWS forgets the last row. */
#include <stdio.h>
#include <string.h>

#include "hip_backend/run/device_plugin.h"
#include "hip_backend/gfx950/native.h"

extern "C" int mxgold_quantize_device(const mxgold_device_job *job) {
  static const gfx950_rules rules = gfx950_rules_default(); /* for the host runtime; a device ignores it */
  if (!strstr(job->spec, "elem=e2m1 scale=e8m0 block=1x32 scale.rule=even") || !strstr(job->spec, "elem.round=rne")) return 1;
  if (!mxh_has(job->device, "native_mxfp4")) {
    fprintf(stderr, "device_kernel: native_mxfp4 is for gfx950 and the host runtime, not for %s\n", mxh_arch(job->device));
    return 1;
  }
  native_quantize_args a = {};
  a.src = job->x;
  a.codes = (uint32_t *)job->codes;
  a.scales = job->scales;
  a.rows = job->rows;
  a.cols = job->cols;
  a.ld = job->ld;
  a.env.rules = &rules;
#ifdef BUG_ROWS
  if (a.rows > 1) a.rows--;
#endif
  const size_t blocks = job->rows * job->scale_cols;
  return mxh_launch(job->device, "native_mxfp4", (unsigned)((blocks + 255) / 256), 256, &a, sizeof a) ? -1 : 0;
}
