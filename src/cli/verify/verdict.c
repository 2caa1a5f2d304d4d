/* Says in words what identify found. */
#include "verdict.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/spec/key_choices.h"
#include "cli/verify/rival.h"

enum { TEXT = 4096, VALUE = 160, VERDICT_SCHEMA = 3 }; /* had.signs has up to 128 digits */

/* Value of a key in "key=value key=value". */
static void value_in(char *out, size_t size, const char *text, const char *key) {
  const size_t n = strlen(key);
  *out = 0;
  for (const char *p = text; *p; p += strcspn(p, " "), p += *p == ' ')
    if (!strncmp(p, key, n) && p[n] == '=') {
      snprintf(out, size, "%.*s", (int)strcspn(p + n + 1, " "), p + n + 1);
      return;
    }
}

/* Keys in which spec differs from base, as K=V strings. */
static size_t changes(verdict_option out[VERDICT_OPTIONS], const mx_spec *base, const mx_spec *spec) {
  char a[TEXT], b[TEXT], x[VALUE], y[VALUE];
  size_t n = 0;
  int norm = 0, chain = 0;
  mx_spec_print(a, sizeof a, base, 1);
  mx_spec_print(b, sizeof b, spec, 1);
  for (size_t i = 0; mx_key_name(i) && n + 2 < VERDICT_OPTIONS; i++) {
    const char *key = mx_key_name(i);
    value_in(x, sizeof x, a, key);
    value_in(y, sizeof y, b, key);
    if (!strcmp(x, y) || (!strcmp(key, "had.signs") && !memcmp(base->had_signs, spec->had_signs, sizeof spec->had_signs))) continue;
    norm |= !strcmp(key, "tensor.norm");
    chain |= !strcmp(key, "chain");
    snprintf(out[n++].text, sizeof out->text, "%s=%s", key, y);
  }
  if (norm && !chain) { /* tensor.norm=nv alone would name a chain */
    value_in(y, sizeof y, b, "chain");
    snprintf(out[n++].text, sizeof out->text, "chain=%s", y);
  }
  return n;
}

static void put(verdict_option out[VERDICT_OPTIONS], size_t *n, const char *option, const char *value) {
  if (*n + 2 > VERDICT_OPTIONS) return;
  snprintf(out[(*n)++].text, sizeof out->text, "%s", option);
  snprintf(out[(*n)++].text, sizeof out->text, "%s", value);
}

size_t verdict_options(verdict_option out[VERDICT_OPTIONS], const mx_identity *id) {
  mx_spec base = {0};
  const int faulty = id->bug.n_faults && !id->exact;
  const char *preset = faulty ? id->bug.preset : id->preset ? id->preset : id->nearest;
  size_t n = 0;
  if (preset && !mx_preset_find(&base, preset, NULL)) put(out, &n, "--preset", preset);
  verdict_option set[VERDICT_OPTIONS];
  const size_t m = changes(set, &base, faulty ? &id->bug.spec : &id->spec);
  for (size_t i = 0; i < m; i++) put(out, &n, "--set", set[i].text);
  for (size_t i = 0; faulty && i < id->bug.n_faults; i++) {
    char text[MX_FAULT_TEXT];
    mx_fault_print(text, sizeof text, &id->bug.fault[i]);
    put(out, &n, "--fault", text);
  }
  return n;
}

void verdict_options_line(char *out, size_t size, const mx_identity *id) {
  verdict_option chosen[VERDICT_OPTIONS];
  const size_t n_options = verdict_options(chosen, id);
  size_t n = 0;
  *out = 0;
  for (size_t i = 0; i < n_options && n < size; i++) {
    const char *quote = strpbrk(chosen[i].text, " <") ? "'" : "";
    n += (size_t)snprintf(out + n, size - n, "%s%s%s%s", i ? " " : "", quote, chosen[i].text, quote);
  }
}

const char *verdict_grade(const mx_identity *id) {
  return id->grade == MX_GRADE_CONFIRMED ? "confirmed" : id->grade == MX_GRADE_FITS ? "fits" : "none";
}

