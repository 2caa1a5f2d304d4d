/* Declares what a page says of where its figures come from, within a list <dl> that the page has begun. */
#ifndef CLI_ABLATE_ORIGIN_H
#define CLI_ABLATE_ORIGIN_H

#include <stdio.h>

#include "ablate.h"

/** All keys of a spec under its label, which `behind` follows. */
void origin_spec(FILE *f, const char *label, const char *behind, const mx_spec *spec);
/** The end of the list, and the shape and the digest of each tensor's values. */
void origin_tensors(FILE *f, const ablate_tensors *tensors, const char (*digest)[33]);

#endif
