/* Lists the values of each key that the search tries: choices of the tables, and numbers read off the data. */
#include "verify/identify/search/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/trial/overlap.h"

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
    size_t ld;
    const float *all = mxi_observation_x(o, i, &ld);
    if (!o->facts[i].whole.has_nan && !o->facts[i].whole.has_inf) continue;
    for (size_t r = 0; s->codes && r < s->rows; r++)
      for (size_t c = 0; c < s->cols; c++) {
        const float x = all[r * ld + c];
        if (want_nan ? !isnan(x) : !isinf(x)) continue;
        const uint8_t code = s->codes[r * s->cols + c];
        t.count[code & ((1u << (f->bits - f->sign_bits)) - 1)]++;
        if (f->sign_bits) t.count[code]++;
      }
  }
  add_bytes(v, name, &t, most);
}

/* How many codes of each kind are tried, the most frequent ones: a rule gives one or two, the others leave room for limits and bugs in the same
 * blocks. Each one is a value of its key in every product of keys. */
enum { SCALE_CODES = 2, ZERO_SCALE_CODES = 3, NAN_CODES = 4, INF_CODES = 3, NAN_CODES_OF_INF = 1, END_CODES = 4 };
/* From how many blocks at the ends of the range, and how many elements of each, codes are counted: enough for the most frequent ones to stand out. */
enum { END_BLOCKS = 256, END_ELEMENTS = 64 };
/* From how many samples the tensor scale is read: each gives the same target under the right rule. */
enum { TARGET_SAMPLES = 4 };

/* By how much an interval is widened: for bfloat16 arithmetic by its last bit; for binary32's by a lost bit or two; for a target by its sixth
 * digit. */
static const double OF_BFLOAT16 = 0x1p-8, OF_BINARY32 = 0x1p-22, OF_DIGITS = 1e-6;
/* Numbers that kernels use lie within these bounds. Those that are read off beyond them come from blocks under another rule; wider bounds would
 * add values that cost trials and explain nothing. */
static const double LEAST_SCALE_MAX = 0.1, LEAST_NORMED_MAX = 0.5, MOST_SCALE_MAX = 1e6;
static const double LEAST_TARGET = 1, MOST_TARGET = 1e9, MOST_STORED_TARGET = 1e12;
static const double LEAST_PRESCALE = 1e-3, MOST_PRESCALE = 1e3;
/* An amax beyond these may have been rounded away in a product with another number. */
static const double LEAST_AMAX = 0x1p-100, MOST_AMAX = 0x1p100;
/* scale.min is a lower limit: a code that stands for more than this is none. */
static const double MOST_SCALE_MIN = 0x1p100;
/* If a factor of 1 lies within a thousandth of the interval, there is no prescale, and the key is left alone. */
static const double NEAR_ONE = 1e-3;
/* A prescale is tried as a multiple of one in so many where one fits, since people write 0.85 and not 0.8467. */
enum { PRESCALE_PARTS = 20 };
/* The middle of an interval of prescales is tried if its ends lie within this factor; in a wider one the middle is no better than any other
 * number. */
static const double NARROW = 1.05;
/* Elements must narrow a target down to an interval of this factor, and this share of them must agree, or they tell nothing about it. */
static const double TARGET_FACTOR = 1 + 0x1p-10, AGREEING_TARGETS = 0.9;
/* A number is looked for with at most so many bits: that is a binary32's. */
enum { NUMBER_BITS = 24 };

/* The simplest number near an interval, for arithmetic of fewer bits that widens it. */
static double number_near(interval in) { return mxi_simplest_between(in.least * (1 - OF_BFLOAT16), in.most * (1 + OF_BFLOAT16)); }

/* A number out of an interval: the simplest one there is, and the middle if none is simple. */
static double number_in(interval in) {
  const double simple = mxi_simplest_between(in.least, in.most);
  if (simple > 0) return simple;
  return isfinite(in.most) ? (in.least + in.most) / 2 : 0;
}

