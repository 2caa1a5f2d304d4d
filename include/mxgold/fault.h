/** Parses, prints and runs faults: what a wrong kernel does instead of its spec, at one stage and in one region. SPEC section 9. */
#ifndef MXGOLD_FAULT_H
#define MXGOLD_FAULT_H

#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** The stages of quantising at which a kernel may be wrong: rows of formats/faults.def. */
typedef enum mx_stage {
#define MX_FAULT_STAGE(id, ...) MX_STAGE_##id,
#include "../../formats/faults.def"
#undef MX_FAULT_STAGE
  MX_STAGE_COUNT
} mx_stage;
/** What a wrong kernel does at a stage: rows of formats/faults.def. */
typedef enum mx_fault_op {
  MX_FAULT_NONE,
#define MX_FAULT(id, ...) MX_FAULT_##id,
#include "../../formats/faults.def"
#undef MX_FAULT
  MX_FAULT_COUNT
} mx_fault_op;
/** What kind of argument an operation takes. */
typedef enum mx_fault_arg {
  MX_FAULT_ARG_NONE,
  MX_FAULT_ARG_NUMBER,
  MX_FAULT_ARG_COUNT,
  MX_FAULT_ARG_FORMAT,
  MX_FAULT_ARG_LAYOUT,
  MX_FAULT_ARG_RULE,
  MX_FAULT_ARG_BITS,
  MX_FAULT_ARG_DIGITS,
  MX_FAULT_ARG_RANDOM
} mx_fault_arg;

/** Where a fault acts: everywhere, or where the number that is named here (of a row, a column, ...) lies in a set or an interval. Numbers count from 0. */
typedef enum mx_region_of {
  MX_REGION_ALL,
  MX_REGION_ROWS,      /* row of the tensor; of a tile its first row */
  MX_REGION_COLUMNS,   /* column of an element; of a block its first column */
  MX_REGION_BLOCKS,    /* block in its row of blocks */
  MX_REGION_ELEMENTS,  /* element in its block, row by row of a tile */
  MX_REGION_ORDER,     /* block, row after row of blocks */
  MX_REGION_MEMORY,    /* element, row after row of the tensor */
  MX_REGION_SCALE,     /* code of the block's scale as the spec gives it */
  MX_REGION_TAIL,      /* the last block of a row where it is a short one */
  MX_REGION_ZERO,      /* blocks without a number but zero */
  MX_REGION_SUBNORMAL, /* blocks whose scale, as the spec gives it, is subnormal */
  MX_REGION_NEGATIVE,  /* elements whose sign bit is set */
  MX_REGION_POSITIVE,
  MX_REGION_COUNT
} mx_region_of;
enum { MX_REGION_MOST = 128, MX_FAULT_LIST = 16 }; /* the largest modulus; entries of a list */

/** A region; the zero struct is everywhere. */
typedef struct mx_region {
  int of;                      /* MX_REGION_* */
  uint32_t modulus;            /* with rows, columns, blocks, elements, order, memory: i mod modulus in set; 0: first <= i <= last */
  uint8_t set[MX_REGION_MOST]; /* set[i] is 1 if the remainder i belongs to the region */
  uint64_t first, last;        /* last UINT64_MAX: to the end */
} mx_region;

/** One fault: REGION [and REGION]: STAGE <- OPERATION [ARGUMENT]. The zero struct is none. */
typedef struct mx_fault {
  mx_region region, also; /* it acts where both are; most faults have one region, and also is everywhere */
  int op;                 /* MX_FAULT_*; its row says the stage */
  double number;          /* the argument of one that takes a NUMBER, a COUNT (an integer), RANDOM (the seed) or DIGITS (how many) */
  int format; /* of one that takes a FORMAT (elements, then scales), a LAYOUT (an mx_layout), a RULE (their order in SPEC 9) or RANDOM (the rest) */
  /* Of one that takes DIGITS these; of BITS for each bit of a place, from the lowest on, the bits of its source whose exclusive or it is, those of the row
   * in the lower byte and those of the column in the upper one; 0 behind the last. */
  uint16_t list[MX_FAULT_LIST];
} mx_fault;
enum { MX_FAULTS = 2, MX_FAULT_TEXT = 640 };

/** A row of formats/faults.def; NULL outside the enum. words has one %s where the argument stands. */
typedef struct mx_fault_row {
  int stage, arg;
  const char *op, *name, *words;
} mx_fault_row;
const mx_fault_row *mx_fault_row_at(int op);
const char *mx_stage_name(int stage);

/** Read one fault, "rows%32=31: scale store <- row -1" or "blocks%2=1 and rows=16-: block amax <- row -1". MX_ERR_ARG says what is wrong and names what could stand there; out is then untouched.
 *  Threads: reentrant. */
mx_status mx_fault_parse(mx_fault *out, const char *text, mx_error *err);
/** Write it so that mx_fault_parse() reads it back; returns the length of the whole text, as snprintf does. */
size_t mx_fault_print(char *out, size_t size, const mx_fault *fault);
/** What a kernel with the fault does, as a clause for a sentence. As snprintf. */
size_t mx_fault_words(char *out, size_t size, const mx_fault *fault);

/** mx_quantize() of a kernel that has up to MX_FAULTS faults, in the order of their stages, two of one stage as they are given.
 *  The block rule runs in scalar code on one thread, a block at a time, so this is far slower than mx_quantize().
 *  out, src, spec, err  as for mx_quantize(); out is allocated under the plain spec
 *  Returns as mx_quantize(); MX_ERR_CONFLICT also for rules that have steps of their own (scale.rule=hif4 or quest), for random bits, and for a
 *  fault that means nothing under this spec or shape (a rotation that does not divide the columns).

 *  Threads: reentrant.   Source: SPEC 9.   Oracle: ref_quantize_faulty(), tests/test_fault_ref.c, tests/strangers. */
mx_status mx_quantize_faulty(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_fault *faults,
                             size_t n, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
