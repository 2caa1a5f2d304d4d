/* Tests mx_gemm_raw(), the call of a validator, against ref_gemm_raw: transposes, orders, strides, batches, layouts of scales, lists of
 * outputs. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gemm.h"
#include "lib/operands.h"
#include "lib/run.h"

static void check_raw(mx_gemm_problem *p, size_t d_bytes, const char *what) {
  uint8_t *got = malloc(d_bytes), *want = malloc(d_bytes);
  memset(got, 0x55, d_bytes);
  memset(want, 0x55, d_bytes);
  mx_error err;
  p->d = got;
  if (mx_gemm_raw(p, &err)) ck_abort_msg("%s: %s", what, err.text);
  p->d = want;
  ref_gemm_raw(p, NULL);
  operands_compare(got, want, d_bytes / mx_dtype_bytes(p->options.out), p->options.out, what);
  free(got);
  free(want);
}

START_TEST(raw) {
  static const char *const elems[] = {"e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "int8", "bf16", "f16", "fp32"};
  enum { M = 34, N = 19, K = 42, LD = 80, BATCH = 2, ROOM = 80 * 80 * 4 };
  uint8_t *bytes = malloc(ROOM * BATCH * 2);
  static uint8_t scales[2][BATCH * 16384];
  for (size_t i = 0; i < ROOM * BATCH * 2; i++) bytes[i] = (uint8_t)operands_draw(77, i);
  for (size_t i = 0; i < sizeof scales; i++) ((uint8_t *)scales)[i] = (uint8_t)(118 + operands_draw(78, i) % 16);
  static float c[BATCH * LD * LD];
  for (size_t i = 0; i < BATCH * LD * LD; i++) c[i] = (float)(int32_t)operands_draw(79, i) * 0x1p-24f;
  const float alpha = 0.75f, beta = -2, g = 1.0f / 3;
  static const char *const scale_names[] = {"e8m0", "e4m3", "ue5m3"};
  const mx_mma_model units[] = {operands_unit("hopper_f16"), operands_unit("cdna3/mfma_f32_16x16x32_fp8_fp8"),
                                operands_unit("fused:L=32,F=13,out=e8m13rz")};
  int n = 0;
  for (int order = 0; order < 2; order++)
    for (int ta = 0; ta < 2; ta++)
      for (int tb = 0; tb < 2; tb++)
        for (int e = 0; e < 9; e++)
          for (int layout = 0; layout < MX_LAYOUT_COUNT + 1; layout++, n++) {
            mx_gemm_problem p = {.M = M,
                                 .N = N,
                                 .K = K,
                                 .block = n % 2 ? 32 : 16,
                                 .order = order,
                                 .ldd = n % 3 ? 0 : LD,
                                 .options = {.model = n % 6,
                                             .fused = &units[n / 6 % 3],
                                             .alpha = &alpha,
                                             .batch = BATCH,
                                             .out = n % 4 == 0   ? MX_F16
                                                    : n % 4 == 1 ? MX_BF16
                                                                 : MX_F32}};
            p.a = (mx_gemm_operand){.elem = mx_format_find(elems[e]),
                                    .transposed = ta,
                                    .ld = n % 2 ? LD : 0,
                                    .data = bytes,
                                    .stride = ROOM / 4,
                                    .packing = n % 7 == 0,
                                    .nibble = n % 5 == 0,
                                    .multiplier = &g};
            p.b = (mx_gemm_operand){.elem = mx_format_find(elems[(e + n) % 9]),
                                    .transposed = tb,
                                    .ld = LD,
                                    .data = bytes + ROOM,
                                    .stride = ROOM / 4,
                                    .packing = n % 11 == 0};
            for (int side = 0; side < 2; side++) {
              mx_gemm_operand *x = side ? &p.b : &p.a;
              if (side && n % 13 == 0) continue; /* one operand without scales */
              x->scale = mx_format_find(scale_names[n / 2 % 3]);
              x->scales = scales[side];
              x->scale_layout = layout % MX_LAYOUT_COUNT;
              x->scale_transposed = layout == MX_LAYOUT_COUNT;
              x->scale_stride = n % 2 ? 16384 : 0;
            }
            if (!strcmp(elems[e], "e4m3")) p.a.scale = mx_format_find("e8m0");
            p.ldd = p.ldd ? LD : 0;
            p.stride_d = LD * LD;
            if (n % 3 == 1) p.options.c = c, p.options.ldc = LD, p.stride_c = 100, p.options.beta = &beta;
            char what[200];
            snprintf(what, sizeof what, "raw %d: order %d, trans %d %d, %s x %s, layout %d", n, order, ta, tb, p.a.elem->name, p.b.elem->name,
                     layout);
            if (n % 12 == 0) check_raw(&p, BATCH * LD * LD * mx_dtype_bytes(p.options.out), what);
            /* a list alone, by pointer batch */
            const size_t pairs[][2] = {{0, 0}, {33, 18}, {33, 2}, {5, 18}, {5, 17}};
            const void *list[BATCH] = {bytes + 16, bytes};
            p.pairs = pairs;
            p.n_pairs = 5;
            p.a.list = list;
            p.stride_d = 0;
            check_raw(&p, BATCH * 5 * mx_dtype_bytes(p.options.out), what);
          }
  free(bytes);
}
END_TEST
int main(void) {
  Suite *suite = suite_create("gemm_raw");
  TCase *t = tcase_create("raw");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, raw);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
