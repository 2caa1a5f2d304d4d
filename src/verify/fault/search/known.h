/* Declares how an answer over a preset that few know is held to presets that people know. */
#ifndef MX_VERIFY_FAULT_SEARCH_KNOWN_H
#define MX_VERIFY_FAULT_SEARCH_KNOWN_H

#include "verify/fault/search/answers.h"

/* mxi_find_rival(), which is behind this. */
typedef void rival_search(blame *out, const mx_sample *samples, size_t n, const char *preset, const mx_spec *spec, double bits, deadline until);

/** Over a preset that people know a fault of its own may give the bytes of the preset of an answer: then the two are a rival of it, in out. 0: none. */
int mxi_rival_of_base(blame *out, const hunt *h, const blame *best, rival_search *find);
/** Where the same faults over a preset that people know give these bytes as well, the data do not tell the two apart, and that is the likelier. */
void mxi_prefer_known(hunt *h, blame *best);
/** A key in which the answer differs from its preset, and which these bytes do not need, is not said: another input would tell it from the preset's. */
void mxi_drop_needless_keys(hunt *h, blame *best);

#endif
