/* Declares what the reader and the writer of .mxv share. */
#ifndef MX_IO_MXV_H
#define MX_IO_MXV_H

#include "mxgold/vector.h"

static inline unsigned mxv_digits(const mx_column *c) { return (c->bits + 3) / 4; }
int mxi_mxv_key_allowed(const char *key);

#endif
