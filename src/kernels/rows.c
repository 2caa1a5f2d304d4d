/* Reading rows. */
#include "kernels/rows.h"

#include <float.h>
#include <math.h>

#include "kernels/plan.h"

int mx_rows_direct(const mx_source *src, const mx_spec *s) {
  return src->col_step == 1 && s->input_dtype == MX_INPUT_DTYPE_FLOAT32 && s->flush == MX_SWITCH_OFF && s->had_size == 0;
}

void mx_rows_load(float *out, const mx_source *src, size_t first, size_t count, const mx_spec *s) {
  for (size_t r = 0; r < count; r++) {
    float *row = out + r * src->cols;
    const float *from = src->at + (ptrdiff_t)(first + r) * src->row_step;
    for (size_t c = 0; c < src->cols; c++) {
      const float x = mx_round_dtype(from[(ptrdiff_t)c * src->col_step], s->input_dtype);
      row[c] = s->flush == MX_SWITCH_ON && fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
    }
  }
  if (s->had_size) mx_hadamard(out, src->cols, out, count, src->cols, src->cols, s->had_size, s->had_sign, s->had_signs, s->seed);
}
