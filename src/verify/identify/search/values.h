/* Declares the values that the search tries for each key: the choices of the tables, and numbers read off the data. */
#ifndef MX_VERIFY_IDENTIFY_SEARCH_VALUES_H
#define MX_VERIFY_IDENTIFY_SEARCH_VALUES_H

#include "verify/trial/observe.h"

enum { MAX_VALUES = 40, VALUE_TEXT = 28 };

typedef struct key_values {
  char text[MAX_VALUES][VALUE_TEXT]; /* the default first */
  size_t n;
} key_values;

/** Where an observation keeps what mxi_values_of() found; free() it. */
struct value_cache *mxi_value_cache_new(void);
/** Values of a key under an observation. Refusals, random rounding, what only names layout and what the observation itself supposes are left out. */
void mxi_values_of(key_values *out, const char *key, const observation *o);

#endif
