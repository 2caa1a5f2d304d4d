/* Declares what the files of an inquiry share: inquiry.c (from end to end), inquiry_rules.c (ordinary blocks), inquiry_random.c (stochastic
 * rounding). */
#ifndef MX_VERIFY_IDENTIFY_INQUIRY_PARTS_H
#define MX_VERIFY_IDENTIFY_INQUIRY_PARTS_H

#include "verify/identify/inquiry.h"

/* Blocks of a class that are learned at once from a spec that turned out wrong: more make each later trial dearer, fewer need more rounds. All at once
 * where nothing is tried over and over with them, or where scales alone are looked at, which is cheap. */
enum { LEARN = 12, LEARN_MANY = 64 };

/** A list of keys and its length, as mxi_search_product() takes them. */
#define KEYS(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

/** These alone. */
mx_spec mxi_inquiry_base(const inquiry *q);
/** A spec over everything: into best if it is better. */
void mxi_inquiry_confirm(inquiry *q, const mx_spec *spec);
/** Does a spec give the same codes as one of the n before it on the chosen blocks? prints[n] becomes its fingerprint. */
int mxi_inquiry_same_print(const search *s, const mx_spec *spec, score got, uint64_t *prints, size_t n);
/** Scale rules whose scales are rounded at random. */
void mxi_cores_at_random(search *s, pool *cores, mx_spec base);
/** Elements see the stored scale, not the rule that gave it: cores that agree in these keys share their elements' keys. */
int mxi_same_to_elements(const mx_spec *a, const mx_spec *b);
/** Elements of a set that are looked at. */
uint64_t mxi_inquiry_looked(const block_set *set);

#endif
