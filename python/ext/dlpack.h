/* Declares the part of DLPack's ABI that an importer needs (dmlc.github.io/dlpack, version 1.3): tensors in capsules, and the table of C functions that a class
 * offers as __dlpack_c_exchange_api__. */
#ifndef PYTHON_DLPACK_H
#define PYTHON_DLPACK_H

#include <stdint.h>

typedef struct dl_version {
  uint32_t major, minor;
} dl_version;

enum { DL_CPU = 1, DL_CUDA_HOST = 3, DL_ROCM_HOST = 11 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6, DL_FIRST_CODE = 7, DL_LAST_CODE = 17 };

typedef struct dl_tensor {
  void *data;
  int32_t device_type, device_id;
  int32_t n_dims;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides; /* in elements; strides NULL: row-major */
  uint64_t byte_offset;
} dl_tensor;

/* In a capsule "dltensor". */
typedef struct dl_managed {
  dl_tensor tensor;
  void *context;
  void (*deleter)(struct dl_managed *self);
} dl_managed;

/* In a capsule "dltensor_versioned". */
typedef struct dl_versioned {
  dl_version version;
  void *context;
  void (*deleter)(struct dl_versioned *self);
  uint64_t flags;
  dl_tensor tensor;
} dl_versioned;

/* In a capsule "dlpack_exchange_api". */
typedef struct dl_exchange {
  dl_version version;
  struct dl_exchange *previous;
  void (*allocate)(void);
  int (*managed_from)(void *object, dl_versioned **out);
  int (*managed_to)(dl_versioned *tensor, void **out);
  int (*tensor_from)(void *object, dl_tensor *out); /* borrowed from the object; may be NULL */
} dl_exchange;

#endif
