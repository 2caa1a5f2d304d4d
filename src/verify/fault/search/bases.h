/* Declares the presets over which faults are looked for. */
#ifndef MX_VERIFY_FAULT_SEARCH_BASES_H
#define MX_VERIFY_FAULT_SEARCH_BASES_H

#include "verify/fault/search/view.h"

enum { MOST_BASES = 8 };

typedef struct base {
  const char *preset;
  mx_spec spec;
  double extra;                   /* bits of keys that are not the preset's */
  double scales, codes, by_plain; /* shares that are wrong */
  uint64_t print;
  int of_zeros;     /* the code that all blocks of zeros have stored, where the spec gives them another one; -1: there is none */
  int other_tensor; /* the stored tensor scale is not that of the spec: only faults of the input and of the tensor's maximum may answer */
} base;

/** Run b->spec over the sample and fill in what it leaves. 0: it cannot be run. */
int mxi_fault_base_look_at(base *b, const mx_sample *s, effort *e);
/** The specs of a preset that the shapes allow: as it is, or a standard's with the blocks that there are. 0: none. */
int mxi_fault_base_fits(base *out, const mx_preset *preset, const mx_sample *samples, size_t n);
/** Presets that the shapes allow, those that give the same here once; or one of them (over). out has room for MXI_ROOM_FOR_BASES. */
#define MXI_ROOM_FOR_BASES (3 * mx_preset_count() + 1)
size_t mxi_fault_bases(base *out, const mx_sample *samples, size_t n, size_t largest, const char *over, effort *e);
/** The nearest ones. Where a fault leaves nothing right, as of the input, ranks say nothing: the nearest of those that people know comes first. */
size_t mxi_fault_bases_choose(size_t out[MOST_BASES], const base *b, size_t n);

#endif