/* Codes that numbers have got in blocks at the ends of the range, where a scaled value may be infinite. */
static void end_elements(key_values *v, const char *name, const observation *o) {
  const mx_format *f = mx_elem_format(o->formats.elem);
  const uint32_t magnitude = (1u << (f->bits - f->sign_bits)) - 1;
  tally t = {{0}};
  for (size_t i = 0, seen = 0; i < o->n_blocks && o->samples[0].codes && seen < END_BLOCKS; i++) {
    const block_at *b = &o->blocks[i];
    if (b->kind != BLOCK_SMALL && b->kind != BLOCK_LARGE) continue;
    size_t rows, cols, ld;
    const mx_sample *s = &o->samples[b->sample];
    const float *x = mxi_observation_x(o, b->sample, &ld) + b->row * ld + b->col;
    mxi_observation_extent(o, b, &rows, &cols);
    for (size_t k = 0; k < rows * cols && k < END_ELEMENTS; k++)
      if (x[k / cols * ld + k % cols] != 0) t.count[s->codes[(b->row + k / cols) * s->cols + b->col + k % cols] & magnitude]++;
    seen++;
  }
  t.count[0] = 0;
  add_bytes(v, name, &t, END_CODES);
}

/* The number of fewest bits in [least, most]. */
static double roundest_between(double least, double most) {
  for (int e = ilogb(most); e > ilogb(most) - NUMBER_BITS; e--) {
    const double k = ldexp(ceil(ldexp(least, -e)), e);
    if (k > 0 && k <= most) return k;
  }
  return 0;
}

/* Target of a tensor scale, from what is stored and the amax that belongs to it. */
static void targets(key_values *v, const observation *o) {
  for (size_t i = 0; i < o->n_samples && i < TARGET_SAMPLES; i++) {
    const mx_sample *s = &o->samples[i];
    const double a = (double)o->facts[i].whole.amax_finite, t = (double)s->tensor_scale;
    if (!s->has_tensor_scale || !isfinite(a) || !isfinite(t) || a <= 0 || t <= 0) continue;
    const interval k[2] = {{t * a * (1 - OF_BINARY32), t * a * (1 + OF_BINARY32)}, {a / t * (1 - OF_BINARY32), a / t * (1 + OF_BINARY32)}};
    for (int j = 0; j < 2; j++) {
      if (!(k[j].least >= LEAST_TARGET && k[j].most < MOST_STORED_TARGET)) continue;
      add_number(v, "", roundest_between(k[j].least, k[j].most));
      if (mxi_simplest_between(k[j].least, k[j].most) > 0) add_number(v, "", mxi_simplest_between(k[j].least, k[j].most));
    }
  }
}

static double stated_target(const observation *o, int as_scale) {
  for (size_t i = 0; i < o->n_samples; i++) {
    const mx_sample *s = &o->samples[i];
    const mx_block_stats *w = &o->facts[i].whole;
    const double a = (double)w->amax_finite, t = (double)s->tensor_scale;
    if (!s->has_tensor_scale || w->has_nan || w->has_inf || !isfinite(t) || a <= 0 || t <= 0 || a < LEAST_AMAX || a > MOST_AMAX) continue;
    return as_scale ? a / t : t * a;
  }
  return 0;
}

/* A number is read off the data if this share of the blocks, or of the elements, allows one and the same interval of it. With a lower share every
 * rule of rounding finds an interval of its own; with a higher one blocks under another rule (limits, special values) hide the number. */
static const double AGREEING_SCALES = 0.6, AGREEING_ELEMENTS = 0.7;

/* A number out of an interval. Where none of few binary digits lies there, it may have been typed as its reciprocal, 0.167 for 1/6. */
static void add_number_in(key_values *v, interval in) {
  const double direct = number_in(in), typed = in.least > 0 ? mxi_simplest_between(1 / in.most, 1 / in.least) : 0;
  if (direct * 256 != floor(direct * 256) && typed > 0) add_number(v, "", 1 / typed);
  add_number(v, "", direct);
}

