/* Refutes faults of early stages in a few rows of a sample. Where there is a tensor scale, the stored one says what the maximum was. */
#include "verify/fault/search/refute.h"

#include <math.h>
#include <stdlib.h>

#include "verify/fault/search/fit.h"

/* So many elements; and a tile of the largest rotation. */
enum { FEW_ELEMENTS = 1 << 12, TILE = 128 };

/* The tensor's maximum alone takes as long as a run of so many times fewer elements. */
enum { MAXIMA_OF_A_RUN = 8 };

/* Of the blocks so many may be wrong where a fault is right: the maximum is known but for its last bits, and what is read from other rows is missing. */
enum { LET_PASS_ONE_IN = 64, LET_PASS = 2 };

static size_t row_of_largest(const mx_sample *s) {
  size_t row = 0;
  float most = 0;
  for (size_t i = 0; i < s->rows; i++)
    for (size_t c = 0; c < s->cols; c++) {
      const float a = fabsf(s->x[i * s->ld + c]);
      if (a > most && isfinite(a)) most = a, row = i;
    }
  return row;
}

/* Runs the spec with a fault, or none, over the rows; the tensor's maximum is given. Returns 0 if it cannot be run. */
static int run(fault_run *r, few_rows *w, const refuter *by, const mx_fault *f, float amax) {
  const mx_sample *s = by->plain->s;
  effort *e = by->plain->e;
  effort_spend(e, 3 * w->rows * w->cols);
  if (noted_status(mxi_fault_begin(r, by->spec, s->x + w->row * s->ld + w->col, w->rows, w->cols, s->ld, f, f != NULL, NULL), e->until.lack))
    return 0;
  if (by->spec->tensor_norm != MX_TENSOR_NORM_NONE) r->amax = amax;
  return !noted_status(mxi_fault_blocks(r, NULL), e->until.lack) && !mxi_fault_scales(r, w->scales);
}

/* Blocks that are left wrong: their scales, their elements under the stored scales, either under the run's own scales where it is so without the fault. */
typedef struct left {
  size_t scales, codes, blocks;
} left;

/* Makes the codes of one row of blocks and counts; learns which blocks are wrong without a fault. */
static void count_row(left *l, few_rows *w, const mx_sample *s, const fault_run *r, size_t d, int learns) {
  mxi_fault_codes(r, w->codes, w->seen, d, d + 1);
  mxi_fault_codes(r, w->by_plain, NULL, d, d + 1);
  for (size_t a = 0; a < r->across; a++) {
    const size_t k = d * r->across + a;
    const int of_scale = w->scales[k] != w->seen[k];
    int of_codes = 0, of_plain = of_scale;
    if (r->stats[k].has_nan || r->stats[k].has_inf) continue;
    for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
      for (size_t c = a * r->block_cols; c < r->cols && c < (a + 1) * r->block_cols; c++) {
        const uint8_t seen = s->codes[(w->row + row) * s->cols + w->col + c];
        of_codes |= w->codes[row * r->cols + c] != seen;
        of_plain |= w->by_plain[row * r->cols + c] != seen;
      }
    l->scales += (size_t)of_scale;
    l->codes += (size_t)of_codes;
    l->blocks += of_plain && w->wrong[k];
    if (learns) w->wrong[k] = (uint8_t)of_plain;
  }
}

static void few_open(few_rows *w, const refuter *by, int tiles, size_t row_of_largest) {
  const mx_sample *s = by->plain->s;
  const fault_run *of = &by->plain->r;
  shortage *lack = by->plain->e->until.lack;
  const size_t wanted = tiles ? TILE : FEW_ELEMENTS / s->cols, n = (wanted > of->block_rows ? wanted / of->block_rows : 1) * of->block_rows;
  w->cols = tiles && s->cols > TILE ? TILE : s->cols;
  if (n * w->cols * 2 > s->rows * s->cols || n > s->rows || (w->cols != s->cols && w->cols % of->block_cols)) return;
  w->row = row_of_largest / n * n;
  w->rows = s->rows - w->row < n ? s->rows - w->row : n;
  const size_t down = (w->rows + of->block_rows - 1) / of->block_rows, across = (w->cols + of->block_cols - 1) / of->block_cols;
  w->seen = noted(malloc((down * across + 1) * sizeof *w->seen), lack);
  w->scales = noted(malloc((down * across + 1) * sizeof *w->scales), lack);
  w->wrong = noted(calloc(down * across + 1, 1), lack);
  w->codes = noted(malloc(w->rows * w->cols + 1), lack);
  w->by_plain = noted(malloc(w->rows * w->cols + 1), lack);
  if (!w->seen || !w->scales || !w->wrong || !w->codes || !w->by_plain) return;
  for (size_t k = 0; k < down * across; k++)
    w->seen[k] = mxi_view_seen(s, of, (w->row / of->block_rows + k / across) * of->across + k % across);
  fault_run r;
  left l = {0};
  w->refutes = run(&r, w, by, NULL, of->amax);
  for (size_t d = 0; d < r.down && w->refutes; d++) count_row(&l, w, s, &r, d, 1);
  mxi_fault_close(&r);
}

