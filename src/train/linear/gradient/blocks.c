/* Takes the blocks of a quantised operand apart, and computes what a code of each is multiplied by (SPEC 3.5, 3.7), in binary64. */
#include <math.h>
#include <string.h>

#include "train/linear/gradient/block.h"

double mxi_rule_max(const mx_spec *spec) {
  return spec->scale_rule == MX_SCALE_RULE_VALUE ? mx_spec_scale_max(spec) : ldexp(1, mx_format_emax(mx_elem_format(spec->elem)));
}

/* What max|X| maps to in the units of code times scale: N of SPEC 3.5. */
static double normaliser(const mx_spec *s) {
  if (s->tensor_norm == MX_TENSOR_NORM_UNIT) return 1;
  const double most = mx_spec_scale_max(s) * mx_format_max(mx_scale_format(s->scale));
  const double target = s->tensor_target != 0 ? (double)s->tensor_target : (double)(float)most; /* K: with a margin F may have 24 bits */
  return s->tensor_norm == MX_TENSOR_NORM_SEED004 ? target / 2 : target;
}

void mxi_blocks_of(mxi_blocks *out, const mx_tensor *tensor, const mx_spec *spec) {
  *out = (mxi_blocks){.tensor = tensor, .spec = spec, .scale = mx_scale_format(spec->scale), .over = 1, .under = 1, .prescale = 1};
  mx_spec_block(spec, tensor->rows, tensor->cols, &out->rows, &out->cols);
  out->down = out->rows ? (tensor->rows + out->rows - 1) / out->rows : 0;
  out->across = out->cols ? (tensor->cols + out->cols - 1) / out->cols : 0;
  if (spec->elem_prescale != 0) out->prescale = (double)spec->elem_prescale;
  if (!tensor->has_tensor_scale) return;
  const char *store = mx_tensor_store_name(spec);
  if (!strcmp(store, "divisor"))
    out->under = (double)tensor->tensor_scale;
  else
    out->over = (double)tensor->tensor_scale;
  if (!strcmp(store, "amax")) out->under = normaliser(spec);
}

double mxi_block_multiplier(const mxi_blocks *b, size_t i, size_t j, double *stored) {
  const mx_tensor *t = b->tensor;
  const int columns = b->cols == 1 && b->rows > 1; /* these have one row of scales a row of blocks; others repeat it */
  const size_t at = (columns ? i : i * b->rows) * t->scale_cols + j;
  *stored = mx_decode(b->scale, mx_scale_code_at(t, at));
  return b->spec->scale_form == MX_SCALE_FORM_ENCODE ? b->over / (b->under * *stored) : b->over * *stored / b->under;
}

double mxi_gradient_scaled(const mxi_blocks *b, double multiplier, float x) { return x == 0 ? 0 : (double)x * b->prescale / multiplier; }

float mxi_gradient_store(double x) {
  static const uint32_t nan_bits = 0x7FC00000;
  float y = (float)x;
  if (y != y) memcpy(&y, &nan_bits, sizeof y);
  return y;
}
