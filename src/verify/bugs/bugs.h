/* Declares the search for kernels that follow no spec: a preset run again with one known bug in it. */
#ifndef MX_VERIFY_BUGS_BUGS_H
#define MX_VERIFY_BUGS_BUGS_H

#include "verify/trial/bases.h"
#include "verify/trial/deadline.h"
#include "mxgold/verify.h"

/** Searches for faults over a preset that give every byte and hold on the half of the data that they were not fitted to. Returns 1 and fills
 *  *out; or 0 if there are none (out->name is NULL), or if they only fit these data (out->name says which). keyed: specs that are tried beside the
 *  presets.   Oracle: tests/test_fault.c, tests/strangers. */
int mxi_name_faults(mx_bug *out, const keyed_spec *keyed, size_t n_keyed, const mx_sample *samples, size_t n, deadline until);

/** The same, and known bugs as mxi_name_bug() where faults do not hold or keys of a spec may say them. Returns 1 if *bug is the cause, which gives every
 *  byte (it may only fit, with a number that was learned); else *faulty has the faults that were found, and *bug what mxi_name_bug() says. Each search takes at most so many seconds. */
int mxi_name_cause(mx_bug *bug, mx_bug *faulty, const keyed_spec *keyed, size_t n_keyed, const mx_sample *samples, size_t n, int n_threads,
                   double seconds, deadline until);

/** Searches for a fault over a preset that gives every byte, as the spec of so many bits does, and other bytes than the spec on other data.
 *  Returns 1 and fills *out, or 0; 2: it is so much likelier than the spec, of rare_bits if rare choices count as such, that the spec is no rival of it.
 *  The work is a small part of that of mxi_name_faults().   Oracle: tests/test_fault.c. */
int mxi_rival_of_spec(mx_bug *out, const mx_spec *spec, double bits, double rare_bits, const mx_sample *samples, size_t n, deadline until);

/** The same of one plain fault over the preset, or over one that people know (NULL), which is soon looked for. keys_from: the preset whose keys the spec
 *  differs in, for which the preset of the fault has the spec's; or NULL. */
int mxi_plain_rival_of_spec(mx_bug *out, const mx_spec *spec, double rare_bits, const char *preset, const char *keys_from,
                            const mx_sample *samples, size_t n, deadline until);

/** The keys that the faults of a bug leave open, a bit each: under one of n_other specs, each with another value of key[i], they give every byte too. */
uint64_t mxi_open_keys_of_bug(const mx_bug *b, const mx_spec *other, const size_t *key, size_t n_other, const mx_sample *samples, size_t n,
                              deadline until);

/** What else gives every byte as the spec with the faults does, and other bytes of other data: faults beside them, or in the place of the only one. */
size_t mxi_alternatives(mx_alternative out[MX_ALTERNATIVES], const mx_spec *spec, const mx_fault *faults, size_t n_faults,
                        const mx_sample *samples, size_t n, deadline until);

/** Finds the preset with the fewest differing codes and scales among all that the shapes allow, and the bug over any of them with which it gives
 *  every byte, or leaves less than one in fifty of what the plain preset leaves. Samples of codes alone. Returns 1 if the bug gives every byte, 0 if
 *  a spec may be the better explanation or none was found. over: of this preset alone; NULL: of all. Oracle: tests/mutants, tests/test_bugs.c. */
int mxi_name_bug(mx_bug *out, const mx_sample *samples, size_t n, const char *over, int n_threads, deadline until);

/** The numbers among the faults of a bug that were read off the data; returns how many. */
size_t mxi_bug_numbers(double out[MX_FAULTS], const mx_bug *bug);

#endif
