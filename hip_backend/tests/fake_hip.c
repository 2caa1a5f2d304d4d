/* Imitates a libamdhip64.so for diff.sh: its device 0 is what FAKE_ARCH says, at FAKE_BUS; memory is the host's and no module loads. The
 * properties are laid out as in HIP 6 and 7 (R0600, gcnArchName at 1160) or, with FAKE_OLD, as in HIP 5 (at 396). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *said(const char *name) { return getenv(name) ? getenv(name) : ""; }
static int properties(char *p, int device, size_t at) {
  if (device || !*said("FAKE_ARCH")) return 1;
  strcpy(p, "gfx942 in a box"); /* a name is not a target */
  strcpy(p + at, said("FAKE_ARCH"));
  return 0;
}
int hipGetDevicePropertiesR0600(void *p, int device) { return *said("FAKE_OLD") ? 1 : properties(p, device, 1160); }
int hipGetDeviceProperties(void *p, int device) { return properties(p, device, 396); }
int hipInit(unsigned flags) { return (int)flags; }
int hipDeviceGet(int *device, int i) { return *device = i, 0; }
int hipSetDevice(int device) { return device; }
int hipDeviceGetName(char *name, int n, int device) { return snprintf(name, (size_t)n, "Fake Instinct %d", device), 0; }
int hipDeviceGetPCIBusId(char *id, int n, int device) { return snprintf(id, (size_t)n, "%s", said("FAKE_BUS")), device; }
int hipRuntimeGetVersion(int *version) { return *version = 70051831, 0; }
#define ABSENT(name)                                                                                                                           \
  int name(void) { return 1; }
ABSENT(hipModuleLoadData)
ABSENT(hipModuleGetFunction)
ABSENT(hipModuleLaunchKernel)
ABSENT(hipMalloc)
ABSENT(hipFree)
ABSENT(hipMemcpyHtoD)
ABSENT(hipMemcpyDtoH)
ABSENT(hipMemsetD8)
ABSENT(hipDeviceSynchronize)
ABSENT(hipEventCreateWithFlags)
ABSENT(hipEventRecord)
ABSENT(hipEventSynchronize)
ABSENT(hipEventElapsedTime)
