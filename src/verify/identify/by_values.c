/* Finds the preset and the block that give the values, where values alone are at hand. */
#include "verify/identify/by_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/mxgold.h"

/* How many values are compared: to choose a preset, and before that to rule most presets out. */
enum { SOME = 1 << 15, FEW = 1 << 10 };
/* A block other than the preset's own must leave this many times fewer values wrong. */
enum { NARROWER_TIMES = 4 };

int mxi_has_negative_zero(int elem) {
  const mx_format *f = mx_elem_format(elem);
  return f->sign_bits && mx_decode(f, 1u << (f->bits - 1)) == 0;
}

static void compare(values_count *out, const float *a, const float *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (!memcmp(&a[i], &b[i], sizeof *a) || (isnan(a[i]) && isnan(b[i]))) continue;
    *(a[i] == 0 && b[i] == 0 ? &out->zeros : &out->wrong) += 1;
  }
}

static mx_status one_sample(values_count *out, const mx_spec *spec, const mx_sample *s, size_t rows, int threads, shortage *lack) {
  mx_tensor t = {0};
  mx_exec exec = {.n_threads = threads, .amax_known = 1};
  float *values = noted(malloc((rows * s->cols + 1) * sizeof *values), lack);
  mx_status status = values ? mx_tensor_amax(&exec.amax, s->x, s->rows, s->cols, s->ld, spec, &(mx_exec){.n_threads = threads}) : MX_ERR_NOMEM;
  if (!status) status = mx_tensor_alloc(&t, rows, s->cols, spec);
  if (!status) status = mx_quantize(&t, s->x, rows, s->cols, s->ld, spec, &exec, NULL);
  if (!status) status = mx_dequantize(values, s->cols, &t, spec, &exec);
  if (!status) compare(out, values, s->values, rows * s->cols);
  mx_tensor_free(&t);
  free(values);
  return noted_status(status, lack);
}

int mxi_values_of_spec(values_count *out, const mx_spec *spec, const mx_sample *samples, size_t n, size_t most, int threads, shortage *lack) {
  *out = (values_count){0, 0};
  for (size_t i = 0; i < n; i++) {
    const mx_sample *s = &samples[i];
    const size_t tall = spec->block_rows > 1 ? (size_t)spec->block_rows : 1, rows = (most / s->cols / tall + 1) * tall; /* no tile is cut */
    if (one_sample(out, spec, s, most && rows < s->rows ? rows : s->rows, threads, lack)) return 0;
  }
  return 1;
}

/* Finds the best preset under this block (0 x 0: each preset's own). least is how many values the best so far gets wrong. */
static void try_block(mx_spec *best, values_count *least, int rows, int cols, const mx_sample *s, size_t n, int threads, deadline until) {
  for (size_t i = 0; i < mx_preset_count() && !deadline_over(until) && (least->wrong || least->zeros); i++) {
    mx_spec p;
    values_count got;
    if (mx_preset_at(i)->alias_of || mx_preset_find(&p, mx_preset_at(i)->name, NULL)) continue;
    if (mx_elem_format(p.elem)->kind == MX_KIND_NONE || p.scale_rule == MX_SCALE_RULE_HIF4) continue;
    if (cols) p.block_rows = rows == 1 ? 0 : rows, p.block_cols = cols == 32 ? 0 : cols;
    if (mx_spec_check(&p, NULL)) continue;
    if (!mxi_values_of_spec(&got, &p, s, n, FEW, threads, until.lack) || got.wrong > least->wrong) continue;
    if (!mxi_values_of_spec(&got, &p, s, n, SOME, threads, until.lack)) continue;
    if (got.wrong < least->wrong || (got.wrong == least->wrong && got.zeros < least->zeros)) *best = p, *least = got;
  }
}

int mxi_values_preset(mx_spec *out, const mx_sample *samples, size_t n, const mx_identify_options *options, int threads, deadline until) {
  static const int sizes[] = {32, 16, 64, 128, 8};
  values_count least = {UINT64_MAX, UINT64_MAX};
  const int given = options->block_cols, given_rows = options->block_rows > 0 ? options->block_rows : 1;
  if (given) {
    try_block(out, &least, given_rows, given, samples, n, threads, until);
    return least.wrong != UINT64_MAX;
  }
  try_block(out, &least, 0, 0, samples, n, threads, until);
  const values_count own = least;
  const mx_spec as_it_is = *out;
  for (int tall = 0; tall < 3 && least.wrong; tall++) /* rows, columns, tiles */
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0] && least.wrong; k++)
      if (tall < 2 || sizes[k] > 8) try_block(out, &least, tall ? sizes[k] : 1, tall == 1 ? 1 : sizes[k], samples, n, threads, until);
  if (least.wrong && own.wrong / NARROWER_TIMES < least.wrong) *out = as_it_is; /* narrow blocks are nearer to anything */
  return least.wrong != UINT64_MAX;
}
