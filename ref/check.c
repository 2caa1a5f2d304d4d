/* Keys that exclude each other: SPEC 3.6, in its order. */
#include "ref.h"

#include <stdarg.h>
#include <stdio.h>

#include "fail.h"

mx_status ref_fail(mx_error *err, mx_status status, const char *format, ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  err->status = status;
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  return status;
}

mx_status ref_spec_check(const mx_spec *spec, mx_error *err) {
#define NO(condition, text)                                                                                                                    \
  if (condition) return ref_fail(err, MX_ERR_CONFLICT, "%s", text)
  const mx_format *elem = ref_elem_format(spec->elem), *scale = ref_scale_format(spec->scale);
  if (!elem || !scale) return ref_fail(err, MX_ERR_ARG, "elem or scale is no row of its table");
  const int chained = spec->chain != MX_CHAIN_EXACT, encode = spec->scale_form == MX_SCALE_FORM_ENCODE;
  const int e8m0 = spec->scale == MX_SCALE_E8M0, norm = spec->tensor_norm != MX_TENSOR_NORM_NONE;
  NO(chained && (spec->scale_rule != MX_SCALE_RULE_VALUE || encode), "chain other than exact needs scale.rule=value and scale.form=decode");
  NO(chained && norm && spec->tensor_norm != MX_TENSOR_NORM_NV, "chain other than exact excludes tensor.norm=unit, chmiel, seed004");
  NO((spec->elem_round == MX_ROUND_SCAN_Y || spec->elem_round == MX_ROUND_SCAN_X) && elem->bits > 8,
     "elem.round=scan_y, scan_x need a narrow elem");
  NO(spec->scale_rule == MX_SCALE_RULE_HIF4 && (spec->elem != MX_ELEM_E1M2 || spec->scale != MX_SCALE_E6M2),
     "scale.rule=hif4 needs elem=e1m2 and scale=e6m2");
  NO(spec->scale_rule == MX_SCALE_RULE_HIF4 && (spec->block_cols != 64 || spec->block_rows > 1), "scale.rule=hif4 needs block=1x64");
  NO(spec->scale_rule == MX_SCALE_RULE_HIF4 && (norm || spec->select != MX_SELECT_ABSMAX), "scale.rule=hif4 excludes tensor.norm and select");
  NO(spec->scale_round == MX_SCALE_ROUND_GGML && spec->scale != MX_SCALE_E4M3, "scale.round=ggml needs scale=e4m3");
  NO(!e8m0 && (spec->scale_used == MX_SCALE_USED_UNCLAMPED || spec->scale_byte_overflow == MX_BYTE_OVERFLOW_WRAP),
     "scale.used=unclamped and scale.byte_overflow=wrap need scale=e8m0");
#undef NO
  return MX_OK;
}
