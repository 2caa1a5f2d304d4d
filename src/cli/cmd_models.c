/* Runs mxgold models: the models of matrix units, their sources and what each was held to. */
#include <stdio.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/mma.h"
#include "cli/base/out.h"

struct args {
  const char *model;
  int json, keys, markdown;
};

static const cli_option options[] = {
    {"MODEL", 0, CLI_POS_OPT, offsetof(struct args, model), NULL, "the name of a model, or the beginning of names to list: hopper/, cdna3",
     NULL},
    {"keys", 0, CLI_FLAG, offsetof(struct args, keys), NULL, "the parameters of a model and their values", NULL},
    {"markdown", 0, CLI_FLAG, offsetof(struct args, markdown), NULL, "print Markdown, as in docs/reference/MODELS.md", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

/* --- the parameters --- */

static void key_row(out *o, const char *key, const char *value, const char *meaning) {
  out_row(o);
  out_text(o, "key", key);
  out_text(o, "value", value);
  out_text(o, "meaning", meaning);
}

static void number_row(out *o, const char *key, int min, int max, int none, const char *none_text, const char *meaning) {
  char range[64];
  snprintf(range, sizeof range, "%d..%d%s%s%s", min, max, *none_text ? ", " : "", none_text, none == 0 && min > 0 ? " or 0" : "");
  key_row(o, key, range, meaning);
}

static int list_keys(int json) {
  out *o = out_new();
  out_table(o, "keys");
#define MX_ACCUM_INT(field, min, max, none, none_text, doc) number_row(o, #field, min, max, none, none_text, doc);
#define MX_ACCUM_ENUM(field, doc) key_row(o, #field, "", doc);
#define MX_ACCUM_VALUE(field, id, number, text, doc) key_row(o, "", text, doc);
#include "formats/accumulation_keys.def"
  key_row(o, "out", "f32rz ...", "D's type, fraction bits and rounding at once: f32, f16, bf16 or e8mB, then rz, rne or rd");
  key_row(o, "a b ab c d", "a type", "row of formats/elements.def or operands.def");
  key_row(o, "scale", "a format", "row of formats/scales.def, or none");
  key_row(o, "block", "0..65536", "elements along K that share a scale");
  key_row(o, "k", "0..65536",
          "elements along K that one instruction takes; 0: all of K. By default what the named instruction takes, or else L");
  key_row(o, "accum", "a row", "parameters of another row of formats/accumulation.def");
#define MX_ACCUM(...)
#define MX_ACCUM_RULES(name, doc, keys, keys_f16)                                                                                              \
  key_row(o, "rules", #name, strcmp(keys, keys_f16) ? doc ": " keys "; where D is f16 " keys_f16 : doc ": " keys);
#include "formats/accumulation.def"
#undef MX_ACCUM
#undef MX_ACCUM_RULES
  out_end(o);
  return out_print(o, json);
}

/* --- the models --- */

static void shape_of(char *text, size_t size, const mx_mma_model *m) {
  snprintf(text, size, "any");
  if (m->m) snprintf(text, size, "m%dn%dk%d", m->m, m->n, m->k);
}

static void describe(out *o, const mx_mma_model *m, int json) {
  char shape[48], keys[512], scale[48];
  shape_of(shape, sizeof shape, m);
  mx_accum_text(keys, sizeof keys, &m->accum);
  out_text(o, "model", m->name);
  out_text(o, "accumulation", m->accum_name);
  out_text(o, "shape", shape);
  out_text(o, "d", m->d->name);
  out_text(o, "a", m->a->name);
  out_text(o, "b", m->b->name);
  out_text(o, "c", m->c->name);
  if (m->scale) {
    snprintf(scale, sizeof scale, "%s, one for %d elements along K", m->scale->name, m->block);
    out_text(o, "scale", scale);
  }
  out_text(o, "parameters", keys);
  out_text(o, json ? "held_to" : "held to", m->held);
  out_text(o, "source", m->source);
}

static int describe_one(const char *name, int json) {
  mx_mma_model m;
  mx_error err;
  if (mx_mma_model_find(&m, name, &err)) return cli_fail(&err);
  out *o = out_new();
  describe(o, &m, json);
  return out_print(o, json);
}

/* Types, shape and parameters are for programs: a line of a terminal has no room. */
static void list_row(out *o, const mx_mma_model *m, int all) {
  char shape[48], keys[512];
  out_row(o);
  out_text(o, "model", m->name);
  out_text(o, "accumulation", m->accum_name);
  if (all) {
    shape_of(shape, sizeof shape, m);
    mx_accum_text(keys, sizeof keys, &m->accum);
    out_text(o, "shape", shape);
    out_u64(o, "k", (uint64_t)m->k);
    out_text(o, "d", m->d->name);
    out_text(o, "a", m->a->name);
    out_text(o, "b", m->b->name);
    out_text(o, "c", m->c->name);
    out_text(o, "scale", m->scale ? m->scale->name : "none");
    out_u64(o, "block", (uint64_t)m->block);
    out_text(o, "parameters", keys);
  }
  out_text(o, all ? "held_to" : "held to", m->held); /* all is for JSON */
  out_text(o, "source", m->source);
}

/* Every model whose name begins so; 0 if there is none. */
static size_t list(out *o, const char *beginning, int all) {
  mx_mma_model m;
  size_t n = 0;
  out_table(o, "models");
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK; i++)
    if (!strncmp(m.name, beginning, strlen(beginning))) {
      list_row(o, &m, all);
      n++;
    }
  out_end(o);
  return n;
}

/* --- the page --- */

static void accumulation_rows(out *o) {
  mx_mma_model m;
  char keys[512];
  out_table(o, "accumulation models");
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK && !strchr(m.name, '/'); i++) {
    mx_accum_text(keys, sizeof keys, &m.accum);
    out_row(o);
    out_text(o, "model", m.name);
    out_text(o, "parameters", keys);
    out_text(o, "held to", m.held);
    out_text(o, "source", m.source);
  }
  out_end(o);
}

/* Instructions of one architecture, model and evidence that follow each other. */
static int same_family(const mx_mma_model *x, const mx_mma_model *y) {
  size_t arch = strcspn(x->name, "/") + 1;
  return !strncmp(x->name, y->name, arch) && !strcmp(x->accum_name, y->accum_name) && !strcmp(x->held, y->held);
}

static void family_rows(out *o) {
  mx_mma_model first, m;
  size_t n = 0;
  out_table(o, "instructions");
  for (size_t i = 0;; i++) {
    int more = mx_mma_model_at(&m, i) == MX_OK;
    if (more && !strchr(m.name, '/')) continue;
    if (n && (!more || !same_family(&first, &m))) {
      out_row(o);
      out_text(o, "first", first.name);
      out_u64(o, "instructions", n);
      out_text(o, "accumulation", first.accum_name);
      out_text(o, "held to", first.held);
      n = 0;
    }
    if (!more) break;
    if (!n++) first = m;
  }
  out_end(o);
}

static int page(void) {
  out *o = out_new();
  accumulation_rows(o);
  family_rows(o);
  return out_print_markdown(
      o, "Models of matrix units",
      "The rows of formats/accumulation.def and formats/instructions.def (`mxgold models` lists every name), then how each kind "
      "computes. Written by `make docs`: edit the tables and formats/datapaths.md, not this file.");
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  mx_mma_model m;
  if (a->keys) return list_keys(a->json);
  if (a->markdown) return page();
  if (a->model && mx_mma_model_find(&m, a->model, NULL) == MX_OK) return describe_one(a->model, a->json);
  out *o = out_new();
  if (list(o, a->model ? a->model : "", a->json)) return out_print(o, a->json);
  out_free(o);
  return describe_one(a->model, a->json); /* says what is wrong with the name */
}

const cli_command cmd_models = {
    options, sizeof(struct args), run,
    "Without a name, every model is listed with its source and what it was compared with. The n of a wgmma or tcgen05 name may be "
    "any multiple of 8 up to 256; one is listed. A row that was compared with nothing is a candidate and says so."};
