/** Says in full what a quantiser does, as a struct and as text: mx_spec. SPEC section 3.
 *
 *  Each field is one key of formats/keys.def, written key=value on the command line, in JSON and in a file's header. The zero struct is plain
 *  OCP MXFP4 (e2m1, e8m0, 1x32, floor, RNE). A preset is a row of formats/presets.def that names keys.
 *  Threads: every call is reentrant.  Oracle: tests/test_tables.c, tests/test_quantize.c (ref/ reads the same keys by itself), tests/fuzz. */

#ifndef MXGOLD_SPEC_H
#define MXGOLD_SPEC_H

#include "format.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* One enum a list of choices.def: MX_ROUND_RNE, MX_SCALE_RULE_FLOOR, ... */
#include "../../formats/choices.def"
#define R_(id, ...) MX_ROUND_##id,
enum { MX_LIST_ROUND(R_) MX_ROUND_COUNT };
#undef R_
#define R_(id, ...) MX_HIF4_TIES_##id,
enum { MX_LIST_HIF4_TIES(R_) MX_HIF4_TIES_COUNT };
#undef R_
#define R_(id, ...) MX_OVERFLOW_##id,
enum { MX_LIST_OVERFLOW(R_) MX_OVERFLOW_COUNT };
#undef R_
#define R_(id, ...) MX_SATURATE_TO_##id,
enum { MX_LIST_SATURATE_TO(R_) MX_SATURATE_TO_COUNT };
#undef R_
#define R_(id, ...) MX_ELEM_NAN_##id,
enum { MX_LIST_ELEM_NAN(R_) MX_ELEM_NAN_COUNT };
#undef R_
#define R_(id, ...) MX_ELEM_INF_##id,
enum { MX_LIST_ELEM_INF(R_) MX_ELEM_INF_COUNT };
#undef R_
#define R_(id, ...) MX_ZERO_SIGN_##id,
enum { MX_LIST_ZERO_SIGN(R_) MX_ZERO_SIGN_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_RULE_##id,
enum { MX_LIST_SCALE_RULE(R_) MX_SCALE_RULE_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_FORM_##id,
enum { MX_LIST_SCALE_FORM(R_) MX_SCALE_FORM_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_ROUND_##id,
enum { MX_LIST_SCALE_ROUND(R_) MX_SCALE_ROUND_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_MAX_##id,
enum { MX_LIST_SCALE_MAX(R_) MX_SCALE_MAX_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_ARITH_##id,
enum { MX_LIST_SCALE_ARITH(R_) MX_SCALE_ARITH_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_LOG2_##id,
enum { MX_LIST_SCALE_LOG2(R_) MX_SCALE_LOG2_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_SUBNORMAL_##id,
enum { MX_LIST_SCALE_SUBNORMAL(R_) MX_SCALE_SUBNORMAL_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_CARRY_##id,
enum { MX_LIST_SCALE_CARRY(R_) MX_SCALE_CARRY_COUNT };
#undef R_
#define R_(id, ...) MX_BYTE_OVERFLOW_##id,
enum { MX_LIST_BYTE_OVERFLOW(R_) MX_BYTE_OVERFLOW_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_USED_##id,
enum { MX_LIST_SCALE_USED(R_) MX_SCALE_USED_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_BYTE0_##id,
enum { MX_LIST_SCALE_BYTE0(R_) MX_SCALE_BYTE0_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_ZERO_##id,
enum { MX_LIST_SCALE_ZERO(R_) MX_SCALE_ZERO_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_ALLZERO_##id,
enum { MX_LIST_SCALE_ALLZERO(R_) MX_SCALE_ALLZERO_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_NAN_##id,
enum { MX_LIST_SCALE_NAN(R_) MX_SCALE_NAN_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_INF_##id,
enum { MX_LIST_SCALE_INF(R_) MX_SCALE_INF_COUNT };
#undef R_
#define R_(id, ...) MX_SCALE_SIGN_##id,
enum { MX_LIST_SCALE_SIGN(R_) MX_SCALE_SIGN_COUNT };
#undef R_
#define R_(id, ...) MX_NEGATIVE_##id,
enum { MX_LIST_NEGATIVE(R_) MX_NEGATIVE_COUNT };
#undef R_
#define R_(id, ...) MX_ELEM_ARITH_##id,
enum { MX_LIST_ELEM_ARITH(R_) MX_ELEM_ARITH_COUNT };
#undef R_
#define R_(id, ...) MX_SWITCH_##id,
enum { MX_LIST_SWITCH(R_) MX_SWITCH_COUNT };
#undef R_
#define R_(id, ...) MX_TENSOR_NORM_##id,
enum { MX_LIST_TENSOR_NORM(R_) MX_TENSOR_NORM_COUNT };
#undef R_
#define R_(id, ...) MX_TENSOR_STORE_##id,
enum { MX_LIST_TENSOR_STORE(R_) MX_TENSOR_STORE_COUNT };
#undef R_
#define R_(id, ...) MX_SELECT_##id,
enum { MX_LIST_SELECT(R_) MX_SELECT_COUNT };
#undef R_
#define R_(id, ...) MX_SELECT_ERROR_##id,
enum { MX_LIST_SELECT_ERROR(R_) MX_SELECT_ERROR_COUNT };
#undef R_
#define R_(id, ...) MX_SELECT_SUM_##id,
enum { MX_LIST_SELECT_SUM(R_) MX_SELECT_SUM_COUNT };
#undef R_
#define R_(id, ...) MX_HAD_SIGN_##id,
enum { MX_LIST_HAD_SIGN(R_) MX_HAD_SIGN_COUNT };
#undef R_
#define R_(id, ...) MX_SR_##id,
enum { MX_LIST_SR(R_) MX_SR_COUNT };
#undef R_
#define R_(id, ...) MX_SR_SOURCE_##id,
enum { MX_LIST_SR_SOURCE(R_) MX_SR_SOURCE_COUNT };
#undef R_
#define R_(id, ...) MX_NIBBLE_##id,
enum { MX_LIST_NIBBLE(R_) MX_NIBBLE_COUNT };
#undef R_
#define R_(id, ...) MX_INPUT_DTYPE_##id,
enum { MX_LIST_INPUT_DTYPE(R_) MX_INPUT_DTYPE_COUNT };
#undef R_
#define R_(id, ...) MX_DEQ_ARITH_##id,
enum { MX_LIST_DEQ_ARITH(R_) MX_DEQ_ARITH_COUNT };
#undef R_
#define MX_CHAIN(id, ...) MX_CHAIN_##id,
enum {
#include "../../formats/chains.def"
  MX_CHAIN_COUNT
};
#undef MX_CHAIN

enum { MX_BLOCK_WHOLE = -1 }; /* block_rows or block_cols: the whole axis */

/** What a quantiser does: one field a key of formats/keys.def. The zero struct is plain OCP MXFP4. */
typedef struct mx_spec {
#define MX_FORMATS(field, ...) int field;
#define MX_BLOCK(...) int block_rows, block_cols; /* 0 means 1 and 32; MX_BLOCK_WHOLE the whole axis */
#define MX_CHOICE(field, ...) int field;
#define MX_CHOICE_N(field, ...)                                                                                                                \
  int field;                                                                                                                                   \
  float field##_n;
#define MX_COUNT(field, ...) uint32_t field;
#define MX_REAL(field, ...) float field;
#define MX_SIGNS(field, ...) uint8_t field[16]; /* bit i of byte i/8 negates element i of each tile */
#define MX_SEED(...) uint64_t seed;
#define MX_GIVEN(...)                                                                                                                          \
  int tensor_given; /* 1: tensor_given_value is used */                                                                                        \
  float tensor_given_value;
#include "../../formats/keys.def"
#undef MX_FORMATS
#undef MX_BLOCK
#undef MX_CHOICE
#undef MX_CHOICE_N
#undef MX_COUNT
#undef MX_REAL
#undef MX_SIGNS
#undef MX_SEED
#undef MX_GIVEN
  const uint32_t *given_bits; /* sr.source=given: [rows][cols] random integers of sr.bits bits, the caller's; not part of the text form */
} mx_spec;

/** Are the elements values without codes and scales (elem=none, elem=bf16)? Then a tensor's codes are their binary32 numbers. spec->elem is a row.
 *  Threads: reentrant.   Oracle: tests/test_quantize.c. */
int mx_spec_is_plain(const mx_spec *spec);

/** How mx_encode() makes an element under a spec (keys elem.*, sr.mode and sr.bits), and how it makes a scale (key scale.round). If the spec
 *  leaves sr.bits open, sr_bits of an element stays 0, which mx_encode() reads as 16.
 *  Threads: reentrant.   Oracle: tests/test_quantize.c (ref/ reads the same keys by itself). */
mx_encoding mx_elem_encoding(const mx_spec *spec);
mx_encoding mx_scale_encoding(const mx_spec *spec);

/** F of SPEC 3.1: scale.max as a number, times scale.margin where there is one, then rounded once to binary32.
 *  Threads: reentrant.   Oracle: tests/test_ref.c (ref/ has its own). */
double mx_spec_scale_max(const mx_spec *spec);

/** Block shape with the defaults filled in: 1 row and 32 columns; MX_BLOCK_WHOLE becomes the tensor's own extent. */
void mx_spec_block(const mx_spec *spec, size_t rows, size_t cols, size_t *block_rows, size_t *block_cols);

/** Set one key from text ("scale.rule", "even"). MX_ERR_KEY names the unknown key or value and the nearest known ones; spec is then
 *  untouched. */
mx_status mx_spec_set(mx_spec *spec, const char *key, const char *value, mx_error *err);
/** Set keys from "key=value key=value ..." (blanks or commas between). On error spec is untouched. */
mx_status mx_spec_parse(mx_spec *spec, const char *text, mx_error *err);
/** Read a spec from a JSON object {"key": value, ...}; "preset" may be among the keys and comes first. */
mx_status mx_spec_parse_json(mx_spec *spec, const char *json, size_t n_bytes, mx_error *err);
/** Write the keys that differ from the default as "key=value key=value", in the order of keys.def; if all is true, every key. Returns the
 *  length of the whole text (as snprintf does); out may be NULL if size is 0. */
size_t mx_spec_print(char *out, size_t size, const mx_spec *spec, int all);
/** Check whether keys exclude each other: MX_OK, or MX_ERR_CONFLICT, which names both. */
mx_status mx_spec_check(const mx_spec *spec, mx_error *err);
/** True if both specs have the same values for all keys (pointers are not compared). */
int mx_spec_equal(const mx_spec *a, const mx_spec *b);

/** There are at most so many keys: a set of them is a uint64_t, in which bit i stands for the key mx_key_name(i). */
enum { MX_MAX_KEYS = 64 };
/** Name and meaning of the index-th key, for tables and search; NULL past the last key. */
const char *mx_key_name(size_t index);
const char *mx_key_doc(size_t index);
/** Name and meaning of the row-th choice of a key; NULL past the last one or for keys that are numbers. */
const char *mx_key_choice(size_t index, size_t row, const char **doc, int *takes_number);

/** How much is known of a preset: its library was run, it is a standard, or the rule was only read in a source. */
typedef enum mx_preset_status { MX_PRESET_RUN, MX_PRESET_STANDARD, MX_PRESET_READ } mx_preset_status;
/** A row of formats/presets.def. */
typedef struct mx_preset {
  const char *name;
  const char *keys;     /* what differs from the default; NULL for an alias */
  const char *alias_of; /* NULL unless an alias */
  mx_preset_status status;
  const char *source;
} mx_preset;

/** How many presets there are, aliases included. */
size_t mx_preset_count(void);
/** The index-th preset; NULL past the last. */
const mx_preset *mx_preset_at(size_t index);
/** The spec of a preset or alias. MX_ERR_KEY names the nearest presets. */
mx_status mx_preset_find(mx_spec *out, const char *name, mx_error *err);

/** A row of formats/chains.def: the order of binary32 operations of a quantiser. */
typedef struct mx_chain {
  const char *name, *tensor, *scale, *element, *again, *store, *source; /* columns of formats/chains.def */
} mx_chain;
/** The row of an MX_CHAIN_* value; NULL outside the enum. */
const mx_chain *mx_chain_row(int chain);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
