/* Turns the tables of keys and choices into arrays. */
#include "core/choices.h"

#include <stddef.h>

#define R_(id, name, number, doc) {name, number, doc},
#define LIST(list) static const mx_choice_row rows_##list[] = {MX_LIST_##list(R_){NULL, 0, NULL}};
LIST(ROUND)
LIST(HIF4_TIES)
LIST(OVERFLOW)
LIST(SATURATE_TO)
LIST(ELEM_NAN)
LIST(ELEM_INF)
LIST(ZERO_SIGN)
LIST(SCALE_RULE)
LIST(SCALE_FORM)
LIST(SCALE_ROUND)
LIST(SCALE_MAX)
LIST(SCALE_ARITH)
LIST(SCALE_LOG2)
LIST(SCALE_SUBNORMAL)
LIST(SCALE_CARRY)
LIST(BYTE_OVERFLOW)
LIST(SCALE_USED)
LIST(SCALE_BYTE0)
LIST(SCALE_ZERO)
LIST(SCALE_ALLZERO)
LIST(SCALE_NAN)
LIST(SCALE_INF)
LIST(SCALE_SIGN)
LIST(NEGATIVE)
LIST(ELEM_ARITH)
LIST(SWITCH)
LIST(TENSOR_NORM)
LIST(TENSOR_STORE)
LIST(SELECT)
LIST(SELECT_ERROR)
LIST(SELECT_SUM)
LIST(HAD_SIGN)
LIST(SR)
LIST(SR_SOURCE)
LIST(NIBBLE)
LIST(INPUT_DTYPE)
LIST(DEQ_ARITH)

#define MX_CHAIN(id, name, tensor, scale, element, again, store, source) {name, 0, source},
static const mx_choice_row rows_CHAIN[] = {
#include "formats/chains.def"
    {NULL, 0, NULL}};
#undef MX_CHAIN
#define MX_FORMAT(id, name, kind, bits, sign, exp, man, bias, max, inf, nan_first, nan_last, nan, source) {name, 0, source},
static const mx_choice_row rows_ELEM[] = {
#include "formats/elements.def"
    {NULL, 0, NULL}};
static const mx_choice_row rows_SCALE[] = {
#include "formats/scales.def"
    {NULL, 0, NULL}};
#undef MX_FORMAT

#define MX_FORMATS(field, key, list, doc) {key, doc, MX_KEY_CHOICE, offsetof(mx_spec, field), 0, rows_##list, 0},
#define MX_BLOCK(key, doc) {key, doc, MX_KEY_BLOCK, offsetof(mx_spec, block_rows), offsetof(mx_spec, block_cols), NULL, 0},
#define MX_CHOICE(field, key, list, doc) {key, doc, MX_KEY_CHOICE, offsetof(mx_spec, field), 0, rows_##list, 0},
#define MX_CHOICE_N(field, key, list, doc) {key, doc, MX_KEY_CHOICE_N, offsetof(mx_spec, field), offsetof(mx_spec, field##_n), rows_##list, 0},
#define MX_COUNT(field, key, max, doc) {key, doc, MX_KEY_COUNT, offsetof(mx_spec, field), 0, NULL, max},
#define MX_REAL(field, key, doc) {key, doc, MX_KEY_REAL, offsetof(mx_spec, field), 0, NULL, 0},
#define MX_SIGNS(field, key, doc) {key, doc, MX_KEY_SIGNS, offsetof(mx_spec, field), 0, NULL, 0},
#define MX_SEED(key, doc) {key, doc, MX_KEY_SEED, offsetof(mx_spec, seed), 0, NULL, 0},
#define MX_GIVEN(key, doc) {key, doc, MX_KEY_GIVEN, offsetof(mx_spec, tensor_given), offsetof(mx_spec, tensor_given_value), NULL, 0},
const mx_key_row mxi_key_rows[] = {
#include "formats/keys.def"
};
_Static_assert(sizeof mxi_key_rows / sizeof mxi_key_rows[0] <= MX_MAX_KEYS, "a set of keys is a uint64_t");
const size_t mxi_key_rows_count = sizeof mxi_key_rows / sizeof mxi_key_rows[0];

const char *mx_key_name(size_t index) { return index < mxi_key_rows_count ? mxi_key_rows[index].name : NULL; }
const char *mx_key_doc(size_t index) { return index < mxi_key_rows_count ? mxi_key_rows[index].doc : NULL; }

const char *mx_key_choice(size_t index, size_t row, const char **doc, int *takes_number) {
  if (index >= mxi_key_rows_count || !mxi_key_rows[index].rows) return NULL;
  for (size_t i = 0; i < row; i++)
    if (!mxi_key_rows[index].rows[i].name) return NULL;
  const mx_choice_row *r = &mxi_key_rows[index].rows[row];
  if (r->name && doc) *doc = r->doc;
  if (r->name && takes_number) *takes_number = r->takes_number;
  return r->name;
}

#define MX_CHAIN(id, name, tensor, scale, element, again, store, source) {name, tensor, scale, element, again, store, source},
static const mx_chain chains[] = {
#include "formats/chains.def"
};
#undef MX_CHAIN

const mx_chain *mx_chain_row(int chain) { return chain >= 0 && chain < MX_CHAIN_COUNT ? &chains[chain] : NULL; }
