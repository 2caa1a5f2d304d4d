/* Tests the block-scaled product under the models of matrix units against ref_gemm, with everything that follows the sum. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gemm.h"
#include "lib/operands.h"
#include "lib/run.h"

/* Compares D by every path with the reference, with everything that follows the sum; 0 if the model refuses these operands. */
static int check_fused(const char *a_text, const char *b_text, size_t M, size_t N, size_t K, operands_kind kind, const mx_mma_model *m,
                       int tail) {
  static const float alpha = -0.75f, beta = 1.5f;
  const mx_spec as = operands_spec(a_text), bs = operands_spec(b_text);
  mx_tensor a, b;
  operands_fill(&a, &as, M, K, kind, 41);
  operands_fill(&b, &bs, N, K, kind, 43);
  float *got = malloc((M * N + 1) * sizeof *got), *want = malloc((M * N + 1) * sizeof *want), *c = malloc((M * N + 1) * sizeof *c);
  for (size_t i = 0; i < M * N; i++) c[i] = (float)(int32_t)operands_draw(45, i) * 0x1p-27f;
  mx_gemm_options o = {.model = MX_GEMM_FUSED, .fused = m};
  if (tail) o.alpha = &alpha, o.beta = &beta, o.c = c, o.bias = c, o.out = tail % 3 == 1 ? MX_F32 : tail % 3 == 2 ? MX_F16 : MX_BF16;
  mx_error err;
  mx_status status = MX_OK;
  for (size_t i = 0; i < OPERANDS_MASKS && !status; i++) {
    o.exec.isa_mask = operands_masks[i];
    o.exec.n_threads = i == 1 ? 2 : 1;
    memset(got, 0xAA, M * N * sizeof *got);
    status = mx_gemm(got, N, &a, &as, &b, &bs, &o, &err);
    if (status && status != MX_ERR_CONFLICT) ck_abort_msg("%s: %s", m->name, err.text);
    if (status) break;
    if (i == 0) ck_assert_int_eq(ref_gemm(want, N, &a, &as, &b, &bs, &o, NULL), MX_OK);
    char what[500], keys[256];
    mx_accum_text(keys, sizeof keys, &m->accum);
    snprintf(what, sizeof what, "%s x %s, %zu x %zu x %zu, %s, %s (%s), mask %u", a_text, b_text, M, N, K, operands_names[kind], m->name, keys,
             operands_masks[i]);
    operands_compare(got, want, M * N, o.out, what);
  }
  free(got);
  free(want);
  free(c);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  return status == MX_OK;
}

/* Mixes of elements, scales inside and outside the unit, signs, tiles, nibbles, micro-scales and tensor scales. */
static const char *const fused_mixes[][2] = {
    {"", ""},
    {"elem=e4m3", "elem=e5m2"},
    {"elem=e2m1 scale=e4m3 block=1x16", "elem=e2m1 scale=ue5m3 block=1x16"},
    {"elem=e2m3 scale=e8m3 scale.nan=max block=1x16", "elem=e3m2 scale=e4m3 scale.sign=signed block=1x16"},
    {"elem=int8", "elem=e4m3fnuz"},
    {"elem=e5m2fnuz scale=ue5m3_61440", "elem=int8 scale=ue5m3_122880 scale.nan=max"},
    {"elem=none", "elem=e4m3 block=1x16"},
    {"elem=none", "elem=none"},
    {"scale=bf16", "scale=fp32"},
    {"scale=fp32 scale.sign=signed", "elem=e4m3"},
    {"scale=e4m3 scale.form=encode scale.rule=value block=1x16", "scale=ue5m3 block=1x16"},
    {"scale.form=encode scale.rule=value", "elem=e5m2"},
    {"nibble=high_first block=1x12", "nibble=half_block block=1x12"},
    {"block=16x32", "block=row"},
    {"elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4", "elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4"},
    {"tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value", "tensor.norm=nv scale=e4m3 block=1x16 scale.rule=value"},
};
enum { FUSED_MIXES = sizeof fused_mixes / sizeof fused_mixes[0] };

START_TEST(fused_rows) {
  mx_mma_model m;
  size_t taken = 0, tried = 0;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK && !strchr(m.name, '/'); i++)
    for (size_t x = 0; x < FUSED_MIXES; x++, tried++) {
      if (x == 13 && i % 2) continue;
      const operands_kind kind = (operands_kind)((i + x) % (x == 6 || x == 7 ? OPERANDS_QUANTISED : OPERANDS_KINDS));
      taken += (size_t)check_fused(fused_mixes[x][0], fused_mixes[x][1], 3, 18, 75, kind, &m, (int)(i + x) % 4);
    }
  ck_assert_uint_gt(taken, tried * 3 / 4);
}
END_TEST

