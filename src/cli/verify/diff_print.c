/* Prints what mxgold diff found, in words or as JSON. */
#include "diff_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mxgold/mxgold.h"
#include "cli/base/out.h"

enum { DIFF_SCHEMA = 2 };

/* What the report calls the two sides. JSON has one set of keys, whatever text says. */
typedef struct side_words {
  const char *code[2], *scale[2], *value[2], *own[2]; /* of A and B: "code A" */
  const char *layout, *by_scale, *pairs;
} side_words;
static const side_words plain_words = {.code = {"code A", "code B"},
                                       .scale = {"scale A", "scale B"},
                                       .value = {"value A", "value B"},
                                       .own = {"A", "B"},
                                       .layout = "layout of B's scales",
                                       .by_scale = "by scale code of A",
                                       .pairs = "codes, A to B"};
static const side_words kernel_words = {.code = {"expected code", "your code"},
                                        .scale = {"expected scale", "your scale"},
                                        .value = {"expected value", "your value"},
                                        .own = {"expected", "yours"},
                                        .layout = "layout of your scales",
                                        .by_scale = "by expected scale code",
                                        .pairs = "codes, expected to yours"};

static void example(out *o, const char *which, const mx_diff_example *e, int has_input, const side_words *w) {
  uint32_t bits;
  char text[40];
  memcpy(&bits, &e->x, sizeof bits);
  out_row(o);
  out_text(o, "example", which);
  out_u64(o, "row", e->row);
  out_u64(o, "column", e->col);
  if (has_input) {
    out_f64(o, "x", (double)e->x, "%.9g");
    snprintf(text, sizeof text, "0x%08" PRIx32, bits);
    out_text(o, "bits", text);
    out_f64(o, "amax", (double)e->amax, "%.9g");
    out_f64(o, "quotient", e->quotient, "%.9g");
    out_f64(o, "to tie", e->tie, "%.3g");
  }
  out_hex(o, w->code[0], e->code_a, 1);
  out_hex(o, w->code[1], e->code_b, 1);
  out_hex(o, w->scale[0], e->scale_a, 2);
  out_hex(o, w->scale[1], e->scale_b, 2);
  out_f64(o, w->value[0], e->value_a, "%.9g");
  out_f64(o, w->value[1], e->value_b, "%.9g");
}

/* The scale that each rule would give the block of an example. */
static void scales_by_rule(out *o, const mx_diff_example *e, const mx_spec *spec) {
  static const char *const rules[] = {"scale.rule=floor",
                                      "scale.rule=ceil",
                                      "scale.rule=even",
                                      "scale.rule=value scale.round=up",
                                      "scale.rule=value scale.round=rne",
                                      "scale.rule=value scale.round=down"};
  out_table(o, "scale of its block by each rule");
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    mx_spec s = {0};
    mx_tensor t;
    s.elem = spec->elem;
    s.scale = spec->scale;
    if (mx_spec_parse(&s, rules[i], NULL) || mx_spec_check(&s, NULL) || mx_tensor_alloc(&t, 1, 1, &s)) continue;
    if (!mx_quantize(&t, &e->amax, 1, 1, 1, &s, NULL, NULL)) {
      out_row(o);
      out_text(o, "rule", rules[i]);
      out_hex(o, "scale code", mx_scale_code_at(&t, 0), 2);
    }
    mx_tensor_free(&t);
  }
  out_end(o);
}

/* The eight most frequent of 256; the last gathers what is beyond. */
static void most_of(out *o, const char *table, const char *key, const uint64_t counts[256], int code) {
  uint64_t rest[256];
  memcpy(rest, counts, sizeof rest);
  out_table(o, table);
  for (int shown = 0; shown < 8; shown++) {
    int best = 0;
    for (int i = 1; i < 256; i++)
      if (rest[i] > rest[best]) best = i;
    if (!rest[best]) break;
    out_row(o);
    if (code)
      out_hex(o, key, (uint64_t)best, 2);
    else
      out_u64(o, key, (uint64_t)best);
    out_u64(o, "differ", rest[best]);
    rest[best] = 0;
  }
  out_end(o);
}

static void pairs(out *o, const mx_difference *d, const side_words *w) {
  uint64_t rest[16][16];
  memcpy(rest, d->pairs, sizeof rest);
  out_table(o, w->pairs);
  for (int shown = 0; shown < 8; shown++) {
    uint64_t most = 0;
    int x = 0, y = 0;
    for (int i = 0; i < 16; i++)
      for (int k = 0; k < 16; k++)
        if (rest[i][k] > most) most = rest[i][k], x = i, y = k;
    if (!most) break;
    rest[x][y] = 0;
    out_row(o);
    out_hex(o, w->own[0], (uint64_t)x, 1);
    out_hex(o, w->own[1], (uint64_t)y, 1);
    out_u64(o, "times", most);
  }
  out_end(o);
}

/* Keys of JSON that mxgold identify and Python have too, or that say more than an identifier should. */
static const out_name names[] = {{"signs of zero", "zero_signs"},
                                 {"NaN codes ignored", "nan_codes_differ"},
                                 {"layout of B's scales", "scale_layout"},
                                 {"scale of its block by each rule", "scales_by_rule"},
                                 {"by position in the block", "by_position"},
                                 {"by scale code of A", "by_scale_code"},
                                 {"codes, A to B", "code_pairs"},
                                 {0}};

int diff_print(const mx_difference *d, const mx_spec *spec, const char *layout, const mx_diff_example *list, int has_input, int kernel,
               const char *verdict, const char *answer, int json) {
  const side_words *w = kernel && !json ? &kernel_words : &plain_words;
  out *o = out_new();
  out_identifiers(o, names);
  if (json) out_u64(o, "schema_version", DIFF_SCHEMA);
  out_answer(o, "equal", d->equal);
  out_u64(o, "codes", d->n_codes);
  out_u64(o, "codes that differ", d->codes);
  out_u64(o, "scales", d->n_scales);
  out_u64(o, "scales that differ", d->scales);
  out_u64(o, "tensor scales that differ", d->tensor_scales);
  out_u64(o, "values that differ", d->values);
  out_u64(o, "signs of zero", d->zero_signs);
  out_u64(o, "NaN codes ignored", d->nan_codes);
  out_u64(o, "rows that differ", d->rows);
  out_u64(o, "blocks that differ", d->blocks);
  if (d->padding) out_u64(o, "padding bytes that differ", d->padding);
  if (layout) out_text(o, w->layout, layout);
  out_texts(o, json ? "patterns" : "pattern", (size_t)d->n_patterns, d->patterns[0], sizeof d->patterns[0], json);
  if (*verdict) out_text(o, "verdict", verdict);
  if (json && answer) out_json(o, "answer", answer);
  if (d->codes) {
    out_table(o, "examples");
    example(o, "first", &d->first, has_input, w);
    example(o, "worst", &d->worst, has_input, w);
    example(o, "smallest", &d->smallest, has_input, w);
    out_end(o);
    if (d->n_listed) {
      out_table(o, "differences");
      for (size_t i = 0; i < d->n_listed; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        example(o, number, &list[i], has_input, w);
      }
      out_end(o);
    }
    if (has_input) scales_by_rule(o, &d->first, spec);
    most_of(o, "by position in the block", "position", d->by_position, 0);
    most_of(o, w->by_scale, "scale code", d->by_scale, 1);
    pairs(o, d, w);
  }
  return out_print(o, json);
}
