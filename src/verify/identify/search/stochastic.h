/* Declares the tests for stochastic rounding: whether there is any, how many random bits, what bias, and which seed. */
#ifndef MX_VERIFY_IDENTIFY_SEARCH_STOCHASTIC_H
#define MX_VERIFY_IDENTIFY_SEARCH_STOCHASTIC_H

#include "verify/identify/search/search.h"

/* What can be said without the seed. */
typedef struct random_facts {
  int bits_least, bits_most; /* counts of random bits that fit; 24 stands for 24 or more; 0: a bias hides it */
  int mode;                  /* MX_SR_* that fits best */
  double bias;               /* mean of (code stored - exact value), in steps of the format */
  uint64_t n;                /* elements that lie between two codes */
  uint64_t beyond;           /* of all elements: neither neighbour was stored */
  int biased;                /* more ups, or fewer, than the fractions give */
  char shared[64];           /* what has one random number each, as "row"; "": every element */
  int believable;            /* the draws are as likely as random ones are, neither too odd nor too regular */
} random_facts;

/** Counts draws over everything, under a spec with elem.round=sr whose seed does not matter. */
void mxi_random_estimate(random_facts *out, const observation *o, const mx_spec *spec);
/** Could the elements of ordinary blocks be drawn under spec, whatever its seed, as far as so few of them show? */
int mxi_random_elements_may_be(const search *s, const mx_spec *spec);
/** The same of the scales. */
int mxi_random_scales_may_be(const search *s, const mx_spec *spec);
/** Finds the seed (and for elements sr.mode, sr.bits, sr.source) with which spec gives the chosen ordinary blocks. It tries seeds that people use
 *  and all small ones: below 2^17 (many = 0), 2^20 (1) or all that can be searched (2). Returns 1 and changes spec if there is one. */
int mxi_random_solve(search *s, mx_spec *spec, int many);
/** Finds sr.mode and sr.bits (or amd_lfsr) again for the seed that spec has, after blocks have joined. */
int mxi_random_settle(search *s, mx_spec *spec);
/** Finds the seed of had.sign=fresh whose signs are signs[0 .. size/8). */
int mxi_random_solve_signs(uint64_t *seed, const uint8_t *signs, unsigned size, int n_threads);

#endif