START_TEST(fused_instructions) {
  static const char *const names[] = {"hopper/wgmma_m64n8k32_f32_e4m3_e5m2",
                                      "hopper/mma_m16n8k32_f32_e4m3_e4m3_f32",
                                      "hopper/mma_m16n8k16_f16_f16_f16_f16",
                                      "ampere/mma_m16n8k16_f32_bf16_bf16_f32",
                                      "blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3",
                                      "blackwell/tcgen05bs_m128n8k64_block32_f32_e2m1_e2m1_ue8m0",
                                      "rtx_blackwell/mmabs_m16n8k32_block32_f32_e4m3_e5m2_f32_ue8m0",
                                      "cdna3/mfma_f32_16x16x32_fp8_bf8",
                                      "cdna2/mfma_f32_16x16x16f16",
                                      "hopper/mma_m8n8k4_f64_f64_f64_f64",
                                      "cdna4/mfma_scale_f32_16x16x128_f8f6f4_e2m1_e4m3",
                                      "fused:L=32,F=13,out=e8m13rz",
                                      "fused:L=k,F=exact,out=bf16rne",
                                      "fused:L=8,k=32,F=11,align=rne,join=add,order=pairs",
                                      "fused:L=16,F=20,align=rd,P=8,zero=e126",
                                      "blackwell_mxf4:rules=h200",
                                      "fused:op=fma,L=k,nan=first,c=f32,d=f32",
                                      "fused:op=fma,L=k,nan=first,c=f64,d=f64"};
  size_t taken = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const mx_mma_model m = operands_unit(names[i]);
    for (size_t x = 0; x < FUSED_MIXES; x++)
      for (size_t q = 0; q < 2; q++) {
        const operands_kind kind = (operands_kind)((i + x + 2 * q) % (x == 6 || x == 7 ? OPERANDS_QUANTISED : OPERANDS_KINDS));
        taken += (size_t)check_fused(fused_mixes[x][0], fused_mixes[x][1], 2, 17, 33 + 16 * (x % 5), kind, &m, (int)kind);
      }
  }
  ck_assert_uint_gt(taken, sizeof names / sizeof *names * FUSED_MIXES);
}
END_TEST

START_TEST(fused_shapes) {
  static const size_t sizes[][3] = {{0, 3, 5}, {3, 0, 5}, {3, 5, 0}, {1, 1, 1}, {1, 17, 64}, {17, 33, 65}, {130, 19, 40}, {5, 5, 257}};
  static const char *const names[] = {"hopper/wgmma_m64n8k32_f32_e4m3_e4m3", "hopper_f16", "cdna3_fp8",
                                      "blackwell/tcgen05bs_m128n8k64_block32_f32_e2m1_e2m1_ue8m0"};
  for (size_t n = 0; n < 4; n++) {
    const mx_mma_model m = operands_unit(names[n]);
    for (size_t i = 0; i < 8; i++) ck_assert(check_fused("", "", sizes[i][0], sizes[i][1], sizes[i][2], OPERANDS_NARROW, &m, 0));
  }
  /* a K that panels do not hold at once and that is not a multiple of what they hold */
  for (size_t n = 2; n < 4; n++) {
    const mx_mma_model m = operands_unit(names[n]);
    ck_assert(check_fused("", "", 1, 1, (1 << 16) + 77, OPERANDS_NARROW, &m, 0));
  }
}
END_TEST

