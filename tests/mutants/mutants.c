/* Asks whether the comparator is any good: known kernel bugs, one at a time, must be caught by suite minimal and named rightly. Known kernel bugs,
 * one at a time: does suite minimal catch each, and is each named right?
 *
 * A bug in a rule is a key with another value: identify must give that key that value. A bug in plumbing damages the output: diff must say the
 * words. Last, kernels without a bug must raise no alarm. `make mutants` prints the table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/kernels.h"

/* ---- bugs in a rule */

static const struct {
  const char *name, *preset, *keys, *says; /* says: the key=value that identify must give */
} rules[] = {
    {"reciprocal instead of division", "ocp-mxfp4", "scale.rule=value scale.form=encode elem.arith=mul32", "scale.form=encode"},
    {"x * (1/s) rounded twice", "mxfp4-e4m3", "elem.arith=recip32", "elem.arith=recip32"},
    {"ties away from zero", "ocp-mxfp4", "elem.round=rna", "elem.round=rna"},
    {"ties toward zero", "ocp-mxfp4", "elem.round=rtz_tie", "elem.round=rtz_tie"},
    {"truncated elements", "ocp-mxfp4", "elem.round=rtz", "elem.round=rtz"},
    {"floor(x + 1/2) in binary32", "microxcaling-cpp", "elem.round=rna_f32", "elem.round=rna_f32"},
    {"ties to the lower code", "mlx-nvfp4", "elem.round=rne", "elem.round=rne"},
    {"elements rounded up", "ocp-mxfp8-e4m3", "elem.round=rtp", "elem.round=rtp"},
    {"scale rounded up instead of floor", "ocp-mxfp4", "scale.rule=ceil", "scale.rule=ceil"},
    {"EVEN instead of floor", "ocp-mxfp4", "scale.rule=even", "scale.rule=even"},
    {"EVEN with another width's constant", "torchao-even-e4m3", "scale.even_bits=1", "scale.even_bits=1"},
    {"RCEIL instead of floor", "ocp-mxfp4", "scale.rule=value scale.round=up", "scale.round=up"},
    {"nearest power of two instead of up", "aiter-cpu", "scale.round=rne", "scale.round=rne"},
    {"log2f at 2^k - ulp", "ocp-mxfp4", "scale.log2=log2f", "scale.log2=log2f"},
    {"largest power of two for the maximum", "aiter-cpu", "scale.max=pow2", "scale.max=pow2"},
    {"wrong maximum", "aiter-cpu", "scale.max=7.25", "scale.max=7.25"},
    {"scale by a rounded reciprocal", "aiter-cpu", "scale.arith=recip32", "scale.arith=recip32"},
    {"missing clamp: the byte wraps", "ocp-mxfp4", "scale.byte_overflow=wrap", "scale.byte_overflow=wrap"},
    {"FTZ: subnormal inputs flushed", "ocp-mxfp4", "flush=on", "flush=on"},
    {"subnormal scale not bumped", "aiter-cpu", "scale.subnormal=exact", "scale.subnormal=exact"},
    {"carry out of range is not Inf", "aiter-cpu-even", "scale.carry=exact", "scale.carry=exact"},
    {"-0 lost", "ocp-mxfp4", "elem.zero_sign=drop_all", "elem.zero_sign=drop_all"},
    {"-0 input lost", "ocp-mxfp4", "elem.zero_sign=drop_input", "elem.zero_sign=drop_input"},
    {"+0 stored as -0", "ocp-mxfp4", "elem.zero_sign=force", "elem.zero_sign=force"},
    {"NaN ignored in the maximum", "ocp-mxfp4", "scale.nan=finite", "scale.nan=finite"},
    {"FP8 NaN lost", "mlx-mxfp8", "elem.nan=signmax", "elem.nan=signmax"},
    {"Inf saturates the scale", "ocp-mxfp4", "scale.inf=max", "scale.inf=max"},
    {"Inf ignored in the maximum", "ocp-mxfp4", "scale.inf=finite", "scale.inf=finite"},
    {"FP8 overflow gives NaN", "ocp-mxfp8-e4m3", "elem.overflow=ieee", "elem.overflow=ieee"},
    {"zero block gets scale 1", "ocp-mxfp4", "scale.allzero=one", "scale.allzero=one"},
    {"zero block gets byte 92", "ocp-mxfp4", "scale.allzero=byte=92", "scale.allzero=byte=92"},
    {"byte 0 divides by 2^-126", "ocp-mxfp4", "scale.byte0=div126", "scale.byte0=div126"},
    {"byte 0 zeroes the block", "ocp-mxfp4", "scale.byte0=times0", "scale.byte0=times0"},
    {"scale never 0", "ocp-mxfp4", "scale.min_byte=1", "scale.min_byte=1"},
    {"underflowing scale zeroes elements", "te-nvfp4", "scale.zero=zero", "scale.zero=zero"},
    {"order of the tensor scale's operations", "te-nvfp4", "chain=vllm", "chain=vllm"},
    {"tensor scale divided, not multiplied", "te-nvfp4", "chain=ct", "chain=ct"},
    {"FP8 maximum 256 for 448", "te-nvfp4", "tensor.target=1536", "tensor.target=1536"},
    {"4over6 by MSE for MAE", "te-4over6", "select.error=mse", "select.error=mse"},
    {"4over6 never tries 4", "te-4over6", "select=absmax", "select=absmax"},
    {"UE4M3 cast of another library", "ggml-nvfp4", "scale.round=rne", "scale.round=rne"},
    {"arithmetic in bfloat16", "ocp-mxfp4", "input.dtype=bfloat16", "input.dtype=bfloat16"},
    {"Hadamard signs forgotten", "ocp-mxfp4", "had.size=16 had.sign=none", "had.sign=none"},
    {"seed reused in stochastic rounding", "ocp-mxfp4", "elem.round=sr seed=3", "seed=3"},
};

