/* Reads and sets the keys of a spec by index, one case a row of keys.def. */
#include "verify/trial/keys.h"

#include <string.h>

enum {
#define MX_FORMATS(field, ...) KEY_##field,
#define MX_BLOCK(...) KEY_block,
#define MX_CHOICE(field, ...) KEY_##field,
#define MX_CHOICE_N(field, ...) KEY_##field,
#define MX_COUNT(field, ...) KEY_##field,
#define MX_REAL(field, ...) KEY_##field,
#define MX_SIGNS(field, ...) KEY_##field,
#define MX_SEED(...) KEY_seed,
#define MX_GIVEN(...) KEY_given,
#include "formats/keys.def"
#undef MX_FORMATS
#undef MX_BLOCK
#undef MX_CHOICE
#undef MX_CHOICE_N
#undef MX_COUNT
#undef MX_REAL
#undef MX_SIGNS
#undef MX_SEED
#undef MX_GIVEN
  N_KEYS
};

/* ONE: a key of one field; TWO: of two. */
#define MX_FORMATS(field, ...) ONE(KEY_##field, field)
#define MX_BLOCK(...) TWO(KEY_block, block_rows, block_cols)
#define MX_CHOICE(field, ...) ONE(KEY_##field, field)
#define MX_CHOICE_N(field, ...) TWO(KEY_##field, field, field##_n)
#define MX_COUNT(field, ...) ONE(KEY_##field, field)
#define MX_REAL(field, ...) ONE(KEY_##field, field)
#define MX_SIGNS(field, ...) ONE(KEY_##field, field)
#define MX_SEED(...) ONE(KEY_seed, seed)
#define MX_GIVEN(...) TWO(KEY_given, tensor_given, tensor_given_value)

size_t mxi_key_find(const char *name) {
  for (size_t i = 0; i < N_KEYS; i++)
    if (!strcmp(mx_key_name(i), name)) return i;
  return (size_t)-1;
}

void mxi_key_copy(mx_spec *to, const mx_spec *from, size_t index) {
  switch (index) {
#define ONE(id, field)                                                                                                                         \
  case id:                                                                                                                                     \
    memcpy(&to->field, &from->field, sizeof to->field);                                                                                        \
    break;
#define TWO(id, field, other)                                                                                                                  \
  case id:                                                                                                                                     \
    to->field = from->field;                                                                                                                   \
    to->other = from->other;                                                                                                                   \
    break;
#include "formats/keys.def"
#undef ONE
#undef TWO
  default:
    break;
  }
}

int mxi_key_same(const mx_spec *a, const mx_spec *b, size_t index) {
  switch (index) {
#define ONE(id, field)                                                                                                                         \
  case id:                                                                                                                                     \
    return !memcmp(&a->field, &b->field, sizeof a->field);
#define TWO(id, field, other)                                                                                                                  \
  case id:                                                                                                                                     \
    return !memcmp(&a->field, &b->field, sizeof a->field) && !memcmp(&a->other, &b->other, sizeof a->other);
#include "formats/keys.def"
#undef ONE
#undef TWO
  default:
    return 1;
  }
}

int mxi_keys_same(const mx_spec *a, const mx_spec *b) {
#define ONE(id, field)                                                                                                                         \
  if (memcmp(&a->field, &b->field, sizeof a->field)) return 0;
#define TWO(id, field, other)                                                                                                                  \
  if (memcmp(&a->field, &b->field, sizeof a->field) || memcmp(&a->other, &b->other, sizeof a->other)) return 0;
#include "formats/keys.def"
#undef ONE
#undef TWO
  return 1;
}
