/* Refuses keys that exclude each other: SPEC 3.10. */
#include "ref.h"

#include <stdarg.h>
#include <stdio.h>

#include "fail.h"
#include "rules.h"

mx_status ref_fail(mx_error *err, mx_status status, const char *format, ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  err->status = status;
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  return status;
}

/* Is K = F * M a binary32? */
static int target_fits(const mx_spec *spec, const mx_format *elem, const mx_format *scale) {
  return num_mul_r(ref_scale_max(spec, elem), num_double(ref_format_max(scale)), NUM_F32).kind != NUM_INF;
}

static int no_code(const mx_format *elem, int used, float n) { return used && elem->bits < 24 && (uint32_t)n >> elem->bits; }

static int no_deviation(int act) { return act == MX_SCALE_NAN_IGNORE || act == MX_SCALE_NAN_CLAMP || act == MX_SCALE_NAN_RULE; }

mx_status ref_spec_check(const mx_spec *spec, mx_error *err) {
#define NO(condition, text)                                                                                                                    \
  if (condition) return ref_fail(err, MX_ERR_CONFLICT, "%s", text)
  const mx_format *elem = ref_elem_format(spec->elem), *scale = ref_scale_format(spec->scale);
  if (!elem || !scale) return ref_fail(err, MX_ERR_ARG, "elem or scale is not a row of its table");
  const int chained = spec->chain != MX_CHAIN_EXACT, encode = spec->scale_form == MX_SCALE_FORM_ENCODE, norm = spec->tensor_norm;
  const int e8m0 = spec->scale == MX_SCALE_E8M0, value = spec->scale_rule == MX_SCALE_RULE_VALUE, hif4 = spec->scale_rule == MX_SCALE_RULE_HIF4;
  ref_chain chain = {0};
  if (chained && !ref_chain_read(&chain, spec->chain)) return ref_fail(err, MX_ERR_ARG, "chain is not a row of its table");

  NO(chained && (!value || encode), "a chain needs scale.rule=value and scale.form=decode");
  NO(chained && chain.n_tensor && norm != MX_TENSOR_NORM_NV, "this chain needs tensor.norm=nv");
  NO(chained && !chain.n_tensor && norm != MX_TENSOR_NORM_NONE, "this chain has no tensor scale");
  NO(chained && spec->scale_arith != MX_SCALE_ARITH_EXACT, "a chain says how the scale is computed: no scale.arith");
  NO(chained && spec->elem_arith != MX_ELEM_ARITH_EXACT, "a chain says how elements are scaled: no elem.arith");
  NO(chained && !num_is_zero(num_float(spec->elem_prescale)), "a chain says how elements are scaled: no elem.prescale");
  NO(chained && spec->scale_used != MX_SCALE_USED_STORED, "a chain starts from the stored scale: no scale.used");
  NO(chained && spec->tensor_store != MX_TENSOR_STORE_CHAIN, "a chain says what is stored: no tensor.store");
  NO(chained && (spec->scale_byte0 == MX_SCALE_BYTE0_DIV126 || spec->scale_byte0 == MX_SCALE_BYTE0_TIMES1),
     "a chain says how elements are scaled: no scale.byte0=div126, times1");
  NO(chained && (spec->scale_nan >= MX_SCALE_NAN_BYTE_INF || spec->scale_inf >= MX_SCALE_INF_BYTE_INF),
     "a chain says how elements are scaled: no byte_inf, byte_nan, byte_zero");
  NO(spec->input_dtype != MX_INPUT_DTYPE_FLOAT32 && (chained || norm), "input.dtype: chains and tensor scales are of binary32");

  NO(encode && !value, "scale.form=encode needs scale.rule=value");
  NO(encode && (spec->elem_arith == MX_ELEM_ARITH_DIV32 || spec->elem_arith == MX_ELEM_ARITH_RECIP32),
     "scale.form=encode multiplies: elem.arith exact or mul32");
  NO(!encode && spec->elem_arith == MX_ELEM_ARITH_MUL32, "elem.arith=mul32 needs scale.form=encode");

  NO(!norm && spec->tensor_given, "tensor.given needs a tensor.norm");
  NO(spec->tensor_given && num_float(spec->tensor_given_value).sign && !num_is_nan(num_float(spec->tensor_given_value)),
     "tensor.given is a magnitude");
  NO(norm && elem->kind == MX_KIND_NONE, "elem=none, bf16 have no tensor scale: no tensor.norm");
  NO(spec->elem == MX_ELEM_BFLOAT16 && spec->elem_round != MX_ROUND_RNE, "elem=bf16 rounds to nearest even: no elem.round");
  NO(norm && !chained && (spec->scale_arith != MX_SCALE_ARITH_EXACT || spec->elem_arith != MX_ELEM_ARITH_EXACT),
     "outside a chain a tensor scale goes with exact arithmetic");
  NO(encode && norm == MX_TENSOR_NORM_NV, "tensor.norm=nv needs scale.form=decode");
  NO(norm && num_is_zero(num_float(spec->tensor_target)) && !target_fits(spec, elem, scale),
     "tensor.target: scale.max * the largest scale is beyond binary32");
  NO(!encode && (norm == MX_TENSOR_NORM_CHMIEL || norm == MX_TENSOR_NORM_SEED004), "tensor.norm=chmiel, seed004 need scale.form=encode");

  NO(spec->select == MX_SELECT_FOURSIX && (spec->elem != MX_ELEM_E2M1 || spec->scale_max != MX_SCALE_MAX_ELEM || !value || encode),
     "select=foursix needs elem=e2m1, scale.max=elem, scale.rule=value and scale.form=decode");
  NO(spec->select == MX_SELECT_FOURSIX && chained && norm && chain.store != 'A' - 'A',
     "select=foursix: its error needs max|X|, which this chain does not store");
  NO(spec->select_sum == MX_SELECT_SUM_TORCH16 && (spec->block_rows > 1 || spec->block_rows < 0 || spec->block_cols != 16),
     "select.sum=torch16 needs block=1x16");

  const int eden = spec->select == MX_SELECT_EDEN, columns = spec->block_cols ? spec->block_cols : 32;
  NO(spec->eden_group && !eden, "eden.group needs select=eden");
  NO(eden && (!value || encode || spec->scale_round == MX_SCALE_ROUND_SR),
     "select=eden needs scale.rule=value, decode form, no scale.round=sr");
  NO(eden && elem->kind != MX_KIND_FLOAT, "select=eden needs an element with a mantissa");
  NO(eden && (scale->kind != MX_KIND_FLOAT || scale->bits > 8), "select=eden needs a scale of one byte with a mantissa");
  NO(eden && (spec->block_rows < 0 || spec->block_rows > 1 || columns < 0), "select=eden needs blocks of one row");
  NO(eden && spec->eden_group % (uint32_t)columns, "eden.group is not a multiple of the block");
  NO(eden && !spec->eden_group && columns > 1024, "select=eden: a block is at most 1024");
  NO(eden && (spec->scale_min_byte || spec->scale_max_byte || spec->elem_overflow == MX_OVERFLOW_WRAP_NEGZERO),
     "select=eden excludes scale.min_byte, scale.max_byte and elem.overflow=wrap_negzero");
  const int margin = !num_is_zero(num_float(spec->scale_margin));
  NO(margin && !value, "scale.margin needs scale.rule=value");
  NO(margin && spec->select == MX_SELECT_FOURSIX, "scale.margin excludes select=foursix");
  NO(margin && !num_is_zero(num_float(spec->elem_prescale)), "scale.margin excludes elem.prescale");
  NO(margin && ref_scale_max(spec, elem).kind != NUM_FINITE, "scale.margin: scale.max times it is no positive binary32");

  NO(spec->scale_nan == MX_SCALE_NAN_PROPAGATE && scale->nan_code == MX_NO_CODE, "scale.nan=propagate: the scale format has no NaN");
  NO(!e8m0 && (spec->scale_used != MX_SCALE_USED_STORED || spec->scale_byte_overflow == MX_BYTE_OVERFLOW_WRAP),
     "scale.used and scale.byte_overflow are of scale=e8m0");
  NO(spec->scale_max_byte && spec->scale_min_byte > spec->scale_max_byte, "scale.min_byte is above scale.max_byte");
  NO(spec->scale_byte0 != MX_SCALE_BYTE0_VALUE && (spec->scale_zero == MX_SCALE_ZERO_ZERO || spec->scale_zero == MX_SCALE_ZERO_MAX),
     "scale.byte0 and scale.zero=zero, max both say what a scale of code 0 does");
  NO(!chained && spec->scale_zero == MX_SCALE_ZERO_CHAIN, "scale.zero=chain: there is no chain to go through");
  NO((!num_is_zero(num_float(spec->scale_min)) || spec->scale_min_byte) &&
         (spec->scale_zero == MX_SCALE_ZERO_ZERO || spec->scale_zero == MX_SCALE_ZERO_MAX),
     "scale.min, scale.min_byte: a scale that scale.zero=zero, max leaves at 0 is not raised");
  NO(spec->scale_rule == MX_SCALE_RULE_QUEST && (no_deviation(spec->scale_nan) || (spec->scale_inf && no_deviation(spec->scale_inf - 1))),
     "scale.rule=quest: a deviation has no reading of scale.nan, scale.inf finite, clamp, rule");
  NO(spec->scale_round == MX_SCALE_ROUND_GGML && spec->scale != MX_SCALE_E4M3, "scale.round=ggml needs scale=e4m3");
  NO(spec->nibble == MX_NIBBLE_HALF_BLOCK && (spec->block_cols < 0 || spec->block_cols % 2),
     "nibble=half_block needs an even number of columns in a block");
  NO(hif4 &&
         (spec->elem != MX_ELEM_E1M2 || spec->scale != MX_SCALE_E6M2 || spec->block_cols != 64 || spec->block_rows > 1 || spec->block_rows < 0),
     "scale.rule=hif4 needs elem=e1m2, scale=e6m2 and block=1x64");
  NO(hif4 && (norm || spec->select != MX_SELECT_ABSMAX), "scale.rule=hif4 excludes tensor.norm and select");
  NO(hif4 && (spec->elem_round || spec->elem_overflow || spec->elem_arith || !num_is_zero(num_float(spec->elem_prescale))),
     "scale.rule=hif4 says how elements are scaled and rounded: no elem.round, elem.overflow, elem.arith, elem.prescale");
  NO(!hif4 && spec->hif4_ties != MX_HIF4_TIES_HALF_UP, "hif4.ties needs scale.rule=hif4");
  NO(!hif4 && spec->scale == MX_SCALE_E6M2, "scale=e6m2 belongs to scale.rule=hif4");
  NO(no_code(elem, spec->elem_nan == MX_ELEM_NAN_CODE, spec->elem_nan_n) || no_code(elem, spec->elem_inf == MX_ELEM_INF_CODE, spec->elem_inf_n),
     "elem.nan, elem.inf: code=N is not a code of the element");
  NO(spec->elem_overflow == MX_OVERFLOW_WRAP_NEGZERO && elem->kind != MX_KIND_FLOAT, "elem.overflow=wrap_negzero needs an element with a -0");
  NO(spec->elem_round == MX_ROUND_SCAN_X && norm, "elem.round=scan_x knows no tensor scale");
  NO((spec->elem_round == MX_ROUND_SCAN_Y || spec->elem_round == MX_ROUND_SCAN_X) && elem->bits > 8,
     "elem.round=scan_y, scan_x: elem=none has no codes to scan");
#undef NO
  return MX_OK;
}
