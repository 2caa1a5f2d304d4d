/** Makes suites of inputs that tell kernels apart, and what a correct kernel gives for them, as vectors.
 *
 *  Nothing here decides bits: expected bytes come from mx_quantize(). */
#ifndef MXGOLD_SUITES_H
#define MXGOLD_SUITES_H

#include "quantize.h"
#include "vector.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** The suites: MX_SUITE(ID, "name", "what it shows"). */
#define MX_SUITES(X)                                                                                                                           \
  X(RANDOM, "random", "normal numbers, each row at its own power of two")                                                                      \
  X(TIES, "ties", "elements on the midpoints of their own block's grid, and one ulp to either side")                                           \
  X(BOUNDARY, "boundary", "block maxima at every step of a scale rule, all exponents, one ulp to either side")                                 \
  X(CODES, "codes", "every scale code with every element code: each element exactly representable")                                            \
  X(SPECIAL, "special", "NaN, Inf, -0, subnormals, FLT_MAX at each kind of position, each case a tensor of its own")                           \
  X(TAILS, "tails", "rows that end within a block")                                                                                            \
  X(PADDING, "padding", "rows with poison behind their end: 0x00, 0x7F, 0xFF bytes and NaN")                                                   \
  X(LAYOUT, "layout", "each element and each scale tells its position")                                                                        \
  X(ORDER, "order", "products of whose elements every partial sum is exact in 24 bits")                                                        \
  X(CANCEL, "cancel", "pairs that cancel, with small numbers between them")                                                                    \
  X(MINIMAL, "minimal", "the fewest small tensors that tell every preset from every other")

/** A suite of the list above: MX_SUITE_RANDOM, MX_SUITE_TIES, ... */
typedef enum mx_suite {
#define X(id, name, doc) MX_SUITE_##id,
  MX_SUITES(X)
#undef X
      MX_SUITE_COUNT
} mx_suite;

/** Name and meaning of a suite, NULL outside the enum; and the suite of a name, -1 if the name is unknown. */
const char *mx_suite_name(int suite);
const char *mx_suite_doc(int suite);
int mx_suite_find(const char *name);

/** Inputs: n tensors of [rows][cols], row stride ld >= cols; what lies between cols and ld is not data (suite padding puts poison there). */
typedef struct mx_cases {
  size_t n, rows, cols, ld;
  float *x; /* [n][rows][ld], the caller frees it with mx_cases_free() */
} mx_cases;

/** Make a suite for a spec (its formats, block, chain and rotation say where ties and steps lie). rows and cols of 0 mean the suite's own shape;
 *  `special` and `minimal` always have their own. The same (suite, spec, rows, cols, seed) gives the same bits everywhere.
 *  `order` keeps its promise for any tensor quantised under its spec: the longer its rows, the fewer different numbers it has.
 *  MX_ERR_UNSUPPORTED if rows of cols are too long for that (err names the longest possible); with cols 0 (its own shape) the suite can be made
 *  for every spec.
 *  Returns MX_OK; MX_ERR_ARG; MX_ERR_CONFLICT (spec); MX_ERR_NOMEM.  Threads: reentrant.  Oracle: tests/test_verify.c. */
mx_status mx_generate(mx_cases *out, int suite, const mx_spec *spec, size_t rows, size_t cols, uint64_t seed, mx_error *err);
/** Free the inputs and make *cases empty. */
void mx_cases_free(mx_cases *cases);
/** Pairs of non-alias presets that give the same bytes on every tensor of suite minimal; at most `room` of them go into pairs.
 *  SIZE_MAX if memory ran out. */
size_t mx_minimal_unseparated(const char *pairs[][2], size_t room, const mx_cases *cases);

/** What of cases goes into vectors: all but the values; with MX_VECTORS_INPUTS the lines hold only x, and the other columns of the header name what is asked
 *  for; with MX_VECTORS_VALUES there is a last column dequantized, what the codes mean as binary32. */
enum { MX_VECTORS_INPUTS = 1, MX_VECTORS_VALUES = 2 };
/** Cases as vectors: columns x, codes, scales (micro; tensor_scale where each case is a tensor; dequantized) and a header that holds every key of the spec,
 *  `suite`, `gen.seed`, `generator`, `rows`, `cols`, and `case`: "row" (the cases are the rows of one tensor, whose tensor scale is the header's
 *  tensor_scale) or "tensor". what: MX_VECTORS_*, 0 or several by |.
 *  preset may be NULL.  MX_ERR_DATA if the spec refuses a value. */
mx_status mx_cases_to_vectors(mx_vectors *out, const mx_cases *cases, const mx_spec *spec, const char *suite, const char *preset, uint64_t seed,
                              int what, mx_error *err);
/** The spec of a vector's header. MX_ERR_FORMAT: an unknown key; no elem, scale, block, scale.rule or elem.round; or a preset that does not
 *  exist or has other keys. */
mx_status mx_vectors_spec(mx_spec *out, const mx_vectors *v, mx_error *err);
/** Compute the expected columns from x by the header's spec, into a new set of vectors with every column. MX_ERR_FORMAT (header or columns are
 *  not those of mx_cases_to_vectors()). */
mx_status mx_vectors_expected(mx_vectors *out, const mx_vectors *v, mx_error *err);

/** Make the inputs of vectors again whose header names a suite, from suite, spec, gen.seed, rows and cols. The x of the lines only decides
 *  whether the suite's own shape was meant or the same shape was asked for. v must have passed mx_vectors_expected(). MX_ERR_FORMAT (no suite,
 *  or a suite that has other cases), MX_ERR_NOMEM.  Threads: reentrant.  Oracle: tests/cli/accepted.sh. */
mx_status mx_vectors_inputs(mx_cases *out, const mx_vectors *v, mx_error *err);

/** How a column of two sets of vectors compares. */
typedef struct mx_vectors_count {
  uint64_t compared, differ;
  size_t first_case, first_index; /* of the first difference */
  uint64_t want, got;
} mx_vectors_count;
/** Compare column by column under the spec of expected's header. Unless nan_bits is set, NaN equals NaN and codes under a NaN scale do not
 *  count.
 *  MX_ERR_FORMAT (header), MX_ERR_SHAPE (other columns or cases, or lines that lack columns).  Oracle: tests/cli/verify.sh, tests/fuzz/fuzz_pipe.c. */
mx_status mx_vectors_compare(mx_vectors_count out[MX_VECTOR_COLUMNS], const mx_vectors *expected, const mx_vectors *actual, int nan_bits,
                             mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
