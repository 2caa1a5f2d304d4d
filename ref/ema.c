/* Computes Q-EMA: docs/reference/SPEC.md, "Techniques of training". */
#include "ema.h"

#include <stdlib.h>
#include <string.h>

#include "num.h"
#include "ref.h"

/* |q| of y by the two values of e2m1 around it: lo and the next, `gap` above it. e has y's sign in it already. */
static double neighbour(num y, num e) {
  double lo = 0;
  for (uint64_t code = 0; code < 8; code++) {
    const double value = ref_decode(ref_elem_format(MX_ELEM_E2M1), code);
    if (num_cmp(num_double(value), y) <= 0 && value > lo) lo = value;
  }
  const double gap = lo < 2 ? .5 : lo < 4 ? 1 : 2;
  const double q = num_cmp(e, num_double(lo + gap / 2)) >= 0 ? lo + gap : lo;
  return q > 6 ? 6 : q;
}

static int finite(num a) { return a.kind == NUM_FINITE || a.kind == NUM_ZERO; }

static uint64_t code_of(float w, float average, float prescale, float scale, uint64_t nearest, const mx_spec *s) {
  const num over[] = {num_float(w), num_float(prescale)}, of_e[] = {num_float(average), num_float(prescale)}, under = num_float(scale);
  if (!finite(over[0]) || !finite(of_e[0]) || under.kind != NUM_FINITE || under.sign) return nearest;
  const num y = num_ratio(over, 2, &under, 1), e = num_ratio(of_e, 2, &under, 1);
  const int negative = y.sign && !num_is_zero(y);
  const double q = neighbour(num_abs(y), num_is_zero(y) ? num_zero(0) : negative ? num_neg(e) : e);
  const mx_format *format = ref_elem_format(MX_ELEM_E2M1);
  const double was = ref_decode(format, nearest % 8);
  if (q == was) return nearest;
  for (uint64_t code = 0; code < 8; code++)
    if (ref_decode(format, code) == q) return code + (negative && (q != 0 || s->elem_zero_sign != MX_ZERO_SIGN_DROP_ALL) ? 8 : 0);
  return nearest;
}

/* [rows][cols], rotated as the spec rotates. */
static float *rotated(const float *x, size_t rows, size_t cols, const mx_spec *s) {
  float *out = malloc((rows * cols + 1) * sizeof *out);
  if (!out) return NULL;
  memcpy(out, x, rows * cols * sizeof *out);
  if (s->had_size && ref_hadamard(out, cols, x, rows, cols, cols, s->had_size, s->had_sign, s->had_signs, s->seed)) {
    free(out);
    return NULL;
  }
  return out;
}

mx_status ref_ema(mx_tensor *t, uint64_t *moved, const mx_spec *s, const float *w, const float *ema) {
  const size_t rows = t->rows, cols = t->cols;
  mx_tensor ones;
  mx_status status = ref_tensor_alloc(&ones, rows, cols, s);
  if (status) return status;
  float *wr = rotated(w, rows, cols, s), *er = rotated(ema, rows, cols, s), *scales = malloc((rows * cols + 1) * sizeof *scales);
  uint8_t *row = calloc(t->cols_padded + 64, 1), *one = malloc(t->cols_padded + 64);
  size_t block_rows, block;
  ref_block_extent(s, rows, cols, &block_rows, &block);
  if (!wr || !er || !scales || !row || !one) status = MX_ERR_NOMEM;
  if (!status) {
    memset(one, 2, t->cols_padded); /* 1 */
    memcpy(ones.scales, t->scales, t->scale_rows * t->scale_cols * t->scale_bytes);
    ones.tensor_scale = t->tensor_scale, ones.has_tensor_scale = t->has_tensor_scale;
    for (size_t r = 0; r < rows; r++) ref_pack4(ones.codes + r * t->code_stride, one, t->cols_padded, s->nibble, block);
    status = ref_dequantize(scales, cols, &ones, s, NULL);
  }
  const float prescale = s->elem_prescale == 0 ? 1 : s->elem_prescale;
  for (size_t r = 0; r < rows && !status; r++) {
    memset(row, 0, t->cols_padded);
    for (size_t c = 0; c < cols; c++) {
      const uint64_t nearest = ref_code_at(t, s, r, c);
      const uint64_t code = code_of(wr[r * cols + c], er[r * cols + c], prescale, scales[r * cols + c], nearest, s);
      *moved += code != nearest;
      row[c] = (uint8_t)code;
    }
    ref_pack4(t->codes + r * t->code_stride, row, t->cols_padded, s->nibble, block);
  }
  free(wr), free(er), free(scales), free(row), free(one);
  ref_tensor_free(&ones);
  return status;
}
