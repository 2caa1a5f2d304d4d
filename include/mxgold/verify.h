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
 *  `order` holds what it says for any tensor quantised under its spec: the longer its rows the fewer its numbers. MX_ERR_UNSUPPORTED where rows of cols
 *  are too long for that, and err says the longest; with cols 0 (its own shape) the suite is made for every spec.
 *  Returns MX_OK; MX_ERR_ARG; MX_ERR_CONFLICT (spec); MX_ERR_NOMEM.  Threads: reentrant.  Oracle: tests/test_verify.c. */
mx_status mx_generate(mx_cases *out, int suite, const mx_spec *spec, size_t rows, size_t cols, uint64_t seed, mx_error *err);
void mx_cases_free(mx_cases *cases);
/** Pairs of non-alias presets that give the same bytes on every tensor of suite minimal; at most `room` of them go into pairs. */
size_t mx_minimal_unseparated(const char *pairs[][2], size_t room, const mx_cases *cases);

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

/** How a column of two sets of vectors compares. */
typedef struct mx_vectors_count {
  uint64_t compared, differ;
  size_t first_case, first_index; /* that differ */
  uint64_t want, got;
} mx_vectors_count;
/** Compare column by column under the spec of expected's header: a NaN equals a NaN and codes under a NaN scale do not count, unless nan_bits.
 *  MX_ERR_FORMAT (header), MX_ERR_SHAPE (other columns or cases, or lines that lack columns).  Oracle: tests/cli/verify.sh, tests/fuzz/fuzz_pipe.c. */
mx_status mx_vectors_compare(mx_vectors_count out[MX_VECTOR_COLUMNS], const mx_vectors *expected, const mx_vectors *actual, int nan_bits,
                             mx_error *err);

/** What a black box gave for one tensor. codes, one a byte, and scales; or values alone (codes NULL). */
typedef struct mx_sample {
  size_t rows, cols, ld; /* of x, row stride ld */
  const float *x;
  const uint8_t *codes; /* [rows][cols], one a byte */
  const void *scales;   /* [scale_rows][scale_cols], scale_bytes each (1, 2 or 4) */
  size_t scale_rows, scale_cols, scale_bytes;
  int has_tensor_scale;
  float tensor_scale;
  const float *values; /* dequantised, [rows][cols]; NULL if unknown */
} mx_sample;

/** How to search. The zero struct: block from the shapes, all processors, ten seconds. What is found hangs on the time only where it runs out, which
 *  other jobs on the machine hardly hasten; neither it nor the number of specs tried hangs on the number of threads. */
typedef struct mx_identify_options {
  int block_rows, block_cols; /* 0: found */
  int n_threads;
  double seconds;   /* of the calling thread's processor time, after which the search gives up improving; 0 means 10 */
  int no_undecided; /* 1: leave out the list of keys that the data cannot decide */
} mx_identify_options;

/** A known bug over a preset: what a kernel does that follows no spec. */
typedef struct mx_bug {
  const char *name;   /* short and fixed ("amax without abs"); NULL: none of those that are known */
  char text[512];     /* what the kernel does instead, and where: a clause for a sentence */
  const char *preset; /* the bug is over this one; without a bug the preset that differs least; NULL: none fits the shapes */
  mx_spec spec;       /* of that preset */
  uint64_t preset_codes, preset_scales, preset_tensor; /* that differ from the plain preset: codes, scales, tensor scales */
  uint64_t codes, scales, tensor_scales;               /* that differ once the bug is put in and run over everything */
} mx_bug;

/** What was found. */
typedef struct mx_identity {
  mx_spec spec;
  int exact;                      /* every byte is reproduced */
  const char *preset;             /* its name if the spec is a preset's on these data, else NULL */
  const char *nearest;            /* the preset with the fewest keys to change, NULL if none has this element, scale and block */
  uint64_t n_codes, codes_differ; /* outside blocks whose scale is NaN */
  uint64_t n_scales, scales_differ;
  uint64_t nan_codes_differ; /* inside those blocks, and which NaN a NaN is; they do not count against exact */
  uint64_t tensor_scales_differ, n_values, values_differ;
  uint64_t zero_signs_differ;                      /* of values_differ: zeros whose sign alone differs */
  float tensor_scale_stored, tensor_scale_of_spec; /* of the first sample whose tensor scale differs */
  uint64_t undecided;                              /* bit i: key mx_key_name(i) could have another value with the same bytes */
  int stochastic;                                  /* rounding is random */
  int blank; /* the input has no finite number but zero: whatever is said here, the data decide next to nothing */
  /* With a stochastic rounding whose seed was not found, over ordinary blocks: */
  int random_bits_least, random_bits_most; /* counts of random bits that fit; 24: 24 or more; 0: nothing can be said */
  int random_biased;                       /* codes go up more often, or less, than their fractions say */
  double random_bias;                      /* mean of what is stored less the exact value, in steps of the element format */
  uint64_t random_n, random_beyond;        /* elements between two codes; those that no rounding to a neighbour gives */
  /* First block that differs, if any: */
  size_t bad_sample, bad_row, bad_col;
  uint64_t specs_tried;
  mx_bug bug; /* where no spec gives every byte, or only one with odd numbers: a known bug that does */
} mx_identity;

