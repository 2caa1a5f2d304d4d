/* Draws random mixtures of a spec's keys, which no preset combines. */
#include "mixtures.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/quantize.h"

static uint32_t below(uint64_t *state, uint32_t n) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((*state >> 33) * n >> 31);
}

int mixtures_draw(mx_spec *spec, uint64_t *state) {
  static const char *blocks[] = {"1x32", "1x16", "1x8", "1x64", "16x16", "4x8", "16x1", "row", "col", "tensor"};
  memset(spec, 0, sizeof *spec);
  const char *key;
  for (size_t k = 0; (key = mx_key_name(k)); k++) {
    if (!strcmp(key, "scale.margin") || !strncmp(key, "eden.", 5) || !strcmp(key, "hif4.ties"))
      continue; /* these keys were added after the mixtures, and are drawn elsewhere */
    if (below(state, 4)) continue;
    char value[64] = "";
    size_t n = 0;
    int number = 0;
    while (mx_key_choice(k, n, NULL, NULL)) n++;
    if (!strcmp(key, "deq.arith") || !strcmp(key, "select"))
      n = 2; /* only the rows that they had when the mixtures were made: later ones are drawn elsewhere */
    if (!strcmp(key, "elem")) n = MX_ELEM_NONE + 1;
    if (n) {
      const char *name = mx_key_choice(k, below(state, (uint32_t)n), NULL, &number);
      if (!number)
        snprintf(value, sizeof value, "%s", name);
      else
        snprintf(value, sizeof value, "%s%s%u", name, *name ? "=" : "",
                 *name ? below(state, strncmp(key, "elem", 4) ? 128 : 16) : 3 + below(state, 6));
    } else if (!strcmp(key, "block"))
      snprintf(value, sizeof value, "%s", blocks[below(state, 10)]);
    else if (!strcmp(key, "had.size"))
      snprintf(value, sizeof value, "%u", 16u << below(state, 4));
    else if (!strcmp(key, "had.signs"))
      for (int i = 0; i < 48; i++) value[i] = (char)('0' + below(state, 2));
    else if (!strcmp(key, "sr.bits") || !strcmp(key, "scale.even_bits"))
      snprintf(value, sizeof value, "%u", 1 + below(state, 20));
    else if (!strcmp(key, "elem.prescale"))
      snprintf(value, sizeof value, "0.75");
    else if (!strcmp(key, "scale.min"))
      snprintf(value, sizeof value, "%g", 0.001953125 * (1 << below(state, 8)));
    else if (!strcmp(key, "scale.min_byte"))
      snprintf(value, sizeof value, "%u", below(state, 40));
    else if (!strcmp(key, "scale.max_byte"))
      snprintf(value, sizeof value, "%u", 90 + below(state, 100));
    else if (!strcmp(key, "tensor.target"))
      snprintf(value, sizeof value, "%u", 256u << below(state, 5));
    else if (!strcmp(key, "seed"))
      snprintf(value, sizeof value, "%u", below(state, 1000));
    else if (!strcmp(key, "tensor.given"))
      snprintf(value, sizeof value, "%g", 0.01 * (double)(1 + below(state, 3000)));
    if (mx_spec_set(spec, key, value, NULL)) {
      fprintf(stderr, "mixtures: %s=%s is not a key\n", key, value);
      abort();
    }
  }
  if (spec->sr_source == MX_SR_SOURCE_GIVEN) spec->sr_source = MX_SR_SOURCE_PHILOX;
  /* Few mixtures allow a chain, so what a chain needs is set here. */
  if (spec->chain != MX_CHAIN_EXACT) {
    spec->scale_rule = MX_SCALE_RULE_VALUE;
    spec->scale_form = MX_SCALE_FORM_DECODE;
    spec->elem_arith = MX_ELEM_ARITH_EXACT;
    spec->scale_arith = MX_SCALE_ARITH_EXACT;
    spec->elem_prescale = 0;
    spec->input_dtype = MX_INPUT_DTYPE_FLOAT32;
    spec->tensor_store = MX_TENSOR_STORE_CHAIN;
    spec->tensor_norm = *mx_chain_row(spec->chain)->tensor ? MX_TENSOR_NORM_NV : MX_TENSOR_NORM_NONE;
  }
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) spec->tensor_given = 0, spec->tensor_given_value = 0;
  if (mx_spec_is_plain(spec)) return 0; /* plain specs have a test of their own */
  return mx_spec_check(spec, NULL) == MX_OK;
}

