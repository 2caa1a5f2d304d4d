/* Declares keys of a spec by index, without their text: for searches that change millions of them. */
#ifndef MX_VERIFY_TRIAL_KEYS_H
#define MX_VERIFY_TRIAL_KEYS_H

#include "mxgold/spec.h"

/** Index of a key as mx_key_name() counts; SIZE_MAX for none. */
size_t mxi_key_find(const char *name);
/** Copies the key from `from` to `to`. */
void mxi_key_copy(mx_spec *to, const mx_spec *from, size_t index);
int mxi_key_same(const mx_spec *a, const mx_spec *b, size_t index);
/** Are all keys the same, and the signs of a rotation? */
int mxi_keys_same(const mx_spec *a, const mx_spec *b);

#endif