/* Bytes that the answer leaves wrong are more than one in so many: then the nearest spec says nothing. */
enum { NEAR_ONE_IN = 20 };

static int is_far(const mx_identity *id) {
  const uint64_t wrong = id->codes_differ + id->values_differ + id->scales_differ;
  return !id->exact && !id->stochastic && wrong * NEAR_ONE_IN > id->n_codes + id->n_values + id->n_scales;
}

static int is_race(const mx_identity *id) { return id->bug.name && !strcmp(id->bug.name, MX_BUG_RACE); }

int verdict_reproduces(const mx_identity *id) {
  if (id->exact || id->bug.n_faults) return 1;
  return (!id->bug.name || is_race(id)) && !is_far(id);
}

/* Meaning of a value of a key, "" without one. */
static const char *meaning(const char *key, const char *value) {
  size_t i = 0;
  int number;
  while (mx_key_name(i) && strcmp(mx_key_name(i), key)) i++;
  const char *name, *doc = "";
  for (size_t row = 0; (name = mx_key_choice(i, row, &doc, &number)); row++)
    if (number ? *name && !strncmp(name, value, strlen(name)) : !strcmp(name, value)) return doc;
  return "";
}

/* May the key have another value with the same bytes? Then a verdict does not assert the one that was found. */
static int is_open(const mx_identity *id, const char *key) {
  size_t i = 0;
  while (mx_key_name(i) && strcmp(mx_key_name(i), key)) i++;
  return mx_key_name(i) && (id->undecided >> i & 1);
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

/* A preset with the keys that the spec has set otherwise. */
static size_t preset_words(char *out, size_t size, size_t *keys, const char *preset, const mx_spec *spec) {
  mx_spec base = {0};
  verdict_option set[VERDICT_OPTIONS];
  *keys = mx_preset_find(&base, preset, NULL) ? 0 : changes(set, &base, spec);
  size_t n = (size_t)snprintf(out, size, "%s", preset);
  for (size_t i = 0; i < *keys && n < size; i++) n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : " with ", set[i].text);
  return n;
}

/* The bug, and what was counted with it and without it. */
static size_t bug_words(char *out, size_t size, const mx_bug *b) {
  const uint64_t left = b->codes + b->scales + b->tensor_scales;
  size_t keys, n = (size_t)snprintf(out, size, "your kernel does what ");
  if (n < size) n += preset_words(out + n, size - n, &keys, b->preset, &b->spec);
  if (n < size) n += (size_t)snprintf(out + n, size - n, " does, except that it %s.", b->text);
  if (n < size && !left)
    n += (size_t)snprintf(out + n, size - n, " With that change, %s gives every byte; without it", keys ? "the spec" : b->preset);
  else if (n < size)
    n += (size_t)snprintf(out + n, size - n, " With that change, %s leaves %" PRIu64 " code%s and %" PRIu64 " scale%s; without it",
                          keys ? "the spec" : b->preset, b->codes, plural(b->codes), b->scales, plural(b->scales));
  if (n < size)
    n += (size_t)snprintf(out + n, size - n, " %" PRIu64 " code%s and %" PRIu64 " scale%s differ", b->preset_codes, plural(b->preset_codes),
                          b->preset_scales, plural(b->preset_scales));
  if (n < size && b->preset_tensor) n += (size_t)snprintf(out + n, size - n, ", and the tensor scale");
  if (n < size) n += (size_t)snprintf(out + n, size - n, ".");
  return n;
}

static int same_fault(const mx_fault *a, const mx_fault *b) {
  char one[MX_FAULT_TEXT], other[MX_FAULT_TEXT];
  mx_fault_print(one, sizeof one, a);
  mx_fault_print(other, sizeof other, b);
  return !strcmp(one, other);
}

