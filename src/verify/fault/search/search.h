/* Declares the search for the faults over a preset that give every byte. */
#ifndef MX_VERIFY_FAULT_SEARCH_SEARCH_H
#define MX_VERIFY_FAULT_SEARCH_SEARCH_H

#include "mxgold/fault.h"
#include "mxgold/identify.h"
#include "verify/trial/deadline.h"

/* A preset with faults that gives every byte of every sample. */
typedef struct blame {
  const char *preset;
  mx_spec spec;
  mx_fault fault[MX_FAULTS];
  size_t n;                              /* of faults; 0: none was found */
  double cost;                           /* bits of what was chosen and of constants */
  uint64_t held;                         /* bits of the half that was not fitted on by which the answer is told from the preset */
  uint64_t codes, scales, tensor_scales; /* that differ from the plain preset, of all samples */
} blame;

/** Searches stage by stage: elements under the stored scales, and scales under the stored tensor scale. Samples of codes alone. over: only this
 *  preset is tried; NULL: the presets that come nearest. A number of elements bounds the work, and on a slow machine the clock; what has been found
 *  by then is the answer.   Oracle: tests/test_fault.c, tests/strangers. */
void mxi_find_faults(blame *out, const mx_sample *samples, size_t n, const char *over, deadline until);

/** Will the answer hold on other data too? The evidence that tells it from the preset must exceed its cost by so many bits. */
enum { BLAME_BITS = 20 };
static inline int mxi_blame_confirmed(const blame *b) { return (double)b->held >= b->cost + BLAME_BITS; }

#endif
