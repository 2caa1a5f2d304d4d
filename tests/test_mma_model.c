/* Tests names, keys and tables of matrix-unit models. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/mma.h"

static mx_mma_model found(const char *text) {
  mx_mma_model m;
  mx_error err;
  ck_assert_msg(mx_mma_model_find(&m, text, &err) == MX_OK, "%s", err.text);
  return m;
}

static void refused(const char *text, mx_status status, const char *says) {
  mx_mma_model m = {.name = "untouched"};
  mx_error err;
  ck_assert_msg(mx_mma_model_find(&m, text, &err) == status, "%s: %s", text, err.text);
  ck_assert_msg(strstr(err.text, says) != NULL, "%s: '%s' does not say '%s'", text, err.text, says);
  ck_assert_str_eq(m.name, "untouched");
}

START_TEST(names_of_the_issue) {
  static const char *const names[] = {"hopper/mma_m16n8k16_f32_bf16_bf16_f32",
                                      "hopper/wgmma_m64n8k32_f32_e4m3_e5m2",
                                      "ada/mma_m16n8k32_f16_e4m3_e4m3_f16",
                                      "blackwell/tcgen05_m64n8k32_f32_e4m3_e4m3",
                                      "blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3",
                                      "rtx_blackwell/mmabs_m16n8k32_block32_f32_e4m3_e5m2_f32_ue8m0",
                                      "cdna3/mfma_f32_16x16x32_fp8_bf8",
                                      "cdna1/mfma_f32_16x16x16f16",
                                      "hopper/mma_m16n8k32_s32_s8_s8_s32_satfinite",
                                      "hopper/mma_m8n8k4_f64_f64_f64_f64",
                                      "hopper/mma_m16n8k32_f32_e4m3_e5m2_f32",
                                      "hopper/wgmma_m64n256k16_f32_f16_f16",
                                      "cdna4/mfma_scale_f32_16x16x128_f8f6f4_e2m1_e4m3"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    mx_mma_model m = found(names[i]);
    ck_assert_str_eq(m.name, names[i]);
  }
}
END_TEST

START_TEST(a_name_says_it_all) {
  mx_mma_model m = found("rtx_blackwell/mmabs_m16n8k64_block16_f32_e2m1_e2m1_f32_ue4m3");
  ck_assert_int_eq(m.m, 16);
  ck_assert_int_eq(m.n, 8);
  ck_assert_int_eq(m.k, 64);
  ck_assert_int_eq(m.block, 16);
  ck_assert_str_eq(m.a->name, "e2m1");
  ck_assert_str_eq(m.d->name, "f32");
  ck_assert_str_eq(m.scale->name, "e4m3");
  m = found("cdna3/mfma_f32_16x16x32_bf8_fp8");
  ck_assert_str_eq(m.a->name, "e5m2fnuz");
  ck_assert_str_eq(m.b->name, "e4m3fnuz");
  m = found("volta/mma_m8n8k4_f32_f16_f16_f16");
  ck_assert_str_eq(m.c->name, "f16");
  ck_assert_str_eq(m.d->name, "f32");
  m = found("hopper/wgmma_m64n248k32_f32_e4m3_e5m2");
  ck_assert_int_eq(m.n, 248);
}
END_TEST

START_TEST(every_listed_name_is_found) {
  mx_mma_model listed;
  size_t n = mx_mma_model_count(), i = 0;
  for (; mx_mma_model_at(&listed, i) == MX_OK; i++) {
    mx_mma_model m = found(listed.name);
    ck_assert_str_eq(m.name, listed.name);
    ck_assert_mem_eq(&m.accum, &listed.accum, sizeof m.accum);
    ck_assert_msg(m.a == listed.a && m.b == listed.b && m.c == listed.c && m.d == listed.d && m.scale == listed.scale && m.k == listed.k,
                  "%s names two rows", m.name);
    ck_assert_msg(*m.held && *m.source, "%s: held or source is empty", m.name);
  }
  ck_assert_uint_eq(i, n);
  ck_assert_int_eq(mx_mma_model_at(&listed, n), MX_ERR_ARG);
}
END_TEST

START_TEST(candidates_say_so) {
  mx_mma_model m;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK; i++)
    if (!strncmp(m.name, "cdna4", 5)) ck_assert_msg(strstr(m.held, "nothing"), "%s is held to '%s'", m.name, m.held);
}
END_TEST

START_TEST(keys_change_a_model) {
  mx_mma_model m = found("fused:L=32,F=13,align=rz,join=in,out=e8m13rz");
  ck_assert_int_eq(m.accum.L, 32);
  ck_assert_int_eq(m.accum.F, 13);
  ck_assert_int_eq(m.accum.out_bits, 13);
  ck_assert_int_eq(m.accum.out_round, MX_ACC_OUT_RZ);
  ck_assert_str_eq(m.d->name, "f32");
  ck_assert_int_eq(m.k, 32);
  m = found("fused:ab=e5m2,scale=ue8m0,block=16,out=f16rne,F=exact,k=64,floor=none");
  ck_assert_str_eq(m.b->name, "e5m2");
  ck_assert_str_eq(m.scale->name, "e8m0");
  ck_assert_str_eq(m.c->name, "f16");
  ck_assert_int_eq(m.accum.F, MX_ACC_F_EXACT);
  ck_assert_int_eq(m.k, 64);
  m = found("ada/mma_m16n8k16_f32_f16_f16_f32:rules=h200");
  ck_assert_int_eq(m.accum.zero, MX_ACC_ZERO_SKIP);
  ck_assert_int_eq(m.accum.floor, -133);
  ck_assert_int_eq(m.accum.L, 8);
  ck_assert_str_eq(m.held, "nothing: a row with keys of its own");
  ck_assert_int_eq(found("ada/mma_m16n8k16_f16_f16_f16_f16:rules=h200").accum.floor, -21);
  m = found("cdna4/mfma_scale_f32_16x16x128_f8f6f4_e2m1_e2m1:accum=cdna4_block32");
  ck_assert_int_eq(m.accum.L, 32);
  ck_assert_int_eq(m.k, 128);
}
END_TEST

/* floor, c_drop and out_bits can be the number 0, although a field of 0 means "none" or "type". */
START_TEST(zero_is_a_number) {
  mx_mma_model m = found("fused:L=2,F=2,floor=0,c_drop=0,out_bits=0,join=after,sum_bits=20,c_bits=20"), plain;
  char text[256];
  ck_assert_int_eq(m.accum.floor, MX_ACC_NUMBER_0);
  ck_assert_int_eq(m.accum.c_drop, MX_ACC_NUMBER_0);
  ck_assert_int_eq(m.accum.out_bits, MX_ACC_NUMBER_0);
  mx_accum_text(text, sizeof text, &m.accum);
  ck_assert_str_eq(text, "L=2,F=2,join=after,sum_bits=20,c_bits=20,c_drop=0,out_bits=0,floor=0");
  plain = found("fused:L=2,F=2,floor=none,c_drop=none,out_bits=type");
  ck_assert_mem_eq(&plain.accum, &((mx_accum){.L = 2, .F = 2}), sizeof plain.accum);
  ck_assert_int_eq(found("fused:out=e8m0rz").accum.out_bits, MX_ACC_NUMBER_0);
  ck_assert_int_eq(found("fused:out=f32rz").accum.out_bits, 0);
  ck_assert_int_eq(found("fused:L=0,P=0,F=0").accum.F, 0);
  /* ... which no other field can */
  m = found("fused");
  m.accum.L = MX_ACC_NUMBER_0;
  ck_assert_int_eq(mx_mma_model_check(&m, NULL), MX_ERR_CONFLICT);
  refused("fused:floor=-65536", MX_ERR_KEY, "-1000 to 1000 or none");
  refused("fused:join=after,sum_bits=0,c_bits=20", MX_ERR_CONFLICT, "1 to 40");
  refused("fused:join=after,sum_bits=20,c_bits=0", MX_ERR_CONFLICT, "1 to 40");
  refused("fused:c_drop=0", MX_ERR_CONFLICT, "c_drop needs join=after");
}
END_TEST