/* What a kernel may do beside what was found: the first of the faults that the data do not show. */
static size_t open_words(char *out, size_t size, const mx_identity *id) {
  const size_t had = id->bug.n_faults;
  const mx_fault *more = NULL;
  size_t n_more = 0;
  *out = 0;
  for (size_t i = 0; i < id->n_also && !id->exact; i++) {
    const mx_alternative *a = &id->also[i];
    if (a->n_faults <= had) continue;
    if (!n_more++) more = &a->fault[same_fault(&a->fault[0], &id->bug.fault[0])];
  }
  if (!more) return 0;
  char words[MX_FAULT_TEXT];
  mx_fault_words(words, sizeof words, more);
  size_t n = (size_t)snprintf(out, size, " These data do not show whether it also %s", words);
  if (n < size && n_more > 1) n += (size_t)snprintf(out + n, size - n, "; so it is with %zu other fault%s", n_more - 1, plural(n_more - 1));
  if (n < size) n += (size_t)snprintf(out + n, size - n, ".");
  return n;
}

static void sentence(char *out, size_t size, const mx_identity *id);

mx_status verdict_sentence(char *out, size_t size, const mx_identity *id) {
  sentence(out, size, id);
  rival other;
  const mx_status status = rival_of(&other, id);
  size_t n = strlen(out);
  size_t keys;
  char preset[256] = "";
  if (other.preset) preset_words(preset, sizeof preset, &keys, other.preset, &other.spec);
  if (other.preset && n < size)
    n += (size_t)snprintf(out + n, size - n, " But these data do not decide it: %s gives the same bytes where it %s%s%s.", preset, other.words,
                          *other.gen ? ", and other bytes of the inputs of " : "", other.gen);
  else if (id->grade == MX_GRADE_FITS && !id->exact && id->bug.most > 0 && n < size)
    n += (size_t)snprintf(out + n, size - n, " But its number may be any from %.9g to %.9g: these data do not tell which.", id->bug.least,
                          id->bug.most);
  else if (id->grade == MX_GRADE_FITS && !id->exact && n < size)
    n += (size_t)snprintf(out + n, size - n, " But too few bytes of these data speak for it.");
  if (!other.preset && n < size) n += open_words(out + n, size - n, id);
  if (n < size && id->blank)
    snprintf(out + n, size - n,
             " But the input has no finite number other than zero, so these data decide next to nothing: give it ordinary numbers.");
  else if (n < size && id->exact && id->grade == MX_GRADE_NONE)
    snprintf(out + n, size - n, " But every element has the same code, so these data decide nothing: give it numbers of unlike sizes.");
  return status;
}

/* The order of the nibbles, where it is not that of the preset. */
static const char *other_nibbles(const mx_identity *id) {
  mx_spec preset;
  return mx_preset_find(&preset, id->preset, NULL) || preset.nibble == id->spec.nibble ? NULL : key_choice("nibble", id->spec.nibble);
}