START_TEST(fused_by_hand) {
  /* 64 ones, and 2^-13 in the second instruction of 32: the wgmma of SPEC keeps 13 bits, so 32 + 2^-13 loses it, while in a group of its own
   * it stays. */
  mx_spec s = operands_spec("elem=e4m3");
  mx_tensor a, b;
  float d;
  const mx_mma_model m = operands_unit("hopper/wgmma_m64n8k32_f32_e4m3_e4m3");
  mx_gemm_options o = {.model = MX_GEMM_FUSED, .fused = &m};
  ck_assert_int_eq(mx_tensor_alloc(&a, 1, 64, &s) | mx_tensor_alloc(&b, 1, 64, &s), MX_OK);
  memset(a.codes, 0, 64);
  memset(b.codes, 0, 64);
  a.codes[0] = b.codes[0] = a.codes[40] = b.codes[40] = 0x38; /* 1 */
  a.scales[0] = b.scales[0] = b.scales[1] = 127;
  a.scales[1] = 127 - 13;
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  ck_assert(d == 1 + 0x1p-13f);
  a.scales[1] = 127 - 14; /* one place lower it is cut, since 1 is there already and 2^-14 is aligned to it */
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  ck_assert(d == 1);
  /* C does not enter the unit: 2^-14 + C is one fused multiply-add of binary32 after the sum. */
  const float c = 0x1p-20f;
  o.c = &c;
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  ck_assert(d == 1 + 0x1p-20f);
  o.c = NULL;
  /* A NaN scale makes every output NaN, with the bits of mx_gemm() whatever those of the unit are. */
  a.scales[1] = 255;
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  uint32_t bits;
  memcpy(&bits, &d, 4);
  ck_assert_uint_eq(bits, 0x7FC00000);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  /* s8 x s8 without scales: ones, modulo 2^32. */
  const mx_mma_model ints = operands_unit("s32");
  const int8_t x[4] = {-128, 127, 3, 0}, y[4] = {-128, 2, -1, 9};
  mx_gemm_problem p = {.M = 1,
                       .N = 1,
                       .K = 4,
                       .a = {.elem = mx_format_find("s8"), .data = x},
                       .b = {.elem = mx_format_find("s8"), .data = y, .transposed = 1},
                       .d = &d};
  p.options = (mx_gemm_options){.model = MX_GEMM_FUSED, .fused = &ints};
  mx_error err;
  if (mx_gemm_raw(&p, &err)) ck_abort_msg("%s", err.text);
  ck_assert(d == 16384 + 254 - 3);
  /* int8 x int8: the same integer times 2^-12, as an element is its code times 2^-6. */
  p.a.elem = p.b.elem = mx_elem_format(MX_ELEM_INT8);
  if (mx_gemm_raw(&p, &err)) ck_abort_msg("%s", err.text);
  ck_assert(d == (16384 + 254 - 3) * 0x1p-12f);
}
END_TEST
/* --- intervals --- */

/* Makes every third element subnormal or zero, and some scales too, for which the encoding says more than the value. */
static void make_low(mx_tensor *t, const mx_spec *spec, uint64_t seed) {
  const mx_format *e = mx_elem_format(spec->elem), *s = mx_scale_format(spec->scale);
  if (e->kind == MX_KIND_NONE) {
    float *x = (float *)(void *)t->codes;
    for (size_t i = 0; i < t->rows * t->code_stride / sizeof *x; i++)
      if (operands_draw(seed, i) % 3 == 0) x[i] = ldexpf((float)(int32_t)operands_draw(seed, i), operands_draw(seed, i) % 2 ? -165 : -55);
    return;
  }
  for (size_t i = 0; i < t->rows * t->code_stride; i++) {
    const uint32_t draw = operands_draw(seed, i);
    const uint8_t low = (uint8_t)(draw >> 8 & ((1u << e->man_bits) - 1)), sign = (uint8_t)((draw >> 16 & 1) << (e->bits - 1));
    if (draw % 3) continue;
    t->codes[i] = (uint8_t)(e->bits == 4 ? (t->codes[i] & 0xF0) | low | sign : low | sign);
    if (e->kind == MX_KIND_FNUZ && t->codes[i] == 0x80) t->codes[i] = 0;
  }
  for (size_t i = 0; i < t->scale_rows * t->scale_cols && s->man_bits && s->bits == 8; i++)
    if (operands_draw(seed + 1, i) % 4 == 0) t->scales[i] &= (uint8_t)((1u << s->man_bits) - 1);
}

static mx_gemm_family family_of(const mx_mma_model *m) {
  const mx_accum *x = &m->accum;
  const int of_type = m->d->man_bits < 23 ? m->d->man_bits : 23;
  return (mx_gemm_family){.bits = 1 + (x->out_bits ? x->out_bits : of_type),
                          .fraction = x->op == MX_ACC_OP_FUSED && x->F > 0 ? x->F : 0,
                          .sums = m->d->bits == 16 ? MX_F16 : MX_F32};
}

