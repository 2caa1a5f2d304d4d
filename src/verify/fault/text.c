/* Reads and writes faults as text, REGION [and REGION]: STAGE <- OPERATION [ARGUMENT], and says them in a sentence. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/fault.h"
#include "mxgold/format.h"
#include "mxgold/layout.h"
#include "verify/fault/bits.h"
#include "verify/fault/random.h"
#include "verify/fault/renamed.h"
#include "verify/fault/run.h"

static const mx_fault_row rows[MX_FAULT_COUNT] = {
#define MX_FAULT(id, stage, op, arg, name, words) [MX_FAULT_##id] = {MX_STAGE_##stage, MX_FAULT_ARG_##arg, op, name, words},
#include "../../../formats/faults.def"
#undef MX_FAULT
};
static const char *const stages[MX_STAGE_COUNT] = {
#define MX_FAULT_STAGE(id, name, doc) [MX_STAGE_##id] = name,
#include "../../../formats/faults.def"
#undef MX_FAULT_STAGE
};

/* X(ID, "name", "one of them in a sentence", "how it is said before a list of numbers") */
#define REGIONS(X)                                                                                                                             \
  X(ALL, "all", "")                                                                                                                            \
  X(ROWS, "rows", "rows")                                                                                                                      \
  X(COLUMNS, "columns", "columns")                                                                                                             \
  X(BLOCKS, "blocks", "blocks")                                                                                                                \
  X(ELEMENTS, "elements", "elements of a block")                                                                                               \
  X(ORDER, "order", "blocks in memory order")                                                                                                  \
  X(MEMORY, "memory", "elements in memory order")                                                                                              \
  X(SCALE, "scale", "blocks of scale code")                                                                                                    \
  X(TAIL, "tail", "in the last, short block of a row")                                                                                         \
  X(ZERO, "zero", "in blocks of zeros")                                                                                                        \
  X(SUBNORMAL, "subnormal", "in blocks with a subnormal scale")                                                                                \
  X(NEGATIVE, "negative", "for negative elements")                                                                                             \
  X(POSITIVE, "positive", "for elements that are not negative")
static const struct {
  const char *name, *words;
} regions[MX_REGION_COUNT] = {
#define X(id, name, words) [MX_REGION_##id] = {name, words},
    REGIONS(X)
#undef X
};

const mx_fault_row *mx_fault_row_at(int op) { return op > MX_FAULT_NONE && op < MX_FAULT_COUNT ? &rows[op] : NULL; }
const char *mx_stage_name(int stage) { return stage >= 0 && stage < MX_STAGE_COUNT ? stages[stage] : NULL; }

/* ---- reading */

static const char *skip_blanks(const char *s) { return s + strspn(s, " \t"); }

/* A number of digits alone; 0 if there is none. */
static int read_count(uint64_t *out, const char **at) {
  char *end;
  if (**at < '0' || **at > '9') return 0;
  errno = 0;
  *out = strtoull(*at, &end, 10);
  if (errno) return 0;
  *at = end;
  return 1;
}

/* "3", "3-7", "3-" (to the end). */
static int read_interval(uint64_t *first, uint64_t *last, const char **at) {
  if (!read_count(first, at)) return 0;
  *last = *first;
  if (**at != '-') return 1;
  ++*at;
  if (**at < '0' || **at > '9') {
    *last = UINT64_MAX;
    return 1;
  }
  return read_count(last, at) && *last >= *first;
}