static void sentence(char *out, size_t size, const mx_identity *id) {
  if (id->bug.name && !id->exact && !is_race(id)) {
    const size_t n = bug_words(out, size, &id->bug);
    if (n) *out = 'Y';
    if (n < size && id->bug.codes + id->bug.scales + id->bug.tensor_scales == 0 && id->grade != MX_GRADE_FITS)
      snprintf(out + n, size - n, " No spec does that: it is a bug (%s).", id->bug.name);
    return;
  }
  const uint64_t wrong = id->codes_differ + id->values_differ;
  const int turned = id->exact && id->bug.name && !strcmp(id->bug.name, MX_BUG_TRANSPOSED);
  if (turned || (id->exact && id->bug.name && !strcmp(id->bug.name, MX_BUG_ROW_TENSORS))) {
    mx_identity rule = *id;
    rule.bug = (mx_bug){0};
    const size_t n =
        (size_t)snprintf(out, size, "Your kernel %s%s. Of %s: ", id->bug.text, turned ? " (transposed)" : "", turned ? "that" : "each row");
    if (n < size) sentence(out + n, size - n, &rule);
    return;
  }
  if (id->exact && id->preset) {
    const char *order = other_nibbles(id);
    if (order)
      snprintf(out, size, "Your kernel does what %s does: every code is the same, in bytes with nibble=%s.", id->preset, order);
    else
      snprintf(out, size, "Your kernel does what %s does: every byte is the same.", id->preset);
    return;
  }
  if (is_far(id) && !id->tensor_scales_differ) { /* what comes nearest says nothing */
    const char *block_of_rows = id->spec.block_rows > 1 ? "tiles" : "rows", *elem = mx_elem_format(id->spec.elem)->name;
    const size_t n = (size_t)snprintf(
        out, size,
        "Nothing is known that gives these bytes: no preset, no spec and no fault of the grammar; under the nearest spec %" PRIu64
        " of %" PRIu64 " codes and %" PRIu64 " of %" PRIu64 " scales differ, so it is not named.",
        wrong, id->n_codes + id->n_values, id->scales_differ, id->n_scales);
    if (n < size && id->scales_differ * NEAR_ONE_IN <= id->n_scales)
      snprintf(out + n, size - n, " What fits by itself: the scales of %s elements in blocks along %s; the elements under them do not.", elem,
               block_of_rows);
    else if (n < size)
      snprintf(out + n, size - n, " Neither the scales nor the elements fit by themselves; %s elements in blocks along %s come nearest.", elem,
               block_of_rows);
    return;
  }
  const int zeros_alone = !id->exact && id->zero_signs_differ && id->zero_signs_differ == wrong;
  const int tensor_alone = !id->exact && !wrong && !id->scales_differ && id->tensor_scales_differ;
  const char *name = id->nearest ? id->nearest : "the default";
  size_t n;
  if (zeros_alone)
    n = (size_t)snprintf(out, size, "Every value is explained except the sign of %" PRIu64 " zero%s: your kernel does what %s does", wrong,
                         plural(wrong), name);
  else if (tensor_alone)
    n = (size_t)snprintf(out, size,
                         "Every code and every scale is explained; only the tensor scale differs (%.9g is stored, these keys give %.9g): "
                         "your kernel does what %s does",
                         (double)id->tensor_scale_stored, (double)id->tensor_scale_of_spec, name);
  else
    n = (size_t)snprintf(
        out, size, id->exact ? "Every byte is explained: your kernel does what %s does" : "No spec gives every byte; the nearest is %s", name);
  mx_spec base = {0};
  verdict_option set[VERDICT_OPTIONS];
  if (id->nearest) mx_preset_find(&base, id->nearest, NULL);
  const size_t m = changes(set, &base, &id->spec);
  if ((m || !(zeros_alone || tensor_alone)) && n < size) n += (size_t)snprintf(out + n, size - n, ", ");
  if (m && n < size) n += (size_t)snprintf(out + n, size - n, "except that ");
  for (size_t i = 0; i < m; i++) {
    char *key = set[i].text, *equals = strchr(key, '=');
    *equals = 0;
    const int down = !strcmp(key, "block") && base.block_rows <= 1 && id->spec.block_cols == 1 && id->spec.block_rows > 1;
    const char *doc = down ? "blocks transposed, down the columns" : meaning(key, equals + 1);
    if (n < size && i < 6)
      n += (size_t)snprintf(out + n, size - n, "%s%s %s %s%s%.*s%s%s", i ? "; " : "", key, is_open(id, key) ? "may be" : "is", equals + 1,
                            *doc ? " (" : "", (int)strcspn(doc, ";"), doc, *doc ? ")" : "",
                            is_open(id, key) ? ", which these data do not decide" : "");
  }
  if (!m && !zeros_alone && !tensor_alone && n < size)
    n += (size_t)snprintf(out + n, size - n, "%s", id->exact ? "and nothing else" : "and no key explains more");
  if (n < size) n += (size_t)snprintf(out + n, size - n, ".");
  if (id->exact && id->grade == MX_GRADE_FITS && id->bug.n_faults) return; /* the fault is said as what these data do not rule out */
  if (id->exact && id->bug.name && n < size) {
    n += (size_t)snprintf(out + n, size - n, " More likely a bug that gives the same bytes: ");
    if (n < size) bug_words(out + n, size - n, &id->bug);
    return;
  }
  char bits[64] = "of how many random bits is hidden by its bias";
  if (id->random_bits_least)
    snprintf(bits, sizeof bits, "%s %d random bits", id->random_bits_least == id->random_bits_most ? "about" : "at least",
             id->random_bits_least);
  if (!id->exact && id->stochastic && id->random_n && n < size)
    n += (size_t)snprintf(out + n, size - n,
                          " Its rounding is stochastic: %s, bias %+.4f steps over %" PRIu64 " elements, of which %" PRIu64
                          " are neither neighbour. The seed was not found, so %" PRIu64 " codes cannot be given again.",
                          bits, id->random_bias, id->random_n, id->random_beyond, wrong);
  if (!id->exact && id->stochastic && *id->random_shared && n < size)
    n += (size_t)snprintf(out + n, size - n, " One random number for each %s explains them.", id->random_shared);
  if (!id->exact && id->stochastic && id->random_biased && n < size)
    n += (size_t)snprintf(out + n, size - n, " It is biased: codes go up %s often than their fractions say.",
                          id->random_bias > 0 ? "more" : "less");
  if (!id->exact && !(id->stochastic && id->random_n) && !zeros_alone && !tensor_alone && n < size)
    n += (size_t)snprintf(out + n, size - n,
                          " %" PRIu64 " codes and %" PRIu64 " scales stay unexplained; the smallest block of them is at row %zu, column %zu.",
                          wrong, id->scales_differ, id->bad_row, id->bad_col);
  if (is_race(id) && n < size) snprintf(out + n, size - n, " Race, no rule: your kernel %s.", id->bug.text);
}

