/* Declares which presets a search begins from: those that people know, and the best by several merits in turn. */
#ifndef MX_VERIFY_TRIAL_BASES_H
#define MX_VERIFY_TRIAL_BASES_H

#include <stddef.h>

#include "mxgold/spec.h"

/** Is it a preset that people know by name? Such names come first among presets that give the same bytes. */
int mxi_preset_well_known(const char *name);

/** Is item i a better base than item j by that merit? With j MXI_NO_BASE: may item i be a base by it at all? */
typedef int mxi_better_base(const void *items, size_t i, size_t j, int by);
#define MXI_NO_BASE ((size_t)-1)

/** Chooses of n items, behind those of out[0] to out[chosen - 1], the best of_each[by] by each merit in turn; none twice, the first of those that are
 *  alike, and at most `most` in all. Returns how many out then has. Threads: reentrant. */
size_t mxi_choose_bases(size_t *out, size_t chosen, size_t most, const void *items, size_t n, const size_t *of_each, int merits,
                        mxi_better_base *better);

/** A spec of a few keys over a preset that explains the scales of ordinary blocks without a fault. */
typedef struct keyed_spec {
  const char *preset;
  mx_spec spec;
  int keys; /* that are not the preset's */
} keyed_spec;
/* A key with its choice, in bits; so many keys are no accident. What a preset that few know costs beside one that people know. */
enum { BITS_OF_A_KEY = 10, FEW_KEYS = 3, BITS_OF_A_PRESET = 5 };

/** Bits of the keys by which the spec differs from the preset, more of a choice that no preset with these elements has, and those of the preset: a fault
 *  that is far likelier costs less. */
double mxi_bits_of_keys(const mx_spec *spec, const char *preset);

#endif
