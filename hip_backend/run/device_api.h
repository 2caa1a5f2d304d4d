/** Declares the dozen calls by which a host program uses a device: AMD through libamdhip64.so, NVIDIA through libcuda.so.1 (both opened when asked
 *  for, so that one program serves every machine and needs neither to be built), or the CPU host runtime.
 *
 *  Calls that can fail return 0 when they did not; mxh_error() then says what went wrong in one line. Threads: one device by one thread. */
#ifndef MXH_DEVICE_API_H
#define MXH_DEVICE_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mxh_device mxh_device;

/** kind: "hip", "cuda", "host", or "auto" (the first of these that is there). NULL and a reason in why if there is no such device. */
mxh_device *mxh_open(const char *kind, char *why, size_t n_why);
/** The same for somebody else's kernels: the program need not carry any for the device; those that it carries are loaded. "auto" that ends at the host
 *  leaves in why what became of the others; else why is "". */
mxh_device *mxh_open_bare(const char *kind, char *why, size_t n_why);
void mxh_close(mxh_device *dev);

const char *mxh_kind(const mxh_device *dev);   /* "hip", "cuda", "host" */
const char *mxh_name(const mxh_device *dev);   /* "AMD Instinct MI355X" */
const char *mxh_arch(const mxh_device *dev);   /* "gfx950", "sm_90", "host" */
const char *mxh_driver(const mxh_device *dev); /* version of the driver or runtime */
const char *mxh_error(const mxh_device *dev);
/** Is there a kernel of that name for this device? (Native ones exist for gfx950 and the host runtime alone.) */
int mxh_has(mxh_device *dev, const char *kernel);

/** NULL when there is no memory; nothing is launched until that NULL is freed, so that no kernel is given it. The bytes are not initialised. */
void *mxh_alloc(mxh_device *dev, size_t n_bytes);
void mxh_free(mxh_device *dev, void *p);
int mxh_put(mxh_device *dev, void *to_device, const void *from, size_t n_bytes);
int mxh_get(mxh_device *dev, void *to, const void *from_device, size_t n_bytes);
int mxh_fill(mxh_device *dev, void *p, int byte, size_t n_bytes);
/** args: the struct of MXH_KERNEL, its pointers from mxh_alloc(). Asynchronous but for the host runtime, whose reports are an error here. */
int mxh_launch(mxh_device *dev, const char *kernel, unsigned grid, unsigned block, const void *args, size_t n_args);
int mxh_sync(mxh_device *dev);
/** Time on the device between the two, seconds. */
int mxh_time_begin(mxh_device *dev);
int mxh_time_end(mxh_device *dev, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