int verdict_is_withdrawn(const verdict_more *more) { return more->held && more->held->on && !more->held->holds; }

/* Of a byte that another launch has otherwise: "the first in row 3, column 64". */
static void place(char *out, size_t size, const held *h) {
  const unexpected *u = &h->got;
  *out = 0;
  if (!u->codes && !u->scales) return;
  snprintf(out, size, ", the first in%s%s row %zu, column %zu", *h->suite ? " " : "", *h->suite ? h->suite : "", u->row, u->col);
}

mx_status verdict_with(char *out, size_t size, const mx_identity *id, const verdict_more *more) {
  const held *h = more->held;
  char where[300];
  if (h && h->on && !h->holds) {
    const unexpected *u = &h->got;
    place(where, sizeof where, h);
    snprintf(out, size,
             "What gives every byte of the first launch does not hold on %s: %" PRIu64 " of %" PRIu64 " codes and %" PRIu64 " of %" PRIu64
             " scales differ there%s%s. So it is no answer.%s%s",
             h->on, u->codes, u->n_codes, u->scales, u->n_scales, u->tensor_scales ? ", and the tensor scale" : "", where,
             *h->answer ? " It was mxgold quantize with " : "", h->answer);
    return MX_OK;
  }
  const mx_status status = verdict_sentence(out, size, id);
  const size_t n = strlen(out);
  if (h && h->on && n < size)
    snprintf(out + n, size - n, " That gives every byte of %s too.%s", h->on,
             h->ordinary ? " But NaN, infinities, zeros or subnormal numbers it does not explain." : "");
  return status;
}

static void append(char *out, size_t size, const char *text) {
  size_t n = strlen(out);
  if (n && n + 1 < size) out[n++] = ' ';
  while (*text && n + 1 < size) out[n++] = *text++;
  out[n] = 0;
}

