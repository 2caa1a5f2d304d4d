/* Runs mxgold presets: named specs; one in full with its source. */
#include <stdio.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/spec.h"
#include "cli/base/out.h"
#include "cli/spec/opts.h"
#include "cli/spec/value.h"

struct args {
  const char *name;
  int json, markdown;
};

static const cli_option options[] = {
    {"NAME", 0, CLI_POS_OPT, offsetof(struct args, name), NULL, "show one preset in full; without it every preset gets one line",
     spec_preset_names},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {"markdown", 0, CLI_FLAG, offsetof(struct args, markdown), NULL, "print Markdown, as in docs/reference/PRESETS.md", NULL},
    {0},
};

static const char *status_text(mx_preset_status s) {
  switch (s) {
  case MX_PRESET_RUN:
    return "run";
  case MX_PRESET_STANDARD:
    return "standard";
  default:
    return "read";
  }
}
static const char *status_meaning(mx_preset_status s) {
  switch (s) {
  case MX_PRESET_RUN:
    return "run: the library's own bytes are in tests/peers, 0 differ";
  case MX_PRESET_STANDARD:
    return "standard: a published standard or paper";
  default:
    return "read: read in source, not run";
  }
}

static void list(out *o, int with_keys) {
  const mx_preset *p;
  out_table(o, "presets");
  for (size_t i = 0; (p = mx_preset_at(i)); i++) {
    mx_spec spec;
    char value[SPEC_VALUE];
    if (mx_preset_find(&spec, p->name, NULL)) continue; /* tests/test_tables.c: every row parses */
    out_row(o);
    out_text(o, "preset", p->name);
    out_text(o, "elem", spec_value(value, &spec, "elem"));
    out_text(o, "scale", spec_value(value, &spec, "scale"));
    out_text(o, "block", spec_value(value, &spec, "block"));
    out_text(o, "status", status_text(p->status));
    out_text(o, "alias of", p->alias_of ? p->alias_of : "");
    if (with_keys) {
      char keys[4096];
      mx_spec_print(keys, sizeof keys, &spec, 0);
      out_text(o, "keys", p->alias_of ? "" : keys);
    }
    out_text(o, "source", p->source);
  }
  out_end(o);
}

/* What a value of a key means; "" for numbers. */
static const char *meaning_of(size_t key, const char *value) {
  const char *name, *doc;
  int number;
  for (size_t i = 0; (name = mx_key_choice(key, i, &doc, &number)); i++) {
    const size_t n = strlen(name);
    if (number ? !strncmp(name, value, n) && (n ? value[n] == '=' : value[0] >= '0' && value[0] <= '9') : !strcmp(name, value)) return doc;
  }
  return "";
}

static void one(out *o, const mx_preset *p) {
  mx_spec spec;
  const mx_spec zero = {0};
  char keys[4096], value[SPEC_VALUE], standard[SPEC_VALUE];
  if (mx_preset_find(&spec, p->name, NULL)) return;
  mx_spec_print(keys, sizeof keys, &spec, 0);
  out_text(o, "preset", p->name);
  if (p->alias_of) out_text(o, "alias of", p->alias_of);
  out_text(o, "status", status_meaning(p->status));
  out_text(o, "source", p->source);
  out_text(o, "keys", keys);
  out_table(o, "spec");
  for (size_t k = 0; mx_key_name(k); k++) {
    const char *name = mx_key_name(k);
    spec_value(value, &spec, name);
    out_row(o);
    out_text(o, "key", name);
    out_text(o, "value", value);
    out_text(o, "default", strcmp(value, spec_value(standard, &zero, name)) ? standard : "");
    out_text(o, "meaning", *meaning_of(k, value) ? meaning_of(k, value) : mx_key_doc(k));
  }
  out_end(o);
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  out *o = out_new();
  const mx_preset *p;
  if (!a->name) list(o, a->json || a->markdown);
  for (size_t i = 0; a->name && (p = mx_preset_at(i)); i++)
    if (!strcmp(p->name, a->name)) one(o, p);
  if (!a->markdown) return out_print(o, a->json);
  return out_print_markdown(
      o, "Presets",
      "The rows of formats/presets.def as the program prints them. Written by `make docs`: edit the table, not this file.\n\n"
      "Keys are those that differ from plain OCP MXFP4; FORMATS.md says what they mean, `mxgold presets NAME` prints all of them. Status:\n"
      "`run` the library itself was run and its bytes are in tests/peers, 0 differing; `standard` a published standard or paper;\n"
      "`read` read in the library's source, not run.");
}

const cli_command cmd_presets = {
    options, sizeof(struct args), run,
    "A preset is a row of keys named after the library or standard whose bytes it gives. Status run: the library's own bytes are in the "
    "tests;\n"
    "standard: a published standard or paper; read: read in source, not run. The column default is empty where a key has its default."};
