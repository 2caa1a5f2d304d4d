/* Runs mxgold probe: the model of a matrix unit, from tiles that a device has run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/probe.h"
#include "cli/base/out.h"
#include "cli/verify/probe_io.h"

struct args {
  cli_list files;
  const char *emit, *emit_next, *like, *a, *b, *c, *d, *scale;
  cli_u64 block, k, m, n, seed, threads;
  int fit, json, all;
};

static const cli_option options[] = {
    {"FILE", 0, CLI_POS_LIST, offsetof(struct args, files), NULL, "with --fit: probes and results in turn", NULL},
    {"emit", 0, CLI_STRING, offsetof(struct args, emit), "P.safetensors", "write probe tiles", NULL},
    {"fit", 0, CLI_FLAG, offsetof(struct args, fit), NULL, "name the model from probe tiles and the results of a device", NULL},
    {"emit-next", 0, CLI_STRING, offsetof(struct args, emit_next), "P2.safetensors",
     "with --fit: write tiles that distinguish the models that still fit, if there are several", NULL},
    {"like", 0, CLI_STRING, offsetof(struct args, like), "MODEL", "types, scales and shape of a model of mxgold models; K is twice its k",
     NULL},
    {"a", 0, CLI_STRING, offsetof(struct args, a), "TYPE", "element type of a", NULL},
    {"b", 0, CLI_STRING, offsetof(struct args, b), "TYPE", "element type of b; that of a by default", NULL},
    {"c", 0, CLI_STRING, offsetof(struct args, c), "TYPE", "element type of c; that of d by default", NULL},
    {"d", 0, CLI_STRING, offsetof(struct args, d), "TYPE", "element type of d; f32 by default", NULL},
    {"scale", 0, CLI_STRING, offsetof(struct args, scale), "FORMAT", "format of block scales", NULL},
    {"block", 0, CLI_U64, offsetof(struct args, block), "N", "elements along K that share a scale; 32 by default", NULL},
    {"k", 'k', CLI_U64, offsetof(struct args, k), "K", "depth of the tiles: a multiple of the device's k, preferably twice it", NULL},
    {"m", 'm', CLI_U64, offsetof(struct args, m), "M", "rows of a tile; 16 by default, or the model's", NULL},
    {"n", 'n', CLI_U64, offsetof(struct args, n), "N", "columns of a tile; 8 by default, or the model's", NULL},
    {"seed", 0, CLI_U64, offsetof(struct args, seed), "N", "seed of the random parts; 1 by default", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads; 0: all (default)", NULL},
    {"all", 0, CLI_FLAG, offsetof(struct args, all), NULL, "list every value that was ruled out, not only the nearest", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

/* --- emit --- */

static int find_type(const mx_format **type, const char *option, const char *name, const mx_format *otherwise) {
  *type = otherwise;
  if (!name) return CLI_FINE;
  for (int i = 0; i < MX_ELEM_COUNT; i++)
    if (!strcmp(mx_elem_format(i)->name, name)) *type = mx_elem_format(i);
  for (int i = 0; i < MX_OPERAND_COUNT; i++)
    if (!strcmp(mx_operand_format(i)->name, name)) *type = mx_operand_format(i);
  if (*type && !strcmp((*type)->name, name)) return CLI_FINE;
  return cli_error("--%s: '%s' is not a type of elements.def or operands.def", option, name);
}

static int find_scale(const mx_format **type, const char *name) {
  if (!name) return CLI_FINE;
  for (int i = 0; i < MX_SCALE_COUNT; i++) {
    const char *row = mx_scale_format(i)->name;
    if (!strcmp(row, name) || (*name == 'u' && !strcmp(row, name + 1))) *type = mx_scale_format(i);
  }
  return *type ? CLI_FINE : cli_error("--scale: '%s' is not a format of scales.def", name);
}

