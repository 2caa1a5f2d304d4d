/* Encodes single values under the keys of a library's cast. */
#include "mxgold/encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/threads.h"
#include "mxgold/codec.h"
#include "mxgold/nearest.h"
#include "mxgold/random.h"

#define MX_ENCODER(preset, format, keys, source) {preset, format, keys, source},
static const mx_encoder_row rows[] = {
#include "formats/encoders.def"
};
#undef MX_ENCODER
enum { N_ROWS = sizeof rows / sizeof rows[0] };

const mx_encoder_row *mx_encoder_row_at(size_t index) { return index < N_ROWS ? &rows[index] : NULL; }

static int is_first(size_t row) {
  for (size_t i = 0; i < row; i++)
    if (!strcmp(rows[i].preset, rows[row].preset)) return 0;
  return 1;
}

const char *mx_encoder_preset(size_t index) {
  for (size_t i = 0; i < N_ROWS; i++)
    if (is_first(i) && index-- == 0) return rows[i].preset;
  return NULL;
}

static const char *preset_at(const void *set, size_t index) {
  (void)set;
  return mx_encoder_preset(index);
}

mx_status mx_encoder_keys(mx_spec *spec, const char *preset, const char *format, mx_error *err) {
  if (!preset) return MX_OK;
  mx_spec work = *spec;
  int known = 0;
  for (size_t i = 0; i < N_ROWS; i++) {
    if (strcmp(rows[i].preset, preset)) continue;
    known = 1;
    if (strcmp(rows[i].format, "any") && strcmp(rows[i].format, format)) continue;
    const mx_status status = mx_spec_parse(&work, rows[i].keys, err);
    if (status) return status;
  }
  if (!known) {
    char near[160];
    mx_nearest(near, sizeof near, preset, preset_at, NULL);
    return mx_fail(err, MX_ERR_KEY, "preset '%s' of encode is unknown, nearest: %s", preset, near);
  }
  *spec = work;
  return MX_OK;
}

/* Element formats come first, so that e4m3 is the signed one, and then scale formats whose names no element format has. */
static const mx_format *format_at(size_t index) {
  for (int i = 0; i < MX_ELEM_COUNT; i++)
    if (mx_elem_format(i)->bits <= 8 && index-- == 0) return mx_elem_format(i);
  for (int i = 0; i < MX_SCALE_COUNT; i++) {
    const mx_format *f = mx_scale_format(i);
    if (f->bits <= 8 && mx_format_find(f->name) == f && index-- == 0) return f;
  }
  return NULL;
}

const char *mx_encoder_format_name(size_t index) {
  const mx_format *f = format_at(index);
  return f ? f->name : NULL;
}

static const char *format_name(const void *set, size_t index) {
  (void)set;
  return mx_encoder_format_name(index);
}

mx_status mx_encoder_format(const mx_format **out, const char *name, mx_error *err) {
  const mx_format *f;
  for (size_t i = 0; (f = format_at(i)); i++)
    if (!strcmp(f->name, name)) {
      *out = f;
      return MX_OK;
    }
  char near[160];
  mx_nearest(near, sizeof near, name, format_name, NULL);
  return mx_fail(err, MX_ERR_KEY, "unknown one-byte format '%s'; nearest: %s", name, near);
}

mx_status mx_encoder_init(mx_encoder *out, const mx_format *format, const mx_spec *spec, mx_error *err) {
  if (spec->elem_round == MX_ROUND_SCAN_X || spec->elem_round == MX_ROUND_SCAN_Y)
    return mx_fail(err, MX_ERR_CONFLICT, "elem.round=scan_x and scan_y round elements of a block, expected a rounding of single values");
  *out = (mx_encoder){.format = format,
                      .how = mx_elem_encoding(spec),
                      .negative = spec->scale_negative,
                      .subnormal = spec->scale_subnormal,
                      .seed = spec->seed};
  return MX_OK;
}

