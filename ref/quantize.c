/* Quantises a tensor in the order of SPEC 3.2. */
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "rules.h"

/* Steps 1 to 3 on one row: to input.dtype, flush, rotate. */
static mx_status prepare_row(float *row, const float *src, size_t cols, const mx_spec *spec) {
  for (size_t c = 0; c < cols; c++) {
    num x = num_float(src[c]);
    if (spec->input_dtype == MX_INPUT_DTYPE_BFLOAT16) x = num_round(x, NUM_BF16);
    if (spec->input_dtype == MX_INPUT_DTYPE_FLOAT16) x = num_round(x, NUM_F16);
    if (spec->flush == MX_SWITCH_ON && x.kind == NUM_FINITE && x.exp < -126) x = num_zero(x.sign);
    row[c] = num_is_nan(x) ? src[c] : num_to_float(x); /* a NaN keeps its payload: elem=none and bf16 show it */
  }
  if (spec->had_size == 0) return MX_OK;
  return ref_hadamard(row, cols, row, 1, cols, cols, spec->had_size, spec->had_sign, spec->had_signs, spec->seed);
}

/* All rows, [rows][cols]; NULL without memory. */
mx_status ref_prepare(float **out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec) {
  size_t n;
  *out = NULL;
  if (__builtin_mul_overflow(rows, cols, &n) || n > SIZE_MAX / sizeof(float) - 1) return MX_ERR_NOMEM;
  float *x = malloc((n + 1) * sizeof *x);
  if (!x) return MX_ERR_NOMEM;
  for (size_t r = 0; r < rows; r++) {
    mx_status status = prepare_row(x + r * cols, src + r * ld, cols, spec);
    if (status != MX_OK) {
      free(x);
      return status;
    }
  }
  *out = x;
  return MX_OK;
}

/* Step 4. */
num ref_largest(const ref_plan *plan, const float *x, size_t n) {
  num most = num_zero(0);
  for (size_t i = 0; i < n; i++) {
    num a;
    if (!ref_counts(&a, plan, num_float(x[i]))) continue;
    if (num_is_nan(a)) return num_nan(0);
    if (num_cmp(a, most) > 0) most = a;
  }
  return most;
}

mx_status ref_tensor_amax(float *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec) {
  (void)exec;
  if (!out || !spec || (!src && rows && cols)) return MX_ERR_ARG;
  if (ld < cols) return MX_ERR_SHAPE;
  float *x;
  ref_plan plan;
  mx_status status = ref_spec_check(spec, NULL);
  if (status == MX_OK) status = ref_plan_make(&plan, spec, rows, cols);
  if (status == MX_OK) status = ref_prepare(&x, src, rows, cols, ld, spec);
  if (status != MX_OK) return status;
  *out = num_result(ref_largest(&plan, x, rows * cols));
  free(x);
  return MX_OK;
}

/* One block on its way. */
typedef struct work {
  const ref_plan *plan;
  mx_tensor *out;
  const float *x;   /* [rows][cols], after step 3 */
  size_t first_row; /* of x in the tensor */
  num *elements, *values[2];
  uint64_t *codes[2];
  uint8_t *unpacked; /* [rows][cols_padded]: codes of 8 bits or less */
  num *z, *q;        /* select=eden: scaled values and those of the codes, of one row; both 0 where they do not count */
} work;

static void put_scale(mx_tensor *t, size_t row, size_t col, uint64_t code) {
  for (size_t i = 0; i < t->scale_bytes; i++) t->scales[(row * t->scale_cols + col) * t->scale_bytes + i] = (uint8_t)(code >> 8 * i);
}

void ref_store_scale(mx_tensor *t, const ref_plan *plan, size_t row, size_t col, uint64_t code) {
  const size_t height = plan->block_rows, width = plan->block_cols;
  if (t->scale_rows != t->rows || (width == 1 && height > 1))
    put_scale(t, row / height, col, code);
  else
    for (size_t r = row; r < row + height && r < t->rows; r++) put_scale(t, r, col / width, code);
}

/* select=eden: z and q of a block's elements. A zero and a block whose stored scale is no positive number do not count. */
static void remember(work *w, const ref_scale *scale, size_t row, size_t col) {
  const ref_plan *plan = w->plan;
  const num stored = ref_scale_value(plan, scale->code);
  for (size_t c = col; c < col + plan->block_cols && c < w->out->cols; c++) {
    const num x = num_float(w->x[row * w->out->cols + c]);
    const int counts = stored.kind == NUM_FINITE && !stored.sign && !num_is_zero(x);
    w->z[c] = counts ? num_round(ref_scaled(plan, scale, x), NUM_F32) : num_zero(0);
    w->q[c] = counts ? ref_value(plan->elem, w->unpacked[row * w->out->cols_padded + c]) : num_zero(0);
  }
}

