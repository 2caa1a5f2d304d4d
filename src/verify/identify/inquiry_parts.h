/* Declares what the three parts of an inquiry share: the whole from end to end, the rules of ordinary blocks, and stochastic rounding. */
#ifndef MX_VERIFY_IDENTIFY_INQUIRY_PARTS_H
#define MX_VERIFY_IDENTIFY_INQUIRY_PARTS_H

#include "verify/identify/inquiry.h"

/* How many blocks of a class join at once for a spec that turned out wrong. With more, each later trial takes longer; with fewer, more rounds are
 * needed. All join at once if few trials follow, or if only scales are compared, which is cheap. */
enum { LEARN = 12, LEARN_MANY = 64 };

/** A list of keys and its length, as mxi_search_product() takes them. */
#define KEYS(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

/** Tries only these specs. */
mx_spec mxi_inquiry_base(const inquiry *q);
/** Runs a spec over everything; it becomes best if it is better. */
void mxi_inquiry_confirm(inquiry *q, const mx_spec *spec);
/** Does a spec give the same codes as one of the n before it on the chosen blocks? prints[n] becomes its fingerprint. */
int mxi_inquiry_same_print(const search *s, const mx_spec *spec, score got, uint64_t *prints, size_t n);
/** Scale rules whose scales are rounded at random. */
void mxi_cores_at_random(search *s, pool *cores, mx_spec base);
/** Do two specs look the same to elements, which see the stored scale and not the rule that gave it? Such specs share the keys of their elements. */
int mxi_same_to_elements(const mx_spec *a, const mx_spec *b);
/** How many elements of a set are compared. */
uint64_t mxi_inquiry_looked(const block_set *set);

#endif
