/* Declares the words that a key of a spec takes, for options that have the key's name. */
#ifndef CLI_SPEC_KEY_CHOICES_H
#define CLI_SPEC_KEY_CHOICES_H

#include <stddef.h>

/** The index-th choice of a key, NULL past the last. */
const char *key_choice(const char *key, size_t index);
/** Row of a choice, -1 if there is no such one. */
int key_choice_find(const char *key, const char *choice);

#endif
