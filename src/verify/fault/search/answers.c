/* Keeps the answers of a search for faults. */
#include "verify/fault/search/answers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/moved.h"
#include "verify/trial/bases.h"
#include "verify/trial/trial.h"

static int gives(const mx_sample *s, const float *amax, const mx_spec *spec, const mx_fault *faults, size_t n, blame *count, effort *e);

/* The same of the transposed matrix, for a fault by which that is quantised. */
static int gives_down(const mx_sample *s, const mx_spec *spec, const mx_fault *down, const mx_fault *other, size_t n, effort *e) {
  size_t block_rows, width;
  moved_back m;
  mx_spec_block(spec, s->cols, s->rows, &block_rows, &width);
  const int ok =
      (n == 0 || !mxi_fault_is_down(other)) && mxi_move_back(&m, s, down, width, e->until.lack) && gives(&m.s, NULL, spec, other, n, NULL, e);
  if (n == 0 || !mxi_fault_is_down(other)) mxi_moved_back_close(&m);
  return ok;
}

/* amax: of the tensor, where s is a part of one; else NULL. */
static int gives(const mx_sample *s, const float *amax, const mx_spec *spec, const mx_fault *faults, size_t n, blame *count, effort *e) {
  shortage *lack = e->until.lack;
  fault_run r;
  const mx_format *sf = mx_scale_format(spec->scale);
  const size_t cells = s->rows * s->cols;
  for (size_t i = 0; i < n; i++)
    if (mxi_fault_is_down(&faults[i])) return !amax && gives_down(s, spec, &faults[i], &faults[n > 1 ? !i : 0], n - 1, e);
  effort_spend(e, 3 * cells);
  int ok = !noted_status(mxi_fault_open(&r, spec, s->x, s->rows, s->cols, s->ld, faults, n, NULL), lack);
  ok = ok && !(amax && mxi_fault_set_amax(&r, *amax));
  uint8_t *codes = ok ? noted(malloc(cells + 1), lack) : NULL;
  uint32_t *stored = ok ? noted(malloc((r.down * r.across + 1) * sizeof *stored), lack) : NULL;
  ok = ok && codes && stored && !mxi_fault_scales(&r, stored);
  if (ok) {
    mxi_fault_codes(&r, codes, NULL, 0, SIZE_MAX);
    ok = mxi_fault_layout(&r, codes, stored);
  }
  if (ok && count) count->tensor_scales += !mxi_same_tensor_scale(s, &r);
  if (ok && !count) ok = mxi_same_tensor_scale(s, &r);
  for (size_t k = 0; ok && k < r.down * r.across; k++) {
    const size_t d = k / r.across, a = k % r.across;
    const uint32_t seen = mxi_view_seen(s, &r, k);
    const int nan = mxi_nan_scale(sf, seen) && !n;
    if (count) count->scales += stored[k] != seen;
    if (!count) ok = stored[k] == seen || (nan && mxi_nan_scale(sf, stored[k]));
    for (size_t row = d * r.block_rows; ok && !nan && row < r.rows && row < (d + 1) * r.block_rows; row++)
      for (size_t c = a * r.block_cols; c < r.cols && c < (a + 1) * r.block_cols; c++) {
        const int right = codes[row * r.cols + c] == s->codes[row * r.cols + c];
        if (count) count->codes += !right;
        if (!count) ok &= right;
      }
  }
  free(codes);
  free(stored);
  mxi_fault_close(&r);
  return ok;
}

int mxi_gives_all(const mx_sample *s, const mx_spec *spec, const mx_fault *faults, size_t n, blame *count, effort *e) {
  return gives(s, NULL, spec, faults, n, count, e);
}

int mxi_gives_part(const mx_sample *s, float amax, const mx_spec *spec, const mx_fault *faults, size_t n, effort *e) {
  return gives(s, &amax, spec, faults, n, NULL, e);
}

static int by_stage(const mx_fault *a, const mx_fault *b) { return mx_fault_row_at(a->op)->stage <= mx_fault_row_at(b->op)->stage; }

