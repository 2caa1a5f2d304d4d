/** Declares the dozen calls by which a host program uses a device: AMD through libamdhip64.so, NVIDIA through libcuda.so.1, or the CPU host
 *  runtime. The two libraries are opened only when needed, so that one program runs on every machine and needs neither of them to be built.
 *
 *  Calls that can fail return 0 on success; otherwise mxh_error() says in one line what went wrong. Threads: each device is used by one
 *  thread. */
#ifndef MXH_DEVICE_API_H
#define MXH_DEVICE_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mxh_device mxh_device;

/** Opens a device of kind "hip", "cuda", "host", or "auto" (the first of these that exists). NULL and a reason in why if there is no such
 *  device. */
mxh_device *mxh_open(const char *kind, char *why, size_t n_why);
/** The same for other kernels than ours: the program need not have kernels for the device, but those that it has are loaded. If "auto" falls
 *  back to the host, why says why the other kinds failed; otherwise why is "". */
mxh_device *mxh_open_bare(const char *kind, char *why, size_t n_why);
void mxh_close(mxh_device *dev);

const char *mxh_kind(const mxh_device *dev);   /* "hip", "cuda", "host" */
const char *mxh_name(const mxh_device *dev);   /* "AMD Instinct MI355X" */
const char *mxh_arch(const mxh_device *dev);   /* "gfx950", "sm_90", "host" */
const char *mxh_driver(const mxh_device *dev); /* version of the driver or runtime */
const char *mxh_error(const mxh_device *dev);
/** Whether there is a kernel of that name for this device. (Native ones exist only for gfx950 and the host runtime.) */
int mxh_has(mxh_device *dev, const char *kernel);

/** Allocates uninitialised bytes; NULL if there is no memory. Until that NULL is freed nothing is launched, so that no kernel can be given
 *  it. */
void *mxh_alloc(mxh_device *dev, size_t n_bytes);
void mxh_free(mxh_device *dev, void *p);
int mxh_put(mxh_device *dev, void *to_device, const void *from, size_t n_bytes);
int mxh_get(mxh_device *dev, void *to, const void *from_device, size_t n_bytes);
int mxh_fill(mxh_device *dev, void *p, int byte, size_t n_bytes);
/** Launches a kernel. args: the struct of its MXH_KERNEL, with pointers from mxh_alloc(). It is asynchronous except on the host runtime,
 *  whose reports make this call fail. */
int mxh_launch(mxh_device *dev, const char *kernel, unsigned grid, unsigned block, const void *args, size_t n_args);
int mxh_sync(mxh_device *dev);
/** Measure the seconds that pass on the device between the two calls. */
int mxh_time_begin(mxh_device *dev);
int mxh_time_end(mxh_device *dev, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