static int spec_of(mx_probe_spec *s, const struct args *a) {
  mx_error err = {0};
  mx_mma_model m = {0};
  if (!a->like == !a->a) return cli_error("probe --emit: --like MODEL or --a TYPE, one of the two");
  if (a->like && mx_mma_model_find(&m, a->like, &err)) return cli_fail(&err);
  if (!a->like && !a->k.given) return cli_error("probe --emit: --k is missing: the depth of the tiles");
  int rc = find_type(&s->a, "a", a->a, m.a);
  if (!rc) rc = find_type(&s->b, "b", a->b, m.b ? m.b : s->a);
  if (!rc) rc = find_type(&s->d, "d", a->d, m.d ? m.d : mx_operand_format(MX_OPERAND_F32));
  if (!rc) rc = find_type(&s->c, "c", a->c, m.c ? m.c : s->d);
  s->scale = m.scale;
  if (!rc) rc = find_scale(&s->scale, a->scale);
  if (rc) return rc;
  s->block = s->scale ? a->block.given ? (int)a->block.v : m.block ? m.block : 32 : 0;
  if (a->block.given && !s->scale) return cli_error("--block: no --scale is given");
  if (a->block.given && (a->block.v < 1 || a->block.v > 4096)) return cli_error("--block: 1 to 4096 expected");
  s->K = a->k.given ? a->k.v : m.k ? 2 * (size_t)m.k : 32;
  if (a->k.given && m.whole_k && a->k.v % (uint64_t)m.k)
    return cli_error("--k: %llu is not a multiple of %d, the k of %s", (unsigned long long)a->k.v, m.k, m.name);
  s->M = a->m.given ? a->m.v : m.m ? (size_t)m.m : 16;
  s->N = a->n.given ? a->n.v : m.n ? (size_t)m.n : 8;
  s->seed = a->seed.given ? a->seed.v : 1;
  return CLI_FINE;
}

static int emit(const struct args *a) {
  mx_probe_spec s = {0};
  mx_probe p;
  mx_error err = {0};
  int rc = spec_of(&s, a);
  if (rc) return rc;
  if (mx_probe_make(&p, &s, &err) || probe_write(a->emit, &p, &err)) rc = cli_fail(&err);
  if (!rc) {
    out *o = out_new();
    out_text(o, "probes", a->emit);
    out_u64(o, "tiles", p.T);
    out_u64(o, "tiles kept apart", p.T - p.T_fit);
    out_u64(o, "M", s.M);
    out_u64(o, "N", s.N);
    out_u64(o, "K", s.K);
    out_u64(o, "designed probes", p.n);
    rc = out_print(o, a->json);
  }
  mx_probe_free(&p);
  return rc;
}

/* --- fit --- */

/* Of the values of a key that are ruled out, those beside what was found; of names, all. */
static int is_near(const mx_probe_fit *f, const mx_probe_alternative *x) {
  static const char *const ordered[] = {"L", "P", "k", "F", "floor", "sum_bits", "c_bits", "c_drop", "out_bits"};
  if (x->open || x->same) return 1;
  int numeric = 0;
  for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++) numeric |= !strcmp(ordered[i], x->key);
  if (!numeric) return 1;
  if (strcmp(x->key, "L") && strcmp(x->key, "P") && strcmp(x->key, "k")) return 1; /* the library gives neighbours alone */
  const int L = f->model.accum.L, v = atoi(x->value);
  return !strcmp(x->key, "L") && (v == 2 * L || 2 * v == L);
}

static void alternatives(out *o, const mx_probe_fit *f, int all) {
  const char *names[] = {"ruled out", "open", "the same"};
  for (int kind = 0; kind < 3; kind++) {
    size_t n = 0;
    for (size_t i = 0; i < f->n_alternatives; i++) {
      const mx_probe_alternative *x = &f->alternatives[i];
      n += kind == 0 ? x->wrong > 0 : kind == 1 ? x->open : x->same;
    }
    if (!n) continue;
    out_table(o, names[kind]);
    for (size_t i = 0; i < f->n_alternatives; i++) {
      const mx_probe_alternative *x = &f->alternatives[i];
      if (!(kind == 0 ? x->wrong > 0 : kind == 1 ? x->open : x->same) || (!all && kind == 0 && !is_near(f, x))) continue;
      char count[32];
      out_row(o);
      out_text(o, "key", x->key);
      out_text(o, "value", x->value);
      if (kind) continue;
      snprintf(count, sizeof count, "%s%zu", x->wrong > 99 ? "over " : "", x->wrong > 99 ? 99 : x->wrong);
      out_text(o, "probes against", count);
      out_text(o, "first", x->text);
    }
    out_end(o);
  }
}

static void counter(out *o, const mx_probe_fit *f, const char *const *files) {
  const mx_probe_counter_example *c = &f->counter;
  char bits[24];
  out_object(o, "counter-example");
  out_text(o, "file", files[2 * c->batch]);
  out_u64(o, "tile", c->tile);
  out_u64(o, "row", c->row);
  out_u64(o, "column", c->column);
  out_text(o, "inputs", c->text);
  snprintf(bits, sizeof bits, "0x%llX", (unsigned long long)c->got);
  out_text(o, "device", bits);
  snprintf(bits, sizeof bits, "0x%llX", (unsigned long long)c->expected);
  out_text(o, "model", bits);
  out_end(o);
}