/* Checks that D of a row of the table lies in the interval for the row's own bits and fraction. Returns 0 if the row refuses the operands. */
static int check_bound(const char *a_text, const char *b_text, size_t K, operands_kind kind, int low, const mx_mma_model *m, size_t *told) {
  enum { M = 3, N = 18 };
  const mx_spec as = operands_spec(a_text), bs = operands_spec(b_text);
  const mx_gemm_family family = family_of(m);
  mx_gemm_options o = {.model = MX_GEMM_FUSED, .fused = m};
  float d[M * N], lo[M * N], hi[M * N];
  mx_tensor a, b;
  mx_error err;
  operands_fill(&a, &as, M, K, kind, 61);
  operands_fill(&b, &bs, N, K, kind, 63);
  if (low) make_low(&a, &as, 65), make_low(&b, &bs, 67);
  const mx_status status = mx_gemm(d, N, &a, &as, &b, &bs, &o, &err);
  if (!status && mx_gemm_bound(lo, hi, N, &a, &as, &b, &bs, &o, &family, &err)) ck_abort_msg("%s: %s", m->name, err.text);
  for (int i = 0; i < M * N && !status; i++) {
    const int anything = isnan(lo[i]) || (isinf(lo[i]) && isinf(hi[i]));
    if (!anything && !(lo[i] <= d[i] && d[i] <= hi[i]))
      ck_abort_msg("%s: %s x %s, K=%zu, %s%s: %a outside [%a, %a]", m->name, a_text, b_text, K, operands_names[kind], low ? ", low" : "",
                   (double)d[i], (double)lo[i], (double)hi[i]);
    *told += !anything && (double)hi[i] - (double)lo[i] < 0.1 * ((double)fabsf(lo[i]) + (double)fabsf(hi[i]));
  }
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  return status == MX_OK;
}

START_TEST(bounds_of_rows) {
  static const char *const mixes[][2] = {{"elem=e4m3", "elem=e4m3"},
                                         {"elem=e4m3", "elem=e5m2"},
                                         {"", ""},
                                         {"elem=e2m1 scale=e4m3 block=1x16", "elem=e2m1 scale=ue5m3 block=1x16"},
                                         {"elem=e3m2", "elem=e2m3"},
                                         {"elem=int8", "elem=e4m3fnuz"},
                                         {"elem=none", "elem=none"},
                                         {"elem=none", "elem=e4m3"},
                                         {"elem=e5m2", "scale.form=encode scale.rule=value"}};
  static const operands_kind kinds[] = {OPERANDS_NARROW, OPERANDS_CANCEL, OPERANDS_QUANTISED, OPERANDS_ZEROS};
  mx_mma_model m;
  size_t taken = 0, rows = 0, told = 0;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK && !strchr(m.name, '/'); i++, rows++)
    for (size_t x = 0; x < sizeof mixes / sizeof *mixes; x++)
      for (size_t k = 0; k < 4; k++)
        taken += (size_t)check_bound(mixes[x][0], mixes[x][1], 1 + 31 * ((i + x + k) % 4), kinds[k], k != (i + x) % 4, &m, &told);
  ck_assert_uint_gt(rows, 50);
  ck_assert_uint_gt(taken, rows * 9 * 4 * 3 / 4);
  ck_assert_uint_gt(told, taken * 54 / 4); /* and the intervals are narrow enough to say something */
}
END_TEST

/* Hopper's wgmma on e4m3, by hand: 2^-9 * 448 has the exponent -6 + 8 and the value .875; 31 products of 1.875 * 2^-12 lie below 2^(2 - 13). */
START_TEST(bound_of_subnormals_by_hand) {
  const mx_spec s = operands_spec("elem=e4m3");
  const mx_mma_model m = operands_unit("hopper_fp8_wgmma");
  const mx_gemm_options o = {.model = MX_GEMM_FUSED, .fused = &m};
  const mx_gemm_family family = {.bits = 14, .fraction = 13};
  mx_tensor a, b;
  float d, lo, hi;
  ck_assert_int_eq(mx_tensor_alloc(&a, 1, 32, &s) | mx_tensor_alloc(&b, 1, 32, &s), MX_OK);
  memset(a.codes, 0x0F, 32); /* 1.875 * 2^-6 */
  memset(b.codes, 0x08, 32); /* 2^-6 */
  a.codes[0] = 0x01;
  b.codes[0] = 0x7E;
  a.scales[0] = b.scales[0] = 127;
  ck_assert_int_eq(mx_gemm(&d, 1, &a, &s, &b, &s, &o, NULL), MX_OK);
  ck_assert(d == 0.875f);
  ck_assert_int_eq(mx_gemm_bound(&lo, &hi, 1, &a, &s, &b, &s, NULL, &family, NULL), MX_OK);
  ck_assert_msg(lo <= d && d <= hi && hi - lo < 0.2f, "%a outside [%a, %a]", (double)d, (double)lo, (double)hi);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gemm_fused");
  TCase *t = tcase_create("fused");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, fused_rows);
  tcase_add_test(t, fused_instructions);
  tcase_add_test(t, fused_shapes);
  tcase_add_test(t, fused_by_hand);
  suite_add_tcase(suite, t);
  t = tcase_create("bounds");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, bounds_of_rows);
  tcase_add_test(t, bound_of_subnormals_by_hand);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
