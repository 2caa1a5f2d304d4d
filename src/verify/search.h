/* Trying many specs on sets of blocks. */
#ifndef MX_VERIFY_SEARCH_H
#define MX_VERIFY_SEARCH_H

#include "verify/observe.h"

enum { POOL = 16 };

/* The best specs of a stage, best first. */
typedef struct pool {
  mx_spec spec[POOL];
  score got[POOL];
  size_t n, room; /* room <= POOL */
} pool;

typedef struct search {
  const observation *o;
  block_set sets[BLOCK_CLASSES];
  int threads;
  double deadline; /* by now() */
  uint64_t tried;
} search;

enum {
  PLAIN = 1 << BLOCK_PLAIN,
  SMALL = 1 << BLOCK_SMALL,
  LARGE = 1 << BLOCK_LARGE,
  ZERO = 1 << BLOCK_ZERO,
  INF_ = 1 << BLOCK_INF,
  NAN_ = 1 << BLOCK_NAN,
  EVERY = 63
};

/** Seconds of processor time of this process. */
double now(void);
/** Choose the first blocks of each class: spread over the data. */
mx_status search_begin(search *s, const observation *o, int threads, double deadline);
void search_end(search *s);
/** Blocks that the best spec gets wrong join their sets, a few of each class. Returns how many. */
size_t search_learn(search *s, const uint8_t *wrong, size_t each);

score search_score(const search *s, const mx_spec *spec, unsigned classes);
/** Every combination of values of keys[] on each base: the best into out (which keeps what it has). A key "name" takes all its values, "name=v|w"
 *  those. scales_only: elements do not count. Returns the number of specs tried. */
size_t search_product(search *s, pool *out, const mx_spec *bases, size_t n_bases, const char *const *keys, size_t n_keys, unsigned classes,
                      int scales_only);
/** Change one key at a time as long as that helps. */
void search_descend(search *s, mx_spec *spec, score *got, unsigned classes);
void pool_add(pool *p, const mx_spec *spec, score got);

#endif