static int gives_all(const hunt *h, const mx_spec *spec, const mx_fault *faults, size_t n) {
  for (size_t i = 0; i < h->n; i++)
    if (!mxi_gives_all(&h->samples[i], spec, faults, n, NULL, h->e)) return 0;
  return 1;
}

/* The tensor's maximum is one number, which every part that holds the largest element gives, and other faults may. */
static void note_tensor(hunt *h, const mx_spec *spec, const mx_fault *faults, size_t n) {
  if (n > 1 || mx_fault_row_at(faults->op)->stage != MX_STAGE_TENSOR_AMAX) return;
  if (h->n_tensor && mxi_same_fault(&h->tensor, faults)) return;
  if (!gives_all(h, spec, faults, n)) return;
  h->tensor = *faults;
  h->n_tensor++;
}

int mxi_same_fault(const mx_fault *f, const mx_fault *g) {
  return f->op == g->op && f->number == g->number && f->format == g->format && !memcmp(&f->region, &g->region, sizeof f->region) &&
         !memcmp(&f->also, &g->also, sizeof f->also) && !memcmp(f->list, g->list, sizeof f->list);
}

static int same_list(const mx_fault *a, size_t n_a, const mx_fault *b, size_t n_b) {
  int same = n_a == n_b;
  for (size_t i = 0; same && i < n_a; i++) same = mxi_same_fault(&a[i], &b[i]);
  return same;
}

/* The same faults, be it over another preset: then the data leave open which keys of the two it has, and the cheaper preset says it. */
static int blames_alike(const blame *a, const blame *b) { return same_list(a->fault, a->n, b->fault, b->n); }

static int same_faults(const blame *a, const blame *b) {
  return blames_alike(a, b) && a->preset == b->preset && a->spec.had_size == b->spec.had_size;
}

/* The same faults and one more, which does nothing here. */
static int says_more(const blame *b, const mx_fault *faults, size_t n) {
  size_t there = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < b->n; k++) there += mxi_same_fault(&b->fault[k], &faults[i]) != 0;
  return n && there == n && b->n > n;
}

/* Of those that are sure the cheapest, else the cheapest. A preset that is wrong in more places makes the same fault surer, but not likelier: a cheaper
 * preset under it goes before. */
static void choose_best(hunt *h) {
  h->best->n = 0;
  for (int sure = 1; sure >= 0; sure--)
    for (size_t i = 0; i < h->n_all && !h->best->n; i++) {
      if (sure && !mxi_blame_confirmed(&h->all[i])) continue;
      size_t first = 0;
      while (!blames_alike(&h->all[first], &h->all[i])) first++;
      *h->best = h->all[first];
    }
}

/* Does one of two faults give every byte alone? Then the other one does nothing here, as where the second hides what the first does. */
static int is_idle(const hunt *h, const mx_spec *spec, const mx_fault *faults, size_t n) {
  return n == 2 && (gives_all(h, spec, &faults[0], 1) || gives_all(h, spec, &faults[1], 1));
}

void mxi_hunt_offer(hunt *h, const char *preset, const mx_spec *spec, const mx_fault *faults, size_t n, double cost, uint64_t held) {
  if (!n || n > MX_FAULTS) return;
  note_tensor(h, spec, faults, n);
  blame b = {.preset = preset, .spec = *spec, .n = n, .cost = cost, .held = held};
  if (h->best->n && cost > h->best->cost + RIVAL_BITS && mxi_blame_confirmed(h->best) >= mxi_blame_confirmed(&b)) return;
  if (h->n_all == MOST_ANSWERS && cost >= h->all[MOST_ANSWERS - 1].cost) return;
  memcpy(b.fault, faults, n * sizeof *faults);
  if (n == 2 && !by_stage(&faults[0], &faults[1])) b.fault[0] = faults[1], b.fault[1] = faults[0];
  for (size_t i = 0; i < h->n_all; i++)
    if (same_faults(&h->all[i], &b)) return;
  if (!gives_all(h, spec, b.fault, n) || is_idle(h, spec, b.fault, n)) return;
  size_t at = h->n_all < MOST_ANSWERS ? h->n_all++ : MOST_ANSWERS - 1;
  while (at && h->all[at - 1].cost > cost) h->all[at] = h->all[at - 1], at--;
  h->all[at] = b;
  choose_best(h);
}

