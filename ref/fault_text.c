/* Reads a fault of SPEC 9 by tables of the reference's own. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "fault_run.h"

enum { NOTHING, NUMBER, COUNT, FORMAT, LAYOUT, RULE, BITS, DIGITS, RANDOM };

static const struct {
  int stage, takes;
  const char *op;
} words[] = {{REF_INPUT, NOTHING, "relu"},
             {REF_INPUT, NOTHING, "abs"},
             {REF_INPUT, NOTHING, "negate"},
             {REF_INPUT, NOTHING, "bfloat16"},
             {REF_INPUT, NOTHING, "bfloat16 cut"},
             {REF_INPUT, NOTHING, "float16"},
             {REF_INPUT, FORMAT, "format"},
             {REF_INPUT, FORMAT, "scaled format"},
             {REF_INPUT, NUMBER, "clip"},
             {REF_INPUT, NUMBER, "times"},
             {REF_INPUT, COUNT, "minus mean"},
             {REF_INPUT, NOTHING, "silu"},
             {REF_INPUT, NOTHING, "over column amax"},
             {REF_INPUT, NOTHING, "over root of column amax"},
             {REF_INPUT, COUNT, "column"},
             {REF_INPUT, NOTHING, "transposed"},
             {REF_INPUT, COUNT, "pitch"},
             {REF_INPUT, NOTHING, "zero"},
             {REF_ROTATION, COUNT, "hadamard"},
             {REF_ROTATION, COUNT, "unnormalised"},
             {REF_ROTATION, COUNT, "normalised twice"},
             {REF_ROTATION, COUNT, "sequency"},
             {REF_ROTATION, COUNT, "down"},
             {REF_ROTATION, COUNT, "unfinished"},
             {REF_ROTATION, COUNT, "bfloat16 steps"},
             {REF_ROTATION, COUNT, "to bfloat16"},
             {REF_TENSOR, NOTHING, "only"},
             {REF_TENSOR, NOTHING, "no abs"},
             {REF_TENSOR, NUMBER, "times"},
             {REF_TENSOR, NOTHING, "bfloat16"},
             {REF_TENSOR, NUMBER, "at least"},
             {REF_TENSOR, NOTHING, "integer"},
             {REF_TENSOR, NOTHING, "as given"},
             {REF_TENSOR, NUMBER, "value"},
             {REF_TENSOR_SCALE, NUMBER, "target"},
             {REF_TENSOR_SCALE, NUMBER, "value"},
             {REF_TENSOR_SCALE, NUMBER, "times"},
             {REF_TENSOR_SCALE, COUNT, "rows"},
             {REF_TENSOR_SCALE, COUNT, "last of rows"},
             {REF_TENSOR_SCALE, COUNT, "running"},
             {REF_TENSOR_SCALE, COUNT, "running before"},
             {REF_TENSOR_SCALE, NOTHING, "power of two"},
             {REF_TENSOR_SCALE, NOTHING, "bfloat16"},
             {REF_TENSOR_SCALE, NOTHING, "float16"},
             {REF_TENSOR_SCALE, NOTHING, "used bfloat16"},
             {REF_TENSOR_SCALE, NOTHING, "used float16"},
             {REF_TENSOR_SCALE, NOTHING, "stored reciprocal"},
             {REF_TENSOR_SCALE, NOTHING, "stored divisor"},
             {REF_TENSOR_SCALE, NOTHING, "stored amax"},
             {REF_TENSOR_SCALE, NOTHING, "divisor"},
             {REF_AMAX, NUMBER, "times"},
             {REF_AMAX, NUMBER, "plus"},
             {REF_AMAX, NUMBER, "at least"},
             {REF_AMAX, NUMBER, "at most"},
             {REF_AMAX, NOTHING, "no abs"},
             {REF_AMAX, NOTHING, "negative"},
             {REF_AMAX, NOTHING, "unsigned"},
             {REF_AMAX, NOTHING, "without"},
             {REF_AMAX, NOTHING, "integer"},
             {REF_AMAX, COUNT, "rank"},
             {REF_AMAX, NUMBER, "percentile"},
             {REF_AMAX, NUMBER, "mean times"},
             {REF_AMAX, NUMBER, "rms times"},
             {REF_AMAX, NOTHING, "only"},
             {REF_AMAX, COUNT, "blocks"},
             {REF_AMAX, COUNT, "rows"},
             {REF_AMAX, NOTHING, "whole row"},
             {REF_AMAX, NOTHING, "running"},
             {REF_AMAX, COUNT, "running down"},
             {REF_AMAX, COUNT, "running in"},
             {REF_AMAX, COUNT, "with next"},
             {REF_AMAX, COUNT, "with block"},
             {REF_AMAX, NOTHING, "strided"},
             {REF_AMAX, COUNT, "strided in"},
             {REF_AMAX, COUNT, "window"},
             {REF_AMAX, NOTHING, "before rotation"},
             {REF_AMAX, COUNT, "rotated"},
             {REF_AMAX, NOTHING, "of transposed tile"},
             {REF_AMAX, NUMBER, "average"},
             {REF_AMAX, COUNT, "block"},
             {REF_AMAX, COUNT, "row"},
             {REF_AMAX, COUNT, "first of blocks"},
             {REF_AMAX, COUNT, "first of rows"},
             {REF_AMAX, COUNT, "row modulo"},
             {REF_AMAX, COUNT, "block modulo"},
             {REF_AMAX, NOTHING, "stale lanes"},
             {REF_AMAX, NOTHING, "bfloat16"},
             {REF_AMAX, NOTHING, "bfloat16 cut"},
             {REF_AMAX, NOTHING, "float16"},
             {REF_AMAX, NUMBER, "value"},
             {REF_SCALE, COUNT, "plus"},
             {REF_SCALE, NUMBER, "largest"},
             {REF_SCALE, NOTHING, "log2 rounded"},
             {REF_SCALE, NOTHING, "log2 of amax rounded"},
             {REF_SCALE, NOTHING, "log2 bfloat16"},
             {REF_SCALE, NOTHING, "log2 float16"},
             {REF_SCALE, NOTHING, "or of exponents"},
             {REF_SCALE, NOTHING, "bfloat16"},
             {REF_SCALE, NOTHING, "float16"},
             {REF_SCALE, FORMAT, "format"},
             {REF_SCALE, NOTHING, "modulo"},
             {REF_SCALE, RULE, "rule"},
             {REF_SCALE, NOTHING, "flush"},
             {REF_SCALE, NOTHING, "flush first"},
             {REF_SCALE, NOTHING, "toward zero"},
             {REF_SCALE, NOTHING, "up"},
             {REF_SCALE, NOTHING, "worse of two"},
             {REF_SCALE, NOTHING, "better of 6 and 4"},
             {REF_SCALE, NOTHING, "worse of 6 and 4"},
             {REF_SCALE, NOTHING, "better of 6 and 4 in units"},
             {REF_SCALE, COUNT, "row"},
             {REF_SCALE, COUNT, "block"},
             {REF_SCALE, COUNT, "value"},
             {REF_STORE, COUNT, "plus"},
             {REF_STORE, COUNT, "row"},
             {REF_STORE, COUNT, "block"},
             {REF_STORE, COUNT, "row xor"},
             {REF_STORE, COUNT, "block xor"},
             {REF_STORE, COUNT, "first of rows"},
             {REF_STORE, COUNT, "first of blocks"},
             {REF_STORE, COUNT, "row modulo"},
             {REF_STORE, COUNT, "block modulo"},
             {REF_STORE, NOTHING, "down"},
             {REF_STORE, COUNT, "value"},
             {REF_STORE, NOTHING, "keep"},
             {REF_STORE, COUNT, "keep from"},
             {REF_STORE, NOTHING, "flush"},
             {REF_STORE, NOTHING, "reciprocal"},
             {REF_STORE, NOTHING, "sign of largest"},
             {REF_STORE, RULE, "rule"},
             {REF_STORE, NUMBER, "amax times"},
             {REF_DIVISOR, COUNT, "row"},
             {REF_DIVISOR, COUNT, "block"},
             {REF_DIVISOR, COUNT, "row xor"},
             {REF_DIVISOR, COUNT, "block xor"},
             {REF_DIVISOR, COUNT, "first of rows"},
             {REF_DIVISOR, COUNT, "first of blocks"},
             {REF_DIVISOR, NOTHING, "down"},
             {REF_DIVISOR, COUNT, "order"},
             {REF_DIVISOR, COUNT, "block over"},
             {REF_DIVISOR, COUNT, "block modulo"},
             {REF_DIVISOR, COUNT, "row modulo"},
             {REF_DIVISOR, NOTHING, "repeated"},
             {REF_DIVISOR, COUNT, "lanes alike in"},
             {REF_DIVISOR, NOTHING, "lanes from"},
             {REF_DIVISOR, COUNT, "lanes down of"},
             {REF_DIVISOR, NOTHING, "lanes to"},
             {REF_DIVISOR, NOTHING, "exponent 0 as normal"},
             {REF_DIVISOR, COUNT, "plus"},
             {REF_DIVISOR, NUMBER, "amax times"},
             {REF_DIVISOR, RULE, "rule"},
             {REF_DIVISOR, NOTHING, "zero"},
             {REF_DIVISOR, NOTHING, "zero to zero"},
             {REF_DIVISOR, NOTHING, "zero to +0"},
             {REF_DIVISOR, FORMAT, "as"},
             {REF_DIVISOR, FORMAT, "as number"},
             {REF_DIVISOR, NOTHING, "flush"},
             {REF_DIVISOR, NOTHING, "subnormal as normal"},
             {REF_DIVISOR, COUNT, "reciprocal bits"},
             {REF_DIVISOR, COUNT, "reciprocal nearest bits"},
             {REF_DIVISOR, COUNT, "scale reciprocal bits"},
             {REF_DIVISOR, COUNT, "scale reciprocal nearest bits"},
             {REF_DIVISOR, COUNT, "reciprocal estimate"},
             {REF_DIVISOR, NOTHING, "reciprocal, NaN to largest"},
             {REF_DIVISOR, NOTHING, "reciprocal bfloat16"},
             {REF_DIVISOR, NOTHING, "reciprocal float16"},
             {REF_DIVISOR, NOTHING, "bfloat16"},
             {REF_DIVISOR, NOTHING, "unrounded"},
             {REF_DIVISOR, NOTHING, "unrounded times"},
             {REF_DIVISOR, NOTHING, "unrounded reciprocal"},
             {REF_DIVISOR, NOTHING, "before rounding"},
             {REF_DIVISOR, NOTHING, "no tensor scale"},
             {REF_DIVISOR, NOTHING, "tensor scale twice"},
             {REF_DIVISOR, NOTHING, "tensor scale inverted"},
             {REF_DIVISOR, NOTHING, "skip"},
             {REF_DIVISOR, NOTHING, "inverted"},
             {REF_DIVISOR, NOTHING, "twice"},
             {REF_CLAMP, NUMBER, "before"},
             {REF_CLAMP, COUNT, "column"},
             {REF_CLAMP, COUNT, "row"},
             {REF_CLAMP, NOTHING, "bfloat16"},
             {REF_CLAMP, NOTHING, "float16"},
             {REF_ELEMENT, NOTHING, "bfloat16"},
             {REF_ELEMENT, NOTHING, "bfloat16 cut"},
             {REF_ELEMENT, NOTHING, "float16"},
             {REF_ELEMENT, NOTHING, "float16 cut"},
             {REF_ELEMENT, FORMAT, "format"},
             {REF_ELEMENT, FORMAT, "as"},
             {REF_ELEMENT, NUMBER, "times"},
             {REF_ELEMENT, NUMBER, "clip"},
             {REF_ELEMENT, COUNT, "bits behind the point"},
             {REF_ELEMENT, COUNT, "guard bits"},
             {REF_ELEMENT, NOTHING, "float16 then cut"},
             {REF_ELEMENT, NOTHING, "carry lost"},
             {REF_ELEMENT, NOTHING, "saturated, carry lost"},
             {REF_ELEMENT, NOTHING, "half added"},
             {REF_ELEMENT, NOTHING, "modulo"},
             {REF_ELEMENT, NOTHING, "flush"},
             {REF_ELEMENT, NOTHING, "flush rounded"},
             {REF_ELEMENT, NUMBER, "subnormal times"},
             {REF_ELEMENT, NOTHING, "subnormal without leading one"},
             {REF_ELEMENT, NOTHING, "subnormal toward zero"},
             {REF_ELEMENT, NOTHING, "exponent 0 as normal"},
             {REF_ELEMENT, COUNT, "shift bits"},
             {REF_ELEMENT, NUMBER, "up from"},
             {REF_ELEMENT, NUMBER, "up beyond"},
             {REF_ELEMENT, NOTHING, "toward zero"},
             {REF_ELEMENT, NOTHING, "away from zero"},
             {REF_ELEMENT, NOTHING, "ties away"},
             {REF_ELEMENT, NOTHING, "ties toward zero"},
             {REF_ELEMENT, NOTHING, "ties up"},
             {REF_ELEMENT, NOTHING, "ties down"},
             {REF_ELEMENT, NOTHING, "ties to odd"},
             {REF_ELEMENT, RANDOM, "random below"},
             {REF_ELEMENT, RANDOM, "random above"},
             {REF_ELEMENT, RANDOM, "random carry"},
             {REF_ELEMENT, RANDOM, "random carry of half"},
             {REF_ELEMENT, RANDOM, "random floor"},
             {REF_ELEMENT, RANDOM, "random then nearest"},
             {REF_ELEMENT, RANDOM, "random signed"},
             {REF_ELEMENT, RANDOM, "random of own step"},
             {REF_ELEMENT, RANDOM, "random centred"},
             {REF_ELEMENT, RANDOM, "random centred of least step"},
             {REF_ELEMENT, NOTHING, "wrap"},
             {REF_CODE, NOTHING, "negate"},
             {REF_CODE, NOTHING, "abs"},
             {REF_CODE, NOTHING, "+0 for -0"},
             {REF_CODE, NOTHING, "-0 for +0"},
             {REF_CODE, COUNT, "plus"},
             {REF_CODE, NOTHING, "flush"},
             {REF_CODE, COUNT, "sign of"},
             {REF_CODE, COUNT, "sign rolled"},
             {REF_CODE, NOTHING, "sign of pair"},
             {REF_CODE, COUNT, "sign xor"},
             {REF_CODE, COUNT, "sign bit"},
             {REF_CODE, NOTHING, "negate by largest"},
             {REF_CODE, NOTHING, "sign of largest"},
             {REF_CODE, NOTHING, "swap pairs"},
             {REF_CODE, COUNT, "reverse"},
             {REF_CODE, COUNT, "column"},
             {REF_CODE, COUNT, "column xor"},
             {REF_CODE, COUNT, "value"},
             {REF_CODE, NOTHING, "two's complement"},
             {REF_CODE, NOTHING, "sign and magnitude"},
             {REF_CODE, NOTHING, "sign smeared"},
             {REF_CODE, NOTHING, "lowest"},
             {REF_CODE, DIGITS, "bits"},
             {REF_CODE, DIGITS, "table"},
             {REF_LAYOUT, COUNT, "row"},
             {REF_LAYOUT, COUNT, "block"},
             {REF_LAYOUT, COUNT, "row xor"},
             {REF_LAYOUT, COUNT, "block xor"},
             {REF_LAYOUT, COUNT, "codes of row"},
             {REF_LAYOUT, COUNT, "codes of row xor"},
             {REF_LAYOUT, NOTHING, "codes zero"},
             {REF_LAYOUT, NOTHING, "zero"},
             {REF_LAYOUT, LAYOUT, "scales in"},
             {REF_LAYOUT, LAYOUT, "scales twice in"},
             {REF_LAYOUT, NOTHING, "scales transposed"},
             {REF_LAYOUT, COUNT, "scales written at pitch"},
             {REF_LAYOUT, COUNT, "scales written over zeros at pitch"},
             {REF_LAYOUT, COUNT, "scales read at pitch"},
             {REF_LAYOUT, COUNT, "scales read over zeros at pitch"},
             {REF_LAYOUT, BITS, "scales by bits"},
             {REF_LAYOUT, BITS, "scales tiled by bits"},
             {REF_LAYOUT, BITS, "codes by bits"},
             {REF_LAYOUT, NOTHING, "blocks down"},
             {REF_LAYOUT, NOTHING, "blocks down, scales across"},
             {REF_LAYOUT, COUNT, "codes transposed in"}};
static const char *const stages[] = {
    [REF_INPUT] = "input",     [REF_ROTATION] = "rotation",        [REF_TENSOR] = "tensor amax", [REF_TENSOR_SCALE] = "tensor scale",
    [REF_AMAX] = "block amax", [REF_SCALE] = "scale rounding",     [REF_STORE] = "scale store",  [REF_DIVISOR] = "divisor",
    [REF_CLAMP] = "clamp",     [REF_ELEMENT] = "element rounding", [REF_CODE] = "code",          [REF_LAYOUT] = "layout"};
static const char *const numbered[] = {"rows", "columns", "blocks", "elements", "scale", "order", "memory"};
static const char *const plain[] = {"all", "tail", "zero", "subnormal", "negative", "positive"};
static const char *const rules[] = {"floor", "ceil", "even", "up", "nearest", "down", "half up", "cast"};
static const char *const layouts[] = {
#define MX_LAYOUT(id, name, ...) [MX_LAYOUT_##id] = name,
#include "../formats/layouts.def"
#undef MX_LAYOUT
};

#define LENGTH(table) (sizeof table / sizeof *table)

/* The text between two places without the blanks around it. */
static void part(char out[MOST_TEXT], const char *from, const char *end) {
  while (from < end && (*from == ' ' || *from == '\t')) from++;
  while (end > from && (end[-1] == ' ' || end[-1] == '\t')) end--;
  memcpy(out, from, (size_t)(end - from));
  out[end - from] = 0;
}

