/* Finds a plain fault over a preset that people know with the bytes of an answer that few would give: a fitted number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/search/answers.h"
#include "verify/fault/search/bases.h"
#include "verify/fault/search/options.h"
#include "verify/trial/bases.h"
#include "verify/trial/keys.h"

/* A fault is run over so many rows first, in which something is wrong without it, and over all if these are right. */
enum { FEW_ROWS = 2 };

/* Elements that are run at most: a few hundred faults over a few rows, and some over all of the data. */
static const uint64_t PLAIN_WORK = UINT64_C(8000000);

/* A few rows that the preset alone does not give; 0 if it gives all. */
static int wrong_rows(mx_sample *few, const mx_sample *s, float amax, const mx_spec *spec, effort *e) {
  size_t block_rows, block_cols;
  mx_spec_block(spec, s->rows, s->cols, &block_rows, &block_cols);
  const size_t n = block_rows > FEW_ROWS ? block_rows : FEW_ROWS, down = s->scale_rows == s->rows ? 1 : block_rows;
  for (size_t row = 0; row < s->rows && n % block_rows == 0; row += n) {
    *few = *s;
    few->rows = s->rows - row < n ? s->rows - row : n;
    few->x += row * s->ld;
    few->codes += row * s->cols;
    few->scales = (const uint8_t *)s->scales + row / down * s->scale_cols * s->scale_bytes;
    few->scale_rows = (few->rows + down - 1) / down;
    if (!mxi_gives_part(few, amax, spec, NULL, 0, e)) return 1;
  }
  return 0;
}

static int gives_every_byte(const mx_sample *samples, size_t n, const mx_spec *spec, const mx_fault *f, effort *e) {
  for (size_t i = 0; i < n; i++)
    if (!mxi_gives_all(&samples[i], spec, f, 1, NULL, e)) return 0;
  return 1;
}

/* Under keys only a fault that many kernels have, or that makes the whole much likelier than so many bits, is looked for. */
static int over(blame *out, const base *b, const mx_sample *samples, size_t n, const mx_spec *spec, double bits, effort *e) {
  option *o = noted(malloc(MOST_OPTIONS * sizeof *o), e->until.lack);
  const mx_sample *s = &samples[0];
  mx_sample few;
  float amax = 0;
  int ran = o && (!b->spec.tensor_norm ||
                  !noted_status(mx_tensor_amax(&amax, s->x, s->rows, s->cols, s->ld, &b->spec, &(mx_exec){.n_threads = 1}), e->until.lack));
  ran = ran && wrong_rows(&few, s, amax, &b->spec, e);
  const size_t count = ran ? mxi_fault_options(o, MX_STAGE_TENSOR, MX_STAGE_CODE, &b->spec, s->rows, s->cols) : 0;
  for (size_t i = 0; i < count && !out->n_rival && !effort_over(e); i++) {
    const mx_fault *f = &o[i].fault;
    const int of_tensor = mx_fault_row_at(f->op)->stage == MX_STAGE_TENSOR;
    const double cost = mxi_option_cost(&o[i], 4) + b->extra;
    if (!mxi_option_is_plain(&o[i]) || (of_tensor && !b->spec.tensor_norm)) continue;
    if (bits > 0 && !o[i].common && cost + RIVAL_BITS >= bits) continue;
    if (!mxi_gives_part(&few, amax, &b->spec, f, 1, e) || !gives_every_byte(samples, n, &b->spec, f, e)) continue;
    if (mxi_kernels_alike(s, spec, NULL, 0, &b->spec, f, 1, e->until.lack)) continue;
    if (out->n && mxi_kernels_alike(s, &out->spec, out->fault, 1, &b->spec, f, 1, e->until.lack)) continue;
    if (out->n) { /* the two are rivals */
      out->rival[0] = *f, out->rival_preset = b->preset, out->n_rival = 1;
      break;
    }
    *out = (blame){.preset = b->preset, .spec = b->spec, .fault = {*f}, .n = 1, .cost = cost};
    for (size_t k = 0; k < n; k++) mxi_gives_all(&samples[k], &b->spec, NULL, 0, out, e);
  }
  if (out->n && effort_over(e)) out->cost = INFINITY; /* not all was looked at: it is a rival, and no answer */
  free(o);
  return out->n != 0;
}

static int is_known(const mx_preset *row) { return mxi_preset_well_known(row->name) || row->status == MX_PRESET_STANDARD; }

/* The keys by which the spec differs from a preset are those of b as well, but for a factor, which stands for a fault of the scales. 0: it cannot have them. */
static int take_keys(base *b, const mx_spec *spec, const mx_spec *from) {
  mx_spec keys = *spec;
  keys.elem_prescale = from->elem_prescale;
  for (size_t i = 0; mx_key_name(i); i++)
    if (!mxi_key_same(&keys, from, i)) mxi_key_copy(&b->spec, &keys, i), b->extra += BITS_OF_A_KEY;
  return !mx_spec_check(&b->spec, NULL);
}

void mxi_find_plain_rival(blame *out, const mx_sample *samples, size_t n, const char *preset, const mx_spec *spec, const char *keys_from,
                          double bits, deadline until) {
  effort e = {.left = PLAIN_WORK, .until = until};
  mx_spec from;
  *out = (blame){.n = 0};
  if (keys_from && mx_preset_find(&from, keys_from, NULL)) return;
  if (!n || !samples[0].codes || spec->had_size) return;
  for (size_t i = 0; i < mx_preset_count() && !effort_over(&e); i++) {
    const mx_preset *row = mx_preset_at(i);
    base b;
    if (row->alias_of || (preset ? strcmp(row->name, preset) != 0 : !is_known(row))) continue;
    if (!mxi_fault_base_fits(&b, row, samples, n) || b.spec.elem != spec->elem) continue;
    b.spec.nibble = spec->nibble;
    if (keys_from && !take_keys(&b, spec, &from)) continue;
    if (over(out, &b, samples, n, spec, keys_from ? bits : 0, &e)) return;
  }
}
