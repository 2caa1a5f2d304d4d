/* Runs a spec over everything by mx_quantize(): what identify reports is what was counted here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/trial/trial.h"

static uint32_t code_at(const mx_tensor *t, unsigned bits, size_t row, size_t c) {
  const uint8_t *codes = t->codes + row * t->code_stride;
  return bits > 4 ? codes[c] : (uint32_t)(codes[c / 2] >> (c % 2 * 4) & 15);
}

/* One block of a run against what was seen. */
static score compare_block(const observation *o, const mx_spec *spec, const mx_tensor *t, const float *values, const block_at *b) {
  const mx_sample *s = &o->samples[b->sample];
  size_t rows, cols;
  score n = {0, 0, 0};
  mxi_observation_extent(o, b, &rows, &cols);
  if (!s->codes) {
    for (size_t r = b->row; r < b->row + rows; r++)
      for (size_t c = b->col; c < b->col + cols; c++) n.codes += !same_value(values[r * t->cols + c], s->values[r * s->cols + c]);
    return n;
  }
  const mx_format *sf = mx_scale_format(spec->scale), *f = mx_elem_format(spec->elem);
  const size_t at = (t->scale_rows == t->rows ? b->row : b->row / o->block_rows) * t->scale_cols + b->col / o->block_cols;
  const uint32_t got = mx_scale_code_at(t, at);
  const int seen_nan = mxi_nan_scale(sf, b->scale);
  if (got != b->scale) *(seen_nan && mxi_nan_scale(sf, got) ? &n.nan_codes : &n.scales) = 1;
  for (size_t r = b->row; r < b->row + rows; r++) {
    const uint8_t *codes = s->codes + r * s->cols;
    if (f->bits > 4 && !memcmp(codes + b->col, t->codes + r * t->code_stride + b->col, cols)) continue;
    for (size_t c = b->col; c < b->col + cols; c++) {
      const uint32_t code = code_at(t, f->bits, r, c);
      if (code == codes[c]) continue;
      *(seen_nan || mxi_same_nan(f, code, codes[c], s->x[r * s->ld + c]) ? &n.nan_codes : &n.codes) += 1;
    }
  }
  return n;
}

/* One sample whole, as it lies. */
static score sample_score(const observation *o, const mx_spec *spec, size_t i, uint8_t *wrong, int n_threads) {
  const mx_sample *s = &o->samples[i];
  const size_t first = o->facts[i].first_block, end = i + 1 < o->n_samples ? o->facts[i + 1].first_block : o->n_blocks;
  mx_spec run = *spec;
  mx_tensor t = {0};
  run.block_rows = o->formats.block_rows == MX_BLOCK_WHOLE ? MX_BLOCK_WHOLE : (int)o->block_rows;
  run.block_cols = o->formats.block_cols == MX_BLOCK_WHOLE ? MX_BLOCK_WHOLE : (int)o->block_cols;
  run.nibble = MX_NIBBLE_LOW_FIRST;
  const mx_exec exec = {.n_threads = n_threads};
  float *values = s->codes ? NULL : noted(malloc((s->rows * s->cols + 1) * sizeof *values), o->lack);
  mx_status status = mx_tensor_alloc(&t, s->rows, s->cols, &run);
  if (!status) status = mx_quantize(&t, s->x, s->rows, s->cols, s->ld, &run, &exec, NULL);
  if (!status && !s->codes) status = values ? mx_dequantize(values, s->cols, &t, &run, &exec) : MX_ERR_NOMEM;
  noted_status(status, o->lack);
  uint64_t scales = 0, codes = 0, nan_codes = 0;
#pragma omp parallel for schedule(static) num_threads(n_threads) reduction(+ : scales, codes, nan_codes) if (n_threads > 1)
  for (size_t k = first; k < end; k++) {
    size_t rows, cols;
    mxi_observation_extent(o, &o->blocks[k], &rows, &cols);
    score one = {1, rows * cols, 0};
    if (!status) one = compare_block(o, spec, &t, values, &o->blocks[k]);
    scales += one.scales;
    codes += one.codes;
    nan_codes += one.nan_codes;
    if (wrong) wrong[k] = !score_clean(one);
  }
  mx_tensor_free(&t);
  free(values);
  return (score){scales, codes, nan_codes};
}

/* Many small samples run beside each other; a large one uses the threads itself. */
score mxi_full_score(const observation *o, const mx_spec *spec, uint8_t *wrong, int n_threads) {
  enum { SMALL = 1 << 14 }; /* elements: threads that wait for each other cost more than the work */
  size_t n_elements = 0;
  for (size_t i = 0; i < o->n_samples; i++) n_elements += o->samples[i].rows * o->samples[i].cols;
  if (n_elements <= SMALL) n_threads = 1;
  uint64_t scales = 0, codes = 0, nan_codes = 0;
  const int many = o->n_samples > 1;
#pragma omp parallel for schedule(dynamic, 8) num_threads(many ? n_threads : 1) reduction(+ : scales, codes, nan_codes)
  for (size_t i = 0; i < o->n_samples; i++) {
    const score one = sample_score(o, spec, i, wrong, many ? 1 : n_threads);
    scales += one.scales;
    codes += one.codes;
    nan_codes += one.nan_codes;
  }
  return (score){scales, codes, nan_codes};
}

static int tensor_scale_wrong(const observation *o, const mx_spec *spec, size_t sample) {
  const mx_sample *s = &o->samples[sample];
  float got = 1;
  if (!s->has_tensor_scale) return 0;
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) return s->tensor_scale != 1;
  return mx_tensor_scale(&got, mxi_observation_amax(o, sample, spec), spec) || !same_value(got, s->tensor_scale);
}

uint64_t mxi_tensor_scales_wrong(const observation *o, const mx_spec *spec, int all) {
  uint64_t n = 0;
  if (all)
    for (size_t i = 0; i < o->n_samples; i++) n += (uint64_t)tensor_scale_wrong(o, spec, i);
  else
    for (size_t i = 0; i < o->n_witnesses; i++) n += (uint64_t)tensor_scale_wrong(o, spec, o->witness[i]);
  return n;
}
