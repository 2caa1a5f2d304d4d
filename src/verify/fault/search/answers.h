/* Declares the answers of a search: presets with faults that give every byte, the best of them and its rivals. */
#ifndef MX_VERIFY_FAULT_SEARCH_ANSWERS_H
#define MX_VERIFY_FAULT_SEARCH_ANSWERS_H

#include "verify/fault/search/search.h"
#include "verify/fault/search/view.h"

/* What a fault without a constant costs that is taken as the first of two, in bits. */
enum { BITS_OF_A_FAULT = 13 };
/* What a stored tensor scale says in favour of a fault of which nothing else depends: it is no scale at all, so every bit of it speaks. */
enum { BITS_OF_STORED = 32 };
/* Answers that are kept beside the best. */
enum { MOST_ANSWERS = 12 };

typedef struct hunt {
  const mx_sample *samples;
  size_t n, largest; /* the sample that is searched */
  blame *best;
  effort *e;
  blame all[MOST_ANSWERS]; /* every answer, by cost */
  size_t n_all;
  mx_fault tensor; /* of the tensor's maximum, that gives every byte */
  int n_tensor;    /* such faults: where there are several, the data say of none that it is the one */
} hunt;

/** Is there an answer that holds on other data too? */
static inline int sure(const blame *b) { return b->n && mxi_blame_confirmed(b); }

int mxi_same_fault(const mx_fault *f, const mx_fault *g);
/** Has a fault of the answer a number that was fitted? */
int mxi_has_number(const blame *b);
/** The faults become an answer if they give every byte, and cost less than the best or hardly more. */
void mxi_hunt_offer(hunt *h, const char *preset, const mx_spec *spec, const mx_fault *faults, size_t n, double cost, uint64_t held);
/** The first answer that is nearly as likely as one of so many bits, `spec` with n faults, and gives other bytes of other data. 0: none. */
int mxi_hunt_rival(blame *out, const hunt *h, const mx_spec *spec, const mx_fault *faults, size_t n, double bits);

/** Does the spec with the faults give every byte of sample s? With count, what the plain spec leaves is counted instead. */
int mxi_gives_all(const mx_sample *s, const mx_spec *spec, const mx_fault *faults, size_t n, blame *count, effort *e);
/** The same of a sample that is a part of a tensor whose largest magnitude is amax. */
int mxi_gives_part(const mx_sample *s, float amax, const mx_spec *spec, const mx_fault *faults, size_t n, effort *e);
/** For a tensor's maximum over a part: numbers beyond it, each of which another part would have held or not. So many bits say that it is this part. */
uint64_t mxi_larger_outside(const mx_sample *s, const blame *b);
/** Is the input clipped at a magnitude that the data have? Under a tensor scale that is a maximum of a part as well, whose larger numbers saturate. */
int mxi_clips_at_the_data(const mx_sample *s, const blame *b);
/** The sample of most elements. */
size_t mxi_largest_sample(const mx_sample *samples, size_t n);

#endif
