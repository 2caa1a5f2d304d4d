/* Loads OpenBLAS at run time: only timings need it, so no build or user has to install it. */
#include "train/run/blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "mxgold/isa.h"

/* A function of the library; ISO C has no conversion from void * to a pointer to a function. */
static int find(void *function, size_t size, void *library, const char *name) {
  void *at = dlsym(library, name);
  if (at) memcpy(function, &at, size);
  return at != NULL;
}

mx_status mxi_openblas(mx_sgemm **sgemm, char *name, size_t size, int n_threads, mx_error *err) {
  static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
  void *library = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!library) return mx_fail(err, MX_ERR_IO, "gemm.fp32=openblas: %s", dlerror());
  char *(*config)(void), *(*core)(void);
  void (*set_threads)(int);
  if (!find(sgemm, sizeof *sgemm, library, "cblas_sgemm") || !find(&config, sizeof config, library, "openblas_get_config") ||
      !find(&core, sizeof core, library, "openblas_get_corename") ||
      !find(&set_threads, sizeof set_threads, library, "openblas_set_num_threads"))
    return mx_fail(err, MX_ERR_IO, "gemm.fp32=openblas: %s", dlerror());
  set_threads(mx_thread_count(n_threads));
  const char *version = config();
  const size_t words = strncmp(version, "OpenBLAS ", 9) ? 0 : 9; /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." */
  snprintf(name, size, "%.*s, kernels for %s", (int)(words + strcspn(version + words, " ")), version, core());
  return MX_OK;
}