static int count(uint64_t *out, const char **at) {
  if (**at < '0' || **at > '9') return 0;
  char *end;
  errno = 0;
  *out = strtoull(*at, &end, 10);
  *at = end;
  return errno == 0;
}

/* "%N=I,J-K", "=FIRST", "=FIRST-LAST" or "=FIRST-" behind the name of a region with numbers. */
static int read_numbers(ref_region *g, const char *at) {
  if (*at == '%') {
    at++;
    if (!count(&g->modulus, &at) || g->modulus < 1 || g->modulus > REF_FAULT_NUMBERS) return 0;
  }
  if (*at++ != '=') return 0;
  for (int any = 0;; any = 1) {
    uint64_t first, last;
    if ((any && !g->modulus) || !count(&first, &at)) return 0;
    last = first;
    if (*at == '-') {
      at++;
      last = UINT64_MAX;
      if (*at >= '0' && *at <= '9' && !count(&last, &at)) return 0;
    }
    if (last < first || (g->modulus && last >= g->modulus)) return 0;
    g->first = first, g->last = last;
    for (uint64_t i = first; g->modulus && i <= last; i++) g->remainder[i] = 1;
    if (!*at) return 1;
    if (*at++ != ',') return 0;
  }
}

static int read_region(ref_region *g, const char *text) {
  for (size_t k = 0; k < LENGTH(plain); k++)
    if (!strcmp(plain[k], text)) return g->name = plain[k], 1;
  const size_t name = strcspn(text, "%=");
  for (size_t k = 0; k < LENGTH(numbered); k++)
    if (strlen(numbered[k]) == name && !strncmp(numbered[k], text, name)) {
      g->name = numbered[k];
      return read_numbers(g, text + name);
    }
  return 0;
}

