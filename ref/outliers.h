/* Declares how outliers of a linear layer's x are clamped and added back (keys occ.*). */
#ifndef REF_OUTLIERS_H
#define REF_OUTLIERS_H

#include "mxgold/linear.h"

/* clamped, residual [rows][cols] from a dense x: x between its two thresholds, and x minus that. MX_ERR_NOMEM. */
mx_status ref_outliers(float *clamped, double *residual, const float *x, size_t rows, size_t cols, const mx_linear_recipe *recipe);
/* y [rows][n_out] += residual [rows][cols] times w [n_out][ldw] transposed, in rows whose residual is not all zero. */
void ref_compensate(float *y, const double *residual, const float *w, size_t ldw, size_t rows, size_t cols, size_t n_out);

#endif
