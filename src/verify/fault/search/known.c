/* Holds an answer over a preset that few know to presets that people know. */
#include "verify/fault/search/known.h"

#include <stdlib.h>
#include <string.h>

#include "verify/fault/search/bases.h"
#include "verify/trial/bases.h"
#include "verify/trial/keys.h"

int mxi_rival_of_base(blame *out, const hunt *h, const blame *best, rival_search *find) {
  const mx_sample *s = &h->samples[h->largest];
  mx_tensor t = {0};
  if (mxi_preset_well_known(best->preset) || s->scale_bytes != 1 || best->spec.had_size) return 0;
  mx_spec plain = best->spec;
  plain.nibble = MX_NIBBLE_LOW_FIRST;
  int found = 0;
  uint8_t *codes = noted(malloc(s->rows * s->cols + 1), h->e->until.lack);
  const mx_exec one = {.n_threads = 1};
  if (codes && !noted_status(mx_tensor_alloc(&t, s->rows, s->cols, &plain), h->e->until.lack) &&
      !mx_quantize(&t, s->x, s->rows, s->cols, s->ld, &plain, &one, NULL)) {
    mx_sample of_base = *s;
    for (size_t i = 0; i < s->rows * s->cols; i++) {
      const uint8_t *row = t.codes + i / s->cols * t.code_stride;
      const size_t c = i % s->cols;
      codes[i] = mx_elem_format(plain.elem)->bits > 4 ? row[c] : (uint8_t)(row[c / 2] >> (c % 2 * 4) & 15);
    }
    of_base.codes = codes;
    of_base.scales = t.scales;
    of_base.scale_rows = t.scale_rows;
    of_base.scale_cols = t.scale_cols;
    of_base.has_tensor_scale = t.has_tensor_scale;
    of_base.tensor_scale = t.tensor_scale;
    for (size_t i = 0; i < mx_preset_count() && !found; i++) {
      const mx_preset *row = mx_preset_at(i);
      mx_spec known;
      if (row->alias_of || !mxi_preset_well_known(row->name) || mx_preset_find(&known, row->name, NULL) || known.elem != plain.elem ||
          known.scale != plain.scale)
        continue;
      find(out, &of_base, 1, row->name, &plain, BITS_OF_A_PRESET, h->e->until);
      found = out->n && out->n + best->n <= MX_FAULTS;
      found =
          found && !mxi_kernels_alike_within(&of_base, &plain, &out->spec, out->fault, out->n, h->e->until.lack); /* else they are one answer */
      if (found) {
        memcpy(out->fault + out->n, best->fault, best->n * sizeof *best->fault);
        out->n += best->n;
      }
    }
  }
  mx_tensor_free(&t);
  free(codes);
  return found;
}

void mxi_prefer_known(hunt *h, blame *best) {
  for (size_t i = 0; i < mx_preset_count() && !mxi_preset_well_known(best->preset) && !best->spec.had_size; i++) {
    const mx_preset *row = mx_preset_at(i);
    base b;
    if (row->alias_of || !mxi_preset_well_known(row->name) || !mxi_fault_base_fits(&b, row, h->samples, h->n) ||
        b.spec.elem != best->spec.elem || b.spec.scale != best->spec.scale)
      continue;
    b.spec.nibble = best->spec.nibble;
    int all = 1;
    for (size_t k = 0; k < h->n && all; k++) all = mxi_gives_all(&h->samples[k], &b.spec, best->fault, best->n, NULL, h->e);
    if (all) best->preset = b.preset, best->spec = b.spec;
  }
}

static int gives_samples(hunt *h, const mx_spec *spec, const blame *b) {
  int all = !mx_spec_check(spec, NULL);
  for (size_t k = 0; k < h->n && all; k++) all = mxi_gives_all(&h->samples[k], spec, b->fault, b->n, NULL, h->e);
  return all;
}

void mxi_drop_needless_keys(hunt *h, blame *best) {
  mx_spec preset;
  if (mx_preset_find(&preset, best->preset, NULL)) return;
  for (size_t i = 0; mx_key_name(i); i++) {
    mx_spec t = best->spec;
    if (mxi_key_same(&t, &preset, i)) continue;
    mxi_key_copy(&t, &preset, i);
    if (t.nibble == best->spec.nibble && t.block_cols == best->spec.block_cols && t.block_rows == best->spec.block_rows &&
        t.had_size == best->spec.had_size && gives_samples(h, &t, best))
      best->spec = t;
  }
}