/* "rows=3-", or "rows=3- and tail": everywhere is no part of two. */
static int read_regions(ref_fault *f, const char *text) {
  const char *and = strstr(text, " and ");
  char one[MOST_TEXT];
  if (!and) return read_region(&f->region[0], text);
  part(one, text, and);
  if (!read_region(&f->region[0], one)) return 0;
  part(one, and+5, text + strlen(text));
  return read_region(&f->region[1], one) && strcmp(f->region[0].name, "all") != 0 && strcmp(f->region[1].name, "all") != 0;
}

/* One bit, "c0" or "r0", as a number: 0 to 7 those of the column, 8 to 15 those of the row. */
static int read_bit(const char *text) {
  const int letter = text[0] == 'c' ? 0 : text[0] == 'r' ? 8 : -1;
  return letter < 0 || text[1] < '0' || text[1] > '7' ? -1 : letter + text[1] - '0';
}

/* How many of eight are there; all from the first on must be. */
static int there_are(const int *there) {
  int n = 0;
  for (int i = 0; i < 8; i++) n += there[i];
  for (int i = 0; i < n; i++)
    if (!there[i]) return -1;
  return n;
}

/* Does each place of the tile belong to one source? */
static int tells_places_apart(const ref_fault *f) {
  uint8_t seen[1 << REF_BITS] = {0};
  for (size_t s = 0; s < (size_t)1 << (f->tile_rows + f->tile_cols); s++)
    if (seen[ref_place_of(f, s)]++) return 0;
  return 1;
}