size_t verdict_gen(char *lines[VERDICT_SUITES], char *no_effect, size_t size, const mx_identity *id) {
  int suite_of[MX_MAX_KEYS];
  size_t n = 0;
  *no_effect = 0;
  if (!id->undecided) return 0;
  const int faulty = id->bug.n_faults && !id->exact; /* the vectors are those of its preset: a kernel with the faults differs there as well */
  mx_identity plain = *id;
  if (faulty) plain.bug.n_faults = 0, plain.spec = id->bug.spec, plain.nearest = id->bug.preset;
  if (mx_deciding_suites(suite_of, &plain.spec, id->undecided)) return SIZE_MAX;
  verdict_option options[VERDICT_OPTIONS];
  char given[TEXT] = "";
  const size_t n_options = verdict_options(options, &plain);
  for (size_t i = 0; i < n_options; i++) append(given, sizeof given, options[i].text);
  for (int suite = 0; suite < MX_SUITE_COUNT && n < VERDICT_SUITES; suite++) {
    char keys[TEXT] = "";
    for (size_t i = 0; mx_key_name(i); i++)
      if (id->undecided >> i & 1 && suite_of[i] == suite) append(keys, sizeof keys, mx_key_name(i));
    const char *name = mx_suite_name(suite), *blank = *given ? " " : "";
    if (!*keys) continue;
    if (asprintf(&lines[n], "mxgold gen %s%s%s -o %s.safetensors: %s", name, blank, given, name, keys) < 0) {
      while (n) free(lines[--n]);
      return SIZE_MAX;
    }
    n++;
  }
  for (size_t i = 0; mx_key_name(i); i++)
    if (id->undecided >> i & 1 && suite_of[i] < 0) append(no_effect, size, mx_key_name(i));
  return n;
}

/* A value that is whole; NULL, which no other value can hold, if an allocation failed while it was made. */
static json_t *whole(json_t *made, int failed) {
  if (!failed) return made;
  json_decref(made);
  return NULL;
}

/* {"gen": [command, ...], "no_effect": [key, ...]} */
static json_t *decide_json(const mx_identity *id) {
  char *lines[VERDICT_SUITES], none[TEXT];
  const size_t n = verdict_gen(lines, none, sizeof none, id);
  if (n == SIZE_MAX) return NULL;
  json_t *gen = json_array(), *keys = json_array();
  int failed = 0;
  for (size_t i = 0; i < n; i++) {
    char *colon = strstr(lines[i], ".safetensors: ");
    json_t *list = json_array(), *one = json_object();
    char *save = NULL;
    for (char *k = strtok_r(colon + 14, " ", &save); k; k = strtok_r(NULL, " ", &save)) failed |= json_array_append_new(list, json_string(k));
    colon[12] = 0;
    failed |= json_object_set_new(one, "command", json_string(lines[i]));
    failed |= json_object_set_new(one, "keys", list);
    failed |= json_array_append_new(gen, one);
    free(lines[i]);
  }
  char *save = NULL;
  for (char *k = strtok_r(none, " ", &save); k; k = strtok_r(NULL, " ", &save)) failed |= json_array_append_new(keys, json_string(k));
  json_t *out = json_object();
  failed |= json_object_set_new(out, "gen", gen);
  failed |= json_object_set_new(out, "no_effect", keys);
  return whole(out, failed);
}

void verdict_faults(char out[VERDICT_FAULTS], const mx_fault *faults, size_t n) {
  *out = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t at = strlen(out);
    if (i) snprintf(out + at, VERDICT_FAULTS - at, "; ");
    mx_fault_print(out + strlen(out), VERDICT_FAULTS - strlen(out), &faults[i]);
  }
}

/* "FAULT; FAULT", or null where the bug is said in words alone. */
static json_t *fault_json(const mx_bug *b) {
  char text[VERDICT_FAULTS];
  verdict_faults(text, b->fault, b->n_faults);
  return b->n_faults ? json_string(text) : json_null();
}

static json_t *also_json(const mx_identity *id) {
  json_t *out = json_array();
  int failed = 0;
  for (size_t i = 0; i < id->n_also; i++) {
    char text[VERDICT_FAULTS];
    verdict_faults(text, id->also[i].fault, id->also[i].n_faults);
    failed |= json_array_append_new(out, json_string(text));
  }
  return whole(out, failed);
}

