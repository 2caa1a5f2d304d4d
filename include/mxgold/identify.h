/** Finds the spec that a black box follows, from its inputs and outputs. */
#ifndef MXGOLD_IDENTIFY_H
#define MXGOLD_IDENTIFY_H

#include "fault.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** What a black box gave for one tensor: codes and scales, or only values (codes is NULL). */
typedef struct mx_sample {
  size_t rows, cols, ld; /* of x, row stride ld */
  const float *x;
  const uint8_t *codes; /* [rows][cols], one per byte */
  const void *scales;   /* [scale_rows][scale_cols], scale_bytes each (1, 2 or 4) */
  size_t scale_rows, scale_cols, scale_bytes;
  int has_tensor_scale;
  float tensor_scale;
  const float *values; /* dequantised, [rows][cols]; NULL if unknown */
} mx_sample;

/** How to search. The zero struct takes the block from the shapes, all processors and ten seconds. The result depends on the time limit only if the
 *  limit is reached, and since the limit is processor time, a busy machine hardly changes that. Neither the result nor the number of specs tried
 *  depends on the number of threads. */
typedef struct mx_identify_options {
  int block_rows, block_cols; /* 0: found */
  int n_threads;
  double seconds;   /* of the calling thread's processor time, after which the search gives up improving; 0 means 10 */
  int no_undecided; /* 1: leave out the list of keys that the data cannot decide */
} mx_identify_options;

/** What an answer promises. */
typedef enum mx_grade {
  MX_GRADE_NONE,     /* there is no answer: some bytes are unexplained, or next to nothing is decided */
  MX_GRADE_FITS,     /* it gives every byte of these data, but was not tested on others, or too few of them support it */
  MX_GRADE_CONFIRMED /* it also gives every byte of a half of the data that was not used to find it, and chance does not explain that */
} mx_grade;

/** Names of bugs of which the rule is right, and what it reads is not. */
#define MX_BUG_TRANSPOSED "transposed"
#define MX_BUG_ROW_TENSORS "a tensor scale for each row"
/** Name of what has no rule: a few blocks are wrong here and there. Codes and scales are left, then. */
#define MX_BUG_RACE "race, no rule"
/** Names that mx_bug.name can be, in no order; some stand there several times. NULL past the last. */
const char *mx_bug_name_at(size_t i);

/** A known bug over a preset: what a kernel does that follows no spec. */
typedef struct mx_bug {
  const char *name;   /* short and fixed ("amax without abs"); NULL: no known bug */
  char text[512];     /* what the kernel does instead, and where: a clause for a sentence */
  const char *preset; /* the preset that has the bug; without a bug the preset that differs least; NULL: none fits the shapes */
  mx_spec spec;       /* of that preset */
  uint64_t preset_codes, preset_scales, preset_tensor; /* codes, scales, tensor scales that differ from the plain preset */
  uint64_t codes, scales, tensor_scales;               /* those that still differ when the preset is run with the bug on all data */
  mx_fault fault[MX_FAULTS]; /* the bug as faults that mx_quantize_faulty() runs over spec, with which it gives every byte; n_faults of them */
  size_t n_faults;           /* 0: the bug has no such words */
  double least, most; /* the number of a fault was read off the data, which leave open which one between these it is; both 0: there is none */
  int confirmed;      /* the faults hold on the half of the data that they were not fitted to, and nothing nearly as likely gives the same */
  mx_fault
      rival[MX_FAULTS]; /* other faults that give every byte of these data, and other bytes of others; n_rival of them, over rival_preset */
  const char *rival_preset;
  size_t n_rival; /* 0: none was found that is nearly as likely */
} mx_bug;

/** Faults over the preset or the spec of an answer that give the same bytes as it does, of these data: they are not ruled out. */
typedef struct mx_alternative {
  mx_fault fault[MX_FAULTS];
  size_t n_faults;
} mx_alternative;
enum { MX_ALTERNATIVES = 24 };

/** What was found. */
typedef struct mx_identity {
  mx_spec spec;
  int exact;                      /* every byte is reproduced */
  const char *preset;             /* name of the preset that gives the same bytes as spec on these data, else NULL */
  const char *nearest;            /* the preset with the fewest keys to change, NULL if none has this element, scale and block */
  uint64_t n_codes, codes_differ; /* outside blocks whose scale is NaN */
  uint64_t n_scales, scales_differ;
  uint64_t nan_codes_differ; /* inside those blocks, or NaNs with other NaN codes; they do not count against exact */
  uint64_t tensor_scales_differ, n_values, values_differ;
  uint64_t zero_signs_differ;                      /* among values_differ: zeros that differ only in sign */
  float tensor_scale_stored, tensor_scale_of_spec; /* of the first sample whose tensor scale differs */
  uint64_t undecided;                              /* bit i: key mx_key_name(i) could have another value with the same bytes */
  int stochastic;                                  /* rounding is random */
  int blank;                                       /* the input has no finite number other than zero, so the data decide almost nothing */
  /* With a stochastic rounding whose seed was not found, over ordinary blocks: */
  int random_bits_least, random_bits_most; /* numbers of random bits that fit; 24: 24 or more; 0: unknown */
  int random_biased;                       /* codes are rounded up more or less often than their fractions say */
  double random_bias;                      /* mean of the stored value minus the exact one, in steps of the element format */
  uint64_t random_n, random_beyond;        /* elements between two codes; those of them that became neither neighbour */
  char random_shared[64];                  /* what has one random number each, as "row" or "column, alike in all rows"; "": every element */
  /* First block that differs, if any: */
  size_t bad_sample, bad_row, bad_col;
  uint64_t specs_tried;
  int complete; /* 1: no time limit cut the search short; 0: with more time the answer, or what is undecided, may be different */
  int grade;    /* MX_GRADE_* */
  mx_bug bug;   /* a known bug that gives every byte, if no spec does, or only one whose numbers no library would choose */
  mx_alternative also[MX_ALTERNATIVES]; /* what else a kernel that is no preset may do, of faults without a number: these data do not show it */
  size_t n_also;
} mx_identity;

/** Find the spec that a black box follows by a search over keys: formats, block, scale side, element side, special blocks.
 *  Returns MX_OK (also if nothing exact was found: see out->exact), MX_ERR_ARG, MX_ERR_SHAPE (scales fit no block shape), MX_ERR_TIME (the
 *  time ended before any spec was run), MX_ERR_NOMEM (also if memory ran out during the search: there is no partial answer).
 *  Threads: reentrant; the result does not depend on the number of threads unless time runs out (out->complete is 0).
 *  Oracle: tests/test_identify.c, tests/test_nomem.c. */
mx_status mx_identify(mx_identity *out, const mx_sample *samples, size_t n, const mx_identify_options *options, mx_error *err);

/** For each key whose bit is set, find the suite (MX_SUITE_*) on which the largest number of other values of the key give bytes different from
 *  those of spec: its vectors decide what identify left undecided. -1 if there is none: the key has no effect beside the others. Suites are as
 *  mx_generate(suite, spec, 0 or 32, 0 or 256, 1) makes them. MX_ERR_NOMEM.  Oracle: tests/test_identify.c. */
mx_status mx_deciding_suites(int suite_of[MX_MAX_KEYS], const mx_spec *spec, uint64_t keys);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
