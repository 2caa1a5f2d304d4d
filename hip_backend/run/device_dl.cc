/* Uses AMD and NVIDIA devices through their drivers' libraries, which are opened at run time and have the same calls under different names. */
#include <ctype.h>
#include <dlfcn.h>
#include <map>
#include <string.h>
#include <vector>

#include "hip_backend/run/device.h"

namespace {
typedef void *handle;

/* The calls of either library. Device addresses are pointers on AMD and 64-bit integers on NVIDIA, which are passed in the same registers. */
struct calls {
  int (*init)(unsigned);
  int (*get_device)(int *, int);
  int (*set)(int);              /* AMD: hipSetDevice */
  int (*retain)(handle *, int); /* NVIDIA: the primary context */
  int (*set_context)(handle);
  int (*name)(char *, int, int);
  int (*version)(int *);
  int (*load)(handle *, const void *);
  int (*function)(handle *, handle, const char *);
  int (*launch)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);
  int (*alloc)(void **, size_t);
  int (*release)(void *);
  int (*put)(void *, const void *, size_t);
  int (*get)(void *, const void *, size_t);
  int (*fill)(void *, unsigned char, size_t);
  int (*sync)();
  int (*event_create)(handle *, unsigned);
  int (*event_record)(handle, handle);
  int (*event_wait)(handle);
  int (*event_elapsed)(float *, handle, handle);
  int (*attribute)(int *, int, int);
  int (*bus_id)(char *, int, int);
};

/* The symbols of the calls in each library; hip_backend/tests/driver_api.cc checks them against the headers of both. */
#define MXH_CUDA_CALLS(X)                                                                                                                      \
  X(init, cuInit)                                                                                                                              \
  X(get_device, cuDeviceGet)                                                                                                                   \
  X(retain, cuDevicePrimaryCtxRetain)                                                                                                          \
  X(set_context, cuCtxSetCurrent)                                                                                                              \
  X(name, cuDeviceGetName)                                                                                                                     \
  X(version, cuDriverGetVersion)                                                                                                               \
  X(load, cuModuleLoadData)                                                                                                                    \
  X(function, cuModuleGetFunction)                                                                                                             \
  X(launch, cuLaunchKernel)                                                                                                                    \
  X(alloc, cuMemAlloc_v2)                                                                                                                      \
  X(release, cuMemFree_v2)                                                                                                                     \
  X(put, cuMemcpyHtoD_v2)                                                                                                                      \
  X(get, cuMemcpyDtoH_v2)                                                                                                                      \
  X(fill, cuMemsetD8_v2)                                                                                                                       \
  X(sync, cuCtxSynchronize)                                                                                                                    \
  X(event_create, cuEventCreate)                                                                                                               \
  X(event_record, cuEventRecord)                                                                                                               \
  X(event_wait, cuEventSynchronize)                                                                                                            \
  X(event_elapsed, cuEventElapsedTime)                                                                                                         \
  X(attribute, cuDeviceGetAttribute)
#define MXH_HIP_CALLS(X)                                                                                                                       \
  X(init, hipInit)                                                                                                                             \
  X(get_device, hipDeviceGet)                                                                                                                  \
  X(set, hipSetDevice)                                                                                                                         \
  X(name, hipDeviceGetName)                                                                                                                    \
  X(version, hipRuntimeGetVersion)                                                                                                             \
  X(load, hipModuleLoadData)                                                                                                                   \
  X(function, hipModuleGetFunction)                                                                                                            \
  X(launch, hipModuleLaunchKernel)                                                                                                             \
  X(alloc, hipMalloc)                                                                                                                          \
  X(release, hipFree)                                                                                                                          \
  X(put, hipMemcpyHtoD)                                                                                                                        \
  X(get, hipMemcpyDtoH)                                                                                                                        \
  X(fill, hipMemsetD8)                                                                                                                         \
  X(sync, hipDeviceSynchronize)                                                                                                                \
  X(event_create, hipEventCreateWithFlags)                                                                                                     \
  X(event_record, hipEventRecord)                                                                                                              \
  X(event_wait, hipEventSynchronize)                                                                                                           \
  X(event_elapsed, hipEventElapsedTime)                                                                                                        \
  X(bus_id, hipDeviceGetPCIBusId)
#define MXH_MISSES(field, symbol) || !d->find(&c.field, #symbol, why)

