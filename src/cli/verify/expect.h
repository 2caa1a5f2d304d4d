/* Tells whether a kernel did what was expected of it, without a search. */
#ifndef CLI_VERIFY_EXPECT_H
#define CLI_VERIFY_EXPECT_H

#include "cli/verify/samples.h"

/* Bytes of all samples that differ from those of a spec. */
typedef struct unexpected {
  uint64_t codes, scales, tensor_scales, n_codes, n_scales;
} unexpected;
static inline int is_expected(const unexpected *u) { return !(u->codes || u->scales || u->tensor_scales); }

/** Count what differs from spec with n faults; samples of codes, as they are packed now. CLI_FINE; CLI_TROUBLE, said, where it cannot be run;
 *  CLI_DIFFERS where the shapes are not those of the spec. */
int expect_count(unexpected *out, const samples *s, const mx_spec *spec, const mx_fault *faults, size_t n, int threads);

#endif
