/* Declares how an answer is said of the spec that was expected, where other presets give the same bytes too. */
#ifndef CLI_VERIFY_BESIDE_H
#define CLI_VERIFY_BESIDE_H

#include "cli/verify/samples.h"

/** An exact answer becomes the spec with the fewest keys that are not those of base, a preset of that name, and the same bytes of s; where base has other
 *  formats or another block it stays, and so does a preset where more than one key would differ. A fault over another preset is said over base if it gives
 *  the bytes over that as well. CLI_TROUBLE, said, if memory ran out. */
int answer_beside(mx_identity *id, const samples *s, const mx_spec *base, const char *name, int threads);
/** The kernel stores a tensor scale of 1, and the exact answer none: a preset that stores what it is given, with 1 given, is the answer if it gives the
 *  same bytes. CLI_TROUBLE, said, if memory ran out. */
int answer_with_given_scale(mx_identity *id, const samples *s, int threads);
/** The preset of a spec, NULL: it is none. */
const char *preset_of_spec(const mx_spec *spec);

#endif
