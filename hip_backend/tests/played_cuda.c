/* Imitates a libcuda.so.1 with one device of compute capability 7.5, whose memory is the host's and which has none of our kernels, so that a
 * plugin's way to a device can be tested on a machine without one. */
#include <stdlib.h>
#include <string.h>

#define CALL __attribute__((visibility("default"))) int
CALL cuInit(unsigned flags) { return (int)flags; }
CALL cuDeviceGet(int *device, int ordinal) { return *device = ordinal; }
CALL cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &*context, device; }
CALL cuCtxSetCurrent(void *context) { return context == NULL; }
CALL cuDeviceGetName(char *name, int n, int device) { return strncpy(name, "a card that is played", (size_t)n), device; }
CALL cuDriverGetVersion(int *version) { return *version = 13000, 0; }
CALL cuModuleLoadData(void **module, const void *image) { return *module = NULL, image ? 209 : 1; } /* NO_BINARY_FOR_GPU */
CALL cuModuleGetFunction(void **function, void *module, const char *name) { return *function = module, name ? 500 : 1; }
CALL cuLaunchKernel(void) { return 1; }
CALL cuMemAlloc_v2(void **p, size_t n) { return !(*p = malloc(n)); }
CALL cuMemFree_v2(void *p) { return free(p), 0; }
CALL cuMemcpyHtoD_v2(void *to, const void *from, size_t n) { return memcpy(to, from, n), 0; }
CALL cuMemcpyDtoH_v2(void *to, const void *from, size_t n) { return memcpy(to, from, n), 0; }
CALL cuMemsetD8_v2(void *p, unsigned char byte, size_t n) { return memset(p, byte, n), 0; }
CALL cuCtxSynchronize(void) { return 0; }
CALL cuEventCreate(void **event, unsigned flags) { return *event = malloc(1), (int)flags; }
CALL cuEventRecord(void *event, void *stream) { return stream || !event; }
CALL cuEventSynchronize(void *event) { return !event; }
CALL cuEventElapsedTime(float *ms, void *a, void *b) { return *ms = 0, !a || !b; }
CALL cuDeviceGetAttribute(int *value, int attribute, int device) { return *value = attribute == 75 ? 7 : 5, device; }
