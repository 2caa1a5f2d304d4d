/* Tests mx_judge() on operands, scales and K that were damaged by hand, one bug at a time. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/judging.h"
#include "lib/run.h"

/* ---- operands: the damage is done to copies of the tensors */

static void left_out(mx_tensor *t) { memset(t->scales, 127, t->scale_rows * t->scale_cols); }
static void turned(mx_tensor *t) {
  const size_t r = t->scale_rows, c = t->scale_cols;
  uint8_t *s = malloc(r * c);
  memcpy(s, t->scales, r * c);
  for (size_t i = 0; i < r; i++)
    for (size_t k = 0; k < c; k++) t->scales[i * c + k] = s[k * r + i];
  free(s);
}
static void swapped_nibbles(mx_tensor *t) {
  for (size_t i = 0; i < t->rows * t->code_stride; i++) t->codes[i] = (uint8_t)(t->codes[i] << 4 | t->codes[i] >> 4);
}
static void first_scale(mx_tensor *t) {
  for (size_t r = 0; r < t->scale_rows; r++) memset(t->scales + r * t->scale_cols, t->scales[r * t->scale_cols], t->scale_cols);
}
static void next_block(mx_tensor *t) {
  for (size_t r = 0; r < t->scale_rows; r++) memmove(t->scales + r * t->scale_cols, t->scales + r * t->scale_cols + 1, t->scale_cols - 1);
}
static void next_row(mx_tensor *t) { memmove(t->scales, t->scales + t->scale_cols, (t->scale_rows - 1) * t->scale_cols); }
static void packed(mx_tensor *t) {
  const size_t n = mx_layout_size(MX_LAYOUT_NV128X4, t->scale_rows, t->scale_cols);
  uint8_t *s = malloc(n);
  mx_layout_pack(s, MX_LAYOUT_NV128X4, t->scales, t->scale_rows, t->scale_cols, 0);
  memcpy(t->scales, s, t->scale_rows * t->scale_cols);
  free(s);
}
static void third_block(mx_tensor *t) {
  for (size_t r = 0; r < t->rows; r++) memset(t->codes + r * t->code_stride + 2 * 16, 0, 16);
}
static void first_block(mx_tensor *t) {
  for (size_t r = 0; r < t->rows; r++) memset(t->codes + r * t->code_stride, 0, 16);
}
static void last_block(mx_tensor *t) {
  for (size_t r = 0; r < t->rows; r++) memset(t->codes + r * t->code_stride + 4 * 16, 0, 8);
}
static void k_tail(mx_tensor *t) { /* K = 144, tiles of 128 */
  last_block(t);
}

static const struct {
  void (*damage)(mx_tensor *);
  const char *words;
} damages[] = {{twice, "the scales of %s are applied twice"},
               {left_out, "the scales of %s are left out"},
               {turned, "the scales of %s are read transposed"},
               {swapped_nibbles, "the two codes of each byte of %s are swapped"},
               {first_scale, "scale of each row's first block of %s is used"},
               {next_block, "the scales of %s are those of the next block"},
               {next_row, "the scales of %s are those of the next row"},
               {packed, "the scales of %s are in layout nv128x4"},
               {third_block, "K block 2 of 0..4 is lost"},
               {first_block, "the first K block is lost"},
               {last_block, "the last K block is lost (K = 128 for 144)"},
               {k_tail, "K = 128 for 144"}};

START_TEST(each_damage_of_operands_is_named) {
  fixture f;
  char words[120];
  begin(&f, "elem=e2m1", M, M, K);
  for (int side = 1; side <= 3; side++) {
    if (side == 3 && damages[_i].damage == swapped_nibbles) continue; /* the same pairs in another order, so nothing is wrong */
    mx_tensor a = copy(&f.a, &f.spec), b = copy(&f.b, &f.spec);
    if (side & 1) damages[_i].damage(&a);
    if (side & 2) damages[_i].damage(&b);
    const mx_gemm_options o = {.model = side == 2 ? MX_GEMM_F32_SEQ : MX_GEMM_F32_BLOCK};
    float *d = product(&f, &a, &b, &o);
    const char *at = strstr(damages[_i].words, "%s");
    snprintf(words, sizeof words, "%.*s%s%s", at ? (int)(at - damages[_i].words) : 120, damages[_i].words,
             at ? side == 1   ? "A"
                  : side == 2 ? "B"
                              : "A and B"
                : "",
             at ? at + 2 : "");
    named(judge(&f, d, NULL, NULL), words, mx_gemm_model_name(o.model));
    free(d);
    mx_tensor_free(&a);
    mx_tensor_free(&b);
  }
  end(&f);
}
END_TEST

