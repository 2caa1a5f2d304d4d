/* Declares memory of a device that is freed when its scope ends. */
#ifndef MXH_BUFFER_H
#define MXH_BUFFER_H

#include "hip_backend/run/device_api.h"

struct mxh_buffer {
  mxh_device *dev;
  void *p;
  mxh_buffer(mxh_device *d, size_t n) : dev(d), p(mxh_alloc(d, n)) {}
  ~mxh_buffer() { mxh_free(dev, p); }
  mxh_buffer(const mxh_buffer &) = delete;
  mxh_buffer &operator=(const mxh_buffer &) = delete;
  template <class T> T *as() const { return static_cast<T *>(p); }
  int put(const void *from, size_t n) { return !p || mxh_put(dev, p, from, n); }
  int get(void *to, size_t n) const { return !p || mxh_get(dev, to, p, n); }
  int fill(int byte, size_t n) { return !p || mxh_fill(dev, p, byte, n); }
};

#endif
