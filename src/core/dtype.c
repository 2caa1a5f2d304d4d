/* Looks up the sizes and names of dtypes. */
#include <string.h>

#include "mxgold/dtype.h"

static const struct {
  const char *safetensors, *npy, *name;
  size_t n_bytes;
} rows[] = {
#define X(id, st, npy, cli, bytes) {st, npy, cli, bytes},
    MX_DTYPES(X)
#undef X
};

static int valid(mx_dtype dtype) { return (unsigned)dtype < MX_DTYPE_COUNT; }

size_t mx_dtype_bytes(mx_dtype dtype) { return valid(dtype) ? rows[dtype].n_bytes : 0; }
const char *mx_dtype_name(mx_dtype dtype) { return valid(dtype) ? rows[dtype].name : "unknown"; }
const char *mx_dtype_safetensors(mx_dtype dtype) { return valid(dtype) ? rows[dtype].safetensors : ""; }
const char *mx_dtype_npy(mx_dtype dtype) { return valid(dtype) ? rows[dtype].npy : ""; }

int mx_dtype_find(const char *name) {
  for (int i = 0; name && i < MX_DTYPE_COUNT; i++)
    if (!strcmp(rows[i].name, name)) return i;
  return -1;
}