/* scale.max: what the ordinary blocks allow under each rounding, and with each tensor scale. */
static void scale_maxima(key_values *v, const observation *o) {
  const double fixed = mx_format_max(mx_elem_format(o->formats.elem)), m = mx_format_max(mx_scale_format(o->formats.scale));
  for (int way = 0; way < TOWARD_COUNT; way++) {
    interval in;
    if (mxi_scale_max_interval(&in, o, (toward)way, 0) > AGREEING_SCALES && number_in(in) < MOST_SCALE_MAX) add_number_in(v, in);
    if (mxi_scale_max_interval(&in, o, (toward)way, 1) <= AGREEING_SCALES) continue;
    if (number_in(in) < MOST_SCALE_MAX && number_in(in) > LEAST_NORMED_MAX) add_number(v, "", number_in(in)); /* tensor.norm=unit */
    for (int as_scale = 0; as_scale < 2; as_scale++) {
      const double k = stated_target(o, as_scale);
      const interval f = {in.least * k, in.most * k};
      if (k >= LEAST_TARGET && number_in(f) < MOST_SCALE_MAX && number_in(f) > LEAST_SCALE_MAX) add_number_in(v, f);
      /* With the default target the ordinary blocks say nothing of scale.max, but the tensor scale does. */
      const interval t = {k / m * (1 - OF_DIGITS), k / m * (1 + OF_DIGITS)};
      if (k >= LEAST_TARGET && number_in(t) != fixed && number_in(t) > LEAST_SCALE_MAX && number_in(t) < MOST_SCALE_MAX)
        add_number(v, "", number_in(t));
    }
  }
}

/* tensor.target where no tensor scale is stated: from scale.max / target. */
static void targets_from_blocks(key_values *v, const observation *o) {
  const double largest = mx_format_max(mx_elem_format(o->formats.elem));
  for (int way = 0; way < TOWARD_COUNT; way++) {
    interval in;
    if (mxi_scale_max_interval(&in, o, (toward)way, 1) <= AGREEING_SCALES || !(in.least > 0)) continue;
    const interval k = {largest / in.most, largest / in.least};
    if (number_in(k) >= LEAST_TARGET && number_in(k) < MOST_TARGET) add_number(v, "", number_in(k));
  }
  const mx_sample *s = &o->samples[0]; /* given as an amax, whatever the tensor's own is */
  for (int way = 0; s->has_tensor_scale && way < TOWARD_COUNT; way++) {
    interval in;
    if (mxi_scale_max_interval(&in, o, (toward)way, 0) <= AGREEING_SCALES || !(in.least > 0)) continue;
    const interval k = {largest * (double)s->tensor_scale / in.most, largest * (double)s->tensor_scale / in.least};
    if (number_in(k) >= LEAST_TARGET && number_in(k) < MOST_TARGET) add_number(v, "", number_in(k));
  }
}

/* The same from the elements: they see the target whatever the scale's rule and its limits make of the blocks. */
static void targets_from_elements(key_values *v, const observation *o) {
  for (int way = 0; way < TOWARD_COUNT && o->samples[0].has_tensor_scale && o->samples[0].codes; way++) {
    interval in;
    if (mxi_prescale_interval(&in, o, (toward)way, 1) < AGREEING_TARGETS || in.most > in.least * TARGET_FACTOR) continue;
    const double k = roundest_between(in.least, in.most);
    if (k >= LEAST_TARGET && k < MOST_TARGET) add_number(v, "", k);
    if (number_in(in) >= LEAST_TARGET && number_in(in) < MOST_TARGET) add_number(v, "", number_in(in));
  }
}

