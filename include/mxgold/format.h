/** Describes number formats, and decodes and encodes one value at a time. SPEC sections 1 and 2.
 *
 *  A format is a row of formats/elements.def, scales.def or operands.def. Codes are unsigned integers in the low bits. */
#ifndef MXGOLD_FORMAT_H
#define MXGOLD_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** A code that a format does not have, in the columns of mx_format. */
#define MX_NO_CODE UINT64_MAX

/** The kinds of formats: floats, floats without zero, sign and subnormals (EXP), two's complement integers, floats without -0 (FNUZ), and none. */
typedef enum mx_format_kind { MX_KIND_FLOAT, MX_KIND_EXP, MX_KIND_INT, MX_KIND_FNUZ, MX_KIND_NONE } mx_format_kind;

/** A row of a table of formats: its widths in bits, its bias, and its special codes. */
typedef struct mx_format {
  const char *name;
  mx_format_kind kind;
  uint8_t bits, sign_bits, exp_bits, man_bits;
  int16_t bias;
  uint64_t max_code, inf_code, nan_first, nan_last, nan_code; /* columns of formats/elements.def */
  const char *source;
} mx_format;

/** Element formats: rows of formats/elements.def. */
typedef enum mx_elem {
#define MX_FORMAT(id, ...) MX_ELEM_##id,
#include "../../formats/elements.def"
#undef MX_FORMAT
  MX_ELEM_COUNT
} mx_elem;

/** Scale formats: rows of formats/scales.def. */
typedef enum mx_scale {
#define MX_FORMAT(id, ...) MX_SCALE_##id,
#include "../../formats/scales.def"
#undef MX_FORMAT
  MX_SCALE_COUNT
} mx_scale;

/** Formats that only operands of matrix units have: rows of formats/operands.def. */
typedef enum mx_operand {
#define MX_FORMAT(id, ...) MX_OPERAND_##id,
#include "../../formats/operands.def"
#undef MX_FORMAT
  MX_OPERAND_COUNT
} mx_operand;

/** The row of an enum value; NULL outside the enum. */
const mx_format *mx_elem_format(int elem);
const mx_format *mx_scale_format(int scale);
const mx_format *mx_operand_format(int operand);
/** A row of any of the three tables by name (elements first); NULL if there is none. */
const mx_format *mx_format_find(const char *name);

/** Value of a code, exact: every format of the tables fits binary64. NaN codes give a quiet NaN with the code's sign.
 *  Bits above format->bits are ignored. Threads: reentrant. Source: SPEC 2. Oracle: tests/spec tables typed by hand, ref_decode. */
double mx_decode(const mx_format *format, uint64_t code);

/** Largest finite value, smallest positive value, and floor(log2(largest)). */
double mx_format_max(const mx_format *format);
double mx_format_min(const mx_format *format);
int mx_format_emax(const mx_format *format);
/** True when code decodes to NaN. */
int mx_format_is_nan(const mx_format *format, uint64_t code);

/** How one value becomes a code. The zero struct is RNE, saturating, NaN to sign | max if the format has no NaN. Fields are values of the
 *  lists of formats/choices.def (MX_ROUND_*, MX_OVERFLOW_*, ...); spec.h has the keys that they belong to. */
typedef struct mx_encoding {
  int round;                   /* MX_ROUND_*, key elem.round */
  int overflow;                /* MX_OVERFLOW_*, key elem.overflow */
  int saturate_to;             /* MX_SATURATE_TO_*, key elem.saturate_to */
  int nan;                     /* MX_ELEM_NAN_*, key elem.nan */
  int inf;                     /* MX_ELEM_INF_*, key elem.inf */
  int zero_sign;               /* MX_ZERO_SIGN_*, key elem.zero_sign */
  int sr_mode;                 /* MX_SR_*, key sr.mode */
  int sr_bits;                 /* random bits used; 0 means 16 */
  uint32_t nan_code, inf_code; /* for nan=code=N and inf=code=N: code with sign bit 0 */
} mx_encoding;

/** Code of the exact value x (a binary64 holds every quotient that this library needs: results of inexact divisions are rounded to odd first).
 *  random is the random integer of SPEC 6 (its low sr_bits bits), which only MX_ROUND_SR uses.
 *  Threads: reentrant. Source: SPEC 2; OCP MX v1.0 sec. 5.3 and 6.3. Oracle: ref_encode, MPFR, make exhaustive. */
uint64_t mx_encode(const mx_format *format, double x, const mx_encoding *how, uint32_t random);
/** The value that x becomes in a format: mx_decode() of mx_encode(), with the arguments of mx_encode().
 *  Threads: reentrant. Oracle: ref_encode and ref_decode, tests/test_codec.c. */
double mx_round_to(const mx_format *format, double x, const mx_encoding *how, uint32_t random);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