/* What the correct kernel of a bug does, where it is not the preset alone. */
static const char *base_keys(const char *name) {
  if (!strcmp(name, "Hadamard signs forgotten")) return "had.size=16 had.sign=te";
  if (!strcmp(name, "seed reused in stochastic rounding")) return "elem.round=sr seed=4";
  return "";
}

/* ---- bugs in plumbing: t is damaged in place; layout: rows, cols as of the case */

static void put(mx_tensor *t, const mx_spec *s, size_t r, size_t c, uint32_t code) {
  if (mx_elem_format(s->elem)->bits > 4)
    t->codes[r * t->code_stride + c] = (uint8_t)code;
  else {
    uint8_t *p = &t->codes[r * t->code_stride + c / 2];
    *p = (uint8_t)((*p & (c % 2 ? 0x0F : 0xF0)) | code << (c % 2 * 4));
  }
}
static void all_zero(mx_tensor *t, const mx_spec *s) { (void)s, memset(t->codes, 0, t->rows * t->code_stride); }
static void nibble_swap(mx_tensor *t, const mx_spec *s) {
  (void)s;
  for (size_t i = 0; i < t->rows * t->code_stride; i++) t->codes[i] = (uint8_t)(t->codes[i] << 4 | t->codes[i] >> 4);
}
static void last_row_lost(mx_tensor *t, const mx_spec *s) { (void)s, memset(t->codes + (t->rows - 1) * t->code_stride, 0, t->code_stride); }
static void last_block_stale(mx_tensor *t, const mx_spec *s) {
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = (t->scale_cols - 1) * 32; c < t->cols; c++) put(t, s, r, c, 7);
}
static void scale_plus_one(mx_tensor *t, const mx_spec *s) {
  (void)s;
  for (size_t i = 0; i < t->scale_rows * t->scale_cols; i++)
    if (t->scales[i] < 0xFE) t->scales[i]++;
}
static void scale_off_at_one(mx_tensor *t, const mx_spec *s) {
  (void)s;
  for (size_t i = 0; i < t->scale_rows * t->scale_cols; i++)
    if (t->scales[i] == t->scales[0] && t->scales[0] < 0xFE) t->scales[i] = (uint8_t)(t->scales[0] + 1), i = t->scale_rows * t->scale_cols;
}
static void scales_transposed(mx_tensor *t, const mx_spec *s) {
  (void)s;
  for (size_t r = 0; r < t->scale_rows; r++)
    for (size_t c = r + 1; c < t->scale_cols && c < t->scale_rows; c++) {
      const uint8_t keep = t->scales[r * t->scale_cols + c];
      t->scales[r * t->scale_cols + c] = t->scales[c * t->scale_cols + r];
      t->scales[c * t->scale_cols + r] = keep;
    }
}
static void rows_shifted(mx_tensor *t, const mx_spec *s) {
  (void)s;
  memmove(t->codes + t->code_stride, t->codes, (t->rows - 1) * t->code_stride);
}
static void signs_flipped(mx_tensor *t, const mx_spec *s) {
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c++) put(t, s, r, c, mx_code_at(t, s, r, c) ^ 8);
}
static void one_step_down(mx_tensor *t, const mx_spec *s) {
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c++)
      if ((mx_code_at(t, s, r, c) & 7) == 5) put(t, s, r, c, mx_code_at(t, s, r, c) - 1);
}
static void first_of_block(mx_tensor *t, const mx_spec *s) {
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c += 32) put(t, s, r, c, mx_code_at(t, s, r, c) ^ 1);
}
static void scales_in_another_order(mx_tensor *t, const mx_spec *s) {
  (void)s;
  const uint8_t keep = t->scales[0];
  memmove(t->scales, t->scales + 1, t->scale_rows * t->scale_cols - 1);
  t->scales[t->scale_rows * t->scale_cols - 1] = keep;
}
static void negative_lost(mx_tensor *t, const mx_spec *s) {
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c++) put(t, s, r, c, mx_code_at(t, s, r, c) & 7);
}

