/* Holds the tables of formats and decodes one code. */
#include <math.h>
#include <string.h>

#include "core/encode.h"

#define MX_FORMAT(id, name, kind, bits, sign, exp, man, bias, max, inf, nan_first, nan_last, nan, source)                                      \
  {name, MX_KIND_##kind, bits, sign, exp, man, bias, max, inf, nan_first, nan_last, nan, source},
static const mx_format elements[] = {
#include "formats/elements.def"
};
static const mx_format scales[] = {
#include "formats/scales.def"
};
static const mx_format operands[] = {
#include "formats/operands.def"
};
#undef MX_FORMAT

const mx_format *mx_elem_format(int elem) { return elem >= 0 && elem < MX_ELEM_COUNT ? &elements[elem] : NULL; }
const mx_format *mx_scale_format(int scale) { return scale >= 0 && scale < MX_SCALE_COUNT ? &scales[scale] : NULL; }
const mx_format *mx_operand_format(int operand) { return operand >= 0 && operand < MX_OPERAND_COUNT ? &operands[operand] : NULL; }

const mx_format *mx_format_find(const char *name) {
  for (int i = 0; i < MX_ELEM_COUNT; i++)
    if (!strcmp(elements[i].name, name) && i != MX_ELEM_BFLOAT16) return &elements[i]; /* bf16 has codes only as a scale format */
  for (int i = 0; i < MX_SCALE_COUNT; i++)
    if (!strcmp(scales[i].name, name)) return &scales[i];
  for (int i = 0; i < MX_OPERAND_COUNT; i++)
    if (!strcmp(operands[i].name, name)) return &operands[i];
  return NULL;
}

static uint64_t magnitude_mask(const mx_format *f) { return ((f->bits == 64 ? 0 : UINT64_C(1) << f->bits) - 1) >> f->sign_bits; }

int mx_format_is_nan(const mx_format *f, uint64_t code) {
  if (f->nan_first == MX_NO_CODE) return 0;
  if (f->kind != MX_KIND_FNUZ) code &= magnitude_mask(f);
  return code >= f->nan_first && code <= f->nan_last;
}

double mx_decode(const mx_format *f, uint64_t code) {
  if (f->bits < 64) code &= (UINT64_C(1) << f->bits) - 1;
  if (f->kind == MX_KIND_INT) {
    const int64_t sign = f->sign_bits ? INT64_C(1) << (f->bits - 1) : 0;
    return mx_times_pow2((double)(((int64_t)code ^ sign) - sign), -f->man_bits);
  }
  const uint64_t mag = code & magnitude_mask(f);
  const int negative = f->sign_bits && code != mag;
  double value;
  if (mx_format_is_nan(f, code))
    value = NAN;
  else if (mag == f->inf_code)
    value = INFINITY;
  else {
    const int exp = (int)(mag >> f->man_bits);
    const double man = (double)(mag & ((UINT64_C(1) << f->man_bits) - 1));
    const int normal = exp > 0 || f->kind == MX_KIND_EXP;
    value = mx_times_pow2(normal ? man + mx_times_pow2(1, f->man_bits) : man, (normal ? exp : 1) - f->bias - f->man_bits);
  }
  return copysign(value, negative ? -1 : 1);
}

double mx_format_max(const mx_format *f) { return mx_decode(f, f->max_code); }
double mx_format_min(const mx_format *f) { return mx_decode(f, f->kind == MX_KIND_EXP ? 0 : 1); }
int mx_format_emax(const mx_format *f) { return ilogb(mx_format_max(f)); }