static void prescales(key_values *v, const observation *o) {
  const double k = mx_format_max(mx_elem_format(o->formats.elem)) * mx_format_max(mx_scale_format(o->formats.scale));
  const double given = o->samples[0].has_tensor_scale ? (double)o->samples[0].tensor_scale : 0;
  /* Without a tensor scale; with one that is given, as a scale or a divisor; with one to the usual target, to 1 (tensor.norm=unit), to the stated one. */
  const struct {
    double target;
    int normed;
  } by[] = {{1, 0}, {given, 0}, {1 / given, 0}, {k, 1}, {1, 1}, {stated_target(o, 0), 1}, {stated_target(o, 1), 1}};
  for (size_t i = 0; i < sizeof by / sizeof by[0]; i++)
    for (int way = TOWARD_COUNT - 1; way >= 0 && by[i].target > 0 && isfinite(by[i].target);
         way--) { /* the choice "either" comes first, which random rounding needs */
      interval in;
      if ((i == 1 || i == 2) && given == 1) continue;
      if (mxi_prescale_interval(&in, o, (toward)way, by[i].normed) < AGREEING_ELEMENTS) continue;
      in.least /= by[i].target, in.most /= by[i].target;
      if (in.least * (1 - NEAR_ONE) <= 1 && in.most * (1 + NEAR_ONE) >= 1) continue;
      if (number_in(in) > LEAST_PRESCALE && number_in(in) < MOST_PRESCALE) add_number(v, "", number_in(in));
      if (number_near(in) > LEAST_PRESCALE && number_near(in) < MOST_PRESCALE) add_number(v, "", number_near(in));
      const double round = ceil(in.least * PRESCALE_PARTS) / PRESCALE_PARTS, middle = (in.least + in.most) / 2;
      if (round <= in.most && round < MOST_PRESCALE) add_number(v, "", round);
      if (middle > LEAST_PRESCALE && middle < MOST_PRESCALE && in.most < NARROW * in.least) add_number(v, "", middle);
    }
}

/* How many of the least, or largest, codes may be a limit: a block or two may have a code beyond it because of a bug, or by chance. */
enum { ENDS = 3 };

/* The least, or largest, few codes of scales of numbers. */
static int scale_ends(uint32_t out[ENDS], const observation *o, int largest) {
  const mx_format *f = mx_scale_format(o->formats.scale);
  uint32_t last = largest ? UINT32_MAX : 0;
  for (int k = 0; k < ENDS; k++) {
    uint32_t best = largest ? 0 : UINT32_MAX;
    for (size_t i = 0; i < o->n_blocks; i++) {
      const block_at *b = &o->blocks[i];
      if (mx_format_is_nan(f, b->scale) || b->kind == BLOCK_ZERO) continue;
      if (largest ? b->scale < last && b->scale > best : b->scale > last && b->scale < best) best = b->scale;
    }
    if (best == 0 || best == UINT32_MAX) return k;
    out[k] = last = best;
  }
  return ENDS;
}

static void end_codes(key_values *v, const observation *o, int largest) {
  uint32_t codes[ENDS];
  const int n = scale_ends(codes, o, largest);
  for (int i = 0; i < n; i++)
    if (codes[i] <= (largest ? UINT16_MAX : UINT8_MAX)) add_number(v, "", codes[i]);
}

/* scale.min: what the least codes stand for, and those that many small blocks have. */
static void least_values(key_values *v, const observation *o) {
  const mx_format *f = mx_scale_format(o->formats.scale);
  uint32_t codes[ENDS];
  const int n = scale_ends(codes, o, 0);
  for (int i = 0; i < n; i++)
    if (mx_decode(f, codes[i]) < MOST_SCALE_MIN) add_number(v, "", mx_decode(f, codes[i]));
  key_values common = {.n = 0};
  scale_bytes(&common, "", o, BLOCK_SMALL, SCALE_CODES);
  for (size_t i = 0; i < common.n; i++) {
    const double least = mx_decode(f, (uint32_t)strtoul(common.text[i], NULL, 10));
    if (least > 0 && least < MOST_SCALE_MIN) add_number(v, "", least);
  }
  add_number(v, "", 0x1p-6); /* e4m3's least normal number */
  add_number(v, "", 0x1p-9); /* and its least of all */
}