START_TEST(refusals) {
  refused("hopper/mma_m16n8k16_f32_f16_f16_f31", MX_ERR_KEY, "nearest: hopper/mma_m16n8k16_f32_f16_f16_f32");
  refused("hopper/wgmma_m64n260k16_f32_f16_f16", MX_ERR_KEY, "unknown");
  refused("hopper/wgmma_m64n08k16_f32_f16_f16", MX_ERR_KEY, "unknown");
  refused("volta/wgmma_m64n8k16_f32_f16_f16", MX_ERR_KEY, "unknown");
  refused("", MX_ERR_KEY, "unknown");
  refused("fused:F=41", MX_ERR_KEY, "0 to 40 or exact");
  refused("fused:F=", MX_ERR_KEY, "0 to 40");
  refused("fused:F=-1", MX_ERR_KEY, "'-1' is not a number from 0 to 40 or exact");
  refused("fused:F", MX_ERR_KEY, "KEY=VALUE");
  refused("fused:F=13,", MX_ERR_KEY, "after the last comma");
  refused("fused:align=up", MX_ERR_KEY, "align");
  refused("fused:colour=red", MX_ERR_KEY, "no such key");
  refused("fused:out=f33rz", MX_ERR_KEY, "out");
  refused("fused:out=e8m24rz", MX_ERR_KEY, "out");
  refused("fused:scale=e9m0", MX_ERR_KEY, "scale");
  refused("fused:L=16,k=24", MX_ERR_CONFLICT, "multiple");
  refused("fused:split=evenodd", MX_ERR_CONFLICT, "join=after");
  refused("fused:join=after", MX_ERR_CONFLICT, "sum_bits");
  refused("fused:P=16,ab=bf16", MX_ERR_CONFLICT, "exponent bits");
  refused("fused:c=f32,d=f16", MX_ERR_CONFLICT, "widen");
  refused("fused:ab=f64", MX_ERR_CONFLICT, "f64");
  refused("fused:scale=fp32", MX_ERR_CONFLICT, "bytes");
  refused("s32:flush=yes", MX_ERR_CONFLICT, "pairwise");
  refused("fused:op=pairwise,nan=first", MX_ERR_CONFLICT, "nan=first needs op=fma");
  refused("fused:nan=first", MX_ERR_CONFLICT, "nan=first needs op=fma");
  refused("s32:nan=first", MX_ERR_CONFLICT, "nan=first needs op=fma");
  char long_name[300];
  memset(long_name, 'x', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = 0;
  refused(long_name, MX_ERR_KEY, "299");
}
END_TEST

START_TEST(text_of_parameters_reads_back) {
  mx_mma_model m;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK; i++) {
    char keys[512], text[600];
    mx_accum_text(keys, sizeof keys, &m.accum);
    snprintf(text, sizeof text, "%s:%s", m.accum_name, keys);
    mx_mma_model again = found(text);
    ck_assert_mem_eq(&again.accum, &m.accum, sizeof m.accum);
  }
  char tiny[8];
  mx_accum_text(tiny, sizeof tiny, &m.accum);
  ck_assert_uint_lt(strlen(tiny), sizeof tiny);
}
END_TEST

int main(void) {
  Suite *s = suite_create("mma models");
  TCase *t = tcase_create("all");
  suite_add_tcase(s, t);
  tcase_add_test(t, names_of_the_issue);
  tcase_add_test(t, a_name_says_it_all);
  tcase_add_test(t, every_listed_name_is_found);
  tcase_add_test(t, candidates_say_so);
  tcase_add_test(t, keys_change_a_model);
  tcase_add_test(t, zero_is_a_number);
  tcase_add_test(t, refusals);
  tcase_add_test(t, text_of_parameters_reads_back);
  return run_suite(s);
}
