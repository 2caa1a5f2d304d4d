/* Declares what is remembered of the elements of a block under a scale. It is used often, because most specs that are tried differ in keys that
 * change neither. */
#ifndef MX_VERIFY_TRIAL_MEMO_H
#define MX_VERIFY_TRIAL_MEMO_H

#include "core/hash.h"
#include "kernels/block/plan.h"

/* Which of elem.zero_sign, elem.overflow and elem.saturate_to elements depend on. Nothing else depends on these keys, and most blocks do not. */
enum {
  MEMO_ZERO = 1 /* a zero */,
  MEMO_TO_ZERO = 2 /* a negative one that becomes zero */,
  MEMO_BEYOND = 4 /* one past the largest */,
  MEMO_ALL = 7
};

/* What is known of a block's chosen elements under a scale and the keys of elements. */
typedef struct memo_entry {
  uint64_t key;
  uint64_t print;            /* of all of them */
  uint32_t codes, nan_codes; /* that differ */
  int some;                  /* there are more, which were not looked at any more */
  unsigned sees;             /* MEMO_*: an entry of its own */
  float error;               /* of a candidate of select=foursix: an entry of its own */
} memo_entry;

/* A table for each thread: entries are never shared. */
typedef struct memo memo;

memo *mxi_memo_new(int n_threads);
void mxi_memo_free(memo *m);

/** The entry of a key in the calling thread's table. If the key is not known, the entry holds another one, and the caller fills it in. NULL
 *  without a table. */
memo_entry *mxi_memo_at(memo *m, uint64_t key);
/** The item of a set that refuted the last spec, and is likely to refute the next one too. There is one for each thread and (nearly) each set.
 *  NULL without a table. */
size_t *mxi_memo_against(memo *m, const void *set);

/** A hash of everything that elements see of a plan: the keys of elements except the three above, and none of the scale. After
 *  mxi_plan_set_amax(). */
uint64_t mxi_memo_key_of_plan(const mx_plan *p);
/** Adds to the hash what elements see of a block's scale. */
uint64_t mxi_memo_key_of_scale(uint64_t key, const mx_plan *p, const mx_block_scale *s);
/** Adds the three keys, if elements depend on them. */
uint64_t mxi_memo_key_of_seen(uint64_t key, const mx_plan *p, unsigned sees);

#endif
