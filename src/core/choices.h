/* Declares formats/keys.def and choices.def as arrays, which parsing, printing and searching walk over. */
#ifndef MX_CORE_CHOICES_H
#define MX_CORE_CHOICES_H

#include "mxgold/spec.h"

typedef struct mx_choice_row {
  const char *name; /* NULL ends a list */
  int takes_number;
  const char *doc;
} mx_choice_row;

typedef enum mx_key_kind {
  MX_KEY_CHOICE,
  MX_KEY_CHOICE_N,
  MX_KEY_BLOCK,
  MX_KEY_COUNT,
  MX_KEY_REAL,
  MX_KEY_SIGNS,
  MX_KEY_SEED,
  MX_KEY_GIVEN
} mx_key_kind;

typedef struct mx_key_row {
  const char *name, *doc;
  mx_key_kind kind;
  size_t at, at2; /* offsets into mx_spec; at2: the number of a CHOICE_N, block_cols, tensor_given_value */
  const mx_choice_row *rows;
  uint32_t max;
} mx_key_row;

extern const mx_key_row mxi_key_rows[];
extern const size_t mxi_key_rows_count;

#endif