static json_t *set_json(const char *preset, const mx_spec *spec) {
  mx_spec base = {0};
  verdict_option set[VERDICT_OPTIONS];
  json_t *out = json_array();
  int failed = 0;
  const size_t keys = mx_preset_find(&base, preset, NULL) ? 0 : changes(set, &base, spec);
  for (size_t i = 0; i < keys; i++) failed |= json_array_append_new(out, json_string(set[i].text));
  return whole(out, failed);
}

static json_t *bug_json(const mx_bug *b) {
  json_t *out = json_pack("{s:s,s:s,s:s,s:{s:I,s:I,s:I},s:{s:I,s:I,s:I}}", "name", b->name, "text", b->text, "preset",
                          b->preset ? b->preset : "none", "left", "codes", (json_int_t)b->codes, "scales", (json_int_t)b->scales,
                          "tensor_scales", (json_int_t)b->tensor_scales, "without", "codes", (json_int_t)b->preset_codes, "scales",
                          (json_int_t)b->preset_scales, "tensor_scales", (json_int_t)b->preset_tensor);
  int failed = json_object_set_new(out, "fault", fault_json(b));
  if (b->most > 0) failed |= json_object_set_new(out, "number", json_pack("[f,f]", b->least, b->most));
  return whole(out, failed);
}

static json_t *random_json(const mx_identity *id) {
  json_t *out = json_object();
  int failed = !out;
  if (id->exact) failed |= json_object_set_new(out, "seed", json_integer((json_int_t)id->spec.seed));
  if (!id->random_n) return whole(out, failed);
  if (id->random_bits_least) failed |= json_object_set_new(out, "bits", json_pack("[i,i]", id->random_bits_least, id->random_bits_most));
  failed |= json_object_set_new(out, "bias", json_real(id->random_bias));
  failed |= json_object_set_new(out, "biased", json_boolean(id->random_biased));
  failed |= json_object_set_new(out, "elements", json_integer((json_int_t)id->random_n));
  failed |= json_object_set_new(out, "beyond", json_integer((json_int_t)id->random_beyond));
  if (*id->random_shared) failed |= json_object_set_new(out, "shared", json_string(id->random_shared));
  return whole(out, failed);
}

/* {"on": ..., "holds": ..., counts, "first": {...}} */
static json_t *confirm_json(const held *h) {
  const unexpected *u = &h->got;
  json_t *out = json_pack("{s:s,s:b,s:I,s:I,s:I}", "on", h->on, "holds", h->holds, "codes_differ", (json_int_t)u->codes, "scales_differ",
                          (json_int_t)u->scales, "tensor_scales_differ", (json_int_t)u->tensor_scales);
  if (!h->holds && *h->answer && json_object_set_new(out, "answer", json_string(h->answer))) return whole(out, 1);
  if (!u->codes && !u->scales) return out;
  json_t *first = json_pack("{s:s,s:I,s:I}", "suite", h->suite, "row", (json_int_t)u->row, "column", (json_int_t)u->col);
  return whole(out, json_object_set_new(out, "first", first));
}

static int set_count(json_t *root, const char *key, uint64_t n) { return json_object_set_new(root, key, json_integer((json_int_t)n)); }