/* "c0,c1^r0": entries separated by commas, of bits with ^ between them. Together they have every bit of a row and of a column from bit 0 on. */
static int read_bits(ref_fault *f, const char *text) {
  int entries[REF_BITS][16] = {{0}}, there[16] = {0}, n = 0;
  for (char behind = ','; behind; text += 2 + (behind != 0)) {
    const int bit = read_bit(text);
    if (bit < 0 || !strchr(",^", text[2])) return 0; /* the end too is in there */
    if (behind == ',' && n++ == REF_BITS) return 0;
    if (entries[n - 1][bit]++) return 0;
    there[bit] = 1;
    behind = text[2];
  }
  f->tile_cols = there_are(there), f->tile_rows = there_are(there + 8);
  if (f->tile_cols < 0 || f->tile_rows < 0 || f->tile_cols + f->tile_rows > REF_BITS || n > f->tile_cols + f->tile_rows) return 0;
  for (int k = 0; k < f->tile_cols + f->tile_rows; k++)
    for (int i = 0; i < f->tile_cols + f->tile_rows; i++)
      f->is_of[k][i] = (uint8_t)(k < n ? entries[k][i < f->tile_cols ? i : 8 + i - f->tile_cols] : i == k); /* what is left out stays */
  return tells_places_apart(f);
}

