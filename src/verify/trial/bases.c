/* Chooses the presets that a search begins from. */
#include "verify/trial/bases.h"

#include <string.h>

int mxi_preset_well_known(const char *name) {
  return !strncmp(name, "ocp-", 4) || !strcmp(name, "te-nvfp4") || !strcmp(name, "te-nvfp4-2d") || !strcmp(name, "nvfp4-plain");
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
