/* Chooses the presets that a search begins from. */
#include "verify/trial/bases.h"

#include <string.h>

#include "verify/trial/keys.h"

int mxi_preset_well_known(const char *name) {
  return !strncmp(name, "ocp-", 4) || !strcmp(name, "te-nvfp4") || !strcmp(name, "te-nvfp4-2d") || !strcmp(name, "nvfp4-plain");
}

/* What a choice costs that nobody is known to have made for these elements. */
enum { BITS_OF_A_RARE_KEY = 12 };

static int is_of_a_preset(const mx_spec *spec, size_t key) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    const mx_preset *row = mx_preset_at(i);
    mx_spec p;
    if (!row->alias_of && !mx_preset_find(&p, row->name, NULL) && p.elem == spec->elem && mxi_key_same(&p, spec, key)) return 1;
  }
  return 0;
}

double mxi_bits_of_keys(const mx_spec *spec, const char *preset) {
  mx_spec p;
  double bits = mxi_preset_well_known(preset) ? 0 : BITS_OF_A_PRESET;
  if (mx_preset_find(&p, preset, NULL)) return bits;
  for (size_t i = 0; mx_key_name(i); i++)
    if (!mxi_key_same(&p, spec, i)) bits += is_of_a_preset(spec, i) ? BITS_OF_A_KEY : BITS_OF_A_KEY + BITS_OF_A_RARE_KEY;
  return bits;
}

static int is_among(const size_t *list, size_t n, size_t item) {
  for (size_t i = 0; i < n; i++)
    if (list[i] == item) return 1;
  return 0;
}

size_t mxi_choose_bases(size_t *out, size_t chosen, size_t most, const void *items, size_t n, const size_t *of_each, int merits,
                        mxi_better_base *better) {
  for (int by = 0; by < merits; by++)
    for (size_t k = 0; k < of_each[by] && chosen < most; k++) {
      size_t best = MXI_NO_BASE;
      for (size_t i = 0; i < n; i++)
        if (!is_among(out, chosen, i) && better(items, i, MXI_NO_BASE, by) && (best == MXI_NO_BASE || better(items, i, best, by))) best = i;
      if (best != MXI_NO_BASE) out[chosen++] = best;
    }
  return chosen;
}