static void few_close(few_rows *w) {
  free(w->seen);
  free(w->scales);
  free(w->wrong);
  free(w->codes);
  free(w->by_plain);
}

/* Do the rows leave too much wrong with the fault? */
static int refuted_in(few_rows *w, const refuter *by, const mx_fault *f, float amax) {
  if (!w->refutes) return 0;
  fault_run r;
  left l = {0};
  int refuted = 0;
  const int runs = run(&r, w, by, f, amax);
  const size_t most = r.down * r.across / LET_PASS_ONE_IN + LET_PASS;
  for (size_t d = 0; runs && d < r.down && !refuted; d++) {
    count_row(&l, w, by->plain->s, &r, d, 0);
    refuted = l.scales > most && l.codes > most && l.blocks > most;
  }
  mxi_fault_close(&r);
  return refuted;
}

/* Does the fault of the tensor's maximum give another tensor scale than the stored one? The input, which it leaves alone, is read once for all of them. */
static int gives_other_tensor(refuter *by, const mx_fault *f) {
  const mx_sample *s = by->plain->s;
  effort *e = by->plain->e;
  fault_run *r = &by->all;
  if (!by->has_all) {
    effort_spend(e, s->rows * s->cols);
    by->has_all = noted_status(mxi_fault_begin(r, by->spec, s->x, s->rows, s->cols, s->ld, NULL, 0, NULL), e->until.lack) ? -1 : 1;
  }
  if (by->has_all < 0) return 0;
  effort_spend(e, s->rows * s->cols / MAXIMA_OF_A_RUN);
  mxi_fault_set(r, f, 1);
  int other = 0;
  if (!noted_status(mxi_fault_tensor_amax(r, s->x, s->ld), e->until.lack)) {
    mxi_fault_set_tensor(&r->plan, r, r->amax);
    other = !mxi_same_tensor_scale(s, r);
  }
  mxi_fault_set(r, NULL, 0);
  return other;
}

void mxi_refuter_open(refuter *by, const view *plain, const mx_spec *spec, int other_tensor) {
  *by = (refuter){.plain = plain, .spec = spec, .other_tensor = other_tensor};
  by->has_maximum = mxi_fit_maximum(&by->maximum, plain);
  if (spec->tensor_norm != MX_TENSOR_NORM_NONE && !by->has_maximum) return;
  const size_t row = row_of_largest(plain->s);
  few_open(&by->rows, by, 0, row);
  few_open(&by->tiles, by, 1, row);
}

void mxi_refuter_close(refuter *by) {
  few_close(&by->rows);
  few_close(&by->tiles);
  if (by->has_all) mxi_fault_close(&by->all);
  *by = (refuter){0};
}

int mxi_refuted(refuter *by, const mx_fault *f) {
  const int stage = mxi_fault_stage(f), of_maximum = stage == MX_STAGE_TENSOR_AMAX;
  const float amax = stage < MX_STAGE_TENSOR ? by->maximum : by->plain->r.amax;
  if (stage < MX_STAGE_TENSOR && by->has_maximum < 0) return 1;
  if (of_maximum && by->plain->s->has_tensor_scale && !by->other_tensor) return 1;                             /* it does nothing here */
  if (mxi_fault_is_grouping(f->op) || (stage < MX_STAGE_TENSOR_AMAX && !mxi_fault_is_everywhere(f))) return 0; /* it has a place in the whole */
  if (f->op == MX_FAULT_ROTATION_DOWN) return refuted_in(&by->tiles, by, f, amax);
  /* What the rows read from beyond their ends is missing in a block or two; numbers that were in a format need the largest one, which is here. */
  if (mxi_fault_reads_other_rows(f->op) && f->op != MX_FAULT_INPUT_COLUMN && f->op != MX_FAULT_INPUT_SCALED_FORMAT) return 0;
  return refuted_in(&by->rows, by, f, amax) || (of_maximum && gives_other_tensor(by, f));
}
