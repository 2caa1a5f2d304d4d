/* Tells what an answer leaves open: keys under another value of which it gives every byte as well, and faults that do the same beside its own. */
#include <stdlib.h>
#include <string.h>

#include "verify/fault/elements.h"
#include "verify/fault/random.h"
#include "verify/fault/search/answers.h"
#include "verify/fault/search/beside.h"
#include "verify/fault/search/options.h"
#include "verify/fault/search/randoms.h"

/* Elements that are run at most, for keys and for faults: each that is open takes a run of all of the data. Half a second or so on a processor of 2020. */
static const uint64_t OPEN_WORK = UINT64_C(12000000);

/* Other values are run over the first rows first, of so many elements, which most do not give; and drawn data have so many. */
enum { FEW_ELEMENTS = 1 << 12, DRAWN_ELEMENTS = 1 << 14 };

/* The first rows of s, with the tensor's maximum as the faults leave it. 0 where the answer does not give them by themselves. */
static int first_rows(mx_sample *few, float *amax, const mx_sample *s, const mx_spec *spec, const mx_fault *faults, size_t n, effort *e) {
  size_t block_rows, block_cols;
  mx_spec_block(spec, s->rows, s->cols, &block_rows, &block_cols);
  const size_t rows = (FEW_ELEMENTS / s->cols / block_rows + 1) * block_rows, each = s->scale_rows == s->rows ? 1 : block_rows;
  fault_run r;
  *few = *s;
  if (rows >= s->rows) return 0;
  effort_spend(e, 3 * s->rows * s->cols);
  const int ran = !noted_status(mxi_fault_open(&r, spec, s->x, s->rows, s->cols, s->ld, faults, n, NULL), e->until.lack);
  *amax = r.amax;
  mxi_fault_close(&r);
  few->rows = rows;
  few->scale_rows = (rows + each - 1) / each;
  return ran && mxi_gives_part(few, *amax, spec, faults, n, e);
}

uint64_t mxi_find_open_keys(const mx_spec *spec, const mx_fault *faults, size_t n_faults, const mx_spec *other, const size_t *key,
                            size_t n_other, const mx_sample *samples, size_t n, deadline until) {
  effort e = {.left = OPEN_WORK, .until = until};
  uint64_t open = 0;
  mx_sample few;
  float amax = 0;
  for (size_t i = 0; i < n_faults; i++)
    if (mxi_fault_is_down(&faults[i])) return 0;
  const int looks = first_rows(&few, &amax, &samples[0], spec, faults, n_faults, &e);
  for (size_t i = 0; i < n_other && !effort_over(&e); i++) {
    const mx_spec *t = &other[i];
    if (open >> key[i] & 1 || (looks && !mxi_gives_part(&few, amax, t, faults, n_faults, &e))) continue;
    int all = 1;
    for (size_t k = 0; k < n && all; k++) all = mxi_gives_all(&samples[k], t, faults, n_faults, NULL, &e);
    if (all && !effort_over(&e)) open |= UINT64_C(1) << key[i];
  }
  return open;
}

/* An answer, in whose place others are run again and again: over the first rows, over every sample, over numbers that are drawn. */
enum { MOST_DRAWN = 8 };
typedef struct rerun {
  const mx_spec *spec;
  const mx_fault *faults;
  size_t n_faults;
  const mx_sample *samples;
  size_t n;
  mx_sample few, drawn;
  float amax;
  int looks;
  kept_run *of_few, *of_sample, *of_drawn; /* one; one a sample; one a kind: made where they are asked for, x is NULL until then */
  float *x[MOST_DRAWN];
  effort e;
} rerun;

static int rerun_open(rerun *r) {
  shortage *lack = r->e.until.lack;
  r->drawn = r->samples[0];
  if (r->drawn.rows * r->drawn.cols > DRAWN_ELEMENTS) r->drawn.rows = DRAWN_ELEMENTS / r->drawn.cols + 1;
  r->looks = first_rows(&r->few, &r->amax, &r->samples[0], r->spec, r->faults, r->n_faults, &r->e);
  r->of_few = noted(calloc(1, sizeof *r->of_few), lack);
  r->of_sample = noted(calloc(r->n, sizeof *r->of_sample), lack);
  r->of_drawn = noted(calloc(MOST_DRAWN, sizeof *r->of_drawn), lack);
  return r->of_few && r->of_sample && r->of_drawn;
}

static void rerun_close(rerun *r) {
  if (r->of_few) mxi_kept_close(r->of_few);
  for (size_t i = 0; r->of_sample && i < r->n; i++) mxi_kept_close(&r->of_sample[i]);
  for (size_t k = 0; r->of_drawn && k < MOST_DRAWN; k++) mxi_kept_close(&r->of_drawn[k]), free(r->x[k]);
  free(r->of_few);
  free(r->of_sample);
  free(r->of_drawn);
}