static mx_status read_region(mx_region *out, const char *text, size_t n, mx_error *err) {
  char copy[MX_FAULT_TEXT];
  snprintf(copy, sizeof copy, "%.*s", (int)n, text);
  const size_t name = strcspn(copy, "%=");
  *out = (mx_region){.of = -1};
  for (int k = 0; k < MX_REGION_COUNT; k++)
    if (strlen(regions[k].name) == name && !strncmp(regions[k].name, copy, name)) out->of = k;
  if (out->of < 0)
    return mx_fail(
        err, MX_ERR_ARG,
        "fault: region '%s': expected all, rows, columns, blocks, elements, order, memory, scale, tail, zero, subnormal, negative or positive",
        copy);
  const char *at = copy + name;
  if (!mxi_region_has_numbers(out->of))
    return *at ? mx_fail(err, MX_ERR_ARG, "fault: region '%s': %s has no numbers", copy, regions[out->of].name) : MX_OK;
  uint64_t modulus = 0;
  if (*at == '%') {
    at++;
    if (!read_count(&modulus, &at) || !modulus || modulus > MX_REGION_MOST)
      return mx_fail(err, MX_ERR_ARG, "fault: region '%s': expected a modulus of 1 to %d after %%", copy, MX_REGION_MOST);
  }
  out->modulus = (uint32_t)modulus;
  int ok = *at++ == '=', any = 0;
  while (ok && *at) {
    ok = (!modulus && any) ? 0 : read_interval(&out->first, &out->last, &at);
    if (ok && modulus) {
      ok = out->first < modulus && out->last < modulus;
      for (uint64_t i = out->first; ok && i <= out->last; i++) out->set[i] = 1;
    }
    any = 1;
    if (ok && *at) ok = *at++ == ',' && *at;
  }
  if (modulus) out->first = out->last = 0;
  return ok && any ? MX_OK
                   : mx_fail(err, MX_ERR_ARG, "fault: region '%s': expected %s=FIRST-LAST, %s=FIRST- or %s%%N=I,J-K below N", copy,
                             regions[out->of].name, regions[out->of].name, regions[out->of].name);
}

/* One region, or the two of "rows=3- and tail". */
static mx_status read_regions(mx_fault *f, const char *text, size_t n, mx_error *err) {
  static const char word[] = " and ";
  char copy[MX_FAULT_TEXT];
  snprintf(copy, sizeof copy, "%.*s", (int)n, text);
  const char *second = strstr(copy, word);
  size_t first = second ? (size_t)(second - copy) : n;
  while (first && strchr(" \t", copy[first - 1])) first--;
  mx_status status = read_region(&f->region, text, first, err);
  if (status || !second) return status;
  second = skip_blanks(second + strlen(word));
  if (strstr(second, word)) return mx_fail(err, MX_ERR_ARG, "fault: region '%s': expected at most two", copy);
  if ((status = read_region(&f->also, second, strlen(second), err))) return status;
  if (f->region.of == MX_REGION_ALL || f->also.of == MX_REGION_ALL)
    return mx_fail(err, MX_ERR_ARG, "fault: region '%s': beside all the other one stands alone", copy);
  return MX_OK;
}

static mx_status read_argument(mx_fault *f, const char *text, mx_error *err) {
  const mx_fault_row *row = &rows[f->op];
  const char *why;
  char *end = NULL;
  switch (row->arg) {
  case MX_FAULT_ARG_NONE:
    return *text ? mx_fail(err, MX_ERR_ARG, "fault: %s <- %s takes no argument, found '%s'", stages[row->stage], row->op, text) : MX_OK;
  case MX_FAULT_ARG_NUMBER:
    f->number = strtod(text, &end);
    if (end != text && !*end && isfinite(f->number)) return MX_OK;
    return mx_fail(err, MX_ERR_ARG, "fault: %s <- %s: expected a finite number, found '%s'", stages[row->stage], row->op, text);
  case MX_FAULT_ARG_COUNT:
    errno = 0;
    f->number = (double)strtol(text, &end, 10);
    if (end != text && !*end && !errno && fabs(f->number) <= 1 << 30) return MX_OK;
    return mx_fail(err, MX_ERR_ARG, "fault: %s <- %s: expected an integer, found '%s'", stages[row->stage], row->op, text);
  case MX_FAULT_ARG_LAYOUT:
    f->format = mx_layout_find(text);
    return f->format > 0 ? MX_OK : mx_fail(err, MX_ERR_ARG, "fault: layout '%s': mxgold formats layouts lists them", text);
  case MX_FAULT_ARG_BITS:
    why = mxi_bits_read(f, text);
    return why ? mx_fail(err, MX_ERR_ARG, "fault: bits '%.200s': %s", text, why) : MX_OK;
  case MX_FAULT_ARG_DIGITS:
    why = mxi_renamed_read(f, text);
    return why ? mx_fail(err, MX_ERR_ARG, "fault: %s <- %s '%.80s': %s", stages[row->stage], row->op, text, why) : MX_OK;
  case MX_FAULT_ARG_RANDOM:
    if (mxi_random_read(f, text)) return MX_OK;
    return mx_fail(err, MX_ERR_ARG,
                   "fault: random number '%.80s': expected GENERATOR SEED+COUNT BITS, as pcg 1234+index 24 or philox 42:column 32", text);
  case MX_FAULT_ARG_RULE:
    for (f->format = 0; mxi_fault_rule(f->format); f->format++)
      if (!strcmp(mxi_fault_rule(f->format)->name, text)) return MX_OK;
    return mx_fail(err, MX_ERR_ARG, "fault: rule '%s': expected floor, ceil, even, up, nearest or down", text);
  default:
    for (f->format = 0; f->format < MX_ELEM_COUNT + MX_SCALE_COUNT; f->format++)
      if (mxi_fault_format(f->format) == mx_format_find(text)) return MX_OK;
    return mx_fail(err, MX_ERR_ARG, "fault: format '%s': mxgold formats lists element and scale formats", text);
  }
}

