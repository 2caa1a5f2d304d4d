/* Makes operands under grad.config=softmax: the block as its scale sees it has one element more, the log-sum-exp of the others' magnitudes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "gradient.h"
#include "ref.h"
#include "rules.h"

/* Z of the tile at (row, col), rounded to binary32. */
static float normaliser(const float *x, size_t rows, size_t cols, size_t row, size_t col, const ref_plan *plan, const mx_linear_recipe *r,
                        double unit) {
  float *tile = malloc((plan->block_rows * plan->block_cols + 1) * sizeof *tile);
  double *unused = malloc((plan->block_rows * plan->block_cols + 1) * sizeof *unused);
  size_t n = 0;
  if (!tile || !unused) abort();
  for (size_t i = row; i < row + plan->block_rows && i < rows; i++)
    for (size_t j = col; j < col + plan->block_cols && j < cols; j++) tile[n++] = x[i * cols + j];
  const float z = (float)ref_normalise(unused, r, 1, 1, unit, tile, n);
  free(tile);
  free(unused);
  return z;
}

mx_status ref_soft_quantize(mx_tensor *t, const float *x, const mx_spec *spec, const mx_linear_recipe *r, mx_error *err) {
  ref_plan plan;
  mx_status status = ref_plan_make(&plan, spec, t->rows, t->cols);
  if (status) return ref_fail(err, status, "chain");
  double most = 0;
  for (size_t i = 0; i < t->rows * t->cols; i++) most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
  num stored;
  ref_plan_tensor(&plan, ref_largest(&plan, x, t->rows * t->cols), &stored); /* which counts a NaN, as the unit of magnitudes does not */
  t->has_tensor_scale = spec->tensor_norm != MX_TENSOR_NORM_NONE;
  t->tensor_scale = t->has_tensor_scale ? num_result(stored) : 1;
  const double unit = t->has_tensor_scale && most > 0 ? most : 1;
  const size_t height = plan.block_rows, width = plan.block_cols, n = height * width, across = width ? (t->cols + width - 1) / width : 0;
  num *e = malloc((n + 1) * sizeof *e);
  uint8_t *codes = calloc(t->rows * t->cols_padded + 1, 1);
  for (size_t row = 0; row < t->rows && e && codes; row += height)
    for (size_t col = 0; col < t->cols; col += width) {
      for (size_t i = 0; i < n; i++) {
        const size_t k = row + i / width, c = col + i % width;
        e[i] = k < t->rows && c < t->cols ? num_float(x[k * t->cols + c]) : num_zero(0);
      }
      e[n] = num_float(normaliser(x, t->rows, t->cols, row, col, &plan, r, unit));
      ref_scale scale[2];
      if (!ref_block_scales(scale, &plan, &(ref_block){e, n + 1, row / height * across + col / width}))
        return ref_fail(err, MX_ERR_DATA, "row %zu, column %zu: its block holds a NaN or an Inf that the spec refuses", row, col);
      for (size_t i = 0; i < n; i++) {
        const size_t k = row + i / width, c = col + i % width;
        num unused;
        if (k < t->rows && c < t->cols_padded)
          codes[k * t->cols_padded + c] = (uint8_t)ref_element(&plan, &scale[0], e[i], c < t->cols ? k * t->cols + c : UINT64_MAX, &unused);
      }
      for (size_t k = row; k < row + height && k < t->rows; k++) {
        const int columns = width == 1 && height > 1;
        uint8_t *to = t->scales + ((columns ? k / height : k) * t->scale_cols + col / width) * t->scale_bytes;
        for (size_t i = 0; i < t->scale_bytes; i++) to[i] = (uint8_t)(scale[0].code >> 8 * i);
      }
    }
  for (size_t k = 0; k < t->rows && codes; k++) {
    if (plan.elem->bits == 4)
      ref_pack4(t->codes + k * t->code_stride, codes + k * t->cols_padded, t->cols_padded, spec->nibble, width);
    else
      memcpy(t->codes + k * t->code_stride, codes + k * t->cols_padded, t->cols_padded);
  }
  status = e && codes ? MX_OK : MX_ERR_NOMEM;
  free(e);
  free(codes);
  return status;
}