/* Encodes a subnormal binary32 as e8m0 by its mantissa bits alone: x / 2^-126 is the fraction of a step from code 0 to code 1. The same
 * fraction above an even code rounds in the same way, except that ties stay down, and that code is then subtracted. */
static uint8_t by_encoding(const mx_encoder *e, double x, uint32_t random) {
  mx_encoding how = e->how;
  if (how.round == MX_ROUND_RNA) how.round = MX_ROUND_RTZ_TIE;
  const int even = 2;
  return (uint8_t)(mx_encode(e->format, ldexp(1 + ldexp(x, 126), even - e->format->bias), &how, random) - even);
}

static uint8_t unsigned_code(const mx_encoder *e, double x, uint32_t random) {
  const int exp_kind = e->format->kind == MX_KIND_EXP;
  if (e->negative == MX_NEGATIVE_NAN && (x < 0 || (x == 0 && exp_kind))) x = NAN;
  x = fabs(x);
  if (exp_kind && e->format->man_bits == 0 && e->subnormal == MX_SCALE_SUBNORMAL_ENCODING && x < 0x1p-126) return by_encoding(e, x, random);
  return (uint8_t)mx_encode(e->format, x, &e->how, random);
}

uint8_t mx_encoder_code(const mx_encoder *e, float x, uint32_t random) {
  const double y = e->scale_is_nan ? copysign(NAN, (double)x) : ldexp((double)x, -e->scale_exp);
  return e->format->sign_bits ? (uint8_t)mx_encode(e->format, y, &e->how, random) : unsigned_code(e, y, random);
}

/* Whether mx_encode_array() gives the codes (of |x| for a format without a sign), except for a few values of a format without a sign. */
static int is_plain(const mx_encoder *e) { return e->how.round != MX_ROUND_SR && !e->scale_exp && !e->scale_is_nan; }

/* Those few values: negative numbers and zeros under scale.negative=nan, and values that e8m0 rounds in its own way. */
static int is_special(const mx_encoder *e, float x) { return !((e->negative == MX_NEGATIVE_NAN ? x : fabsf(x)) >= 0x1p-126f); }

static void run_plain(uint8_t *out, const float *x, size_t n, const mx_encoder *e) {
  enum { PART = 1 << 17 };
  float *magnitudes = e->format->sign_bits ? NULL : malloc((n < PART ? n : PART) * sizeof *magnitudes + 1);
  for (size_t i = 0, here; i < n; i += here) {
    here = magnitudes && n - i > PART ? PART : n - i;
    for (size_t k = 0; magnitudes && k < here; k++) magnitudes[k] = fabsf(x[i + k]);
    const float *from = e->format->sign_bits ? x + i : magnitudes;
    if (from) mx_encode_array(out + i, from, here, e->format, &e->how, NULL);
    for (size_t k = 0; k < here && from != x + i; k++)
      if (!from || is_special(e, x[i + k])) out[i + k] = mx_encoder_code(e, x[i + k], 0); /* !from means that there was no memory */
  }
  free(magnitudes);
}

mx_status mx_encoder_run(uint8_t *out, const float *x, uint64_t first, size_t n, const mx_encoder *e, const uint32_t *bits, uint64_t *refused) {
  if (e->how.nan == MX_ELEM_NAN_ERROR)
    for (size_t i = 0; i < n; i++)
      if (isnan(x[i]) || e->scale_is_nan) {
        if (refused) *refused = first + i;
        return MX_ERR_DATA;
      }
  if (is_plain(e)) {
    run_plain(out, x, n, e);
    return MX_OK;
  }
  const int stochastic = e->how.round == MX_ROUND_SR, drop = 32 - (e->how.sr_bits ? e->how.sr_bits : 16);
#pragma omp parallel for schedule(static) num_threads(mx_threads(NULL, n, 1 << 12))
  for (size_t i = 0; i < n; i++) {
    const uint32_t random = !stochastic ? 0 : bits ? bits[i] : mx_random(e->seed, MX_STREAM_ELEMENT, first + i) >> drop;
    out[i] = mx_encoder_code(e, x[i], random);
  }
  return MX_OK;
}
