/* Declares a sample that was run under one spec with faults in it, and what is right and wrong in it, scales and elements separately. */
#ifndef MX_VERIFY_FAULT_SEARCH_VIEW_H
#define MX_VERIFY_FAULT_SEARCH_VIEW_H

#include "mxgold/fault.h"
#include "mxgold/identify.h"
#include "verify/fault/run.h"
#include "verify/fault/search/effort.h"

/* How many elements of a sample the search runs: those of its first rows. What is found is then run over all. */
enum { VIEW_ELEMENTS = 1 << 17, VIEW_ROWS = 12, VIEW_COUNTED = 8 };

typedef struct view {
  const mx_sample *s;
  effort *e;
  fault_run r;
  mx_fault first[MX_FAULTS];
  size_t n_first;
  size_t rows;                                     /* of the sample that are looked at */
  uint32_t *seen;                                  /* scales, [down][across] */
  uint32_t *scales, *trial_scales;                 /* of the run with `first`: as stored; of a trial */
  uint8_t *codes, *trial_codes;                    /* [rows][cols] under the scales that were seen */
  uint8_t *by_plain;                               /* codes under the scales of the run */
  uint64_t scales_wrong, codes_wrong, plain_wrong; /* blocks; elements under seen scales; under the run's own, of sampled rows */
  uint64_t looked;                                 /* elements in sampled rows */
  size_t sample[VIEW_ROWS], n_sample;              /* rows of blocks that trials look at first */
} view;

/** Can a kernel of that spec have made the shapes and codes? */
int mxi_view_fits(const mx_spec *spec, const mx_sample *s);
/** Run spec with n faults over the first rows of s. 0: it cannot be run, or the effort is spent; memory that runs out is noted. */
int mxi_view_open(view *v, const mx_spec *spec, const mx_sample *s, const mx_fault *faults, size_t n, effort *e);
/** The same of faults after which nothing changes the tensor scale any more: 0 too where it is not the stored one, since no answer follows. */
int mxi_view_open_early(view *v, const mx_spec *spec, const mx_sample *s, const mx_fault *faults, size_t n, effort *e);
/** The same over all rows, of the spec alone. */
int mxi_view_open_whole(view *v, const mx_spec *spec, const mx_sample *s, effort *e);
void mxi_view_close(view *v);
/** An open view has the codes of one row of blocks in so many. */
static inline size_t mxi_view_step(const view *v) { return v->r.down / VIEW_COUNTED + 1; }
/** The scale of block k that the sample has stored. */
uint32_t mxi_view_seen(const mx_sample *s, const fault_run *r, size_t k);
/** Does the run give the stored tensor scale, if one is stored? */
int mxi_same_tensor_scale(const mx_sample *s, const fault_run *r);
/** Makes the codes of all rows, once, with which every trial of an element is compared. */
void mxi_view_all_codes(view *v);
/** The quotient of each element, [rows][cols], under the scales that were seen, to be freed. NULL: memory ran out, which is noted. */
double *mxi_view_quotients(view *v);
/** Is the block one of those that are fitted to? One in two is, by a hash of its place. */
static inline int mxi_is_for_fit(size_t d, size_t a) {
  uint64_t h = (uint64_t)d * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)a * UINT64_C(0xC2B2AE3D27D4EB4F);
  h ^= h >> 29;
  h *= UINT64_C(0xBF58476D1CE4E5B9);
  return (h >> 40 & 1) != 0;
}

#endif
