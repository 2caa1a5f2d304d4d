/* Opens devices of all kinds, and implements the CPU host runtime, which is always there. */
#include "hip_backend/run/device.h"

#include <string.h>
#include <time.h>

#include "hip_backend/run/host_lanes.h"

namespace {
struct host_device : mxh_device {
  double started = 0;
  bool has(const char *kernel) override { return mxh_host::find_kernel(kernel) != nullptr; }
  void *alloc(size_t n) override { return mxh_host::alloc(n); }
  void release(void *p) override { mxh_host::release(p); }
  int put(void *to, const void *from, size_t n) override {
    mxh_host::set_written(to, n);
    if (n) memcpy(to, from, n);
    return reported();
  }
  int get(void *to, const void *from, size_t n) override {
    mxh_host::check_read(from, n);
    if (n) memcpy(to, from, n);
    return reported();
  }
  int fill(void *p, int byte, size_t n) override {
    mxh_host::set_written(p, n);
    if (n) memset(p, byte, n);
    return reported();
  }
  int launch(const char *kernel, unsigned grid, unsigned block, const void *args, size_t n) override {
    mxh_host::launch(kernel, grid, block, args, n);
    return reported();
  }
  int sync() override { return 0; }
  static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
  }
  int time_begin() override {
    started = now();
    return 0;
  }
  int time_end(double *seconds) override {
    *seconds = now() - started;
    return 0;
  }
  int reported() {
    error = mxh_host::reports();
    return !error.empty();
  }
};
} // namespace

mxh_device *mxh_open_host(std::string *, bool) {
  mxh_device *d = new host_device;
  d->kind = d->arch = "host";
  d->name = "CPU host runtime, waves of 64";
  d->driver = "none";
  return d;
}

static mxh_device *open_one(const char *kind, char *why, size_t n_why, bool bare) {
  static const struct {
    const char *kind;
    mxh_device *(*open)(std::string *, bool);
  } kinds[] = {{"hip", mxh_open_hip}, {"cuda", mxh_open_cuda}, {"host", mxh_open_host}};
  std::string reasons;
  bool known = false;
  for (const auto &k : kinds) {
    if (strcmp(kind, "auto") && strcmp(kind, k.kind)) continue;
    known = true;
    std::string reason;
    mxh_device *d = k.open(&reason, bare);
    if (d) {
      if (n_why && bare) snprintf(why, n_why, "%s", strcmp(k.kind, "host") ? "" : reasons.c_str());
      return d;
    }
    reasons += (reasons.empty() ? "" : "; ") + std::string(k.kind) + ": " + reason;
  }
  if (n_why) snprintf(why, n_why, "%s", known ? reasons.c_str() : "expected a device of auto, hip, cuda or host");
  return nullptr;
}
mxh_device *mxh_open(const char *kind, char *why, size_t n_why) { return open_one(kind, why, n_why, false); }
mxh_device *mxh_open_bare(const char *kind, char *why, size_t n_why) { return open_one(kind, why, n_why, true); }
void mxh_close(mxh_device *d) { delete d; }
const char *mxh_kind(const mxh_device *d) { return d->kind.c_str(); }
const char *mxh_name(const mxh_device *d) { return d->name.c_str(); }
const char *mxh_arch(const mxh_device *d) { return d->arch.c_str(); }
const char *mxh_driver(const mxh_device *d) { return d->driver.c_str(); }
const char *mxh_error(const mxh_device *d) { return d->error.c_str(); }
int mxh_has(mxh_device *d, const char *kernel) { return d->has(kernel); }
void *mxh_alloc(mxh_device *d, size_t n) {
  void *p = d->alloc(n ? n : 1);
  d->missing += !p;
  return p;
}
void mxh_free(mxh_device *d, void *p) {
  if (p)
    d->release(p);
  else if (d->missing)
    d->missing--;
}
int mxh_put(mxh_device *d, void *to, const void *from, size_t n) { return n ? d->put(to, from, n) : 0; }
int mxh_get(mxh_device *d, void *to, const void *from, size_t n) { return n ? d->get(to, from, n) : 0; }
int mxh_fill(mxh_device *d, void *p, int byte, size_t n) { return n ? d->fill(p, byte, n) : 0; }
int mxh_launch(mxh_device *d, const char *kernel, unsigned grid, unsigned block, const void *args, size_t n) {
  if (d->missing) d->error = std::string(kernel) + " not launched: out of memory on the device";
  return d->missing ? 1 : grid ? d->launch(kernel, grid, block, args, n) : 0;
}
int mxh_sync(mxh_device *d) { return d->sync(); }
int mxh_time_begin(mxh_device *d) { return d->time_begin(); }
int mxh_time_end(mxh_device *d, double *seconds) { return d->time_end(seconds); }