mx_status mx_fault_parse(mx_fault *out, const char *text, mx_error *err) {
  mx_fault f = {0};
  if (!out || !text) return mx_fail(err, MX_ERR_ARG, "mx_fault_parse: NULL argument");
  const char *arrow = strstr(text, "<-"), *colon = strchr(text, ':');
  if (!arrow || !colon || colon > arrow || strlen(text) >= MX_FAULT_TEXT)
    return mx_fail(err, MX_ERR_ARG, "fault '%.80s': expected REGION [and REGION]: STAGE <- OPERATION [ARGUMENT]", text);
  text = skip_blanks(text);
  size_t n = (size_t)(colon - text);
  while (n && strchr(" \t", text[n - 1])) n--;
  mx_status status = read_regions(&f, text, n, err);
  if (status) return status;
  const char *stage = skip_blanks(colon + 1), *op = skip_blanks(arrow + 2);
  size_t length = (size_t)(arrow - stage), most = 0;
  while (length && strchr(" \t", stage[length - 1])) length--;
  int at = 0;
  while (at < MX_STAGE_COUNT && (strlen(stages[at]) != length || strncmp(stages[at], stage, length) != 0)) at++;
  if (at == MX_STAGE_COUNT)
    return mx_fail(
        err, MX_ERR_ARG,
        "fault: stage '%.*s': expected input, rotation, tensor amax, tensor scale, block amax, scale rounding, scale store, divisor, "
        "clamp, element rounding, code or layout",
        (int)length, stage);
  char copy[MX_FAULT_TEXT];
  snprintf(copy, sizeof copy, "%s", op);
  for (n = strlen(copy); n && strchr(" \t", copy[n - 1]); n--) copy[n - 1] = 0;
  for (int k = 1; k < MX_FAULT_COUNT; k++) { /* the longest that the text begins with */
    const size_t len = strlen(rows[k].op);
    if (rows[k].stage == at && len > most && !strncmp(rows[k].op, copy, len) && (!copy[len] || copy[len] == ' ')) f.op = k, most = len;
  }
  if (!f.op) {
    char known[400] = "";
    for (int k = 1; k < MX_FAULT_COUNT; k++)
      if (rows[k].stage == at) snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "", rows[k].op);
    return mx_fail(err, MX_ERR_ARG, "fault: %s <- '%s': expected one of: %s", stages[at], copy, known);
  }
  status = read_argument(&f, skip_blanks(copy + most), err);
  if (!status) *out = f;
  return status;
}

/* ---- writing */

/* "0,3,5-7" */
static size_t print_set(char *out, size_t size, const mx_region *r) {
  size_t n = 0;
  for (uint32_t i = 0; i < r->modulus; i++) {
    if (!r->set[i]) continue;
    uint32_t end = i;
    while (end + 1 < r->modulus && r->set[end + 1]) end++;
    n += (size_t)snprintf(out + (n < size ? n : size), n < size ? size - n : 0, end > i ? "%s%u-%u" : "%s%u", n ? "," : "", i, end);
    i = end;
  }
  return n;
}

static size_t print_interval(char *out, size_t size, const mx_region *r) {
  if (r->last == UINT64_MAX) return (size_t)snprintf(out, size, "%" PRIu64 "-", r->first);
  if (r->last == r->first) return (size_t)snprintf(out, size, "%" PRIu64, r->first);
  return (size_t)snprintf(out, size, "%" PRIu64 "-%" PRIu64, r->first, r->last);
}

/* Numbers below this one, and down to 1 by it, have no exponent: 50, not 5e+01. */
static const double PLAIN = 1e5;