static const struct {
  const char *name;
  void (*damage)(mx_tensor *, const mx_spec *);
  const char *says;
} plumbing[] = {
    {"all zeros", all_zero, "every code of B is zero"},
    {"nibbles swapped", nibble_swap, "two codes of each byte are swapped"},
    {"last row lost", last_row_lost, "last row"},
    {"stale bytes in the last block", last_block_stale, "last block"},
    {"every scale one code larger", scale_plus_one, "one code larger"},
    {"scale off by one at one exponent", scale_off_at_one, "1 code larger"},
    {"scales transposed", scales_transposed, "transposed"},
    {"rows shifted by one", rows_shifted, "shifted"},
    {"sign bit flipped", signs_flipped, "sign alone"},
    {"one code read as the one below", one_step_down, "one step smaller"},
    {"first element of a block wrong", first_of_block, "first element"},
    {"scales in another order", scales_in_another_order, "another order"},
    {"sign lost", negative_lost, "sign alone"},
};

/* ---- what each meets */

/* Tensors of cases on which two kernels differ. */
static size_t caught_by(const mx_cases *c, const mx_spec *right, const mx_spec *wrong, void (*damage)(mx_tensor *, const mx_spec *)) {
  size_t n = 0;
  mx_difference *d = malloc(sizeof *d);
  for (size_t i = 0; d && i < c->n; i++) {
    mx_tensor a, b;
    const float *x = c->x + i * c->rows * c->ld;
    if (mx_tensor_alloc(&a, c->rows, c->cols, right) || mx_tensor_alloc(&b, c->rows, c->cols, wrong)) continue;
    if (!mx_quantize(&a, x, c->rows, c->cols, c->ld, right, NULL, NULL) && !mx_quantize(&b, x, c->rows, c->cols, c->ld, wrong, NULL, NULL)) {
      if (damage) damage(&b, wrong);
      if (!mx_diff(d, &a, &b, right, NULL, 0, NULL, NULL, NULL, NULL)) n += !d->equal;
    }
    mx_tensor_free(&a);
    mx_tensor_free(&b);
  }
  free(d);
  return n;
}

static int has_key(const mx_spec *s, const char *pair) {
  char text[4096], with[160];
  snprintf(with, sizeof with, " %s ", pair);
  text[0] = ' ';
  const size_t n = mx_spec_print(text + 1, sizeof text - 2, s, 1);
  memcpy(text + 1 + n, " ", 2);
  return strstr(text, with) != NULL;
}

