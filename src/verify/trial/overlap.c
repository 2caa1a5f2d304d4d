/* Finds where most of many intervals meet. */
#include "verify/trial/overlap.h"

#include <math.h>
#include <stdlib.h>

#include "core/sort.h"

enum { BLOCKS = 256, ELEMENTS = 2048 };
static const double SLACK = 0x1p-21; /* what a chain's roundings may shift */

double mxi_simplest_between(double least, double most) {
  static const double denominators[] = {1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 50, 64, 100, 128, 256, 1000};
  for (size_t i = 0; i < sizeof denominators / sizeof denominators[0]; i++) {
    const double n = ceil(least * denominators[i] - 1e-9);
    if (n > 0 && n / denominators[i] <= most * (1 + 1e-12)) return n / denominators[i];
  }
  return 0;
}

int mxi_code_interval(interval *out, const mx_format *f, uint32_t code, toward way) {
  if (code == 0 || code >= f->max_code) return 0;
  const double v = mx_decode(f, code), before = mx_decode(f, code - 1), after = mx_decode(f, code + 1);
  if (!(v > 0) || !(before < v) || !(after > v)) return 0;
  *out = way == TOWARD_NEAREST ? (interval){(before + v) / 2, (v + after) / 2}
         : way == TOWARD_UP    ? (interval){before, v}
         : way == TOWARD_DOWN  ? (interval){v, after}
                               : (interval){before, after};
  return 1;
}

static int by_least(const void *a, const void *b) {
  const interval *x = a, *y = b;
  return (x->least > y->least) - (x->least < y->least);
}

size_t mxi_overlap(interval *out, interval *list, size_t n, shortage *lack) {
  double *ends = noted(malloc((n + 1) * sizeof *ends), lack);
  size_t open = 0, best = 0, e = 0;
  *out = (interval){0, 0};
  if (!ends) return 0;
  qsort(list, n, sizeof *list, by_least);
  for (size_t i = 0; i < n; i++) ends[i] = list[i].most;
  mxi_sort_numbers(ends, n);
  for (size_t i = 0; i < n; i++) {
    while (e < n && ends[e] < list[i].least) e++, open--;
    if (++open > best) best = open, *out = (interval){list[i].least, e < n ? ends[e] : list[i].least};
  }
  free(ends);
  return best;
}

/* Every k-th ordinary block, about `wanted` of them. */
static size_t step_of(const observation *o, size_t wanted) {
  size_t n = 0;
  for (size_t i = 0; i < o->n_blocks; i++) n += o->blocks[i].kind == BLOCK_PLAIN;
  return n / wanted + 1;
}

double mxi_scale_max_interval(interval *out, const observation *o, toward way, int normed) {
  const mx_format *f = mx_scale_format(o->formats.scale);
  const int encode = o->formats.scale_form == MX_SCALE_FORM_ENCODE;
  interval list[BLOCKS + 1];
  size_t n = 0, seen = 0;
  const size_t step = step_of(o, BLOCKS);
  for (size_t i = 0; i < o->n_blocks && n < BLOCKS; i++) {
    const block_at *b = &o->blocks[i];
    if (b->kind != BLOCK_PLAIN || seen++ % step) continue;
    interval v;
    const mx_block_stats *w = &o->facts[b->sample].whole;
    const double amax = (double)b->stats.amax / (normed ? (double)w->amax_finite : 1);
    if ((normed && (w->has_nan || w->has_inf)) || !(amax > 0) || !mxi_code_interval(&v, f, b->scale, way)) continue;
    list[n++] = encode ? (interval){v.least * amax * (1 - SLACK), v.most * amax * (1 + SLACK)}
                       : (interval){amax / v.most * (1 - SLACK), v.least > 0 ? amax / v.least * (1 + SLACK) : INFINITY};
  }
  return n ? (double)mxi_overlap(out, list, n, o->lack) / (double)n : 0;
}

double mxi_prescale_interval(interval *out, const observation *o, toward way, int normed) {
  const mx_format *f = mx_scale_format(o->formats.scale), *e = mx_elem_format(o->formats.elem);
  const int encode = o->formats.scale_form == MX_SCALE_FORM_ENCODE;
  const uint32_t sign = e->sign_bits ? 1u << (e->bits - 1) : 0;
  interval *list = noted(malloc(ELEMENTS * sizeof *list), o->lack);
  size_t n = 0, seen = 0, plain = 0;
  const size_t step = step_of(o, BLOCKS);
  for (size_t i = 0; i < o->n_blocks; i++) plain += o->blocks[i].kind == BLOCK_PLAIN;
  const size_t taken = plain / step + 1, each = ELEMENTS / taken > 8 ? ELEMENTS / taken : 8;
  for (size_t i = 0; i < o->n_blocks && list && o->samples[0].codes; i++) {
    const block_at *b = &o->blocks[i];
    if (b->kind != BLOCK_PLAIN || seen++ % step) continue;
    size_t rows, cols, ld;
    mxi_observation_extent(o, b, &rows, &cols);
    const float *x = mxi_observation_x(o, b->sample, &ld) + b->row * ld + b->col;
    const mx_sample *s = &o->samples[b->sample];
    const double stored = mx_decode(f, b->scale), g = normed ? (double)o->facts[b->sample].whole.amax_finite : 1;
    const double used = (encode ? 1 / stored : stored) * g;
    for (size_t k = 0; k < rows * cols && n < ELEMENTS; k += rows * cols / each + 1) {
      interval v;
      const float a = fabsf(x[k / cols * ld + k % cols]);
      uint32_t code = s->codes[(b->row + k / cols) * s->cols + b->col + k % cols];
      if (e->kind == MX_KIND_INT && code & sign) code = -code & 0xFF;
      if (!(a > 0) || !mxi_code_interval(&v, e, code & ~sign, way)) continue;
      list[n++] = (interval){v.least * used / (double)a * (1 - SLACK), v.most * used / (double)a * (1 + SLACK)};
    }
  }
  const double share = n ? (double)mxi_overlap(out, list, n, o->lack) / (double)n : 0;
  free(list);
  return share;
}