char *verdict_json(const mx_identity *id, const verdict_more *more) {
  char text[TEXT], value[VALUE];
  json_t *root = json_object(), *spec = json_object(), *undecided = json_array(), *reproduce = json_array();
  int failed = 0;
  mx_spec_print(text, sizeof text, &id->spec, 1);
  for (size_t i = 0; mx_key_name(i); i++) {
    value_in(value, sizeof value, text, mx_key_name(i));
    failed |= json_object_set_new(spec, mx_key_name(i), json_string(value));
    if (id->undecided >> i & 1) failed |= json_array_append_new(undecided, json_string(mx_key_name(i)));
  }
  verdict_option options[VERDICT_OPTIONS];
  const size_t n = verdict_options(options, id);
  const int withdrawn = verdict_is_withdrawn(more), reproduces = verdict_reproduces(id) && !withdrawn && !more->row_scales;
  for (size_t i = 0; i < n && reproduces; i++) failed |= json_array_append_new(reproduce, json_string(options[i].text));
  if (more->turned && reproduces) failed |= json_array_append_new(reproduce, json_string("--transpose"));
  failed |= json_object_set_new(root, "schema_version", json_integer(VERDICT_SCHEMA));
  if (more->plugin) failed |= json_object_set_new(root, "plugin", json_string(more->plugin));
  failed |= json_object_set_new(root, "exact", json_boolean(id->exact));
  failed |= json_object_set_new(root, "grade", json_string(verdict_grade(id)));
  failed |= json_object_set_new(root, "expected", more->expected ? json_boolean(*more->expected) : json_null());
  failed |= json_object_set_new(root, "preset", id->preset ? json_string(id->preset) : json_null());
  const int none = withdrawn || (is_far(id) && !id->bug.n_faults);
  failed |= json_object_set_new(root, "spec", none ? json_null() : json_incref(spec));
  json_decref(spec);
  failed |= set_count(root, "codes", id->n_codes + id->n_values);
  failed |= set_count(root, "codes_differ", id->codes_differ + id->values_differ);
  failed |= set_count(root, "scales", id->n_scales);
  failed |= set_count(root, "scales_differ", id->scales_differ);
  failed |= set_count(root, "tensor_scales_differ", id->tensor_scales_differ);
  failed |= json_object_set_new(root, "undecided", undecided);
  if (id->n_also) failed |= json_object_set_new(root, "also", also_json(id));
  failed |= json_object_set_new(root, "complete", json_boolean(id->complete));
  failed |= json_object_set_new(root, "decide", decide_json(id));
  if (id->stochastic) failed |= json_object_set_new(root, "stochastic", random_json(id));
  if (id->zero_signs_differ) failed |= set_count(root, "zero_signs", id->zero_signs_differ);
  if (id->blank) failed |= json_object_set_new(root, "blank_input", json_true());
  failed |= json_object_set_new(root, "bug", id->bug.name ? bug_json(&id->bug) : json_null());
  rival other;
  failed |= rival_of(&other, id) != MX_OK;
  if (other.preset)
    failed |= json_object_set_new(root, "rival",
                                  json_pack("{s:s,s:o,s:s,s:s,s:s}", "preset", other.preset, "set", set_json(other.preset, &other.spec),
                                            "fault", other.fault, "text", other.words, "gen", other.gen));
  if (more->held && more->held->on) failed |= json_object_set_new(root, "confirm", confirm_json(more->held));
  if (!id->exact && !withdrawn)
    failed |= json_object_set_new(
        root, "smallest_block",
        json_pack("{s:I,s:I,s:I}", "sample", (json_int_t)id->bad_sample, "row", (json_int_t)id->bad_row, "column", (json_int_t)id->bad_col));
  failed |= json_object_set_new(root, "reproduce", reproduce);
  if (more->nibble) failed |= json_object_set_new(root, "nibble", json_string(more->nibble));
  if (more->layout) failed |= json_object_set_new(root, "scale_layout", json_string(more->layout));
  if (more->turned) failed |= json_object_set_new(root, "input_transposed", json_true());
  if (more->row_scales) failed |= json_object_set_new(root, "row_tensor_scales", json_true());
  char sentence[4096];
  failed |= verdict_with(sentence, sizeof sentence, id, more) != MX_OK;
  failed |= json_object_set_new(root, "verdict", json_string(sentence));
  /* not by json_dumps(), which leaves out a key if its buffer cannot grow there (jansson 2.14) */
  const size_t flags = JSON_INDENT(2) | JSON_PRESERVE_ORDER, size = failed ? 0 : json_dumpb(root, NULL, 0, flags);
  char *out = size ? calloc(size + 1, 1) : NULL;
  if (out && json_dumpb(root, out, size, flags) != size) {
    free(out);
    out = NULL;
  }
  json_decref(root);
  return out;
}
