/* Runs a spec with faults once, and others in its place from the stage on in which they differ: most faults change one late stage, or nothing at all. */
#include "verify/fault/search/beside.h"

#include <stdlib.h>
#include <string.h>

#include "verify/fault/search/answers.h"

static int begin(fault_run *r, const kept_run *k, size_t rows, size_t cols, const mx_fault *faults, size_t n) {
  if (noted_status(mxi_fault_begin(r, &k->spec, k->x, rows, cols, k->ld, faults, n, NULL), k->e->until.lack)) return 0;
  if (k->amax) mxi_fault_set_tensor(&r->plan, r, r->amax = *k->amax);
  return 1;
}

static int make_blocks(fault_run *r, const kept_run *k) {
  return !noted_status(mxi_fault_blocks(r, NULL), k->e->until.lack) &&
         !(k->amax && noted_status(mxi_fault_set_amax(r, *k->amax), k->e->until.lack));
}

void mxi_kept_open(kept_run *k, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld, const float *amax,
                   const mx_fault *faults, size_t n, effort *e) {
  shortage *lack = e->until.lack;
  *k = (kept_run){.spec = *spec, .n = n, .ld = ld, .x = x, .amax = amax, .e = e};
  effort_spend(e, 3 * rows * cols);
  if (n) memcpy(k->faults, faults, n * sizeof *faults);
  fault_run *r = &k->r;
  if (!begin(r, k, rows, cols, k->faults, n) || !make_blocks(r, k)) return;
  const size_t blocks = r->down * r->across, cells = rows * cols;
  k->scales = noted(malloc((blocks + 1) * sizeof *k->scales), lack);
  k->used = noted(malloc((blocks + 1) * sizeof *k->used), lack);
  k->trial_scales = noted(malloc((blocks + 1) * sizeof *k->trial_scales), lack);
  k->codes = noted(malloc(cells + 1), lack);
  k->trial_codes = noted(malloc(cells + 1), lack);
  if (!k->scales || !k->used || !k->trial_scales || !k->codes || !k->trial_codes || mxi_fault_scales(r, k->scales)) return;
  memcpy(k->used, r->used, blocks * sizeof *k->used);
  mxi_fault_codes(r, k->codes, NULL, 0, SIZE_MAX);
  k->ran = mxi_fault_layout(r, k->codes, k->scales);
}

void mxi_kept_close(kept_run *k) {
  mxi_fault_close(&k->r);
  free(k->scales);
  free(k->used);
  free(k->trial_scales);
  free(k->codes);
  free(k->trial_codes);
  *k = (kept_run){0};
}

int mxi_kept_gives(const kept_run *k, const mx_sample *s) {
  const fault_run *r = &k->r;
  if (!k->ran || !mxi_same_tensor_scale(s, r)) return 0;
  for (size_t i = 0; i < r->down * r->across; i++)
    if (k->scales[i] != mxi_view_seen(s, r, i)) return 0;
  return !memcmp(k->codes, s->codes, r->rows * r->cols);
}

/* Are the faults of stages [first, end) the same in both lists? */
static int same_stages(const kept_run *k, const mx_fault *f, size_t n, int first, int end) {
  const mx_fault *at[2][MX_FAULTS];
  size_t count[2] = {0, 0};
  for (size_t i = 0; i < k->n; i++)
    if (mxi_fault_stage(&k->faults[i]) >= first && mxi_fault_stage(&k->faults[i]) < end) at[0][count[0]++] = &k->faults[i];
  for (size_t i = 0; i < n; i++)
    if (mxi_fault_stage(&f[i]) >= first && mxi_fault_stage(&f[i]) < end) at[1][count[1]++] = &f[i];
  int same = count[0] == count[1];
  for (size_t i = 0; same && i < count[0]; i++) same = mxi_same_fault(at[0][i], at[1][i]);
  return same;
}

/* Are the tensor's numbers and what the blocks are made of the same? */
static int same_before_blocks(const kept_run *k, const fault_run *r) {
  const fault_run *own = &k->r;
  return !r->groups && !own->groups && !r->straight && !own->straight && !memcmp(&r->amax, &own->amax, sizeof r->amax) &&
         !memcmp(&r->plan, &own->plan, sizeof r->plan) && !memcmp(r->x, own->x, r->rows * r->cols * sizeof *r->x);
}

static int moves(const mx_fault *f, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (mxi_fault_stage(&f[i]) == MX_STAGE_LAYOUT) return 1;
  return 0;
}

/* Compares the stages from the blocks on; same_before: r is the run that is kept, with other faults. */
static int same_from_blocks(kept_run *k, fault_run *r, const mx_fault *faults, size_t n, int same_before) {
  const size_t blocks = r->down * r->across;
  const int moved = moves(faults, n) || moves(k->faults, k->n);
  effort_spend(k->e, SCALE_WORTH * blocks);
  if (mxi_fault_scales(r, k->trial_scales)) return 0;
  if (!moved && memcmp(k->trial_scales, k->scales, blocks * sizeof *k->scales) != 0) return 0;
  const int same_used = same_before && !memcmp(r->used, k->used, blocks * sizeof *k->used);
  if (!moved && same_used && same_stages(k, faults, n, MX_STAGE_DIVISOR, MX_STAGE_COUNT)) return 1;
  for (size_t d = 0; d < r->down; d++) {
    const size_t from = d * r->block_rows * r->cols, end = from + r->block_rows * r->cols, cells = r->rows * r->cols;
    mxi_fault_codes(r, k->trial_codes, NULL, d, d + 1);
    effort_spend(k->e, r->block_rows * r->cols);
    if (!moved && memcmp(k->trial_codes + from, k->codes + from, (end < cells ? end : cells) - from) != 0) return 0;
  }
  return !moved || (mxi_fault_layout(r, k->trial_codes, k->trial_scales) && !memcmp(k->trial_scales, k->scales, blocks * sizeof *k->scales) &&
                    !memcmp(k->trial_codes, k->codes, r->rows * r->cols));
}

/* Of a run that is refused: is the other one, too? */
static int is_refused_too(const kept_run *k, const mx_fault *faults, size_t n) {
  kept_run other;
  mxi_kept_open(&other, &k->spec, k->x, k->r.rows, k->r.cols, k->ld, k->amax, faults, n, k->e);
  const int refused = !other.ran;
  mxi_kept_close(&other);
  return refused;
}

int mxi_kept_same(kept_run *k, const mx_sample *s, const mx_fault *faults, size_t n) {
  if (!k->ran) return is_refused_too(k, faults, n);
  if (same_stages(k, faults, n, 0, MX_STAGE_AMAX)) {
    mxi_fault_set(&k->r, faults, n);
    const int same = same_from_blocks(k, &k->r, faults, n, 1);
    mxi_fault_set(&k->r, k->faults, k->n);
    return same;
  }
  fault_run r;
  effort_spend(k->e, 2 * k->r.rows * k->r.cols);
  int same = begin(&r, k, k->r.rows, k->r.cols, faults, n);
  if (same && !(same_before_blocks(k, &r) && same_stages(k, faults, n, MX_STAGE_AMAX, MX_STAGE_COUNT)))
    same = make_blocks(&r, k) && (!s || mxi_same_tensor_scale(s, &r)) && same_from_blocks(k, &r, faults, n, 0);
  mxi_fault_close(&r);
  return same;
}
