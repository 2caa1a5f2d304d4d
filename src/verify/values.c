/* What to try. */
#include "verify/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(key_values *v, const char *text) {
  for (size_t i = 0; i < v->n; i++)
    if (!strcmp(v->text[i], text)) return;
  if (v->n < MAX_VALUES) snprintf(v->text[v->n++], VALUE_TEXT, "%s", text);
}

static void add_number(key_values *v, const char *name, double x) {
  char text[VALUE_TEXT];
  snprintf(text, sizeof text, "%s%s%.9g", name, *name ? "=" : "", x);
  add(v, text);
}

double simplest_between(double least, double most) {
  static const double denominators[] = {1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 50, 64, 100, 128, 256, 1000};
  for (size_t i = 0; i < sizeof denominators / sizeof denominators[0]; i++) {
    const double n = ceil(least * denominators[i] - 1e-9);
    if (n > 0 && n / denominators[i] <= most * (1 + 1e-12)) return n / denominators[i];
  }
  return 0;
}

typedef struct tally {
  uint32_t count[256];
} tally;

/* The most frequent bytes of a tally, at most `most` of them. */
static void add_bytes(key_values *v, const char *name, tally *t, int most) {
  for (int k = 0; k < most; k++) {
    int best = 0;
    for (int i = 1; i < 256; i++)
      if (t->count[i] > t->count[best]) best = i;
    if (!t->count[best]) return;
    add_number(v, name, best);
    t->count[best] = 0;
  }
}

/* Stored scale codes of the blocks of a class. */
static void scale_bytes(key_values *v, const char *name, const observation *o, block_class kind, int most) {
  tally t = {{0}};
  for (size_t i = 0; i < o->n_blocks; i++)
    if (o->blocks[i].kind == kind && o->blocks[i].scale < 256) t.count[o->blocks[i].scale]++;
  add_bytes(v, name, &t, most);
}

/* Codes, without their sign, that elements which are NaN (or Inf) have got. */
static void element_codes(key_values *v, const char *name, const observation *o, int want_nan, int most) {
  const mx_format *f = mx_elem_format(o->formats.elem);
  tally t = {{0}};
  for (size_t i = 0; i < o->n_samples; i++) {
    const mx_sample *s = &o->samples[i];
    for (size_t r = 0; s->codes && r < s->rows; r++)
      for (size_t c = 0; c < s->cols; c++) {
        const float x = s->x[r * s->ld + c];
        if (want_nan ? !isnan(x) : !isinf(x)) continue;
        const uint8_t code = s->codes[r * s->cols + c];
        t.count[code & ((1u << (f->bits - f->sign_bits)) - 1)]++;
        if (f->sign_bits) t.count[code]++;
      }
  }
  add_bytes(v, name, &t, most);
}

/* scale.max from the ratio amax / scale, which every rounding bounds in its own way. */
static void scale_maxima(key_values *v, const observation *o, int normed) {
  const mx_format *f = mx_scale_format(o->formats.scale);
  double least = INFINITY, most = 0, sum = 0;
  size_t n = 0;
  for (size_t i = 0; i < o->n_blocks; i++) {
    const block_at *b = &o->blocks[i];
    if (b->kind != BLOCK_PLAIN) continue;
    const double s = mx_decode(f, b->scale), amax = (double)b->amax / (normed ? (double)o->facts[b->sample].amax : 1);
    const double ratio = o->formats.scale_form == MX_SCALE_FORM_ENCODE ? amax * s : amax / s;
    if (!(ratio > 0) || isinf(ratio)) continue;
    least = fmin(least, ratio);
    most = fmax(most, ratio);
    sum += log2(ratio);
    n++;
  }
  if (n < 4) return;
  const double close = 1 / sqrt((double)n);
  const double guesses[] = {simplest_between(most, fmin(2 * least, most * (1 + 2 * close))),  /* rounded up: at most max */
                            simplest_between(fmax(most / 2, least * (1 - 2 * close)), least), /* down: at least max */
                            simplest_between(most / 1.5, fmin(least / 0.75, most / 1.5 * (1 + 2 * close))),
                            simplest_between(exp2(sum / (double)n) * 0.99, exp2(sum / (double)n) * 1.01)};
  for (size_t i = 0; i < 4; i++)
    if (guesses[i] > 0 && guesses[i] < 1e6) add_number(v, "", guesses[i]);
}

