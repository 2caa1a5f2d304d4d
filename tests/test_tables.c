/* Tests the tables themselves, so that rows that contradict each other or the standard are found here and not in a user's bytes. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/block/chain.h"
#include "kernels/block/plan.h"
#include "lib/run.h"
#include "mxgold/mxgold.h"

static void check_format(const mx_format *f) {
  const int magnitude_bits = f->bits - f->sign_bits;
  if (f->kind == MX_KIND_NONE) return;
  if (f->kind != MX_KIND_INT) ck_assert_msg(f->bits == f->sign_bits + f->exp_bits + f->man_bits, "%s: bits", f->name);
  ck_assert_msg(f->max_code < (magnitude_bits == 64 ? UINT64_MAX : UINT64_C(1) << magnitude_bits), "%s: max_code", f->name);
  ck_assert_msg((f->nan_first == MX_NO_CODE) == (f->nan_last == MX_NO_CODE), "%s: NaN range", f->name);
  if (f->nan_code != MX_NO_CODE) ck_assert_msg(mx_format_is_nan(f, f->nan_code), "%s: nan_code is not in the NaN range", f->name);
  if (f->inf_code != MX_NO_CODE) ck_assert_msg(isinf(mx_decode(f, f->inf_code)), "%s: inf_code", f->name);
  ck_assert_msg(isfinite(mx_decode(f, f->max_code)), "%s: max_code is not finite", f->name);
  if (f->bits > 11) return;
  double last = -1;
  for (uint64_t c = 0; c <= f->max_code; c++) { /* decode is monotone, and encode is its inverse under every rounding */
    const double v = mx_decode(f, c);
    ck_assert_msg(v > last, "%s: code %llx does not go up", f->name, (unsigned long long)c);
    last = v;
    for (int round = 0; round <= MX_ROUND_RTN; round++) {
      const mx_encoding how = {.round = round};
      ck_assert_msg(mx_encode(f, v, &how, 0) == c, "%s: code %llx decodes to %g, which encodes to another", f->name, (unsigned long long)c, v);
    }
  }
  for (uint64_t c = f->max_code + 1; c < UINT64_C(1) << magnitude_bits; c++)
    ck_assert_msg(!isfinite(mx_decode(f, c)) || f->kind == MX_KIND_FNUZ, "%s: code %llx above max_code is finite", f->name,
                  (unsigned long long)c);
}

START_TEST(formats_hold_together) {
  for (int i = 0; i < MX_ELEM_COUNT; i++) check_format(mx_elem_format(i));
  for (int i = 0; i < MX_SCALE_COUNT; i++) check_format(mx_scale_format(i));
  for (int i = 0; i < MX_OPERAND_COUNT; i++) check_format(mx_operand_format(i));
}
END_TEST

START_TEST(maxima_are_those_of_the_standards) {
  static const struct {
    const char *name;
    double max, min;
  } rows[] = {{"e2m1", 6, .5},
              {"e2m3", 7.5, .125},
              {"e3m2", 28, .0625},
              {"e4m3", 448, 0x1p-9},
              {"e5m2", 57344, 0x1p-16},
              {"e4m3fnuz", 240, 0x1p-10},
              {"e5m2fnuz", 57344, 0x1p-17},
              {"int8", 127.0 / 64, 0x1p-6},
              {"e1m2", 1.75, .25},
              {"e8m0", 0x1p127, 0x1p-127},
              {"ue5m3", 114688, 0x1p-17},
              {"ue5m3_61440", 61440, 0x1p-17},
              {"ue5m3_122880", 122880, 0x1p-17},
              {"e8m3", 1.875 * 0x1p127, 0x1p-129},
              {"e6m2", 49152, 0x1p-48},
              {"bf16", 0x1.FEp127, 0x1p-133},
              {"f16", 65504, 0x1p-24}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const mx_format *f = mx_format_find(rows[i].name);
    ck_assert_msg(f && mx_format_max(f) == rows[i].max && mx_format_min(f) == rows[i].min, "%s: max %g, min %g", rows[i].name,
                  f ? mx_format_max(f) : 0, f ? mx_format_min(f) : 0);
  }
}
END_TEST

START_TEST(chains_parse) {
  for (int i = 0; i < MX_CHAIN_COUNT; i++) {
    mx_chain_program p;
    ck_assert_msg(mxi_chain_compile(&p, mx_chain_row(i)) == MX_OK, "chain %s does not parse", mx_chain_row(i)->name);
    if (i != MX_CHAIN_EXACT) ck_assert_msg(p.scale.n > 0 && p.element.n > 0, "chain %s lacks a formula", mx_chain_row(i)->name);
  }
}
END_TEST