/* Step 10b: the stored scales of a row are corrected group by group. */
static void correct_row(work *w, size_t row) {
  mx_tensor *t = w->out;
  const size_t block = w->plan->block_cols, group = w->plan->spec->eden_group ? w->plan->spec->eden_group : block;
  for (size_t c = 0; c < t->cols; c += group) {
    const size_t n = t->cols - c < group ? t->cols - c : group;
    num factor;
    if (!ref_eden_factor(&factor, w->z + c, w->q + c, n)) continue;
    for (size_t k = c / block; k * block < c + n; k++) {
      uint8_t *stored = t->scales + row * t->scale_cols + k;
      *stored = (uint8_t)ref_eden_code(w->plan, *stored, factor, (w->first_row + row) * t->scale_cols + k);
    }
  }
}

/* Steps 5 to 10 of the tile whose first element is (row, col), and its part of step 11. */
static int do_block(work *w, size_t row, size_t col) {
  const ref_plan *plan = w->plan;
  mx_tensor *t = w->out;
  const size_t height = plan->block_rows, width = plan->block_cols, n = height * width;
  const size_t tiles = t->cols / width + (t->cols % width != 0);
  for (size_t i = 0; i < n; i++) {
    size_t r = row + i / width, c = col + i % width;
    w->elements[i] = r < t->rows && c < t->cols ? num_float(w->x[r * t->cols + c]) : num_zero(0);
    if (plan->spec->elem_nan == MX_ELEM_NAN_ERROR && num_is_nan(w->elements[i])) return 0;
  }
  const ref_block block = {w->elements, n, (w->first_row + row) / height * tiles + col / width};
  uint64_t scale_code;
  uint8_t micro[3];
  int pick = 0;
  ref_scale scales[2];
  if (plan->elem->kind == MX_KIND_NONE) {
    scale_code = ref_code(plan->scale, num_int(1), &(ref_how){0}, 0); /* values pass through: every scale is 1 */
  } else if (plan->spec->scale_rule == MX_SCALE_RULE_HIF4) {
    if (!ref_hif4_block(&scale_code, micro, w->codes[0], plan, &block)) return 0;
  } else {
    const int n_scales = ref_block_scales(scales, plan, &block);
    if (n_scales == 0) return 0;
    for (int k = 0; k < n_scales && w->unpacked; k++)
      for (size_t i = 0; i < n; i++) {
        size_t r = row + i / width, c = col + i % width;
        uint64_t index = r < t->rows && c < t->cols ? (w->first_row + r) * t->cols + c : UINT64_MAX;
        w->codes[k][i] = ref_element(plan, &scales[k], w->elements[i], index, &w->values[k][i]);
      }
    if (n_scales == 2 && w->unpacked) pick = ref_second_wins(plan, scales, (const num *[]){w->values[0], w->values[1]}, &block);
    scale_code = scales[pick].code;
  }
  for (size_t i = 0; i < n && w->unpacked; i++) {
    size_t r = row + i / width, c = col + i % width;
    if (r < t->rows && c < t->cols_padded) w->unpacked[r * t->cols_padded + c] = (uint8_t)w->codes[pick][i];
  }
  if (w->z) remember(w, &scales[0], row, col);
  ref_store_scale(t, plan, row, col, scale_code);
  if (t->micro) memcpy(t->micro + (row * t->scale_cols + col / width) * 3, micro, 3); /* of scale.rule=hif4, whose blocks have one row */
  return 1;
}

int ref_same_shape(const mx_tensor *a, const mx_tensor *b) {
  return a->rows == b->rows && a->cols == b->cols && a->cols_padded == b->cols_padded && a->code_stride == b->code_stride &&
         a->scale_rows == b->scale_rows && a->scale_cols == b->scale_cols && a->scale_bytes == b->scale_bytes;
}

/* Step 11: codes to bytes, a row at a time. */
void ref_store_codes(mx_tensor *t, const uint8_t *codes, const ref_plan *plan) {
  for (size_t r = 0; r < t->rows && t->code_stride; r++) {
    if (plan->elem->bits == 4)
      ref_pack4(t->codes + r * t->code_stride, codes + r * t->cols_padded, t->cols_padded, plan->spec->nibble, plan->block_cols);
    else
      memcpy(t->codes + r * t->code_stride, codes + r * t->cols_padded, t->cols_padded);
  }
}