/* Target of a tensor scale, from what is stored and the amax that belongs to it. */
static void targets(key_values *v, const observation *o) {
  for (size_t i = 0; i < o->n_samples && i < 4; i++) {
    const mx_sample *s = &o->samples[i];
    const double a = (double)o->facts[i].amax, t = (double)s->tensor_scale;
    if (!s->has_tensor_scale || !isfinite(a) || !isfinite(t) || a <= 0 || t <= 0) continue;
    const double k[2] = {simplest_between(t * a * (1 - 1e-6), t * a * (1 + 1e-6)), simplest_between(a / t * (1 - 1e-6), a / t * (1 + 1e-6))};
    for (int j = 0; j < 2; j++)
      if (k[j] >= 1 && k[j] < 1e9) add_number(v, "", k[j]);
  }
}

/* Values read off the data for name=N. */
static void mined(key_values *v, const char *key, const char *name, const observation *o) {
  if (!strcmp(key, "scale.allzero")) scale_bytes(v, name, o, BLOCK_ZERO, 2);
  if (!strcmp(key, "scale.nan")) scale_bytes(v, name, o, BLOCK_NAN, 2);
  if (!strcmp(key, "scale.inf")) scale_bytes(v, name, o, BLOCK_INF, 2);
  if (!strcmp(key, "scale.zero")) {
    scale_bytes(v, name, o, BLOCK_SMALL, 3);
    if (o->least_scale < 256) add_number(v, name, o->least_scale);
  }
  if (!strcmp(key, "elem.nan")) element_codes(v, name, o, 1, 4);
  if (!strcmp(key, "elem.inf")) element_codes(v, name, o, 0, 3), element_codes(v, name, o, 1, 1);
  if (!strcmp(key, "scale.max")) {
    scale_maxima(v, o, 0);
    if (o->samples[0].has_tensor_scale) scale_maxima(v, o, 1);
    add_number(v, name, 4);
    add_number(v, name, 7.25);
  }
}

static int left_out(const char *key, const char *name) {
  if (!strcmp(name, "error") || !strcmp(name, "sr") || !strcmp(name, "given") || !strcmp(name, "hif4")) return 1;
  return !strcmp(key, "elem") || !strcmp(key, "scale") || !strcmp(key, "nibble");
}

void values_of(key_values *v, const char *key, const observation *o) {
  v->n = 0;
  size_t index = 0;
  const char *name;
  while ((name = mx_key_name(index)) && strcmp(name, key)) index++;
  if (!name) return;
  const char *choice, *doc;
  int number = 0;
  for (size_t row = 0; (choice = mx_key_choice(index, row, &doc, &number)); row++) {
    if (number)
      mined(v, key, choice, o);
    else if (!left_out(key, choice))
      add(v, choice);
  }
  if (v->n) return;
  const mx_format *f = mx_scale_format(o->formats.scale);
  add(v, "0");
  if (!strcmp(key, "scale.even_bits"))
    for (int i = 1; i <= 7; i++) add_number(v, "", i);
  if (!strcmp(key, "scale.min_byte") && o->least_scale && o->least_scale < 256) add_number(v, "", o->least_scale);
  if (!strcmp(key, "scale.max_byte") && o->largest_scale) add_number(v, "", o->largest_scale);
  if (!strcmp(key, "scale.min")) {
    const double least = o->least_scale != UINT32_MAX ? mx_decode(f, o->least_scale) : 0;
    if (least > 0 && least < 0x1p100) add_number(v, "", least);
    add_number(v, "", 0x1p-6);
    add_number(v, "", 0x1p-9);
  }
  if (!strcmp(key, "tensor.target")) {
    targets(v, o);
    add_number(v, "", 1536);
  }
  if (!strcmp(key, "elem.prescale")) add_number(v, "", 0.75), add_number(v, "", 0.5), add_number(v, "", 0.875);
}
