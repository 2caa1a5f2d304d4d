/* Counts the bytes of a kernel that differ from those of a spec, with faults or without, and says where: for --expect and --confirm. */
#ifndef CLI_VERIFY_EXPECT_H
#define CLI_VERIFY_EXPECT_H

#include "cli/verify/samples.h"

/* Bytes of all samples that differ from those of a spec; values of samples without codes are counted among codes. */
typedef struct unexpected {
  uint64_t codes, scales, tensor_scales, n_codes, n_scales;
  uint64_t nan_codes;      /* of other bits under a NaN scale, or NaN themselves: they do not count */
  size_t sample, row, col; /* of the first code that differs, else of the first block whose scale does */
} unexpected;
static inline int is_expected(const unexpected *u) { return !(u->codes || u->scales || u->tensor_scales); }

/** Count what differs from spec with n faults, in samples as they are packed now. As elsewhere a NaN is a NaN, and codes under a NaN scale do not count.
 *  CLI_FINE; CLI_TROUBLE, said, where it cannot be run; CLI_DIFFERS where the shapes are not those of the spec. */
int expect_count(unexpected *out, const samples *s, const mx_spec *spec, const mx_fault *faults, size_t n, int threads);

#endif