START_TEST(presets_name_only_keys_that_exist_and_none_repeats_another) {
  static mx_spec specs[512];
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_error err;
    ck_assert_msg(mx_preset_find(&specs[i], mx_preset_at(i)->name, &err) == MX_OK, "%s: %s", mx_preset_at(i)->name, err.text);
    ck_assert_msg(mx_spec_check(&specs[i], &err) == MX_OK, "%s: %s", mx_preset_at(i)->name, err.text);
    ck_assert_msg(*mx_preset_at(i)->source, "%s has no source", mx_preset_at(i)->name);
    for (size_t k = 0; k < i; k++) {
      ck_assert_str_ne(mx_preset_at(i)->name, mx_preset_at(k)->name);
      const int alias = mx_preset_at(i)->alias_of || mx_preset_at(k)->alias_of;
      ck_assert_msg(alias || !mx_spec_equal(&specs[i], &specs[k]), "%s and %s are equal, and neither is an alias", mx_preset_at(i)->name,
                    mx_preset_at(k)->name);
    }
  }
}
END_TEST

START_TEST(specs_survive_their_text) {
  for (size_t i = 0; i < mx_preset_count(); i++)
    for (int all = 0; all < 2; all++) {
      mx_spec spec, back = {0};
      char text[4096];
      mx_preset_find(&spec, mx_preset_at(i)->name, NULL);
      ck_assert_uint_lt(mx_spec_print(text, sizeof text, &spec, all), sizeof text);
      ck_assert_int_eq(mx_spec_parse(&back, text, NULL), MX_OK);
      ck_assert_msg(mx_spec_equal(&spec, &back), "%s", text);
    }
}
END_TEST

START_TEST(unknown_keys_and_values_are_named) {
  mx_spec spec = {0};
  mx_error err;
  ck_assert_int_eq(mx_spec_parse(&spec, "scale.rul=floor", &err), MX_ERR_KEY);
  ck_assert_msg(strstr(err.text, "scale.rule") != NULL, "%s", err.text);
  ck_assert_int_eq(mx_spec_parse(&spec, "scale.rule=flor", &err), MX_ERR_KEY);
  ck_assert_msg(strstr(err.text, "floor") != NULL, "%s", err.text);
  ck_assert_int_eq(mx_preset_find(&spec, "torchao-flor", &err), MX_ERR_KEY);
  ck_assert_msg(strstr(err.text, "torchao-floor") != NULL, "%s", err.text);
  ck_assert_int_eq(mx_spec_parse_json(&spec, "{\"elem\": \"e2m3\", \"sr.bits\": 8}", 30, &err), MX_OK);
  ck_assert_int_eq(spec.elem, MX_ELEM_E2M3);
  ck_assert_uint_eq(spec.sr_bits, 8);
  ck_assert_int_eq(mx_spec_parse_json(&spec, "{\"elem\": [1]}", 13, &err), MX_ERR_KEY);
}
END_TEST

/* SPEC 3.5: floor(log2f) differs from the bit rule at 7,404 normal and 52 subnormal positive floats. */
START_TEST(spec_3_5_log2f_differs_at_7456_floats) {
  /* They are just below powers of two, where 400 ulp are more than enough. */
  size_t normal = 0, subnormal = 0;
  for (int e = -148; e <= 128; e++) {
    float x = e == 128 ? INFINITY : ldexpf(1, e);
    for (int i = 0; i < 400 && x > 0; i++) {
      x = nextafterf(x, 0);
      if (x == 0 || ilogbf(x) < e - 1) break;
      const int by_log = mxi_floor_log2((double)x, 1);
      ck_assert_int_eq(by_log, (int)floor((double)(float)log2((double)x)));
      if (by_log != ilogbf(x)) *(x < 0x1p-126f ? &subnormal : &normal) += 1;
    }
  }
  ck_assert_uint_eq(normal, 7404);
  ck_assert_uint_eq(subnormal, 52);
}
END_TEST

int main(void) {
  Suite *s = suite_create("tables");
  TCase *t = tcase_create("rows");
  tcase_add_test(t, formats_hold_together);
  tcase_add_test(t, maxima_are_those_of_the_standards);
  tcase_add_test(t, chains_parse);
  tcase_add_test(t, presets_name_only_keys_that_exist_and_none_repeats_another);
  tcase_add_test(t, specs_survive_their_text);
  tcase_add_test(t, unknown_keys_and_values_are_named);
  tcase_add_test(t, spec_3_5_log2f_differs_at_7456_floats);
  suite_add_tcase(s, t);
  return run_suite(s);
}