static mx_status run(work *w, mx_error *err) {
  const ref_plan *plan = w->plan;
  mx_tensor *t = w->out;
  const size_t n = plan->block_rows * plan->block_cols;
  const int has_codes = plan->elem->kind != MX_KIND_NONE; /* elem=none, bf16: the values themselves */
  if (!(w->elements = malloc((n + 1) * sizeof *w->elements))) return MX_ERR_NOMEM;
  for (int k = 0; k < 2; k++)
    if (!(w->values[k] = malloc((n + 1) * sizeof **w->values)) || !(w->codes[k] = malloc((n + 64) * sizeof **w->codes))) return MX_ERR_NOMEM;
  if (plan->spec->select == MX_SELECT_EDEN &&
      (!(w->z = malloc((t->cols + 1) * sizeof *w->z)) || !(w->q = malloc((t->cols + 1) * sizeof *w->q))))
    return MX_ERR_NOMEM;
  if (has_codes && !(w->unpacked = calloc(t->rows * t->cols_padded + 1, 1))) return MX_ERR_NOMEM;
  for (size_t row = 0; row < t->rows; row += plan->block_rows) {
    for (size_t col = 0; col < t->cols; col += plan->block_cols)
      if (!do_block(w, row, col))
        return ref_fail(err, MX_ERR_DATA, "row %zu, column %zu: its block holds a NaN or an Inf that the spec refuses", w->first_row + row,
                        col);
    if (w->z) correct_row(w, row);
  }
  if (has_codes)
    ref_store_codes(t, w->unpacked, plan);
  else
    for (size_t i = 0; i < t->rows * t->cols; i++) {
      const num v = num_float(w->x[i]);
      const float stored = plan->spec->elem == MX_ELEM_BFLOAT16 && !num_is_nan(v) ? num_to_float(num_round(v, NUM_BF16)) : w->x[i];
      memcpy(t->codes + 4 * i, &stored, 4);
    }
  return MX_OK;
}

mx_status ref_quantize(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec,
                       mx_error *err) {
  if (!out || !spec || (!src && rows && cols)) return ref_fail(err, MX_ERR_ARG, "out, src or spec is NULL");
  mx_status status = ref_spec_check(spec, err);
  if (status != MX_OK) return status;
  mx_tensor want;
  if ((status = ref_tensor_layout(&want, rows, cols, spec)) != MX_OK) return ref_fail(err, status, "out of memory");
  if (ld < cols) return ref_fail(err, MX_ERR_SHAPE, "row stride %zu is less than %zu columns", ld, cols);
  if (!ref_same_shape(out, &want)) return ref_fail(err, MX_ERR_SHAPE, "out was allocated for another shape or spec");
  ref_plan plan;
  if ((status = ref_plan_make(&plan, spec, rows, cols)) != MX_OK) return ref_fail(err, status, "chain");
  float *x;
  if ((status = ref_prepare(&x, src, rows, cols, ld, spec)) != MX_OK) return ref_fail(err, status, "out of memory");
  num stored;
  ref_plan_tensor(&plan, exec && exec->amax_known ? num_float(exec->amax) : ref_largest(&plan, x, rows * cols), &stored);
  out->has_tensor_scale = spec->tensor_norm != MX_TENSOR_NORM_NONE;
  out->tensor_scale = out->has_tensor_scale ? num_result(stored) : 1;
  work w = {.plan = &plan, .out = out, .x = x, .first_row = exec ? exec->first_row : 0};
  status = run(&w, err);
  if (status == MX_ERR_NOMEM) ref_fail(err, status, "out of memory");
  free(w.elements);
  for (int k = 0; k < 2; k++) {
    free(w.values[k]);
    free(w.codes[k]);
  }
  free(w.unpacked);
  free(w.z);
  free(w.q);
  free(x);
  return status;
}

mx_status ref_quantize_transposed(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                                  const mx_exec *exec, mx_error *err) {
  if (!out || !spec || (!src && rows && cols)) return ref_fail(err, MX_ERR_ARG, "out, src or spec is NULL");
  if (ld < cols) return ref_fail(err, MX_ERR_SHAPE, "row stride %zu is less than %zu columns", ld, cols);
  size_t n;
  if (__builtin_mul_overflow(rows, cols, &n) || n > SIZE_MAX / sizeof(float) - 1) return ref_fail(err, MX_ERR_NOMEM, "out of memory");
  float *t = malloc((n + 1) * sizeof *t);
  if (!t) return ref_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) memcpy(&t[c * rows + r], &src[r * ld + c], sizeof *t);
  mx_status status = ref_quantize(out, t, cols, rows, rows, spec, exec, err);
  free(t);
  return status;
}