static int rule_named(const mx_spec *wrong, const char *says) {
  outputs o = {0};
  mx_identity id = {0};
  outputs_of_suites(&o, wrong, 7);
  const int ok =
      !mx_identify(&id, o.samples, o.n, &(mx_identify_options){.no_undecided = 1, .seconds = 120}, NULL) && id.exact && has_key(&id.spec, says);
  if (!ok && getenv("MUTANTS_VERBOSE")) {
    char text[2048];
    mx_spec_print(text, sizeof text, &id.spec, 0);
    printf("    exact %d, found %s\n", id.exact, text);
  }
  outputs_free(&o);
  return ok;
}

static int damage_named(size_t k, char *all, size_t size) {
  mx_spec s = {0};
  mx_cases c;
  mx_tensor a, b;
  int ok = 0;
  mx_difference *d = malloc(sizeof *d);
  *all = 0;
  if (!d || mx_generate(&c, MX_SUITE_LAYOUT, &s, 32, 1024, 1, NULL)) return 0;
  if (!mx_tensor_alloc(&a, 32, 1024, &s) && !mx_tensor_alloc(&b, 32, 1024, &s)) {
    mx_quantize(&a, c.x, 32, 1024, 1024, &s, NULL, NULL);
    mx_quantize(&b, c.x, 32, 1024, 1024, &s, NULL, NULL);
    plumbing[k].damage(&b, &s);
    mx_diff(d, &a, &b, &s, c.x, 1024, NULL, NULL, NULL, NULL);
    for (int i = 0; i < d->n_patterns; i++) {
      ok |= strstr(d->patterns[i], plumbing[k].says) != NULL;
      snprintf(all + strlen(all), size - strlen(all), "%s%s", i ? "; " : "", d->patterns[i]);
    }
  }
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  mx_cases_free(&c);
  free(d);
  return ok;
}

static size_t false_alarms(const mx_cases *c) {
  size_t n = 0, runs = 0;
  for (size_t k = 0; runs < 1000; k++) {
    const mx_preset *p = mx_preset_at(k % mx_preset_count());
    mx_spec s;
    if (mx_preset_find(&s, p->name, NULL)) continue;
    n += caught_by(c, &s, &s, NULL) != 0;
    runs++;
  }
  return n;
}

int main(void) {
  mx_spec ocp = {0};
  mx_cases minimal;
  size_t bad = 0, total = 0;
  if (mx_generate(&minimal, MX_SUITE_MINIMAL, &ocp, 0, 0, 0, NULL)) return 2;
  printf("suite minimal: %zu tensors, %zu bytes of input\n\n| bug | caught by minimal | named | as |\n|---|---|---|---|\n", minimal.n,
         minimal.n * minimal.rows * minimal.cols * sizeof(float));
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++, total++) {
    mx_spec right, wrong;
    mx_error err;
    if (mx_preset_find(&right, rules[i].preset, &err) || mx_spec_parse(&right, base_keys(rules[i].name), &err)) return 2;
    wrong = right;
    if (mx_spec_parse(&wrong, rules[i].keys, &err) || mx_spec_check(&wrong, &err)) {
      printf("%s: %s\n", rules[i].name, err.text);
      return 2;
    }
    const size_t caught = caught_by(&minimal, &right, &wrong, NULL);
    const int named = rule_named(&wrong, rules[i].says);
    printf("| %s (%s) | %zu of %zu | %s | %s |\n", rules[i].name, rules[i].preset, caught, minimal.n, named ? "yes" : "NO", rules[i].says);
    fflush(stdout);
    bad += !caught || !named;
  }
  for (size_t i = 0; i < sizeof plumbing / sizeof plumbing[0]; i++, total++) {
    char words[1024];
    const size_t caught = caught_by(&minimal, &ocp, &ocp, plumbing[i].damage);
    const int named = damage_named(i, words, sizeof words);
    printf("| %s | %zu of %zu | %s | %s |\n", plumbing[i].name, caught, minimal.n, named ? "yes" : "NO", words);
    bad += !caught || !named;
  }
  const size_t alarms = false_alarms(&minimal);
  printf("\n%zu of %zu bugs caught and named; %zu false alarms in 1000 correct runs\n", total - bad, total, alarms);
  mx_cases_free(&minimal);
  return bad || alarms ? 1 : 0;
}
