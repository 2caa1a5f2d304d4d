/* Declares how the reference fills an mx_error; it may not use the library's mx_fail(). */
#ifndef REF_FAIL_H
#define REF_FAIL_H

#include "mxgold/status.h"

__attribute__((format(printf, 3, 4))) mx_status ref_fail(mx_error *err, mx_status status, const char *format, ...);

#endif
