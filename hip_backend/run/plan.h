/** Declares how a spec becomes the plan that kernels are given. */
#ifndef MXH_PLAN_H
#define MXH_PLAN_H

#include "hip_backend/run/kernel_plan.h"

/** Makes the plan for quantising a [rows][cols] matrix. MX_ERR_CONFLICT: keys exclude each other; MX_ERR_UNSUPPORTED: the device's tables
 *  have no room for a chain. Oracle: make hip-check. */
mx_status mxh_plan_make(mxd_plan *out, const mx_spec *spec, size_t rows, size_t cols, mx_error *err);
mxd_format mxh_format(const mx_format *format);
mxd_encoding mxh_encoding(const mx_encoding *how);

#endif