/** Find the spec that a black box follows, by search over keys: formats, block, scale side, element side, special blocks.
 *  Returns MX_OK (also when nothing exact was found: out->exact says), MX_ERR_ARG, MX_ERR_SHAPE (scales fit no block shape), MX_ERR_NOMEM.
 *  Threads: reentrant; the result does not depend on the number of threads unless time runs out.   Oracle: tests/test_identify.c. */
mx_status mx_identify(mx_identity *out, const mx_sample *samples, size_t n, const mx_identify_options *options, mx_error *err);

/** For each key whose bit is set, the suite (MX_SUITE_*) on which the most other values of the key give other bytes than spec does: its vectors decide
 *  what identify left undecided. -1 where none does: the key has no effect beside the others. Suites are as mx_generate(suite, spec, 0 or 32,
 *  0 or 256, 1) makes them. MX_ERR_NOMEM.  Oracle: tests/test_identify.c. */
mx_status mx_deciding_suites(int suite_of[64], const mx_spec *spec, uint64_t keys);

/** Code of one element of a matrix, 4-bit codes unpacked; elem=none gives the float's bits. */
uint32_t mx_code_at(const mx_tensor *tensor, const mx_spec *spec, size_t row, size_t col);

enum { MX_DIFF_PATTERNS = 16, MX_DIFF_WORDS = 200, MX_DIFF_ROWS = 64, MX_DIFF_COLS = 64 };

/** One element that differs. */
typedef struct mx_diff_example {
  size_t row, col;
  uint32_t code_a, code_b, scale_a, scale_b;
  double value_a, value_b;
  float x, amax;        /* of the input, with one */
  double quotient, tie; /* x / (scale of A * tensor scale), and its distance to the nearest midpoint of codes; NaN without an input */
} mx_diff_example;

/** How two results are compared. The zero struct: NaN equals NaN whatever its code or sign, codes under a NaN scale do not count, -0 is not +0. */
typedef struct mx_diff_options {
  int nan_bits;          /* 1: NaN codes are compared like any others */
  int equal_zeros;       /* 1: -0 and +0 are the same */
  int values;            /* 1: dequantise both, where they differ, and count the values that differ */
  mx_diff_example *list; /* room for the first n_list elements that differ; NULL: none are listed */
  size_t n_list;
  /* For tensors larger than memory: rows [row, row + n) of the input as binary32, dense, valid until the next call (in place of x); and
   * word that rows [row, row + n) will not be looked at soon. Both may be NULL; self is theirs. Rows come in pieces, each once, in order with input(). */
  const float *(*input)(void *self, size_t row, size_t n);
  void (*passed)(void *self, size_t row, size_t n);
  /* Copy n_bytes of codes of A or B that lie at `from`, by a way that is cheaper than looking at them there: mx_file_read(). Returns 0; else they are
   * looked at in place. Called by all threads. May be NULL. */
  int (*read)(void *self, void *room, const void *from, size_t n_bytes);
  void *self;
  int n_threads; /* 0: OpenMP's default; input() and list take one. The result does not depend on it */
} mx_diff_options;

/** What differs between A (expected) and B (actual). */
typedef struct mx_difference {
  int equal;
  uint64_t n_codes, codes, n_scales, scales, n_values, values, tensor_scales; /* compared; that differ. HiF4's micro-scales count as scales */
  uint64_t zero_signs, nan_codes;           /* that were let pass or, for zero_signs without equal_zeros, are among codes */
  uint64_t padding;                         /* bytes behind the ends of rows that differ; they do not count */
  size_t rows, blocks;                      /* with a code that differs */
  uint64_t by_position[256];                /* in the block; the last entry gathers the rest */
  uint64_t by_scale[256];                   /* scale byte of A of the elements that differ */
  uint64_t pairs[16][16];                   /* code of A, code of B: 4-bit elements; else magnitudes' top four bits */
  uint64_t scale_steps[17];                 /* scale byte of B - A, from -8 or less to 8 or more */
  uint32_t scale_pairs[256][256];           /* scale code of A, of B, where they differ; the last gathers what is beyond */
  uint32_t map[MX_DIFF_ROWS][MX_DIFF_COLS]; /* differing elements over the matrix, as a coarse picture */
  uint64_t ties[16];                        /* elements that differ by distance to a tie, in binary orders of 2^-i (with an input) */
  int n_examples;
  size_t n_listed;
  mx_diff_example first, worst, smallest;
  char patterns[MX_DIFF_PATTERNS][MX_DIFF_WORDS]; /* what all differences have in common, plain words; none that chance explains */
  int n_patterns;
} mx_difference;

/** Compare two quantised matrices of one shape and spec. x may be NULL; values_a and values_b (dequantised, [rows][cols]) too.
 *  One pass; rows that are equal byte for byte cost one memcmp. Patterns that need a second look (another layout of the scales, a transpose, the
 *  other block axis) take it only where the rest does not exclude them; the last two make a copy, and leave matrices above 2^26 elements alone.
 *  MX_ERR_SHAPE (the two differ in shape), MX_ERR_NOMEM.
 *  Oracle: tests/test_diff.c, tests/test_diff_counts.c, tests/mutants. */
mx_status mx_diff(mx_difference *out, const mx_tensor *a, const mx_tensor *b, const mx_spec *spec, const float *x, size_t ld,
                  const float *values_a, const float *values_b, const mx_diff_options *options, mx_error *err);

#ifdef __cplusplus
}
#endif
#endif