/* Do the faults give the sample, or the part of one whose largest magnitude is amax? The answer does, but of two codes of a NaN it may give the other. */
static int gives_sample(rerun *r, kept_run *k, const mx_sample *s, const float *amax, const mx_fault *faults, size_t n) {
  if (!k->x) mxi_kept_open(k, r->spec, s->x, s->rows, s->cols, s->ld, amax, r->faults, r->n_faults, &r->e);
  if (!mxi_kept_gives(k, s))
    return amax ? mxi_gives_part(s, *amax, r->spec, faults, n, &r->e) : mxi_gives_all(s, r->spec, faults, n, NULL, &r->e);
  return mxi_kept_same(k, s, faults, n);
}

static int gives(rerun *r, const mx_fault *faults, size_t n) {
  int all = !r->looks || gives_sample(r, r->of_few, &r->few, &r->amax, faults, n);
  for (size_t k = 0; k < r->n && all; k++) all = gives_sample(r, &r->of_sample[k], &r->samples[k], NULL, faults, n);
  return all && !effort_over(&r->e);
}

/* Do the faults give the bytes of the answer of other data as well? */
static int is_alike(rerun *r, const mx_fault *faults, size_t n) {
  for (size_t k = 0; k < MOST_DRAWN; k++) {
    kept_run *of = &r->of_drawn[k];
    size_t rows;
    if (!r->x[k] && !(r->x[k] = mxi_drawn_numbers(&rows, &r->drawn, r->spec, k, r->e.until.lack))) return 1; /* that was the last kind */
    if (!of->x) mxi_kept_open(of, r->spec, r->x[k], rows, r->drawn.cols, r->drawn.cols, NULL, r->faults, r->n_faults, &r->e);
    if (!mxi_kept_same(of, NULL, faults, n)) return 0;
  }
  return 1;
}

size_t mxi_find_alternatives(mx_alternative out[MX_ALTERNATIVES], const mx_spec *spec, const mx_fault *faults, size_t n_faults,
                             const mx_sample *samples, size_t n, deadline until) {
  rerun r = {.spec = spec, .faults = faults, .n_faults = n_faults, .samples = samples, .n = n, .e = {.left = OPEN_WORK, .until = until}};
  for (size_t i = 0; i < n_faults; i++)
    if (mxi_fault_is_down(&faults[i])) return 0;
  if (spec->had_size) return 0;
  option *o = noted(malloc(MOST_OPTIONS * sizeof *o), until.lack);
  const size_t count = o ? mxi_fault_options(o, MX_STAGE_INPUT, MX_STAGE_CODE, spec, samples[0].rows, samples[0].cols) : 0;
  size_t found = 0;
  const int opened = rerun_open(&r);
  for (size_t i = 0; i < n_faults && opened; i++) { /* a threshold that no number is equal to */
    mx_alternative a = {.n_faults = n_faults};
    memcpy(a.fault, faults, n_faults * sizeof *faults);
    if (!mxi_fault_is_threshold(faults[i].op)) continue;
    a.fault[i].op = faults[i].op == MX_FAULT_ELEMENT_BEYOND ? MX_FAULT_ELEMENT_THRESHOLD : MX_FAULT_ELEMENT_BEYOND;
    if (gives(&r, a.fault, n_faults) && found < MX_ALTERNATIVES) out[found++] = a;
  }
  for (size_t i = 0; i < n_faults && opened; i++) { /* random numbers of more bits than the data tell, or other low bits */
    mx_alternative a = {.n_faults = n_faults};
    memcpy(a.fault, faults, n_faults * sizeof *faults);
    for (int k = 0; mxi_fault_is_random(faults[i].op) && mxi_random_near(&a.fault[i], &faults[i], k); k++)
      if ((a.fault[i].format != faults[i].format || a.fault[i].number != faults[i].number) && found < MX_ALTERNATIVES &&
          gives(&r, a.fault, n_faults))
        out[found++] = a;
  }
  for (int beside = 1; beside >= 0 && opened; beside--) {
    if (beside ? n_faults == MX_FAULTS : n_faults != 1) continue;
    for (size_t i = 0; i < count && found < MX_ALTERNATIVES && !effort_over(&r.e); i++) {
      const mx_fault *f = &o[i].fault;
      const int is_short = mxi_option_is_short_reciprocal(&o[i]); /* of drawn blocks one in 500 tells it */
      mx_alternative a = {.n_faults = n_faults * (size_t)beside + 1};
      if ((!mxi_option_is_plain(&o[i]) && !is_short) || (n_faults && f->op == faults[0].op)) continue;
      a.fault[0] = *f;
      if (a.n_faults > 1) a.fault[1] = faults[0];
      if (a.n_faults > 1 && mx_fault_row_at(f->op)->stage >= mx_fault_row_at(faults[0].op)->stage) a.fault[0] = faults[0], a.fault[1] = *f;
      if (!gives(&r, a.fault, a.n_faults)) continue;
      if (!beside || is_short || !is_alike(&r, a.fault, a.n_faults)) out[found++] = a;
    }
  }
  rerun_close(&r);
  free(o);
  return found;
}