int mixtures_draw_odd(mx_spec *spec, uint64_t *state) {
  static const char *const odd[][2] = {{"tensor.given", "nan"},
                                       {"tensor.given", "inf"},
                                       {"tensor.given", "1e-40"},
                                       {"tensor.given", "3e38"},
                                       {"tensor.given", "0"},
                                       {"tensor.given", "1e30"},
                                       {"tensor.store", "divisor"},
                                       {"tensor.target", "1e20"},
                                       {"tensor.target", "3.3"},
                                       {"elem", "e4m3fnuz"},
                                       {"elem", "e5m2fnuz"},
                                       {"elem", "e5m2"},
                                       {"elem", "int8"},
                                       {"scale", "e8m3"},
                                       {"scale", "ue5m3_122880"},
                                       {"scale", "ue5m3_61440"},
                                       {"input.dtype", "float16"},
                                       {"input.dtype", "float16"},
                                       {"input.dtype", "bfloat16"},
                                       {"elem.overflow", "ieee"},
                                       {"elem.overflow", "ieee"},
                                       {"elem.overflow", "wrap_negzero"},
                                       {"elem.saturate_to", "nan"},
                                       {"elem.nan", "satmax"},
                                       {"elem.round", "rtz"},
                                       {"elem.round", "rtn"},
                                       {"elem.round", "rtp"},
                                       {"elem.round", "scan_y"},
                                       {"elem.arith", "div32"},
                                       {"elem.arith", "recip32"},
                                       {"elem.prescale", "1e30"},
                                       {"elem.prescale", "1e-38"},
                                       {"scale.nan", "tensor"},
                                       {"scale.nan", "byte=200"},
                                       {"scale.nan", "byte=0"},
                                       {"scale.nan", "byte_inf=67"},
                                       {"scale.nan", "max"},
                                       {"scale.inf", "byte=181"},
                                       {"scale.inf", "byte_zero=3"},
                                       {"scale.inf", "rule"},
                                       {"scale.zero", "byte=129"},
                                       {"scale.allzero", "chain"},
                                       {"scale.sign", "signed"},
                                       {"scale.min", "1e-40"},
                                       {"scale.min", "0.0009765624418854713"},
                                       {"scale.min_byte", "39"},
                                       {"scale.max_byte", "26"},
                                       {"scale.max_byte", "101"},
                                       {"scale.subnormal", "bump"},
                                       {"scale.round", "up"},
                                       {"scale.round", "down"},
                                       {"scale.round", "sr"},
                                       {"scale.log2", "log2f"},
                                       {"scale.byte_overflow", "wrap"},
                                       {"scale.used", "unclamped"},
                                       {"scale.rule", "value"},
                                       {"scale.form", "encode"},
                                       {"select", "foursix"},
                                       {"block", "1x1"},
                                       {"block", "1x5"},
                                       {"block", "32x1"},
                                       {"block", "3x5"},
                                       {"had.size", "32"},
                                       {"deq.arith", "two_step"}};
  if (below(state, 2)) {
    if (mx_preset_find(spec, mx_preset_at(below(state, (uint32_t)mx_preset_count()))->name, NULL)) return 0;
  } else if (below(state, 2)) {
    if (!mixtures_draw(spec, state)) return 0;
  } else
    memset(spec, 0, sizeof *spec);
  if (mx_spec_is_plain(spec)) return 0;
  int kept = 0;
  for (uint32_t n = 2 + below(state, 24); n; n--) {
    const char *const *o = odd[below(state, sizeof odd / sizeof *odd)];
    mx_spec with = *spec;
    if (!strcmp(o[0], "tensor.given") && !with.tensor_norm) mx_spec_set(&with, "tensor.norm", "unit", NULL);
    if (mx_spec_set(&with, o[0], o[1], NULL) || mx_spec_check(&with, NULL)) continue;
    *spec = with;
    kept++;
  }
  return kept > 0;
}

