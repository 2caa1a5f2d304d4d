/** Declares faults of the reference: the twin of mxgold/fault.h, which it shares no row of a table with. SPEC 9 defines each word. */
#ifndef MXGOLD_REF_FAULT_H
#define MXGOLD_REF_FAULT_H

#include "ref.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { REF_FAULT_NUMBERS = 128, REF_BITS = 13, REF_HASH_STEPS = 6 };

/** RANDOM: which random number an element gets. */
typedef struct ref_random_source {
  const char *generator, *count; /* in tables of ref */
  struct {
    int is_shift;
    uint32_t by;
  } step[REF_HASH_STEPS]; /* of a hash: factors, and shifts by which it is xored with itself */
  int n_steps;
  uint32_t seed;
  char join;                     /* ':', '+' or '^' */
  unsigned long long tile, over; /* rows of a tile; what the count is divided by */
  int bits, low, folded, split;  /* of the word */
} ref_random_source;

/** A region as it was read. */
typedef struct ref_region {
  const char *name;                     /* "all", "rows", ...; NULL: there is none */
  uint64_t modulus, first, last;        /* of a region with numbers; modulus 0: an interval */
  uint8_t remainder[REF_FAULT_NUMBERS]; /* 1: this one belongs to the region */
} ref_region;

/** REGION [and REGION]: STAGE <- OPERATION [ARGUMENT], as it was read: words point into tables of ref. */
typedef struct ref_fault {
  ref_region region[2];
  int stage; /* in the order of SPEC 9 */
  const char *op;
  int tile_rows, tile_cols;          /* of BITS: a tile has 2^tile_rows rows and 2^tile_cols columns */
  uint8_t is_of[REF_BITS][REF_BITS]; /* is_of[k][i]: bit k of a place is an exclusive or of bits of its source, of which bit i is one */
  size_t n_digits;                   /* DIGITS */
  uint8_t digits[16];
  double number;           /* a NUMBER, or an integer as COUNT */
  const mx_format *format; /* a FORMAT */
  int layout;
  const char *rule; /* a RULE */
  ref_random_source random;
} ref_fault;

/** Read one fault. MX_ERR_ARG for a word that ref lacks, which the message names. */
mx_status ref_fault_read(ref_fault *out, const char *text, mx_error *err);
/** The twin of mx_quantize_faulty(), faults as ref read them. */
mx_status ref_quantize_faulty(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                              const ref_fault *faults, size_t n, mx_error *err);

#ifdef __cplusplus
}
#endif
#endif
