/* Declares a device that passes every call on to another, as a base for devices that observe calls or simulate faults. */
#ifndef MXH_DEVICE_WATCHED_H
#define MXH_DEVICE_WATCHED_H

#include "hip_backend/run/device.h"

struct mxh_passing_device : mxh_device {
  mxh_device *inner;
  explicit mxh_passing_device(mxh_device *d) : inner(d) { kind = d->kind, name = d->name, arch = d->arch, driver = d->driver; }
  ~mxh_passing_device() override { delete inner; }
  int said(int status) {
    error = inner->error;
    return status;
  }
  bool has(const char *kernel) override { return inner->has(kernel); }
  void *alloc(size_t n) override { return inner->alloc(n); }
  void release(void *p) override { inner->release(p); }
  int put(void *to, const void *from, size_t n) override { return said(inner->put(to, from, n)); }
  int get(void *to, const void *from, size_t n) override { return said(inner->get(to, from, n)); }
  int fill(void *p, int byte, size_t n) override { return said(inner->fill(p, byte, n)); }
  int launch(const char *kernel, unsigned grid, unsigned block, const void *args, size_t n) override {
    return said(inner->launch(kernel, grid, block, args, n));
  }
  int sync() override { return said(inner->sync()); }
  int time_begin() override { return said(inner->time_begin()); }
  int time_end(double *seconds) override { return said(inner->time_end(seconds)); }
};

#endif
