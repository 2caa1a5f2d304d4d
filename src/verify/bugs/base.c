/* Takes presets as bases of bugs: it runs each on the samples and keeps what it leaves unexplained. */
#include "verify/bugs/base.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/trial/trial.h"

const mx_format *mxi_base_elem(const base *b) { return mx_elem_format(b->spec.elem); }

int mxi_base_fits(const mx_spec *spec, const mx_sample *samples, size_t n) {
  if (spec->elem_round == MX_ROUND_SR || spec->scale_round == MX_SCALE_ROUND_SR || spec->tensor_given) return 0;
  if (spec->scale_rule == MX_SCALE_RULE_HIF4) return 0;
  for (size_t i = 0; i < n; i++)
    if (!mxi_sample_fits(spec, &samples[i])) return 0;
  return 1;
}

/* The spec without the steps that part.x has already been through. */
static mx_spec without_input(const mx_spec *spec) {
  mx_spec run = *spec;
  run.had_size = 0;
  run.had_sign = 0;
  run.nibble = MX_NIBBLE_LOW_FIRST;
  return run;
}

static int quantize(const base *b, const part *p, const mx_spec *spec, const float *x, size_t ld, const float *amax, uint8_t *codes,
                    uint32_t *scales, float *tensor_scale) {
  mx_tensor t = {0};
  const mx_exec exec = {.n_threads = b->n_threads, .amax_known = amax != NULL, .amax = amax ? *amax : 0};
  const unsigned bits = mxi_base_elem(b)->bits;
  mx_status status = mx_tensor_alloc(&t, p->rows, p->cols, spec);
  if (!status) status = mx_quantize(&t, x, p->rows, p->cols, ld, spec, &exec, NULL);
  const int ok = !noted_status(status, b->lack);
  for (size_t r = 0; ok && r < p->rows; r++) {
    const uint8_t *from = t.codes + r * t.code_stride;
    uint8_t *to = codes + r * p->cols;
    for (size_t c = 0; c < p->cols; c++) to[c] = bits > 4 ? from[c] : from[c / 2] >> (c % 2 * 4) & 15;
  }
  for (size_t k = 0; ok && k < p->down * p->across; k++) {
    const size_t row = k / p->across * (t.scale_rows == p->rows ? p->block_rows : 1);
    scales[k] = mx_scale_code_at(&t, row * t.scale_cols + k % p->across);
  }
  if (tensor_scale) *tensor_scale = t.has_tensor_scale ? t.tensor_scale : 1;
  mx_tensor_free(&t);
  return ok;
}

int mxi_part_rerun(const base *b, const part *p, const float *x, uint8_t *codes, uint32_t *scales, const float *amax) {
  const mx_spec run = without_input(&b->spec);
  return quantize(b, p, &run, x, p->cols, amax, codes, scales, NULL);
}

static void read_seen(part *p) {
  const mx_sample *s = p->s;
  for (size_t k = 0; k < p->down * p->across; k++) {
    const size_t row = k / p->across * (s->scale_rows == s->rows ? p->block_rows : 1);
    uint32_t code = 0;
    memcpy(&code, (const uint8_t *)s->scales + (row * s->scale_cols + k % p->across) * s->scale_bytes, s->scale_bytes);
    p->seen[k] = code;
  }
}

static void read_stats(const base *b, part *p) {
  const int flush = b->spec.flush == MX_SWITCH_ON;
  for (size_t k = 0; k < p->down * p->across; k++) {
    mx_block_stats *st = &p->stats[k];
    const size_t row = k / p->across * p->block_rows, col = k % p->across * p->block_cols;
    for (size_t r = row; r < p->rows && r < row + p->block_rows; r++)
      for (size_t c = col; c < p->cols && c < col + p->block_cols; c++) {
        float *x = &p->x[r * p->cols + c];
        if (flush && fabsf(*x) < FLT_MIN) *x = copysignf(0, *x);
        mx_block_stats_add(st, *x);
      }
    st->amax = st->has_inf ? INFINITY : st->amax_finite;
  }
}

