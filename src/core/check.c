/* Refuses keys that exclude each other. */
#include <math.h>

#include "mxgold/spec.h"

static mx_status conflict(mx_error *err, const char *a, const char *b, const char *why) {
  return mx_fail(err, MX_ERR_CONFLICT, "%s excludes %s: %s", a, b, why);
}

mx_status mx_spec_check(const mx_spec *s, mx_error *err) {
  const mx_format *elem = mx_elem_format(s->elem), *scale = mx_scale_format(s->scale);
  if (!elem || !scale) return mx_fail(err, MX_ERR_ARG, "elem or scale is not a row of its table");
  const int chain = s->chain != MX_CHAIN_EXACT, value = s->scale_rule == MX_SCALE_RULE_VALUE, encode = s->scale_form == MX_SCALE_FORM_ENCODE;
  const int normed = s->tensor_norm != MX_TENSOR_NORM_NONE;
  if (chain && !value) return conflict(err, "chain", "scale.rule", "a chain computes the value of scale.rule=value");
  if (chain && encode) return conflict(err, "chain", "scale.form=encode", "the chains are of the decode form");
  if (chain && s->elem_arith != MX_ELEM_ARITH_EXACT) return conflict(err, "chain", "elem.arith", "the chain says how elements are scaled");
  if (chain && s->elem_prescale != 0) return conflict(err, "chain", "elem.prescale", "the chain says how elements are scaled");
  if (chain && s->scale_arith != MX_SCALE_ARITH_EXACT) return conflict(err, "chain", "scale.arith", "the chain says how the scale is computed");
  if (s->scale_byte0 != MX_SCALE_BYTE0_VALUE && (s->scale_zero == MX_SCALE_ZERO_ZERO || s->scale_zero == MX_SCALE_ZERO_MAX))
    return conflict(err, "scale.byte0", "scale.zero=zero, max", "both say what a scale of code 0 does");
  if ((s->scale_min_byte || s->scale_min != 0) && (s->scale_zero == MX_SCALE_ZERO_ZERO || s->scale_zero == MX_SCALE_ZERO_MAX))
    return conflict(err, "scale.min, scale.min_byte", "scale.zero=zero, max", "the scale cannot stay 0 and be raised");
  if (s->scale_max_byte && s->scale_min_byte > s->scale_max_byte)
    return conflict(err, "scale.min_byte", "scale.max_byte", "the smallest byte is above the largest");
  if (s->scale_rule == MX_SCALE_RULE_HIF4 && (normed || s->select != MX_SELECT_ABSMAX))
    return conflict(err, "scale.rule=hif4", "tensor.norm, select", "its three levels are all the scales there are");
  const int leaves_out = s->scale_nan == MX_SCALE_NAN_IGNORE || s->scale_nan == MX_SCALE_NAN_CLAMP || s->scale_nan == MX_SCALE_NAN_RULE ||
                         s->scale_inf == MX_SCALE_INF_IGNORE || s->scale_inf == MX_SCALE_INF_CLAMP || s->scale_inf == MX_SCALE_INF_RULE;
  if (s->elem_overflow == MX_OVERFLOW_WRAP_NEGZERO && s->elem_round != MX_ROUND_RNE)
    return conflict(err, "elem.overflow=wrap_negzero", "elem.round", "what wraps is the result of rounding to nearest even");
  if (s->elem_round == MX_ROUND_SCAN_X && normed)
    return conflict(err, "elem.round=scan_x", "tensor.norm", "it compares with the element itself");
  const int hif4 = s->scale_rule == MX_SCALE_RULE_HIF4;
  if (hif4 && (s->elem_round || s->elem_overflow || s->elem_arith || s->elem_prescale != 0))
    return conflict(err, "scale.rule=hif4", "elem.round, elem.overflow, elem.arith, elem.prescale",
                    "it says how elements are scaled and rounded");
  if (s->hif4_ties != MX_HIF4_TIES_HALF_UP && !hif4) return conflict(err, "hif4.ties", "scale.rule", "only scale.rule=hif4 uses it");
  if (s->scale_rule == MX_SCALE_RULE_QUEST && normed)
    return conflict(err, "scale.rule=quest", "tensor.norm", "the deviation is taken of the block before any tensor scale");
  const int carries = s->scale_rule == MX_SCALE_RULE_EVEN && s->scale_carry == MX_SCALE_CARRY_INF;
  if (carries && leaves_out)
    return conflict(err, "scale.carry=inf", "scale.nan, scale.inf=finite, clamp, rule",
                    "an Inf that the rule itself produces cannot be ignored");
  if (carries && normed) return conflict(err, "scale.carry=inf", "tensor.norm", "the carry is defined for the block's own maximum in binary32");
  if (encode && s->scale_arith != MX_SCALE_ARITH_EXACT)
    return conflict(err, "scale.form=encode", "scale.arith", "the encode form computes max/amax exactly");
  if (encode && s->scale_allzero == MX_SCALE_ALLZERO_CHAIN)
    return conflict(err, "scale.form=encode", "scale.allzero=chain", "max/0 is not a scale");
  if (!chain && s->scale_arith != MX_SCALE_ARITH_EXACT && (s->scale_nan == MX_SCALE_NAN_RULE || s->scale_inf == MX_SCALE_INF_RULE))
    return conflict(err, "scale.inf=rule", "scale.arith", "binary32 cannot hold the 2^128 that stands for Inf");
  if (!chain && s->scale_zero == MX_SCALE_ZERO_CHAIN)
    return conflict(err, "scale.zero=chain", "chain=exact", "there is no chain to go through");
  if (s->scale_rule == MX_SCALE_RULE_QUEST && leaves_out)
    return conflict(err, "scale.rule=quest", "scale.nan, scale.inf=finite, clamp, rule",
                    "a standard deviation cannot ignore or replace an Inf or NaN");
  if (s->elem_overflow == MX_OVERFLOW_WRAP_NEGZERO && elem->kind != MX_KIND_FLOAT)
    return conflict(err, "elem.overflow=wrap_negzero", elem->name, "the format has no -0");
  if (chain && s->scale_byte_overflow == MX_BYTE_OVERFLOW_WRAP)
    return conflict(err, "chain", "scale.byte_overflow=wrap", "a chain starts from the stored scale");
  if (chain && s->scale_used != MX_SCALE_USED_STORED) return conflict(err, "chain", "scale.used", "a chain starts from the stored scale");
  if (chain && (s->scale_byte0 == MX_SCALE_BYTE0_DIV126 || s->scale_byte0 == MX_SCALE_BYTE0_TIMES1))
    return conflict(err, "chain", "scale.byte0=div126, times1", "the chain says how elements are scaled");
  if (chain && (s->scale_nan >= MX_SCALE_NAN_BYTE_INF || s->scale_inf >= MX_SCALE_INF_BYTE_INF))
    return conflict(err, "chain", "byte_inf, byte_nan, byte_zero", "the chain says how elements are scaled");
  if (chain && normed && s->tensor_norm != MX_TENSOR_NORM_NV) return conflict(err, "chain", "tensor.norm", "only nv goes with a chain");
  if (chain && !normed && *mx_chain_row(s->chain)->tensor) return conflict(err, "chain", "tensor.norm=none", "this chain needs tensor.norm=nv");
  if (chain && normed && !*mx_chain_row(s->chain)->tensor) return conflict(err, "chain", "tensor.norm=nv", "this chain has no tensor scale");
  const double codes = ldexp(1, elem->bits), bytes = ldexp(1, scale->bits);
  if ((double)s->elem_nan_n >= codes || (double)s->elem_inf_n >= codes)
    return mx_fail(err, MX_ERR_CONFLICT, "elem.nan, elem.inf: code=N is not a code of %s", elem->name);
  if ((double)s->scale_zero_n >= bytes || (double)s->scale_allzero_n >= bytes || (double)s->scale_nan_n >= bytes ||
      (double)s->scale_inf_n >= bytes)
    return mx_fail(err, MX_ERR_CONFLICT, "scale.zero, scale.allzero, scale.nan, scale.inf: byte=N is not a code of %s", scale->name);
  if (encode && !value) return conflict(err, "scale.form=encode", "scale.rule", "only scale.rule=value has an encode form");
  if (encode && s->elem_arith != MX_ELEM_ARITH_EXACT && s->elem_arith != MX_ELEM_ARITH_MUL32)
    return conflict(err, "scale.form=encode", "elem.arith", "the encode form multiplies: exact or mul32");
  if (!encode && s->elem_arith == MX_ELEM_ARITH_MUL32) return conflict(err, "elem.arith=mul32", "scale.form=decode", "the decode form divides");
  if (!chain && normed && (s->elem_arith != MX_ELEM_ARITH_EXACT || s->scale_arith != MX_SCALE_ARITH_EXACT))
    return conflict(err, "tensor.norm", "elem.arith, scale.arith", "outside a chain a tensor scale goes with exact arithmetic");
  if ((s->tensor_norm == MX_TENSOR_NORM_CHMIEL || s->tensor_norm == MX_TENSOR_NORM_SEED004) && !encode)
    return conflict(err, "tensor.norm=chmiel, seed004", "scale.form=decode", "they normalise the encode form");
  if (s->tensor_norm == MX_TENSOR_NORM_NV && encode)
    return conflict(err, "tensor.norm=nv", "scale.form=encode", "nv normalises the decode form");
  const double most = mx_spec_scale_max(s), target = most * mx_format_max(scale);
  if (normed && elem->kind == MX_KIND_NONE)
    return conflict(err, "elem=none, bf16", "tensor.norm", "values that are stored themselves have no tensor scale");
  if (s->elem == MX_ELEM_BFLOAT16 && s->elem_round != MX_ROUND_RNE)
    return conflict(err, "elem=bf16", "elem.round", "its values are rounded to nearest even");
  if (normed && s->tensor_target == 0 && isinf((float)target))
    return conflict(err, "tensor.norm", scale->name, "scale.max times the largest scale is beyond binary32; set tensor.target");
  if (s->tensor_given && !normed) return conflict(err, "tensor.given", "tensor.norm=none", "there is no tensor scale to give");
  if (s->tensor_given && signbit(s->tensor_given_value) && !isnan(s->tensor_given_value))
    return mx_fail(err, MX_ERR_CONFLICT, "tensor.given=%g: expected a magnitude, as max|X| is one", (double)s->tensor_given_value);
  if (chain && s->tensor_store != MX_TENSOR_STORE_CHAIN) return conflict(err, "tensor.store", "chain", "the chain says what is stored");
  if (s->scale_nan == MX_SCALE_NAN_PROPAGATE && scale->nan_code == MX_NO_CODE && s->scale_rule != MX_SCALE_RULE_HIF4)
    return conflict(err, "scale.nan=propagate", scale->name, "the scale format has no NaN");
  if (s->scale_round == MX_SCALE_ROUND_GGML && s->scale != MX_SCALE_E4M3)
    return conflict(err, "scale.round=ggml", "scale", "it is a rule of e4m3");
  if (s->scale_byte_overflow == MX_BYTE_OVERFLOW_WRAP && s->scale != MX_SCALE_E8M0)
    return conflict(err, "scale.byte_overflow=wrap", "scale", "it is a rule of e8m0");
  if (s->scale_used != MX_SCALE_USED_STORED && s->scale != MX_SCALE_E8M0) return conflict(err, "scale.used", "scale", "it is a rule of e8m0");
  if (s->select == MX_SELECT_FOURSIX && (!value || encode || s->elem != MX_ELEM_E2M1 || s->scale_max != MX_SCALE_MAX_ELEM))
    return conflict(err, "select=foursix", "elem, scale.rule or scale.form", "it tries e2m1 mapped to 6 and to 4");
  const int eden = s->select == MX_SELECT_EDEN;
  if (s->eden_group && !eden) return conflict(err, "eden.group", "select", "only select=eden has groups");
  if (eden && (!value || encode || s->scale_round == MX_SCALE_ROUND_SR))
    return conflict(err, "select=eden", "scale.rule, scale.form or scale.round", "it corrects a scale of scale.rule=value rounded once");
  if (eden && (elem->kind != MX_KIND_FLOAT || scale->kind != MX_KIND_FLOAT || scale->bits > 8))
    return conflict(err, "select=eden", "elem or scale", "it needs elements and a scale of one byte, both with a mantissa and zeros");
  if (eden && (s->block_rows > 1 || s->block_rows == MX_BLOCK_WHOLE || s->block_cols == MX_BLOCK_WHOLE))
    return conflict(err, "select=eden", "block", "its groups are blocks of one row");
  const uint32_t columns = s->block_cols > 0 ? (uint32_t)s->block_cols : 32;
  if (eden && (s->eden_group ? s->eden_group % columns : columns > 1024))
    return mx_fail(err, MX_ERR_CONFLICT, "eden.group=%u: expected a multiple of the block's %u columns, up to 1024", s->eden_group, columns);
  if (eden && (s->scale_min_byte || s->scale_max_byte || s->elem_overflow == MX_OVERFLOW_WRAP_NEGZERO))
    return conflict(err, "select=eden", "scale.min_byte, scale.max_byte, elem.overflow=wrap_negzero",
                    "it corrects scales after these keys have acted");
  if (s->scale_margin != 0 && !value) return conflict(err, "scale.margin", "scale.rule", "only scale.rule=value divides by scale.max");
  if (s->scale_margin != 0 && s->select == MX_SELECT_FOURSIX)
    return conflict(err, "scale.margin", "select=foursix", "it maps to exactly 6 and exactly 4");
  if (s->scale_margin != 0 && s->elem_prescale != 0)
    return conflict(err, "scale.margin", "elem.prescale", "both keep elements from being clipped; use one");
  if (s->scale_margin != 0 && !(most > 0 && isfinite(most)))
    return mx_fail(err, MX_ERR_CONFLICT, "scale.margin=%g: scale.max times it is %g, expected a positive number of binary32",
                   (double)s->scale_margin, most);
  if (s->select == MX_SELECT_FOURSIX && chain && normed && *mx_chain_row(s->chain)->store != 'A')
    return conflict(err, "select=foursix", "chain", "its error needs max|X|, which this chain does not store");
  if (s->select_sum == MX_SELECT_SUM_TORCH16 && (s->block_cols != 16 || s->block_rows > 1))
    return conflict(err, "select.sum=torch16", "block", "it is defined for blocks of 16 elements in a row");
  if (s->had_size && (s->had_size < 2 || (s->had_size & (s->had_size - 1))))
    return mx_fail(err, MX_ERR_CONFLICT, "had.size=%u: expected 0 or a power of two, 2 to 128", s->had_size);
  if (s->scale_rule == MX_SCALE_RULE_HIF4 && (s->elem != MX_ELEM_E1M2 || s->scale != MX_SCALE_E6M2 || s->block_cols != 64 || s->block_rows > 1))
    return conflict(err, "scale.rule=hif4", "elem, scale or block", "it needs elem=e1m2 scale=e6m2 block=1x64");
  if ((s->scale == MX_SCALE_E6M2) != (s->scale_rule == MX_SCALE_RULE_HIF4))
    return conflict(err, "scale=e6m2", "scale.rule", "it belongs to scale.rule=hif4");
  if ((s->elem_round == MX_ROUND_SCAN_X || s->elem_round == MX_ROUND_SCAN_Y) && elem->bits > 8)
    return conflict(err, "elem.round=scan", "elem", "it scans at most 256 codes");
  if (s->nibble == MX_NIBBLE_HALF_BLOCK && (s->block_cols % 2 || s->block_cols == MX_BLOCK_WHOLE))
    return conflict(err, "nibble=half_block", "block", "it needs an even number of columns in a block");
  if (s->input_dtype != MX_INPUT_DTYPE_FLOAT32 && (chain || normed))
    return conflict(err, "input.dtype", "chain, tensor.norm", "chains and tensor scales compute in binary32");
  return MX_OK;
}
