/* Dequantises by SPEC 3.7: rnd_f32(code * scale * multiplier), the exact product rounded once; in the encode form the code is divided by its scale. */
#include <string.h>

#include "rules.h"

/* deq.arith=scale_first: the block's scale with the tensor's in it. over or under is 1: ref_scale_first_multiplier(). */
static num scale_and_tensor(int encode, num scale, num over, num under) {
  if (encode && num_is_zero(scale)) return scale;
  return num_round(num_ratio((num[]){scale, encode ? under : over}, 2, encode ? &over : &under, 1), NUM_F32);
}

num ref_dequantized(const ref_plan *plan, num code, num scale, num over, num under) {
  const int encode = plan->spec->scale_form == MX_SCALE_FORM_ENCODE && !plan->chained;
  if (num_is_zero(code) && num_is_zero(scale) && encode) return num_zero(code.sign); /* scale.zero=zero: nothing was kept */
  const num up[3] = {code, encode ? over : scale, encode ? under : over};
  if (plan->spec->deq_arith == MX_DEQ_ARITH_TWO_STEP) {
    num v = encode ? num_div_r(code, scale, NUM_F32) : num_mul_r(code, scale, NUM_F32);
    if (plan->spec->tensor_norm == MX_TENSOR_NORM_NONE) return v;
    return num_mul_r(v, num_div_r(over, under, NUM_F32), NUM_F32);
  }
  if (plan->spec->deq_arith == MX_DEQ_ARITH_SCALE_FIRST) {
    const num f = scale_and_tensor(encode, scale, over, under);
    if (encode && num_is_zero(code) && num_is_zero(f)) return num_zero(code.sign);
    return encode ? num_div_r(code, f, NUM_F32) : num_mul_r(code, f, NUM_F32);
  }
  if (encode) return num_round(num_ratio(up, 2, (num[]){scale, under}, 2), NUM_F32);
  return num_round(num_ratio(up, 3, &under, 1), NUM_F32);
}

static uint64_t scale_code(const mx_tensor *t, size_t row, size_t col) {
  const uint8_t *p = t->scales + (row * t->scale_cols + col) * t->scale_bytes;
  uint64_t code = 0;
  for (size_t i = 0; i < t->scale_bytes; i++) code |= (uint64_t)p[i] << 8 * i;
  return code;
}

static int micro_exponent(const mx_tensor *t, size_t row, size_t col) {
  if (!t->micro) return 0;
  const uint8_t *m = t->micro + (row * t->scale_cols + col / 64) * 3;
  const size_t i = col % 64;
  return (m[0] >> i / 8 & 1) + (m[1 + i / 32] >> i % 32 / 4 & 1);
}

uint64_t ref_code_at(const mx_tensor *t, const mx_spec *spec, size_t row, size_t col) {
  const uint8_t *codes = t->codes + row * t->code_stride;
  if (ref_elem_format(spec->elem)->bits > 4) return codes[col];
  size_t rows, block, byte = col / 2, high = col % 2;
  ref_block_extent(spec, t->rows, t->cols, &rows, &block); /* the nibble order repeats from block to block */
  const size_t j = col % block, low = (block + 1) / 2;
  if (spec->nibble == MX_NIBBLE_HIGH_FIRST) high = !high;
  if (spec->nibble == MX_NIBBLE_HALF_BLOCK) byte = (col - j) / 2 + (j < low ? j : j - low), high = j >= low;
  return high ? codes[byte] >> 4 : codes[byte] & 15;
}

mx_status ref_dequantize(float *out, size_t ld, const mx_tensor *t, const mx_spec *spec, const mx_exec *exec) {
  (void)exec;
  if (!t || !spec || (!out && t->rows && t->cols)) return MX_ERR_ARG;
  if (ld < t->cols) return MX_ERR_SHAPE;
  ref_plan plan;
  mx_status status = ref_spec_check(spec, NULL);
  if (status == MX_OK) status = ref_plan_make(&plan, spec, t->rows, t->cols);
  if (status != MX_OK) return status;
  num over, under;
  ref_tensor_multiplier(&plan, num_float(t->tensor_scale), &over, &under);
  const int by_column = t->scale_rows != t->rows || (plan.block_cols == 1 && t->scale_cols == t->cols && plan.block_rows > 1);
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c++) {
      uint64_t code;
      if (plan.elem->kind == MX_KIND_NONE) { /* the values themselves */
        memcpy(&out[r * ld + c], t->codes + r * t->code_stride + 4 * c, 4);
        continue;
      }
      code = ref_code_at(t, spec, r, c);
      num s = ref_scale_value(&plan, scale_code(t, by_column ? r / plan.block_rows : r, by_column ? c : c / plan.block_cols));
      num v = ref_value(plan.elem, code);
      if (v.kind == NUM_FINITE) v.exp += micro_exponent(t, r, c);
      out[r * ld + c] = num_result(ref_dequantized(&plan, v, s, over, under));
    }
  return MX_OK;
}
