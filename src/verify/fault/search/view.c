/* Runs a sample under one spec with faults in it. */
#include "verify/fault/search/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/elements.h"
#include "verify/trial/trial.h"

/* How many passes over the elements it costs to open a view up to the tensor's numbers, and then its blocks. */
enum { VIEW_BEGINS = 1, VIEW_OPENS = 1 };

int mxi_view_fits(const mx_spec *spec, const mx_sample *s) {
  return spec->scale_rule != MX_SCALE_RULE_HIF4 && spec->scale_rule != MX_SCALE_RULE_QUEST && spec->elem_round != MX_ROUND_SR &&
         spec->scale_round != MX_SCALE_ROUND_SR && !mx_spec_is_plain(spec) && !spec->tensor_given && mxi_sample_fits(spec, s);
}

int mxi_same_tensor_scale(const mx_sample *s, const fault_run *r) {
  const float made = r->plan.has_tensor_scale ? r->plan.tensor_scale : 1;
  return !s->has_tensor_scale || made == s->tensor_scale || (isnan(made) && isnan(s->tensor_scale));
}

uint32_t mxi_view_seen(const mx_sample *s, const fault_run *r, size_t k) {
  const size_t row = k / r->across * (s->scale_rows == s->rows ? r->block_rows : 1);
  uint32_t code = 0;
  memcpy(&code, (const uint8_t *)s->scales + (row * s->scale_cols + k % r->across) * s->scale_bytes, s->scale_bytes);
  return code;
}

/* Chooses block rows to examine: most of them with something wrong, spread over the data. */
static void choose_sample(view *v) {
  const fault_run *r = &v->r;
  enum { WRONG = VIEW_ROWS * 3 / 4 };
  size_t in[2] = {0, 0}, seen[2] = {0, 0};
  uint8_t *bad = noted(calloc(r->down + 1, 1), v->e->until.lack);
  if (!bad) return;
  for (size_t d = 0; d < r->down; d++) {
    for (size_t a = 0; a < r->across; a++) bad[d] |= v->scales[d * r->across + a] != v->seen[d * r->across + a];
    for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows && !bad[d]; row++)
      bad[d] = memcmp(v->codes + row * r->cols, v->s->codes + row * r->cols, r->cols) != 0;
    in[bad[d]]++;
  }
  for (size_t d = 0; d < r->down && v->n_sample < VIEW_ROWS; d++) {
    const size_t wanted = bad[d] ? WRONG : VIEW_ROWS - WRONG, at = seen[bad[d]]++;
    if (in[bad[d]] > wanted && at * wanted / in[bad[d]] == (at + 1) * wanted / in[bad[d]]) continue;
    v->sample[v->n_sample++] = d;
  }
  free(bad);
}

/* Do the input or the tensor's maximum under the faults depend on rows that are not examined? */
static int is_of_all_rows(const mx_spec *spec, const mx_fault *faults, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const int op = faults[i].op, before_blocks = mxi_fault_stage(&faults[i]) < MX_STAGE_TENSOR || mxi_fault_is_grouping(op);
    if (spec->tensor_norm != MX_TENSOR_NORM_NONE ? before_blocks : mxi_fault_reads_other_rows(op)) return 1;
  }
  return 0;
}

/* Begins a run of the first v->rows rows of the sample, with the tensor's numbers of all of them. */
static int begin_rows(view *v, const mx_spec *spec, const mx_sample *s) {
  shortage *lack = v->e->until.lack;
  fault_run *r = &v->r;
  const int part = v->rows < s->rows, all_rows = part && is_of_all_rows(spec, v->first, v->n_first);
  effort_spend(v->e, VIEW_BEGINS * (all_rows ? s->rows : v->rows) * s->cols);
  if (noted_status(mxi_fault_begin(r, spec, s->x, all_rows ? s->rows : v->rows, s->cols, s->ld, v->first, v->n_first, NULL), lack)) return 0;
  if (all_rows) {
    r->rows = v->rows;
    r->down = v->rows / r->block_rows;
  } else if (part && spec->tensor_norm != MX_TENSOR_NORM_NONE) {
    if (noted_status(mx_tensor_amax(&r->amax, s->x, s->rows, s->cols, s->ld, spec, &(mx_exec){.n_threads = 1}), lack)) return 0;
    mxi_fault_set_tensor(&r->plan, r, r->amax);
  }
  return 1;
}

