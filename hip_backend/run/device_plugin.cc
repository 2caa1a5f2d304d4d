/* Adapts a kernel that follows device_plugin.h to mxgold/plugin.h: it copies each case to the device and the result back.
 * MXGOLD_DEVICE=hip|cuda|host picks the device; auto prints which one it took. The harness prints each line only once. */
#include "hip_backend/run/device_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>

#include "hip_backend/run/buffer.h"
#include "hip_backend/run/host_lanes.h"
#include "mxgold/plugin.h"

/* Set when a launch fails on the host runtime (without_rocm/hip/hip_runtime.h). */
extern "C" int mxh_hip_failed;
int mxh_hip_failed;

static int failed(mxh_device *dev) {
  const std::string text = *mxh_error(dev) ? mxh_error(dev) : "the launch failed";
  fprintf(stderr, "device plugin: %s%s", text.c_str(), text.back() == '\n' ? "" : "\n");
  return MXGOLD_FAILED;
}

extern "C" int mxgold_quantize(const mxgold_job *job) {
  static mxh_device *dev; /* each child process uses one device */
  char why[512];
  const char *kind = getenv("MXGOLD_DEVICE");
  if (!dev) {
    const bool any = !kind || !*kind || !strcmp(kind, "auto");
    dev = mxh_open_bare(any ? "auto" : kind, why, sizeof why);
    if (!dev) {
      fprintf(stderr, "device plugin: no device, SKIPPED: %s\n", why);
      return 1;
    }
    if (any)
      fprintf(stderr, "device plugin: on %s (%s)%s%s\n", mxh_name(dev), mxh_kind(dev), *why ? ", because there is no other device: " : "", why);
  }
  const size_t n_x = job->rows ? ((job->rows - 1) * job->ld + job->cols) * sizeof(float) : 0, n_codes = job->rows * job->code_stride,
               n_scales = job->scale_rows * job->scale_cols * job->scale_bytes;
  mxh_buffer x(dev, n_x), codes(dev, n_codes), scales(dev, n_scales);
  if (x.put(job->x, n_x) || codes.fill(0, n_codes) || scales.fill(0, n_scales)) return failed(dev);
  const mxgold_device_job there = {MXGOLD_DEVICE_PLUGIN_ABI,
                                   job->spec,
                                   job->rows,
                                   job->cols,
                                   job->ld,
                                   x.as<float>(),
                                   codes.as<uint8_t>(),
                                   job->code_stride,
                                   scales.as<uint8_t>(),
                                   job->scale_rows,
                                   job->scale_cols,
                                   job->scale_bytes,
                                   job->tensor_scale,
                                   dev};
  const std::string before = mxh_error(dev);
  mxh_hip_failed = 0;
  const int result = mxgold_quantize_device(&there);
  const std::string reported = mxh_host::reports();
  if (!reported.empty() ||
      mxh_hip_failed) { /* the kernel went wrong, whatever it returned; reports that the plugin fetched are its own to print */
    if (!reported.empty()) fprintf(stderr, "device plugin: the host runtime reports: %s", reported.c_str());
    return MXGOLD_FAILED;
  }
  if (result && (before != mxh_error(dev) || mxh_sync(dev))) return failed(dev);
  if (result) return result;
  if (mxh_sync(dev) || codes.get(job->codes, n_codes) || scales.get(job->scales, n_scales)) return failed(dev);
  return 0;
}
