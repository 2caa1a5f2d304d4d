/* Declares what the files of src/verify/vectors share. */
#ifndef MX_VERIFY_VECTORS_INTERNAL_H
#define MX_VERIFY_VECTORS_INTERNAL_H

#include "mxgold/verify.h"

/** The decimal number that the header has under this key. 0: there is none. */
int mxi_vectors_number(uint64_t *out, const mx_vectors *v, const char *key);

#endif