struct dl_device : mxh_device {
  handle library = nullptr;
  calls c = {};
  std::vector<handle> modules;
  std::map<std::string, handle> functions;
  handle begin = nullptr, end = nullptr;

  ~dl_device() override {
    if (library) dlclose(library);
  }
  int fail(const char *what, int code) {
    if (!code) return 0;
    char text[160];
    snprintf(text, sizeof text, "%s: error %d of the %s driver", what, code, kind.c_str());
    error = text;
    return 1;
  }
  template <class F> bool find(F *f, const char *symbol, std::string *why) {
    void *p = dlsym(library, symbol);
    memcpy(f, &p, sizeof p);
    if (!p) *why = std::string("the driver's library has no ") + symbol;
    return p != nullptr;
  }
  /* Each AMD code object is for one target. An NVIDIA file holds machine code for one target, and PTX from which the driver makes code for
   * later ones. */
  bool load_modules(std::string *why, bool bare) {
    int tried = 0;
    for (const mxh_module *m = mxh_modules; m->arch; m++) {
      if ((kind == "cuda" ? "cuda" : arch) != m->arch) continue;
      handle h;
      tried++;
      const int code = c.load(&h, m->first);
      if (code) {
        if (bare) return true;
        fail((std::string("loading ") + m->stem + " for " + arch).c_str(), code);
        *why = error;
        if (kind == "cuda" && code == 209)
          *why += ": the kernels are PTX for compute capability 8.0, and the device has an earlier one"; /* NO_BINARY_FOR_GPU */
        if (kind == "cuda" && code == 222) *why += ": the driver's compiler is older than the PTX";      /* UNSUPPORTED_PTX_VERSION */
        return false;
      }
      modules.push_back(h);
    }
    if (!tried) *why = "this program has no kernels for " + arch;
    return tried != 0 || bare;
  }
  handle function(const char *kernel) {
    auto i = functions.find(kernel);
    if (i != functions.end()) return i->second;
    handle f = nullptr;
    for (handle m : modules)
      if (!c.function(&f, m, kernel))
        break;
      else
        f = nullptr;
    functions[kernel] = f;
    return f;
  }
  bool has(const char *kernel) override { return function(kernel) != nullptr; }
  void *alloc(size_t n) override {
    void *p = nullptr;
    return fail("allocating", c.alloc(&p, n)) ? nullptr : p;
  }
  void release(void *p) override { c.release(p); }
  int put(void *to, const void *from, size_t n) override { return fail("copying to the device", c.put(to, from, n)); }
  int get(void *to, const void *from, size_t n) override { return fail("copying from the device", c.get(to, from, n)); }
  int fill(void *p, int byte, size_t n) override { return fail("filling", c.fill(p, (unsigned char)byte, n)); }
  int launch(const char *kernel, unsigned grid, unsigned block, const void *args, size_t n) override {
    (void)n;
    handle f = function(kernel);
    if (!f) {
      error = std::string("no kernel ") + kernel + " for " + arch;
      return 1;
    }
    void *parameters[] = {const_cast<void *>(args)};
    return fail(kernel, c.launch(f, grid, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr));
  }
  int sync() override { return fail("waiting", c.sync()); }
  int time_begin() override { return fail("timing", c.event_record(begin, nullptr)); }
  int time_end(double *seconds) override {
    float ms = 0;
    if (fail("timing", c.event_record(end, nullptr)) || fail("timing", c.event_wait(end)) || fail("timing", c.event_elapsed(&ms, begin, end)))
      return 1;
    *seconds = (double)ms * 1e-3;
    return 0;
  }
};

mxh_device *give_up(dl_device *d, std::string *why, const std::string &reason) {
  if (!reason.empty()) *why = reason;
  delete d;
  return nullptr;
}
} // namespace

mxh_device *mxh_open_cuda(std::string *why, bool bare) {
  dl_device *d = new dl_device;
  d->kind = "cuda";
  d->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!d->library) return give_up(d, why, "libcuda.so.1 is not there");
  calls &c = d->c;
  if (false MXH_CUDA_CALLS(MXH_MISSES)) return give_up(d, why, "");
  int device = 0, version = 0, major = 0, minor = 0;
  handle context;
  char name[256] = "";
  if (c.init(0) || c.get_device(&device, 0)) return give_up(d, why, "no NVIDIA device");
  if (c.retain(&context, device) || c.set_context(context)) return give_up(d, why, "the device does not give a context");
  c.name(name, sizeof name, device);
  c.version(&version);
  c.attribute(&major, 75, device); /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR */
  c.attribute(&minor, 76, device);
  d->name = name;
  d->driver = "CUDA driver " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  d->arch = "sm_" + std::to_string(major) + std::to_string(minor);
  if (!d->load_modules(why, bare)) return give_up(d, why, "");
  if (c.event_create(&d->begin, 0) || c.event_create(&d->end, 0)) return give_up(d, why, "no events");
  return d;
}

