/* Tries scales of one input with elements of another: a maximum that is taken before the rotation, a rotation that the elements did not go through. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/base.h"

/* Runs block rows [first, end) of part i with scales made from xs and elements from xe, both [rows][cols]. With `codes` the elements are made too.
 * Returns 0 if there is no such run. */
static int run_mixed(const base *b, size_t i, const float *xs, const float *xe, float amax, trial_run *out, size_t first, size_t end,
                     int codes) {
  const part *p = &b->parts[i];
  mx_spec run = b->spec;
  mx_plan plan;
  run.flush = MX_SWITCH_OFF; /* done */
  if (!p->stats || mxi_plan_init(&plan, &run, p->rows, p->cols, NULL)) return 0;
  mxi_plan_set_amax(&plan, amax);
  for (size_t d = first; d < p->down && d < end; d++)
    for (size_t a = 0; a < p->across; a++) {
      const size_t k = d * p->across + a, row = d * p->block_rows, col = a * p->block_cols;
      const size_t down = row + p->block_rows < p->rows ? row + p->block_rows : p->rows,
                   across = col + p->block_cols < p->cols ? col + p->block_cols : p->cols;
      mx_block_stats st = {0};
      mx_block_scale s;
      for (size_t r = row; r < down; r++)
        for (size_t c = col; c < across; c++) mx_block_stats_add(&st, xs[r * p->cols + c]);
      st.amax = st.has_inf ? INFINITY : st.amax_finite;
      if (mxi_block_scale_find(&s, &plan, &st, 0, k)) return 0;
      out->scales[i][k] = s.code;
      for (size_t r = row; r < down && codes; r++)
        for (size_t c = col; c < across; c++)
          out->codes[i][r * p->cols + c] = (uint8_t)mxi_element_code(&plan, &s, xe[r * p->cols + c], r * p->cols + c);
    }
  return 1;
}

/* On a few rows one code or scale in so many may be wrong. A larger share costs full runs of causes that are not the bug; a smaller one loses a
 * bug that comes with another. */
enum { SAMPLE_ONE_IN = 20 };

/* The scales of a few rows, and then their codes as well: are most of them right? */
static int is_promising(const base *b, float *const *xs, float *const *xe, const float *amax, trial_run *run) {
  for (int codes = 0; codes < 2; codes++) {
    uint64_t left = 0, all = 0;
    for (size_t k = 0; k < b->n_rows; k++) {
      const size_t i = b->rows[k].part, d = b->rows[k].row;
      const part *p = &b->parts[i];
      if (!run_mixed(b, i, xs[i], xe[i], amax[i], run, d, d + 1, codes)) return 0;
      const leaves l = mxi_run_left(b, i, codes ? run->codes[i] : p->codes, run->scales[i], d, d + 1);
      left += codes ? left_total(l) : l.scales;
      all += codes ? p->block_rows * p->cols : p->across;
    }
    if (left * SAMPLE_ONE_IN > all) return 0;
  }
  return 1;
}

static int tensor_scale_left(const base *b, size_t i, float amax) {
  const part *p = &b->parts[i];
  float made = 1;
  if (!p->s->has_tensor_scale) return 0;
  if (p->has_tensor_scale && mx_tensor_scale(&made, amax, &b->spec)) return 1;
  return made != p->s->tensor_scale;
}

void mxi_mixed_bugs(candidate *best, const base *b, float *const *x, int rotated, const char *text) {
  static const mxi_bug names[2][2] = {{BUG_SCALES_OF_THE_INPUT_ELEMENTS_OF_ANOTHER, BUG_ELEMENTS_OF_THE_INPUT_SCALES_OF_ANOTHER},
                                      {BUG_AMAX_BEFORE_THE_ROTATION, BUG_ELEMENTS_NOT_ROTATED}};
  static const char *const words[2][2] = {
      {", for the elements alone: the scales are those of the input as it was",
       ", for the scales alone: the elements are those of the input as it was"},
      {", for the elements alone: the scales are those of the input as it was (the maximum is taken before the rotation)",
       ", for the scales alone: the elements are those of the input as it was (they are not rotated)"}};
  trial_run run;
  const int tensors = b->spec.tensor_norm != MX_TENSOR_NORM_NONE;
  float **own = noted(calloc(b->n + 1, sizeof *own), b->lack), *amax = noted(calloc(b->n + 1, sizeof *amax), b->lack);
  if (!own || !amax || !b->parts[0].stats || !mxi_run_open(&run, b)) {
    free(own);
    free(amax);
    return;
  }
  for (size_t i = 0; i < b->n; i++) own[i] = b->parts[i].x;
  for (int how = 0; how < 2 << tensors && !is_found(best); how++) {
    const int of_scales = how & 1, other_amax = how >> 1; /* which of them is changed; whether the tensor's maximum is that of the elements */
    float *const *xs = of_scales ? x : own, *const *xe = of_scales ? own : x;
    candidate c = {.name = mxi_bug_names[names[rotated][of_scales]]};
    for (size_t i = 0; i < b->n; i++) {
      const part *p = &b->parts[i];
      const float *from = other_amax ? xe[i] : xs[i];
      amax[i] = p->amax;
      if (tensors && from != own[i])
        noted_status(mx_tensor_amax(&amax[i], from, p->rows, p->cols, p->cols, &b->spec, &(mx_exec){.n_threads = b->n_threads}), b->lack);
    }
    if (!is_promising(b, xs, xe, amax, &run)) continue;
    int ok = 1;
    for (size_t i = 0; i < b->n && ok; i++) {
      ok = run_mixed(b, i, xs[i], xe[i], amax[i], &run, 0, SIZE_MAX, 1);
      const leaves l = mxi_run_left(b, i, run.codes[i], run.scales[i], 0, SIZE_MAX);
      c.l.codes += l.codes;
      c.l.scales += l.scales;
      c.l.tensor_scales += (uint64_t)tensor_scale_left(b, i, amax[i]);
    }
    snprintf(c.text, sizeof c.text, "%s%s%s", text, words[rotated][of_scales],
             !tensors || !other_amax ? ""
             : of_scales             ? "; so is the tensor's maximum"
                                     : "; the tensor's maximum is that of the rotated or changed values");
    if (ok) mxi_offer(best, b, &c);
  }
  mxi_run_close(&run, b);
  free(own);
  free(amax);
}