/* "1203": of each bit from the lowest on the bit that it is; or of each code the code that is written for it. */
static int read_digits(ref_fault *f, const char *text) {
  const size_t n = strlen(text);
  if (IS(f, "table") ? n != 16 : n < 2 || n > 8) return 0;
  for (size_t k = 0; k < n; k++) {
    const int digit = text[k] >= '0' && text[k] <= '9' ? text[k] - '0' : text[k] >= 'a' && text[k] <= 'f' ? text[k] - 'a' + 10 : -1;
    if (digit < 0 || (size_t)digit >= n) return 0;
    f->digits[k] = (uint8_t)digit;
  }
  f->n_digits = n;
  return 1;
}

static int read_argument(ref_fault *f, int takes, const char *text) {
  char *end;
  switch (takes) {
  case NOTHING:
    return !*text;
  case NUMBER:
    f->number = strtod(text, &end);
    return end != text && !*end && isfinite(f->number);
  case COUNT: {
    errno = 0;
    const long n = strtol(text, &end, 10);
    f->number = (double)n;
    return end != text && !*end && !errno && n >= -(1L << 30) && n <= 1L << 30;
  }
  case BITS:
    return read_bits(f, text);
  case DIGITS:
    return read_digits(f, text);
  case RANDOM:
    return ref_read_random(&f->random, text);
  case LAYOUT:
    for (size_t k = 1; k < LENGTH(layouts); k++)
      if (layouts[k] && !strcmp(layouts[k], text)) return f->layout = (int)k, 1;
    return 0;
  case RULE:
    for (size_t k = 0; k < LENGTH(rules); k++)
      if (!strcmp(rules[k], text)) return f->rule = rules[k], 1;
    return 0;
  default: /* a name of both tables is the element format: an INT8 has no scale */
    for (int k = 0; k < MX_ELEM_COUNT + MX_SCALE_COUNT; k++) {
      f->format = k < MX_ELEM_COUNT ? ref_elem_format(k) : ref_scale_format(k - MX_ELEM_COUNT);
      if (k != MX_ELEM_BFLOAT16 && !strcmp(f->format->name, text)) return 1; /* bf16 has codes as a scale alone */
    }
    return 0;
  }
}

