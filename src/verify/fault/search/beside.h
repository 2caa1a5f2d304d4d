/* Declares a spec with faults that was run once, in whose place others are run again and again: only the stages that differ. What is run is
 * taken off the effort. */
#ifndef MX_VERIFY_FAULT_SEARCH_BESIDE_H
#define MX_VERIFY_FAULT_SEARCH_BESIDE_H

#include "mxgold/identify.h"
#include "verify/fault/run.h"
#include "verify/fault/search/effort.h"

typedef struct kept_run {
  fault_run r;
  mx_spec spec;
  mx_fault faults[MX_FAULTS];
  size_t n, ld;
  const float *x, *amax;
  uint32_t *scales, *used, *trial_scales; /* after the last stage, and as the elements use them; of a trial */
  uint8_t *codes, *trial_codes;           /* after the last stage; of a trial */
  int ran;                                /* the spec refuses nothing */
  effort *e;
} kept_run;

/** Run spec with n faults on x [rows][cols], row stride ld, which must stay; amax: of the tensor, where x is a part of one, else NULL. Memory that runs
 *  out is noted. The caller closes it in any case. */
void mxi_kept_open(kept_run *k, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld, const float *amax,
                   const mx_fault *faults, size_t n, effort *e);
void mxi_kept_close(kept_run *k);
/** Are that all the bytes of the sample, the tensor scale among them? */
int mxi_kept_gives(const kept_run *k, const mx_sample *s);
/** Do other faults give the same scales and codes, and, where s is not NULL, its tensor scale? Of two runs that are refused, too. */
int mxi_kept_same(kept_run *k, const mx_sample *s, const mx_fault *faults, size_t n);

#endif
