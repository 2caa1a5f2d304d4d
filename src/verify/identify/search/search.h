/* Declares the search that tries many specs on sets of blocks. */
#ifndef MX_VERIFY_IDENTIFY_SEARCH_SEARCH_H
#define MX_VERIFY_IDENTIFY_SEARCH_SEARCH_H

#include "verify/trial/deadline.h"
#include "verify/trial/trial.h"

enum { POOL = 64 };

/* The best specs of a stage, best first. */
typedef struct pool {
  mx_spec spec[POOL];
  score got[POOL];
  size_t n, room; /* room <= POOL */
} pool;

/* What all searches of one question may cost together: a number of trials, which is the same on every machine, and time, if they take long. */
typedef struct search_budget {
  uint64_t tried, most;
  deadline until;
} search_budget;
static inline int budget_over(const search_budget *b) { return b->tried >= b->most || deadline_over(b->until); }

typedef struct search {
  const observation *o;
  block_set sets[BLOCK_CLASSES];
  block_set scales; /* more ordinary blocks, for their scales alone */
  int threads, lenient;
  int either; /* either scale of select=foursix will do: which one wins is told later */
  search_budget *budget;
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

/** Chooses the first blocks of each class, spread over the data. */
mx_status mxi_search_begin(search *s, const observation *o, int threads, search_budget *budget);
void mxi_search_end(search *s);
/** Adds blocks that spec gets wrong to their sets, a few of each class. Returns how many. */
size_t mxi_search_learn(search *s, const uint8_t *wrong, const mx_spec *spec, size_t each);
/** Adds ordinary blocks whose scale spec gets wrong to those that are compared by their scales. Returns how many. */
size_t mxi_search_learn_scales(search *s, const mx_spec *spec, size_t each);

/** LOOK_* of trial.h for this search. */
int mxi_search_how(const search *s, int scales_only);
score mxi_search_score(const search *s, const mx_spec *spec, unsigned classes);
/** The same, but the count may stop once it has passed the limit; 0: none. */
score mxi_search_score_until(const search *s, const mx_spec *spec, unsigned classes, uint64_t limit);
/** Puts specs[n] into a pool, ordered by what they get wrong in every class. */
void mxi_search_pool(const search *s, pool *out, const mx_spec *specs, size_t n);
/** A fingerprint of the codes that spec gives on the chosen blocks of every class. */
uint64_t mxi_search_print(const search *s, const mx_spec *spec);
/** The most wrong scales with which a rule of scales is still worth trying beside one that has `least`. */
static inline uint64_t search_worth(uint64_t least) { return least + least / 2; }
/** Tries every combination of values of keys[] on each base, and puts the best into out, which keeps what it has. A key "name" takes all its
 *  values, "name=v|w" those. scales_only: only on the blocks that are compared by their scales. */
void mxi_search_product(search *s, pool *out, const mx_spec *bases, size_t n_bases, const char *const *keys, size_t n_keys, unsigned classes,
                        int scales_only);
/** Changes keys as long as that explains more, several ways in parallel: one key at a time, and with an effort of 1 two at once if one alone does
 *  not help. */
void mxi_search_repair(search *s, mx_spec *spec, score *got, int effort);
void mxi_pool_add(pool *p, const mx_spec *spec, score got);

#endif
