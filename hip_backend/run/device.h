/* Declares what each kind of device implements for device_api.h. */
#ifndef MXH_DEVICE_H
#define MXH_DEVICE_H

#include <stdio.h>
#include <string>

#include "hip_backend/run/device_api.h"

struct mxh_device {
  std::string kind, name, arch, driver, error;
  size_t missing = 0; /* allocations that failed and have not been freed yet */
  virtual ~mxh_device() {}
  virtual bool has(const char *kernel) = 0;
  virtual void *alloc(size_t n) = 0;
  virtual void release(void *p) = 0;
  virtual int put(void *to, const void *from, size_t n) = 0;
  virtual int get(void *to, const void *from, size_t n) = 0;
  virtual int fill(void *p, int byte, size_t n) = 0;
  virtual int launch(const char *kernel, unsigned grid, unsigned block, const void *args, size_t n) = 0;
  virtual int sync() = 0;
  virtual int time_begin() = 0;
  virtual int time_end(double *seconds) = 0;
};

/* NULL and a reason if there is none; bare: the program need not have kernels for the device. */
mxh_device *mxh_open_host(std::string *why, bool bare = false);
mxh_device *mxh_open_cuda(std::string *why, bool bare = false);
mxh_device *mxh_open_hip(std::string *why, bool bare = false);

/* Code objects that are embedded in the program (embed.S, written by hip.mk). */
struct mxh_module {
  const char *arch, *stem; /* "gfx950", "cuda" (machine code and PTX in one file); "quantize" */
  const unsigned char *first, *last;
};
extern "C" const mxh_module mxh_modules[]; /* the last entry has no arch */

#endif
