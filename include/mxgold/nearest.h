/** Finds the names nearest to an unknown one, which an error message then offers. */
#ifndef MXGOLD_NEAREST_H
#define MXGOLD_NEAREST_H

#include <stddef.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** The index-th name of a set; NULL past the end. NULL rows are not allowed before the end. */
typedef const char *mx_name_at(const void *set, size_t index);

/** Write up to three names of the set that are nearest to `name`, nearest first, as "a, b, c".
 *  out    n_out bytes, always terminated; names that do not fit are left out.
 *  name   what was asked for; case is ignored, '-' and '_' are equal; the first 63 bytes count.
 *  at     names of the set, in any order; of two equally near names the earlier comes first.
 *  Distance: edits with swaps of neighbours (optimal string alignment); a name that contains what was asked for counts as near. Names further
 *  than one edit beyond the nearest are left out.
 *  Returns how many names were written; 0 only for an empty set (out is then ""). Threads: reentrant.   Oracle: tests/test_file.c */
size_t mx_nearest(char *out, size_t n_out, const char *name, mx_name_at *at, const void *set);

/** Which of the choices "a|b|c" value is, from 0; -1 for none. Case and every character count. Threads: reentrant.   Oracle: tests/test_file.c */
int mx_choice_find(const char *choices, const char *value);

/** mx_nearest() among the choices "a|b|c". Threads: reentrant.   Oracle: tests/test_file.c */
size_t mx_choice_nearest(char *out, size_t n_out, const char *choices, const char *value);

/** mx_name_at for an array of strings that ends with NULL. */
const char *mx_name_in_array(const void *set, size_t index);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