void mixtures_scale_first(mx_spec *spec, uint64_t *state) {
  static const int norms[] = {MX_TENSOR_NORM_NV, MX_TENSOR_NORM_UNIT, MX_TENSOR_NORM_CHMIEL, MX_TENSOR_NORM_SEED004};
  spec->deq_arith = MX_DEQ_ARITH_SCALE_FIRST;
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE && (spec->chain == MX_CHAIN_EXACT || *mx_chain_row(spec->chain)->tensor)) {
    const int encode = spec->scale_form == MX_SCALE_FORM_ENCODE, chain = spec->chain != MX_CHAIN_EXACT;
    spec->tensor_norm = chain ? MX_TENSOR_NORM_NV : norms[encode ? 1 + below(state, 3) : below(state, 2)];
  }
  if (spec->chain == MX_CHAIN_EXACT && spec->tensor_norm && !below(state, 2)) spec->tensor_store = (int)below(state, MX_TENSOR_STORE_COUNT);
}

void mixtures_margin(mx_spec *spec, uint64_t *state) {
  static const float margins[] = {0.9411764f, 0.75f, 1.0120178f, 0.9f, 0.3333333f, 1.7f};
  spec->scale_margin = margins[below(state, sizeof margins / sizeof *margins)];
  spec->scale_rule = MX_SCALE_RULE_VALUE;
  spec->elem_prescale = 0;
  spec->select = MX_SELECT_ABSMAX;
}

void mixtures_eden(mx_spec *spec, uint64_t *state) {
  static const int scales[] = {MX_SCALE_E4M3, MX_SCALE_UE5M3, MX_SCALE_UE5M3_61440, MX_SCALE_UE5M3_122880};
  static const int blocks[] = {16, 16, 8, 5, 32, 64};
  spec->select = MX_SELECT_EDEN;
  spec->scale_rule = MX_SCALE_RULE_VALUE;
  spec->scale_form = MX_SCALE_FORM_DECODE;
  spec->scale_min_byte = spec->scale_max_byte = 0;
  if (spec->scale_round == MX_SCALE_ROUND_SR) spec->scale_round = MX_SCALE_ROUND_RNE;
  if (below(state, 8)) {
    spec->scale = scales[below(state, 4)];
    spec->block_rows = 0;
    spec->block_cols = blocks[below(state, 6)];
    if (below(state, 2)) spec->eden_group = (uint32_t)spec->block_cols * (1 + below(state, 8));
  }
}

void mixtures_odd_data(float *x, size_t n, uint64_t *state) {
  static const int middles[] = {0, 0, 0, 3, 15, 16, -14, -24, 100, 126, -126, -140};
  static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
                                     0x7f7fffff, 0xff7fffff, 1,          0x80000001, 0x80000000};
  const int middle = middles[below(state, 12)];
  const uint32_t spread = below(state, 2) ? 4 : 40, specials = below(state, 3) ? 0 : 1 + below(state, 2) * 12;
  for (size_t i = 0, left = 0, kind = 0; i < n; i++, left--) {
    if (!left) left = 1 + below(state, 40), kind = below(state, 10);
    int e = middle + (int)below(state, 2 * spread + 1) - (int)spread;
    if (e > 127) e = 127;
    float v = ldexpf((float)(32 + below(state, 32)) / 32, e); /* a tie of some format */
    if (below(state, 3) == 0) v = nextafterf(v, below(state, 2) ? 0 : INFINITY);
    if (isinf(v) || kind == 8) v = FLT_MAX;
    if (kind == 9) v = 0;
    if (below(state, 2)) v = -v;
    if (specials && below(state, 64) < specials) memcpy(&v, &special[below(state, 10)], sizeof v);
    x[i] = v;
  }
}