/* With same_tensor a view is given up where the tensor scale is not the stored one. */
static int open_rows(view *v, const mx_spec *spec, const mx_sample *s, const mx_fault *faults, size_t n, size_t elements_most, int same_tensor,
                     effort *e) {
  shortage *lack = e->until.lack;
  *v = (view){.s = s, .e = e, .rows = s->rows, .n_first = n};
  size_t block_rows, block_cols;
  mx_spec_block(spec, s->rows, s->cols, &block_rows, &block_cols);
  enum { LEAST_ROWS = 128 }; /* as many as a tile of any layout has */
  const size_t unit = block_rows > LEAST_ROWS ? block_rows : LEAST_ROWS, whole = elements_most / (s->cols ? s->cols : 1) / unit * unit;
  const size_t most = whole ? whole : unit;
  if (s->rows * s->cols > elements_most && most < s->rows && LEAST_ROWS % block_rows == 0) v->rows = most;
  if (n) memcpy(v->first, faults, n * sizeof *faults);
  if (effort_over(e) || !begin_rows(v, spec, s)) return 0;
  if (same_tensor && !mxi_same_tensor_scale(s, &v->r)) return 0;
  effort_spend(e, VIEW_OPENS * v->rows * s->cols);
  if (noted_status(mxi_fault_blocks(&v->r, NULL), lack)) return 0;
  const size_t blocks = v->r.down * v->r.across, elements = v->rows * s->cols;
  v->seen = noted(malloc((blocks + 1) * sizeof *v->seen), lack);
  v->scales = noted(malloc((blocks + 1) * sizeof *v->scales), lack);
  v->trial_scales = noted(malloc((blocks + 1) * sizeof *v->trial_scales), lack);
  v->codes = noted(calloc(elements + 1, 1), lack);
  v->trial_codes = noted(malloc(elements + 1), lack);
  v->by_plain = noted(calloc(elements + 1, 1), lack);
  if (!v->seen || !v->scales || !v->trial_scales || !v->codes || !v->trial_codes || !v->by_plain) return 0;
  for (size_t k = 0; k < blocks; k++) v->seen[k] = mxi_view_seen(s, &v->r, k);
  if (mxi_fault_scales(&v->r, v->scales)) return 0;
  for (size_t k = 0; k < blocks; k++) v->scales_wrong += v->scales[k] != v->seen[k];
  /* Opens a view of the sample: first of one in so many rows, to count what is wrong; then of rows that are wrong. */
  const size_t step = mxi_view_step(v);
  for (size_t d = 0; d < v->r.down; d += step) {
    mxi_fault_codes(&v->r, v->codes, v->seen, d, d + 1);
    mxi_fault_codes(&v->r, v->by_plain, NULL, d, d + 1);
    for (size_t i = d * v->r.block_rows * s->cols; i < (d + 1) * v->r.block_rows * s->cols && i < elements; i++) {
      v->codes_wrong += v->codes[i] != s->codes[i];
      v->plain_wrong += v->by_plain[i] != s->codes[i];
      v->looked++;
    }
  }
  return 1;
}

int mxi_view_open(view *v, const mx_spec *spec, const mx_sample *s, const mx_fault *faults, size_t n, effort *e) {
  return open_rows(v, spec, s, faults, n, VIEW_ELEMENTS, 0, e);
}
int mxi_view_open_early(view *v, const mx_spec *spec, const mx_sample *s, const mx_fault *faults, size_t n, effort *e) {
  return open_rows(v, spec, s, faults, n, VIEW_ELEMENTS, 1, e);
}
int mxi_view_open_whole(view *v, const mx_spec *spec, const mx_sample *s, effort *e) { return open_rows(v, spec, s, NULL, 0, SIZE_MAX, 0, e); }

void mxi_view_all_codes(view *v) {
  if (v->n_sample) return;
  effort_spend(v->e, 2 * v->rows * v->s->cols);
  mxi_fault_codes(&v->r, v->codes, v->seen, 0, SIZE_MAX);
  mxi_fault_codes(&v->r, v->by_plain, NULL, 0, SIZE_MAX);
  v->codes_wrong = v->plain_wrong = 0;
  v->looked = v->rows * v->s->cols;
  for (size_t i = 0; i < v->looked; i++) {
    v->codes_wrong += v->codes[i] != v->s->codes[i];
    v->plain_wrong += v->by_plain[i] != v->s->codes[i];
  }
  choose_sample(v);
}

double *mxi_view_quotients(view *v) {
  const fault_run *r = &v->r;
  double *y = noted(malloc((r->rows * r->cols + 1) * sizeof *y), v->e->until.lack);
  effort_spend(v->e, r->rows * r->cols);
  for (size_t k = 0; k < r->down * r->across && y; k++) {
    const size_t d = k / r->across, a = k % r->across;
    fault_block b;
    mxi_fault_block(&b, r, d, a, v->seen[k]);
    for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
      for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++)
        y[row * r->cols + col] = mxi_fault_quotient(r, &b, row, col);
  }
  return y;
}

void mxi_view_close(view *v) {
  mxi_fault_close(&v->r);
  free(v->seen);
  free(v->scales);
  free(v->trial_scales);
  free(v->codes);
  free(v->trial_codes);
  free(v->by_plain);
  *v = (view){0};
}
