/* Runs mxgold formats [TABLE]: every row of formats/. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/out.h"
#include "cli/spec/value.h"

struct args {
  const char *table;
  int json, markdown;
};

static const char *kind_name(mx_format_kind kind) {
  static const char *names[] = {"float", "exponent", "integer", "fnuz", "none"};
  return names[kind];
}

static void code_text(char text[24], uint64_t code) {
  if (code == MX_NO_CODE)
    snprintf(text, 24, "none");
  else
    snprintf(text, 24, "0x%" PRIX64, code);
}

static void out_code(out *o, const char *key, uint64_t code) {
  char text[24];
  code_text(text, code);
  out_text(o, key, text);
}

static void formats(out *o, const char *table, const char *column, const mx_format *(*row)(int)) {
  const mx_format *f;
  out_table(o, table);
  for (int i = 0; (f = row(i)); i++) {
    char first[24], last[24], nans[56];
    out_row(o);
    out_text(o, column, f->name);
    out_text(o, "kind", kind_name(f->kind));
    out_u64(o, "bits", f->bits);
    out_u64(o, "sign", f->sign_bits);
    out_u64(o, "exponent", f->exp_bits);
    out_u64(o, "mantissa", f->man_bits);
    out_i64(o, "bias", f->bias);
    out_f64(o, "largest", mx_format_max(f), "%.9g");
    out_f64(o, "smallest positive", mx_format_min(f), "%.9g");
    out_code(o, "code of largest", f->max_code);
    out_code(o, "inf", f->inf_code);
    code_text(first, f->nan_first);
    code_text(last, f->nan_last);
    snprintf(nans, sizeof nans, f->nan_first == f->nan_last ? "%s" : "%s..%s", first, last);
    out_text(o, "nan", nans);
    out_text(o, "source", f->source);
  }
  out_end(o);
}

static void elements(out *o) { formats(o, "elements", "element", mx_elem_format); }
static void scales(out *o) { formats(o, "scales", "scale", mx_scale_format); }
static void operands(out *o) { formats(o, "operands", "operand", mx_operand_format); }

static void keys(out *o) {
  const mx_spec zero = {0};
  out_table(o, "keys");
  for (size_t k = 0; mx_key_name(k); k++) {
    char value[SPEC_VALUE];
    out_row(o);
    out_text(o, "key", mx_key_name(k));
    out_text(o, "default", spec_value(value, &zero, mx_key_name(k)));
    out_text(o, "meaning", mx_key_doc(k));
  }
  out_end(o);
}

static void choices(out *o) {
  out_table(o, "choices");
  for (size_t k = 0; mx_key_name(k); k++) {
    const char *name, *doc;
    int number;
    for (size_t i = 0; (name = mx_key_choice(k, i, &doc, &number)); i++) {
      char text[64];
      snprintf(text, sizeof text, "%s%s%s", name, number && *name ? "=" : "", number ? "N" : "");
      out_row(o);
      out_text(o, "key", mx_key_name(k));
      out_text(o, "choice", text);
      out_text(o, "meaning", doc);
    }
  }
  out_end(o);
}

static void chains(out *o) {
  const mx_chain *c;
  out_table(o, "chains");
  for (int i = 0; (c = mx_chain_row(i)); i++) {
    out_row(o);
    out_text(o, "chain", c->name);
    out_text(o, "tensor", c->tensor);
    out_text(o, "scale", c->scale);
    out_text(o, "element", c->element);
    out_text(o, "again", c->again);
    out_text(o, "stored", c->store);
    out_text(o, "source", c->source);
  }
  out_end(o);
}

static void layouts(out *o) {
  const mx_layout_row *l;
  out_table(o, "layouts");
  for (int i = 0; (l = mx_layout_row_at(i)); i++) {
    out_row(o);
    out_text(o, "layout", l->name);
    out_u64(o, "rows to", l->row_pad);
    out_u64(o, "blocks to", l->k_pad);
    out_text(o, "index and source", l->source);
  }
  out_end(o);
}

static void encoders(out *o) {
  const mx_encoder_row *e;
  out_table(o, "encoders");
  for (size_t i = 0; (e = mx_encoder_row_at(i)); i++) {
    out_row(o);
    out_text(o, "preset of encode", e->preset);
    out_text(o, "format", e->format);
    out_text(o, "keys", e->keys);
    out_text(o, "source", e->source);
  }
  out_end(o);
}

static const struct {
  const char *name;
  void (*print)(out *o);
} tables[] = {{"elements", elements}, {"scales", scales}, {"operands", operands}, {"keys", keys},
              {"choices", choices},   {"chains", chains}, {"layouts", layouts},   {"encoders", encoders}};
enum { N_TABLES = sizeof tables / sizeof tables[0] };

static const char *table_names(size_t index) { return index < N_TABLES ? tables[index].name : NULL; }

static const cli_option options[] = {
    {"TABLE", 0, CLI_POS_OPT, offsetof(struct args, table), NULL, "one table; without it, all of them", table_names},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {"markdown", 0, CLI_FLAG, offsetof(struct args, markdown), NULL, "print Markdown, as in docs/reference/FORMATS.md", NULL},
    {0},
};

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  out *o = out_new();
  for (size_t i = 0; i < N_TABLES; i++)
    if (!a->table || !strcmp(a->table, tables[i].name)) tables[i].print(o);
  if (!a->markdown) return out_print(o, a->json);
  return out_print_markdown(o, "Formats, keys, layouts",
                            "The tables of formats/*.def as the program prints them. Written by `make docs`: edit the tables, not this file.");
}

const cli_command cmd_formats = {
    options, sizeof(struct args), run,
    "Elements, scales and operands of matrix units; the keys of a spec with their choices; arithmetic chains; layouts; presets of encode.\n"
    "All of them are rows of formats/*.def: a new row appears here, in help, in the documentation and in the tests."};
