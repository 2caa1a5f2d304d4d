/** Makes the codes of single values under the keys of a library's cast, as `mxgold encode` does. SPEC section 2.
 *
 *  A preset of encode is a set of rows of formats/encoders.def: keys that the cast implies, for every format or for one. */
#ifndef MXGOLD_ENCODER_H
#define MXGOLD_ENCODER_H

#include "spec.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** Name of the index-th preset of encode; each occurs once. NULL past the last. */
const char *mx_encoder_preset(size_t index);

/** A row of formats/encoders.def; NULL past the last. */
typedef struct mx_encoder_row {
  const char *preset, *format, *keys, *source;
} mx_encoder_row;
const mx_encoder_row *mx_encoder_row_at(size_t index);

/** Set the keys of a preset for a format: every row whose format is `format` or "any" is applied to *spec, in order. preset NULL leaves *spec
 *  as it is. MX_ERR_KEY names the nearest presets; spec is then untouched. */
mx_status mx_encoder_keys(mx_spec *spec, const char *preset, const char *format, mx_error *err);

/** Find a format that encode takes by name: an element (not none) or a scale of one byte. MX_ERR_KEY names the nearest. */
mx_status mx_encoder_format(const mx_format **out, const char *name, mx_error *err);
/** Name of the index-th such format; NULL past the last. */
const char *mx_encoder_format_name(size_t index);

/** How single values are encoded, as mx_encoder_init() fills it in. */
typedef struct mx_encoder {
  const mx_format *format;
  mx_encoding how;  /* keys elem.*, sr.mode, sr.bits of the spec */
  int negative;     /* MX_NEGATIVE_*, key scale.negative; unsigned formats */
  int subnormal;    /* MX_SCALE_SUBNORMAL_*, key scale.subnormal; e8m0 */
  int scale_exp;    /* the code is that of x * 2^-scale_exp; -MX_ENCODER_EXP .. MX_ENCODER_EXP, so that it is exact in binary64 */
  int scale_is_nan; /* 1: the scale is NaN, and every x becomes the NaN code with the sign of x */
  uint64_t seed;    /* of Philox, used if no random integers are given */
} mx_encoder;
enum { MX_ENCODER_EXP = 700 };

/** Make an encoder from keys: elem.round, elem.overflow, elem.saturate_to, elem.nan, elem.inf, elem.zero_sign, sr.bits (0: how->sr_bits stays
 *  0, which means 16), sr.mode, scale.negative, scale.subnormal, seed. MX_ERR_CONFLICT: a rounding that needs a block (scan_x, scan_y). */
mx_status mx_encoder_init(mx_encoder *out, const mx_format *format, const mx_spec *spec, mx_error *err);

/** Code of one value. random: an integer of how.sr_bits bits, for MX_ROUND_SR. elem.nan=error has no effect here.
 *  Threads: reentrant. Oracle: tests/peers (cuda_host, amd_host, ml_dtypes, torch, gfloat-sr). */
uint8_t mx_encoder_code(const mx_encoder *encoder, float x, uint32_t random);

/** Codes of n values; first is the index of x[0] in its tensor.
 *  bits   random integers of how.sr_bits bits, one per value; NULL: the top bits of Philox of (seed, stream 0, index). Read under MX_ROUND_SR
 *         alone.
 *  Returns MX_OK, or MX_ERR_DATA (a NaN under elem.nan=error): *refused (may be NULL) is its index in the tensor and out is untouched.
 *  Threads: runs on several, with the same bits for any number. */
mx_status mx_encoder_run(uint8_t *out, const float *x, uint64_t first, size_t n, const mx_encoder *encoder, const uint32_t *bits,
                         uint64_t *refused);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