/* The target that the HIP runtime itself gives for the device ("gfx950" of "gfx950:sramecc+:xnack-"); "" if it does not say. The struct of
 * properties has grown from release to release, with a call for each. All of them begin with a name of 256 bytes, and gcnArchName is the
 * only text after it that starts with "gfx", so the target is searched for instead of being read at an offset. */
static std::string hip_target(handle library, int device) {
  for (const char *symbol : {"hipGetDevicePropertiesR0600", "hipGetDeviceProperties"}) {
    int (*properties)(void *, int);
    void *p = dlsym(library, symbol);
    if (!p) continue;
    memcpy(&properties, &p, sizeof p);
    alignas(16) static char room[1 << 16];
    memset(room, 0, sizeof room);
    if (properties(room, device)) continue;
    for (size_t i = 256; i + 64 < sizeof room; i++) {
      size_t n = 3;
      if (strncmp(room + i, "gfx", 3)) continue;
      while (n < 16 && isalnum((unsigned char)room[i + n])) n++;
      if (n > 3) return std::string(room + i, n);
    }
  }
  return "";
}

/* The same from the kernel driver, for a runtime that does not say it: that of the GPU at a PCI address ("0000:75:00.0"), or the only one
 * present. */
static std::string kernel_target(const char *bus_id, std::string *why) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  const bool known = sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4;
  std::string all;
  for (int node = 0; node < 64; node++) {
    const std::string path = "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties";
    FILE *f = fopen(path.c_str(), "r");
    if (!f) continue;
    char key[64];
    unsigned long long value, target = 0, location = 0, in_domain = 0;
    while (fscanf(f, "%63s %llu", key, &value) == 2) {
      if (!strcmp(key, "gfx_target_version")) target = value;
      if (!strcmp(key, "location_id")) location = value;
      if (!strcmp(key, "domain")) in_domain = value;
    }
    fclose(f);
    if (!target) continue; /* this node is a processor, not a GPU */
    char text[32];
    snprintf(text, sizeof text, "gfx%llu%llx%llx", target / 10000, target / 100 % 100, target % 100);
    if (known && in_domain == domain && (location & 0xFFFF) >> 3 == (bus << 5 | slot)) return text;
    if (all.find(text) == std::string::npos) all += (all.empty() ? "" : ", ") + std::string(text);
  }
  if (!all.empty() && all.find(',') == std::string::npos) return all;
  *why = all.empty() ? "neither the HIP runtime nor the kernel driver names the device's target"
                     : "the HIP runtime does not say which of " + all + " is its device 0";
  return "";
}

mxh_device *mxh_open_hip(std::string *why, bool bare) {
  dl_device *d = new dl_device;
  d->kind = "hip";
  for (const char *name : {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so"})
    if (!d->library) d->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!d->library) return give_up(d, why, "libamdhip64.so is not there");
  calls &c = d->c;
  if (false MXH_HIP_CALLS(MXH_MISSES)) return give_up(d, why, "");
  int device = 0, version = 0; /* the runtime's first device, which respects ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES */
  char name[256] = "", bus_id[64] = "";
  if (c.init(0) || c.get_device(&device, 0) || c.set(0)) return give_up(d, why, "no AMD device");
  c.name(name, sizeof name, device);
  c.version(&version);
  if (c.bus_id(bus_id, sizeof bus_id, device)) bus_id[0] = 0;
  d->name = name;
  d->driver = "HIP runtime " + std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100) + "." +
              std::to_string(version % 100000) + (bus_id[0] ? ", its device 0 at PCI " + std::string(bus_id) : "");
  d->arch = hip_target(d->library, device);
  if (d->arch.empty()) d->arch = kernel_target(bus_id, why);
  if (d->arch.empty() && !bare) return give_up(d, why, "");
  if (!d->load_modules(why, bare)) return give_up(d, why, d->name + " (" + *why + ")");
  if (c.event_create(&d->begin, 0) || c.event_create(&d->end, 0)) return give_up(d, why, "no events");
  return d;
}
