/* Declares the search for the faults over a preset that give every byte. */
#ifndef MX_VERIFY_FAULT_SEARCH_SEARCH_H
#define MX_VERIFY_FAULT_SEARCH_SEARCH_H

#include "mxgold/fault.h"
#include "mxgold/identify.h"
#include "verify/trial/bases.h"
#include "verify/trial/deadline.h"

/* A preset with faults that gives every byte of every sample. */
typedef struct blame {
  const char *preset;
  mx_spec spec;
  mx_fault fault[MX_FAULTS];
  size_t n;                              /* of faults; 0: none was found */
  double cost;                           /* bits of what was chosen and of constants */
  uint64_t held;                         /* bits of the half that was not fitted on by which the answer is told from the preset */
  double least, most;                    /* the number of a fault is a guess: all between these give the same bytes; both 0: it is none */
  uint64_t codes, scales, tensor_scales; /* that differ from the plain preset, of all samples */
  mx_fault rival[MX_FAULTS];             /* other faults, over a preset, that give every byte of these data, and other bytes of other data */
  const char *rival_preset;
  size_t n_rival; /* 0: none that is nearly as likely */
} blame;

/** Searches stage by stage: elements under the stored scales, and scales under the stored tensor scale. Samples of codes alone. over: only this
 *  preset is tried; NULL: the presets that come nearest, and the n_keyed specs of keys. A number of elements bounds the work, and on a slow machine the clock; what has been found
 *  by then is the answer.   Oracle: tests/test_fault.c, tests/strangers. */
void mxi_find_faults(blame *out, const mx_sample *samples, size_t n, const char *over, const keyed_spec *keyed, size_t n_keyed, deadline until);

/** Finds the cheapest faults over the preset (NULL: over those that come nearest) that give every byte, as the spec of so many bits does, and other
 *  bytes than the spec on other data. out->n is 0 where none is nearly as likely. Only scales and elements are searched, not what moves. */
void mxi_find_rival(blame *out, const mx_sample *samples, size_t n, const char *preset, const mx_spec *spec, double bits, deadline until);

/** plain.c: finds one fault without a fitted number, everywhere, over the preset (NULL: a standard or one that people know), which gives every byte as the
 *  spec does, and other bytes than the spec on other data. With the keys by which the spec, of so many bits, differs from another preset, if that is given. out->n is 0 where
 *  there is none. It takes about as long as one run of the samples. */
void mxi_find_plain_rival(blame *out, const mx_sample *samples, size_t n, const char *preset, const mx_spec *spec, const char *keys_from,
                          double bits, deadline until);

/** open.c: the keys, a bit each, that the faults leave open: under one of n_other specs, each with another value of key[i], they give every byte of the
 *  samples as well.   Oracle: tests/test_fault.c. */
uint64_t mxi_find_open_keys(const mx_spec *spec, const mx_fault *faults, size_t n_faults, const mx_spec *other, const size_t *key,
                            size_t n_other, const mx_sample *samples, size_t n, deadline until);

/** open.c: faults without a number that may stand beside those of an answer, or in the place of its only one: they give every byte of the samples, and
 *  other bytes of other data; those in its place may be the same but for a few roundings. Returns how many, at most MX_ALTERNATIVES.   Oracle: tests/test_fault.c. */
size_t mxi_find_alternatives(mx_alternative out[MX_ALTERNATIVES], const mx_spec *spec, const mx_fault *faults, size_t n_faults,
                             const mx_sample *samples, size_t n, deadline until);

/** Will the answer hold on other data too? The evidence that tells it from the preset must exceed its cost by so many bits, and no other answer that
 *  costs hardly more may give the same bytes. */
enum { BLAME_BITS = 20 };
/** An answer that costs so many bits more is so many times less likely that it is no rival. */
enum { RIVAL_BITS = 10 };
static inline int mxi_blame_confirmed(const blame *b) { return !b->n_rival && (double)b->held >= b->cost + BLAME_BITS; }

/** rivals.c: do two kernels give the same bytes of data of every kind? Each is a spec with faults, run on numbers that are drawn for it: ordinary ones, tiny
 *  and huge ones, ties, powers of two, zeros of both signs. The shape is that of s, of many rows the first. Memory that runs out is noted. */
int mxi_kernels_alike(const mx_sample *s, const mx_spec *a, const mx_fault *a_faults, size_t n_a, const mx_spec *b, const mx_fault *b_faults,
                      size_t n_b, shortage *lack);
/** The numbers of the k-th such kind, of as many rows and the columns of s, to be freed. NULL: there are no more kinds, or memory ran out. */
float *mxi_drawn_numbers(size_t *rows, const mx_sample *s, const mx_spec *spec, size_t k, shortage *lack);
/** Does spec a give the same bytes as b with faults of numbers that do not reach the ends of the range, without a zero that has a sign? */
int mxi_kernels_alike_within(const mx_sample *s, const mx_spec *a, const mx_spec *b, const mx_fault *b_faults, size_t n_b, shortage *lack);

#endif