/* x as the rule sees it. */
static int read_input(const base *b, part *p) {
  const mx_sample *s = p->s;
  const mx_spec *spec = &b->spec;
  for (size_t r = 0; r < p->rows; r++)
    for (size_t c = 0; c < p->cols; c++) p->x[r * p->cols + c] = mxi_round_dtype(s->x[r * s->ld + c], spec->input_dtype);
  if (!spec->had_size) return 1;
  return !noted_status(mx_hadamard(p->x, p->cols, p->x, p->rows, p->cols, p->cols, spec->had_size, spec->had_sign, spec->had_signs, spec->seed),
                       b->lack);
}

static int part_open(base *b, part *p, const mx_sample *s, int by_blocks) {
  *p = (part){.s = s, .rows = s->rows, .cols = s->cols};
  mx_spec_block(&b->spec, s->rows, s->cols, &p->block_rows, &p->block_cols);
  p->down = up(p->rows, p->block_rows);
  p->across = up(p->cols, p->block_cols);
  const size_t n = p->rows * p->cols, blocks = p->down * p->across;
  p->codes = noted(malloc(n + 1), b->lack);
  p->scales = noted(malloc((blocks + 1) * sizeof *p->scales), b->lack);
  p->seen = noted(malloc((blocks + 1) * sizeof *p->seen), b->lack);
  if (!p->codes || !p->scales || !p->seen) return 0;
  mx_spec run = b->spec;
  run.nibble = MX_NIBBLE_LOW_FIRST;
  if (!quantize(b, p, &run, s->x, s->ld, NULL, p->codes, p->scales, &p->tensor_scale)) return 0;
  p->has_tensor_scale = b->spec.tensor_norm != MX_TENSOR_NORM_NONE;
  read_seen(p);
  if (!by_blocks) return 1;
  p->x = noted(malloc((n + 1) * sizeof *p->x), b->lack);
  if (!p->x || !read_input(b, p)) return 0;
  if (noted_status(mx_tensor_amax(&p->amax, s->x, s->rows, s->cols, s->ld, &b->spec, &(mx_exec){.n_threads = b->n_threads}), b->lack)) return 0;
  if (b->spec.select == MX_SELECT_FOURSIX || b->spec.scale_rule == MX_SCALE_RULE_QUEST) return 1;
  p->stats = noted(calloc(blocks + 1, sizeof *p->stats), b->lack);
  if (!p->stats) return 0;
  read_stats(b, p);
  return 1;
}

static int tensor_scale_differs(const part *p) {
  const mx_sample *s = p->s;
  if (!s->has_tensor_scale) return 0;
  const float a = p->has_tensor_scale ? p->tensor_scale : 1, b = s->tensor_scale;
  return isnan(a) || isnan(b) ? !(isnan(a) && isnan(b)) : a != b;
}

/* Chooses the rows of blocks at which bugs are looked at first. */
static void choose_rows(base *b) {
  enum { WRONG = 12, ELEMENTS = 1 << 14 };
  size_t in[2] = {0, 0}, seen[2] = {0, 0}, rows = 0, index = 0, elements = 0;
  for (size_t i = 0; i < b->n; i++) rows += b->parts[i].down;
  leaves *left = noted(malloc((rows + 1) * sizeof *left), b->lack);
  for (size_t i = 0; left && i < b->n; i++)
    for (size_t d = 0; d < b->parts[i].down; d++, index++) {
      left[index] = mxi_run_left(b, i, b->parts[i].codes, NULL, d, d + 1);
      in[left_total(left[index]) != 0]++;
    }
  index = 0;
  for (size_t i = 0; left && i < b->n; i++)
    for (size_t d = 0; d < b->parts[i].down; d++) {
      const uint64_t wrong = left_total(left[index++]);
      const int bad = wrong != 0;
      const size_t at = seen[bad]++, wanted = bad ? WRONG : LOOKED_AT - WRONG;
      if ((in[bad] > wanted && at * wanted / in[bad] == (at + 1) * wanted / in[bad]) || b->n_rows == LOOKED_AT) continue;
      if (b->n_rows > 4 && elements > ELEMENTS) continue;
      elements += b->parts[i].block_rows * b->parts[i].cols;
      b->rows_wrong += wrong;
      b->rows[b->n_rows].part = i;
      b->rows[b->n_rows++].row = d;
    }
  free(left);
}

