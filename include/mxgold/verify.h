/** Verification: suites of inputs, what differs, and which spec a kernel follows.
 *
 *  Nothing here decides bits: expected bytes come from mx_quantize(). */
#ifndef MXGOLD_VERIFY_H
#define MXGOLD_VERIFY_H

#include "quantize.h"
#include "vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* MX_SUITE(ID, "name", "what it shows") */
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

typedef enum mx_suite {
#define X(id, name, doc) MX_SUITE_##id,
  MX_SUITES(X)
#undef X
      MX_SUITE_COUNT
} mx_suite;

/** Name and meaning of a suite, NULL outside; and back, -1 for an unknown name. */
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
 *  Returns MX_OK; MX_ERR_ARG; MX_ERR_CONFLICT (spec); MX_ERR_NOMEM.  Threads: reentrant.  Oracle: tests/test_gen.c. */
mx_status mx_generate(mx_cases *out, int suite, const mx_spec *spec, size_t rows, size_t cols, uint64_t seed, mx_error *err);
void mx_cases_free(mx_cases *cases);

/** Codes of one matrix, one a number: 4-bit codes unpacked, elem=none the float's bits. out [rows][cols]. */
void mx_unpack_codes(uint32_t *out, const mx_tensor *tensor, const mx_spec *spec);
/** The index-th scale code of a matrix, whatever its width. */
uint32_t mx_scale_code_at(const mx_tensor *tensor, size_t index);

/** Cases as vectors: columns x, codes, scales (micro; tensor_scale where each case is a tensor) and a header that holds every key of the spec,
 *  `suite`, `gen.seed`, `generator`, `rows`, `cols`, and `case`: "row" (the cases are the rows of one tensor, whose tensor scale is the header's
 *  tensor_scale) or "tensor". With inputs_only the lines hold x alone, and what is asked for is named by the other columns.
 *  preset may be NULL.  MX_ERR_DATA if the spec refuses a value. */
mx_status mx_cases_to_vectors(mx_vectors *out, const mx_cases *cases, const mx_spec *spec, const char *suite, const char *preset, uint64_t seed,
                              int inputs_only, mx_error *err);
/** The spec of a vector's header. MX_ERR_FORMAT. */
mx_status mx_vectors_spec(mx_spec *out, const mx_vectors *v, mx_error *err);
/** Fill the expected columns from x by the header's spec: a new set of vectors with every column. MX_ERR_FORMAT (header or columns are not
 *  those of mx_cases_to_vectors). */
mx_status mx_vectors_expected(mx_vectors *out, const mx_vectors *v, mx_error *err);

#ifdef __cplusplus
}
#endif
#endif