START_TEST(operands_that_are_swapped_or_turned) {
  fixture f;
  begin(&f, "elem=e4m3 scale=e4m3 block=1x16", M, M, M);
  float *d = product(&f, &f.b, &f.a, NULL); /* B x A^T */
  named(judge(&f, d, NULL, NULL), "D is transposed, or A and B are swapped", NULL);
  free(d);
  mx_tensor b = copy(&f.b, &f.spec); /* B as [K][N] */
  for (size_t r = 0; r < M; r++)
    for (size_t k = 0; k < M; k++) b.codes[r * M + k] = f.b.codes[k * M + r];
  d = product(&f, &f.a, &b, NULL);
  named(judge(&f, d, NULL, NULL), "the codes of B are read transposed", "f32_block");
  free(d);
  mx_tensor a2 = copy(&f.a, &f.spec);
  memcpy(b.codes, f.b.codes, M * M);
  memcpy(b.scales, f.a.scales, M * b.scale_cols);
  memcpy(a2.scales, f.b.scales, M * b.scale_cols);
  d = product(&f, &a2, &b, NULL);
  named(judge(&f, d, NULL, NULL), "the scales of A and B are swapped", "f32_block");
  free(d);
  mx_tensor_free(&a2);
  mx_tensor_free(&b);
  end(&f);
}
END_TEST

START_TEST(tensor_scales) {
  fixture f;
  begin(&f, "@te-nvfp4", M, N, K);
  ck_assert(f.a.has_tensor_scale);
  for (int twice_it = 0; twice_it < 2; twice_it++) {
    const float right = f.a.tensor_scale;
    float one;
    mx_tensor a = copy(&f.a, &f.spec);
    mx_tensor_multiplier(&one, &f.a, &f.spec);
    float *d = product(&f, &a, &f.b, &(mx_gemm_options){.alpha = &(float){twice_it ? one : 1 / one}});
    a.tensor_scale = right;
    const mx_judgement *j = judge(&f, d, NULL, NULL);
    ck_assert(!j->equal);
    ck_assert_msg(j->n_findings &&
                      strstr(j->findings[0].what, twice_it ? "the tensor scale of A is applied twice" : "the tensor scale of A is left out"),
                  "%s", j->n_findings ? j->findings[0].what : "nothing");
    free(d);
    mx_tensor_free(&a);
  }
  end(&f);
}
END_TEST

START_TEST(two_bugs_at_once) {
  fixture f;
  begin(&f, "elem=e2m1", M, N, K);
  float alpha = 0.37f;
  mx_tensor b = copy(&f.b, &f.spec);
  twice(&b);
  float *d = product(&f, &f.a, &b, NULL);
  named(judge(&f, d, &(mx_gemm_options){.alpha = &alpha}, NULL), "the scales of B are applied twice, and alpha is forgotten", "f32_block");
  free(d);
  mx_tensor_free(&b);
  end(&f);
}
END_TEST

/* A tile whose K loop ended early, while everything else is right: the bug is named from the wrong outputs alone. */
START_TEST(a_tile_with_a_bug) {
  fixture f;
  begin(&f, "elem=e4m3", 64, 64, 160);
  mx_tensor a = copy(&f.a, &f.spec);
  for (size_t r = 0; r < 64; r++) memset(a.codes + r * a.code_stride + 128, 0, 32);
  float *d = product(&f, &f.a, &f.b, NULL), *e = product(&f, &a, &f.b, NULL);
  for (size_t i = 48; i < 64; i++) memcpy(d + i * 64 + 32, e + i * 64 + 32, 32 * sizeof *d);
  const mx_judgement *j = judge(&f, d, NULL, NULL);
  named(j, "the last K block is lost", "f32_block");
  where(j, "rows 48 to 63");
  free(d);
  free(e);
  mx_tensor_free(&a);
  end(&f);
}
END_TEST

int main(void) {
  Suite *s = suite_create("judge_operands");
  TCase *t = tcase_create("judge_operands");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, each_damage_of_operands_is_named, 0, (int)(sizeof damages / sizeof damages[0]));
  tcase_add_test(t, operands_that_are_swapped_or_turned);
  tcase_add_test(t, tensor_scales);
  tcase_add_test(t, two_bugs_at_once);
  tcase_add_test(t, a_tile_with_a_bug);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