int mxi_base_open(base *b, const mx_spec *spec, const char *preset, const mx_sample *samples, size_t n, int n_threads, int by_blocks,
                  shortage *lack) {
  *b = (base){.spec = *spec, .preset = preset, .n = n, .n_threads = n_threads, .lack = lack};
  b->parts = noted(calloc(n, sizeof *b->parts), b->lack);
  for (size_t i = 0; b->parts && i < n; i++) {
    if (!part_open(b, &b->parts[i], &samples[i], by_blocks)) return 0;
    const leaves l = mxi_run_left(b, i, b->parts[i].codes, NULL, 0, SIZE_MAX);
    b->plain.codes += l.codes;
    b->plain.scales += l.scales;
    b->plain.tensor_scales += (uint64_t)tensor_scale_differs(&b->parts[i]);
  }
  if (b->parts && by_blocks) choose_rows(b);
  return b->parts != NULL;
}

void mxi_base_close(base *b) {
  for (size_t i = 0; b->parts && i < b->n; i++) {
    part *p = &b->parts[i];
    free(p->x);
    free(p->stats);
    free(p->codes);
    free(p->scales);
    free(p->seen);
  }
  free(b->parts);
  *b = (base){0};
}

int mxi_run_open(trial_run *r, const base *b) {
  int ok = 1;
  r->codes = noted(calloc(b->n + 1, sizeof *r->codes), b->lack);
  r->scales = noted(calloc(b->n + 1, sizeof *r->scales), b->lack);
  for (size_t i = 0; i < b->n && r->codes && r->scales; i++) {
    const part *p = &b->parts[i];
    r->codes[i] = noted(malloc(p->rows * p->cols + 1), b->lack);
    r->scales[i] = noted(malloc((p->down * p->across + 1) * sizeof **r->scales), b->lack);
    ok &= r->codes[i] && r->scales[i];
  }
  ok &= r->codes && r->scales;
  if (!ok) mxi_run_close(r, b);
  return ok;
}

void mxi_run_close(trial_run *r, const base *b) {
  for (size_t i = 0; i < b->n; i++) {
    if (r->codes) free(r->codes[i]);
    if (r->scales) free(r->scales[i]);
  }
  free(r->codes);
  free(r->scales);
  *r = (trial_run){0};
}

leaves mxi_run_left(const base *b, size_t i, const uint8_t *codes, const uint32_t *scales, size_t first, size_t end) {
  const part *p = &b->parts[i];
  const mx_sample *s = p->s;
  const mx_format *f = mxi_base_elem(b), *sf = mx_scale_format(b->spec.scale);
  const unsigned sign = f->sign_bits ? 1u << (f->bits - 1) : 0;
  const int has_nan = f->nan_first != MX_NO_CODE;
  leaves l = {0};
  if (!scales) scales = p->scales;
  for (size_t d = first; d < p->down && d < end; d++)
    for (size_t a = 0; a < p->across; a++) {
      const uint32_t seen = p->seen[d * p->across + a], got = scales[d * p->across + a];
      const int seen_nan = mxi_nan_scale(sf, seen);
      if (got != seen && !(seen_nan && mxi_nan_scale(sf, got))) l.scales++;
      if (seen_nan) continue;
      const size_t col = a * p->block_cols, width = p->cols - col < p->block_cols ? p->cols - col : p->block_cols;
      for (size_t r = d * p->block_rows; r < p->rows && r < (d + 1) * p->block_rows; r++) {
        const uint8_t *want = s->codes + r * p->cols + col, *have = codes + r * p->cols + col;
        if (!memcmp(want, have, width)) continue;
        for (size_t c = 0; c < width; c++)
          if (want[c] != have[c])
            l.codes += !((has_nan || (want[c] | sign) == (have[c] | sign)) && mxi_same_nan(f, have[c], want[c], s->x[r * s->ld + col + c]));
      }
    }
  return l;
}

void mxi_offer(candidate *best, const base *b, const candidate *c) {
  const uint64_t now_left = left_total(c->l), was = left_total(b->plain);
  if (now_left * BUG_LEAVES_ONE_IN >= was) return;
  if (best->name && (left_total(best->l) < now_left || (left_total(best->l) == now_left && best->weak <= c->weak))) return;
  *best = *c;
}
