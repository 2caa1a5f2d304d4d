/* Declares what the files of misplaced codes and scales share: a finding and what it leaves unexplained. */
#ifndef MX_VERIFY_BUGS_MAPS_H
#define MX_VERIFY_BUGS_MAPS_H

#include "core/hash.h"
#include "verify/bugs/base.h"

enum { CODES = 256 }; /* of a byte */

typedef struct named {
  const char *name;
  int weak;
  char text[480];
} named;

/* What is left of the codes (or of the scales) with this explanation; name NULL: none. */
typedef struct half {
  named is;
  uint64_t left;
} half;

static inline void half_better(half *best, const named *is, uint64_t left) {
  if (!best->is.name || left < best->left || (left == best->left && is->weak < best->is.weak)) *best = (half){*is, left};
}

/** Codes or scales that are right but written as other codes. */
void mxi_rename_codes(half *best, const base *b);
void mxi_rename_scales(half *best, const base *b);
/** Column c of each group of elements holds what another column of it should: lanes.c. */
void mxi_find_lanes(half *best, const base *b);
/** "rows 3 to 5", "rows 0, 2, 4, ...": which of n are in a set, "" where words for it are lacking or all are. */
void mxi_say_axis(char *out, size_t size, const uint8_t *set, size_t n, const char *what);

#endif