static int print(const struct args *a, const mx_probe_fit *f) {
  out *o = out_new();
  out_text(o, "verdict", !f->fits ? "no model fits" : f->next.T ? "fits, but others do too: see open" : "fits");
  if (f->is_tree) {
    out_text(o, "model", f->tree_name ? f->tree_name : "a tree of additions");
    out_text(o, "rule", f->tree_rule);
  } else
    out_text(o, f->fits ? "model" : "nearest model", f->text);
  if (f->tree) out_text(o, "tree", f->tree);
  if (f->nan_open) out_text(o, "NaN", "its bits follow no rule of nan=; any NaN was taken for any other");
  out_u64(o, "outputs fitted", f->n_outputs);
  out_u64(o, "of these wrong", f->wrong_outputs);
  out_u64(o, "outputs predicted", f->n_kept);
  out_u64(o, "predicted wrong", f->wrong_kept);
  out_u64(o, "models tried", f->n_tried);
  if (f->fits && !f->is_tree) out_u64(o, "inputs to tell models apart", f->n_told);
  out_table(o, "readings");
  for (size_t i = 0; i < f->n_readings; i++) {
    out_row(o);
    out_text(o, "what", f->readings[i].what);
    out_text(o, "value", f->readings[i].value);
    out_text(o, "evidence", f->readings[i].evidence);
  }
  out_end(o);
  if (f->n_names) {
    out_table(o, "rows that give the same");
    for (size_t i = 0; i < f->n_names; i++) {
      out_row(o);
      out_text(o, "name", f->names[i]);
    }
    out_end(o);
  }
  alternatives(o, f, a->all || a->json);
  if (!f->fits) counter(o, f, a->files.items);
  return out_print(o, a->json);
}

static int fit(const struct args *a) {
  const size_t n = a->files.n / 2;
  mx_error err = {0};
  int rc = CLI_FINE;
  if (a->files.n < 2 || a->files.n % 2) return cli_error("probe --fit: files of probes and of results in turn, P D [P2 D2]...");
  mx_probe *p = calloc(n, sizeof *p);
  void **d = calloc(n, sizeof *d);
  mx_probe_fit *f = calloc(1, sizeof *f);
  if (!p || !d || !f) rc = cli_error("probe: no memory");
  for (size_t i = 0; i < n && !rc; i++)
    if (probe_read_file(&p[i], a->files.items[2 * i], &err) || probe_read_d(&d[i], a->files.items[2 * i + 1], &p[i], &err)) rc = cli_fail(&err);
  const mx_exec exec = {.n_threads = cli_threads(&a->threads)};
  if (!rc && mx_probe_fit_run(f, p, (const void *const *)d, n, &exec, &err)) rc = cli_fail(&err);
  if (!rc && a->emit_next && f->next.T && probe_write(a->emit_next, &f->next, &err)) rc = cli_fail(&err);
  if (!rc) {
    rc = print(a, f);
    if (!rc && !f->fits) rc = CLI_DIFFERS;
  }
  for (size_t i = 0; i < n && p && d; i++) {
    mx_probe_free(&p[i]);
    free(d[i]);
  }
  if (f) mx_probe_fit_free(f);
  free(f);
  free(p);
  free(d);
  return rc;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  if (!a->emit == !a->fit) return cli_error("probe: --emit P.safetensors or --fit P D, one of the two");
  if (a->emit && (a->files.n || a->emit_next)) return cli_error("probe --emit: takes no files and no --emit-next");
  if (a->fit &&
      (a->like || a->a || a->b || a->c || a->d || a->scale || a->block.given || a->k.given || a->m.given || a->n.given || a->seed.given))
    return cli_error("probe --fit: types and shape are those of the probes; no option of --emit is taken");
  return a->fit ? fit(a) : emit(a);
}

const cli_command cmd_probe = {
    options, sizeof(struct args), run,
    "--emit writes tiles of raw bits as `mxgold mma` takes them: a [T,M,K], b [T,N,K], c [T,M,N], with scales scale_a, scale_b. Run them on a "
    "device "
    "(d = a x b^T + c for each tile, instructions chained along K) and store d [T,M,N].\n"
    "--fit reads the parameters of the model, searches what is left, lists what every other value is ruled out by and what no input tells "
    "apart, and "
    "predicts tiles that it did not look at. Exit status 0 if every output is explained, 1 if no model fits: then the smallest counter-example "
    "is "
    "shown.\n"
    "Where several models are left, --emit-next writes tiles on which they differ; run those too and give all files to --fit."};
