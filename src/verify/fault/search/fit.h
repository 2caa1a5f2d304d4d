/* Declares how constants of faults are read off the data: the numbers under which every cell of the fitting half has the code that was seen, and the
 * plainest of them. */
#ifndef MX_VERIFY_FAULT_SEARCH_FIT_H
#define MX_VERIFY_FAULT_SEARCH_FIT_H

#include "verify/fault/search/view.h"

/* A number that was fitted, what it costs, and the least and the largest one that give the same. guessed: none of these is so plain that chance would
 * hardly put it there, so that another input may tell it from what the kernel has. */
typedef struct fitted {
  double bits, low, high;
  int guessed;
} fitted;

/** Fits the number of fault f over v, from the scales of wrong blocks (only_wrong) or of all. Returns 0 if none fits. */
int mxi_fit_scales(mx_fault *f, fitted *out, view *v, int only_wrong);
/** The same from the codes of the elements, under the stored scales: in the rows of v->sample, and a number that is guessed in all of them. */
int mxi_fit_codes(mx_fault *f, fitted *out, view *v, int only_wrong);

/** fit_place.c: reads a place or a code off the scales that are wrong, or a code off the elements that are: what most of them say. guess is
 *  set where other data may have codes that these have not. */
int mxi_fit_place(mx_fault *f, double *bits, const view *v);
int mxi_fit_code(mx_fault *f, double *bits, int *guess, const view *v);

/** Finds the columns, or places in memory, of which every code is zero where others are not. */
int mxi_fit_zero(mx_fault *f, double *bits, const view *v);

/** May the elements have been read from elsewhere, as fault f says? Signs of a few rows tell. */
int mxi_signs_allow(const mx_fault *f, const view *v);
/** Finds the row pitch under which the signs are those that were seen. */
int mxi_fit_pitch(mx_fault *f, double *bits, const view *v);

/** Fits a number that takes the place of max|X|, from the stored tensor scale: the plainest that gives it. */
int mxi_fit_tensor(mx_fault *f, double *bits, const view *v);
/** Finds a maximum of the tensor of which the stored tensor scale is made, right but for its last bits. 0: that does not say one; -1: there is none. */
int mxi_fit_maximum(float *amax, const view *v);
/** Fits the tensor scale that the scales of the blocks were computed with, where the stored one is that of the spec. */
int mxi_fit_tensor_scale(mx_fault *f, double *bits, const view *v);
/** May each so many rows have a tensor scale of their own, by the scales of the first and the last of them? */
int mxi_fits_rows(const mx_fault *f, const view *v);

#endif
