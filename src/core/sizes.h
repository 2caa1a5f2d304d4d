/* Defines the minimum and the maximum of two sizes. */
#ifndef MX_CORE_SIZES_H
#define MX_CORE_SIZES_H

#include <stddef.h>

static inline size_t size_least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t size_most(size_t a, size_t b) { return a > b ? a : b; }

#endif