static void print_argument(char out[MX_FAULT_TEXT], const mx_fault *f) {
  const int arg = rows[f->op].arg;
  *out = 0;
  if (arg == MX_FAULT_ARG_NUMBER)
    for (int digits = 1; digits <= 17; digits++) { /* as few as give it again */
      snprintf(out, MX_FAULT_TEXT, "%.*g", digits, f->number);
      if (strtod(out, NULL) == f->number && (!strchr(out, 'e') || fabs(f->number) >= PLAIN || fabs(f->number) * PLAIN < 1)) break;
    }
  if (arg == MX_FAULT_ARG_COUNT) snprintf(out, MX_FAULT_TEXT, "%.0f", f->number);
  if (arg == MX_FAULT_ARG_FORMAT) snprintf(out, MX_FAULT_TEXT, "%s", mxi_fault_format(f->format)->name);
  if (arg == MX_FAULT_ARG_LAYOUT) snprintf(out, MX_FAULT_TEXT, "%s", mx_layout_name((mx_layout)f->format));
  if (arg == MX_FAULT_ARG_BITS) mxi_bits_print(out, MX_FAULT_TEXT, f);
  if (arg == MX_FAULT_ARG_DIGITS)
    for (int k = 0; k < f->number && k < MX_FAULT_LIST; k++) snprintf(out + k, MX_FAULT_TEXT - (size_t)k, "%x", f->list[k] & 15u);
  if (arg == MX_FAULT_ARG_RANDOM) mxi_random_print(out, MX_FAULT_TEXT, f);
  if (arg == MX_FAULT_ARG_RULE) snprintf(out, MX_FAULT_TEXT, "%s", mxi_fault_rule(f->format)->name);
}

/* "rows%4=1-3", "tail" */
static void print_region(char out[MX_FAULT_TEXT], const mx_region *r) {
  char modulus[16] = "";
  if (r->modulus) snprintf(modulus, sizeof modulus, "%%%u", r->modulus);
  const size_t n = (size_t)snprintf(out, MX_FAULT_TEXT, "%s%s%s", regions[r->of].name, modulus, mxi_region_has_numbers(r->of) ? "=" : "");
  if (mxi_region_has_numbers(r->of)) r->modulus ? print_set(out + n, MX_FAULT_TEXT - n, r) : print_interval(out + n, MX_FAULT_TEXT - n, r);
}

size_t mx_fault_print(char *out, size_t size, const mx_fault *f) {
  char region[MX_FAULT_TEXT], also[MX_FAULT_TEXT] = "", argument[MX_FAULT_TEXT];
  print_region(region, &f->region);
  if (f->also.of != MX_REGION_ALL) print_region(also, &f->also);
  print_argument(argument, f);
  return (size_t)snprintf(out, size, "%s%s%s: %s <- %s%s%s", region, *also ? " and " : "", also, stages[rows[f->op].stage], rows[f->op].op,
                          *argument ? " " : "", argument);
}

/* "in rows 31, 63, 95, ... (31 mod 32)" */
static void region_words(char *out, size_t size, const mx_region *r) {
  char numbers[MX_FAULT_TEXT - 64];
  *out = 0;
  if (!mxi_region_has_numbers(r->of)) {
    snprintf(out, size, "%s%s", *regions[r->of].words ? " " : "", regions[r->of].words);
  } else if (r->modulus) {
    print_set(numbers, sizeof numbers, r);
    snprintf(out, size, " in %s whose number is %s mod %u", regions[r->of].words, numbers, r->modulus);
  } else if (r->last == UINT64_MAX) {
    snprintf(out, size, " in %s %" PRIu64 " and beyond", regions[r->of].words, r->first);
  } else {
    print_interval(numbers, sizeof numbers, r);
    snprintf(out, size, " in %s %s", regions[r->of].words, numbers);
  }
}

size_t mx_fault_words(char *out, size_t size, const mx_fault *f) {
  char region[MX_FAULT_TEXT + 64], also[MX_FAULT_TEXT + 64] = "", argument[MX_FAULT_TEXT];
  region_words(region, sizeof region, &f->region);
  if (f->also.of != MX_REGION_ALL) region_words(also, sizeof also, &f->also);
  const char *there = *also ? ", there only" : "";
  print_argument(argument, f);
  const char *words = rows[f->op].words, *gap = strstr(words, "%s");
  if (!gap) return (size_t)snprintf(out, size, "%s%s%s%s", words, region, there, also);
  return (size_t)snprintf(out, size, "%.*s%s%s%s%s%s", (int)(gap - words), words, argument, gap + 2, region, there, also);
}