/* Values read off the data for name=N. */
static void mined(key_values *v, const char *key, const char *name, const observation *o) {
  if (!strcmp(key, "scale.allzero")) scale_bytes(v, name, o, BLOCK_ZERO, SCALE_CODES);
  if (!strcmp(key, "scale.nan")) scale_bytes(v, name, o, BLOCK_NAN, SCALE_CODES);
  if (!strcmp(key, "scale.inf")) scale_bytes(v, name, o, BLOCK_INF, SCALE_CODES);
  if (!strcmp(key, "scale.zero")) {
    scale_bytes(v, name, o, BLOCK_SMALL, ZERO_SCALE_CODES);
    if (o->formats.scale_form == MX_SCALE_FORM_ENCODE)
      scale_bytes(v, name, o, BLOCK_LARGE, ZERO_SCALE_CODES); /* max / amax is zero where amax is huge */
    if (o->least_scale < 256) add_number(v, name, o->least_scale);
  }
  if (!strcmp(key, "elem.nan")) element_codes(v, name, o, 1, NAN_CODES);
  if (!strcmp(key, "elem.inf"))
    element_codes(v, name, o, 0, INF_CODES), element_codes(v, name, o, 1, NAN_CODES_OF_INF), end_elements(v, name, o);
  if (!strcmp(key, "scale.max")) {
    scale_maxima(v, o);
    add_number(v, name, 4);    /* fouroversix's other candidate */
    add_number(v, name, 7.25); /* auto-round's second version of RCEIL */
  }
}

static int left_out(const char *name) {
  return !strcmp(name, "error") || !strcmp(name, "sr") || !strcmp(name, "given") || !strcmp(name, "hif4") || !strcmp(name, "fixed") ||
         !strcmp(name, "eden");
}

/* Keys that are not tried: those that the observation supposes, those that name a layout, and those without a list of values. */
static int not_searched(const char *key) {
  static const char *const keys[] = {"elem",        "scale", "block",     "nibble",       "had.size", "had.sign",
                                     "input.dtype", "seed",  "sr.source", "tensor.given", "hif4.ties"};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
    if (!strcmp(key, keys[i])) return 1;
  return 0;
}

static void find_values(key_values *v, const char *key, size_t index, const observation *o) {
  const char *choice, *doc;
  int number = 0;
  for (size_t row = 0; (choice = mx_key_choice(index, row, &doc, &number)); row++) {
    if (number)
      mined(v, key, choice, o);
    else if (!left_out(choice))
      add(v, choice);
  }
  if (v->n) return;
  add(v, "0");
  if (!strcmp(key, "scale.even_bits"))
    for (int i = 1; i <= 7; i++) add_number(v, "", i);
  if (!strcmp(key, "scale.min_byte")) end_codes(v, o, 0), scale_bytes(v, "", o, BLOCK_ZERO, 1); /* it may lift zeros alone */
  if (!strcmp(key, "scale.max_byte")) end_codes(v, o, 1);
  if (!strcmp(key, "scale.min")) least_values(v, o);
  if (!strcmp(key, "tensor.target")) {
    targets(v, o);
    targets_from_blocks(v, o);
    targets_from_elements(v, o);
    add_number(v, "", 1536); /* of 4over6: 256 times e2m1's 6, where others take e4m3's 448 */
  }
  if (!strcmp(key, "elem.prescale")) { /* the usual ones first: random rounding allows their neighbours too */
    add_number(v, "", 0.75), add_number(v, "", 0.5), add_number(v, "", 0.875);
    prescales(v, o);
  }
}

struct value_cache {
  key_values of[MX_MAX_KEYS];
  uint8_t known[MX_MAX_KEYS];
};

struct value_cache *mxi_value_cache_new(void) {
  return calloc(1, sizeof(struct value_cache));
}

void mxi_values_of(key_values *v, const char *key, const observation *o) {
  v->n = 0;
  size_t index = 0;
  const char *name;
  while ((name = mx_key_name(index)) && strcmp(name, key)) index++;
  if (!name || not_searched(key)) return;
  if (!o->cache || index >= MX_MAX_KEYS) {
    find_values(v, key, index, o);
    return;
  }
  if (!o->cache->known[index]) { /* once: the data do not change, and intervals take their time */
    find_values(&o->cache->of[index], key, index, o);
    o->cache->known[index] = 1;
  }
  *v = o->cache->of[index];
}