mx_status ref_fault_read(ref_fault *out, const char *text, mx_error *err) {
  ref_fault f = {0};
  char region[MOST_TEXT], stage[MOST_TEXT], op[MOST_TEXT];
  const char *arrow = strstr(text, "<-"), *colon = strchr(text, ':');
  if (strlen(text) >= MOST_TEXT || !arrow || !colon || colon > arrow) return ref_fail(err, MX_ERR_ARG, "reference: '%.80s' is no fault", text);
  part(region, text, colon);
  part(stage, colon + 1, arrow);
  part(op, arrow + 2, text + strlen(text));
  if (!read_regions(&f, region)) return ref_fail(err, MX_ERR_ARG, "reference: region '%.80s' is not known", region);
  while ((size_t)f.stage < LENGTH(stages) && strcmp(stages[f.stage], stage) != 0) f.stage++;
  if ((size_t)f.stage == LENGTH(stages)) return ref_fail(err, MX_ERR_ARG, "reference: stage '%.80s' is not known", stage);
  size_t length = 0;
  int takes = NOTHING;
  for (size_t k = 0; k < LENGTH(words); k++) { /* the longest word that stands there */
    const size_t n = strlen(words[k].op);
    if (words[k].stage != f.stage || n <= length || strncmp(words[k].op, op, n) != 0 || (op[n] && op[n] != ' ')) continue;
    f.op = words[k].op, takes = words[k].takes, length = n;
  }
  if (!f.op) return ref_fail(err, MX_ERR_ARG, "reference: %s <- '%.80s': the operation is not known", stages[f.stage], op);
  const char *argument = op + length;
  while (*argument == ' ') argument++;
  if (!read_argument(&f, takes, argument))
    return ref_fail(err, MX_ERR_ARG, "reference: %s <- %s: the argument '%.80s' is not one", stages[f.stage], f.op, argument);
  *out = f;
  return MX_OK;
}