int mxi_has_number(const blame *b) {
  for (size_t i = 0; i < b->n; i++)
    if (mx_fault_row_at(b->fault[i].op)->arg == MX_FAULT_ARG_NUMBER) return 1;
  return 0;
}

/* A block's maximum of what a rotation turns back is that of the input as it was, but for roundings. */
static int rotates_back(const blame *b) {
  return b->n == 2 && b->fault[0].op == MX_FAULT_ROTATION_HADAMARD && b->fault[1].op == MX_FAULT_AMAX_ROTATED &&
         b->fault[0].number == b->fault[1].number;
}

/* A number that was read off is no rival of faults without one if nobody would type it, for which nothing is held, or over a preset that few know. */
static int is_far_fetched(const blame *b, const mx_fault *faults, size_t n) {
  blame answer = {.n = n};
  if (!n || n > MX_FAULTS) return 0;
  if (rotates_back(b)) return 1;
  memcpy(answer.fault, faults, n * sizeof *faults);
  return !mxi_has_number(&answer) && mxi_has_number(b) && (!b->held || !mxi_preset_well_known(b->preset));
}

/* Is it the preset alone that makes the difference, one that few know? Of presets that give every byte the one that people know is named. */
static int is_of_base(const hunt *h, const blame *b, const mx_spec *spec, const mx_fault *faults, size_t n) {
  return !mxi_preset_well_known(b->preset) && n && n <= b->n &&
         mxi_kernels_alike(&h->samples[h->largest], spec, faults, n, spec, b->fault, n, h->e->until.lack);
}

int mxi_hunt_rival(blame *out, const hunt *h, const mx_spec *spec, const mx_fault *faults, size_t n, double bits) {
  for (size_t i = 0; i < h->n_all && h->all[i].cost <= bits + RIVAL_BITS; i++) {
    const blame *b = &h->all[i];
    if (says_more(b, faults, n) || same_list(b->fault, b->n, faults, n) || is_far_fetched(b, faults, n)) continue;
    if (mxi_kernels_alike(&h->samples[h->largest], spec, faults, n, &b->spec, b->fault, b->n, h->e->until.lack)) continue;
    if (is_of_base(h, b, spec, faults, n)) continue;
    *out = *b;
    return 1;
  }
  return 0;
}

uint64_t mxi_larger_outside(const mx_sample *s, const blame *b) {
  const mx_region *g = &b->fault[0].region;
  uint64_t larger = 0;
  float most = 0;
  for (int counting = 0; counting < 2; counting++)
    for (size_t i = 0; i < s->rows * s->cols; i++) {
      const size_t row = i / s->cols, col = i % s->cols;
      const uint64_t at = g->of == MX_REGION_COLUMNS ? col : row;
      const float a = fabsf(s->x[row * s->ld + col]);
      const int in = g->modulus ? g->set[at % g->modulus] != 0 : at >= g->first && at <= g->last;
      if (!counting && in && isfinite(a) && a > most) most = a;
      larger += counting && isfinite(a) && a > most;
    }
  return larger;
}

int mxi_clips_at_the_data(const mx_sample *s, const blame *b) {
  char text[40];
  const float limit = fabsf((float)b->fault[0].number);
  if (b->fault[0].op != MX_FAULT_INPUT_CLIP || b->spec.tensor_norm == MX_TENSOR_NORM_NONE) return 0;
  snprintf(text, sizeof text, "%.2g", (double)limit);
  if (strtof(text, NULL) == limit) return 0; /* someone wrote it */
  for (size_t i = 0; i < s->rows * s->cols; i++)
    if (fabsf(s->x[i / s->cols * s->ld + i % s->cols]) == limit) return 1;
  return 0;
}

size_t mxi_largest_sample(const mx_sample *samples, size_t n) {
  size_t largest = 0;
  for (size_t i = 1; i < n; i++)
    if (samples[i].rows * samples[i].cols > samples[largest].rows * samples[largest].cols) largest = i;
  return largest;
}
