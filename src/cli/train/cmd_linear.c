/* Runs mxgold linear X W [DY] --recipe NAME -o OUT.safetensors: one quantised linear layer on files, forward and backward. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/spec/opts.h"
#include "cli/base/tensor_io.h"
#include "mxgold/linear.h"
#include "mxgold/mxgold.h"
#include "ref/linear.h"

struct args {
  const char *x, *w, *dy, *out, *bias, *preset, *recipe, *gemms, *model;
  cli_list set, operands, train;
  cli_u64 seed, step, layer, threads;
  int ref;
};

static const char *recipe_names(size_t index) {
  const mx_recipe *r = mx_recipe_at(index);
  return r ? r->name : NULL;
}

static const cli_option options[] = {
    {"X", 0, CLI_POS, offsetof(struct args, x), NULL, "the layer's input, [T][I] of f32, f16 or bf16 (.npy, or FILE.safetensors:TENSOR)", NULL},
    {"W", 0, CLI_POS, offsetof(struct args, w), NULL, "its weight, [O][I]", NULL},
    {"DY", 0, CLI_POS_OPT, offsetof(struct args, dy), NULL, "the gradient of its output, [T][O]; without it only the forward pass is run",
     NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "OUT.safetensors", "y, dx, dw, db and the quantised operands q1 to q6", NULL},
    {"recipe", 0, CLI_STRING, offsetof(struct args, recipe), "NAME", "how the six operands are quantised; recipe-ocp by default", recipe_names},
    {"preset", 0, CLI_STRING, offsetof(struct args, preset), "NAME", "one preset for all six operands, instead of a recipe", spec_preset_names},
    {"set", 0, CLI_LIST, offsetof(struct args, set), "KEY=VALUE", "set a key of all six operands; may be repeated", NULL},
    {"operand", 0, CLI_LIST, offsetof(struct args, operands), "Qn:KEY=VALUE[,...]", "set keys of one operand, Q1 to Q6; may be repeated", NULL},
    {"train", 0, CLI_LIST, offsetof(struct args, train), "KEY=VALUE", "set a training key, such as requant.source=fwd_dequant; may be repeated",
     NULL},
    {"gemms", 0, CLI_STRING, offsetof(struct args, gemms), "LIST", "the products that are quantised; fprop,dgrad,wgrad by default", NULL},
    {"accum", 0, CLI_STRING, offsetof(struct args, model), "MODEL", "how products are summed, as for gemm --accum; f32_block by default", NULL},
    {"bias", 0, CLI_STRING, offsetof(struct args, bias), "BIAS.npy", "one number per output feature, added after the product", NULL},
    {"seed", 0, CLI_U64, offsetof(struct args, seed), "N", "seed of stochastic rounding and of drawn signs; 0 by default", NULL},
    {"step", 0, CLI_U64, offsetof(struct args, step), "N", "the training step, which random words depend on; 0 by default", NULL},
    {"layer", 0, CLI_U64, offsetof(struct args, layer), "N", "the layer's number, which random words also depend on; 0 by default", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {"ref", 0, CLI_FLAG, offsetof(struct args, ref), NULL, "compute with the slow reference", NULL},
    {0},
};

/* A matrix from a file, as float32. */
typedef struct matrix {
  float *at;
  size_t rows, cols;
} matrix;

static int matrix_read(matrix *m, const char *path, const char *what, mx_error *err) {
  mx_file *file;
  const mx_array *a;
  if (mx_tensor_open(&file, &a, path, err)) return cli_fail(err);
  const char *why = input_why_not(a);
  int rc = why ? cli_error("%s: %s is %s", path, what, why) : CLI_FINE;
  if (!rc && !mx_matrix_of(&m->rows, &m->cols, a->shape, a->n_dims)) rc = cli_error("%s: the shape overflows", path);
  if (!rc && !(m->at = malloc(a->n_values * sizeof *m->at + 1))) rc = cli_error("%s: no memory", path);
  if (!rc && mx_array_read_f32(m->at, a, 0, a->n_values, 0)) rc = cli_error("%s: %s cannot be read as float32", path, what);
  mx_file_close(file);
  return rc;
}

/* An operand as it was made. */
typedef struct operand {
  uint8_t *codes, *scales;
  mx_tensor tensor;
  mx_spec spec;
} operand;

typedef struct work {
  const struct args *a;
  matrix x, w, dy, bias;
  mx_linear_recipe recipe;
  mx_mma_model unit;
  mx_linear layer;
  operand q[MX_OPERANDS];
  mx_linear_counts counts;
  int no_memory;
  float *y, *dx, *dw, *db;
} work;

static void keep(void *self, int q, const mx_tensor *t, const mx_spec *spec) {
  work *w = self;
  operand *o = &w->q[q];
  const size_t codes = t->rows * t->code_stride, scales = t->scale_rows * t->scale_cols * t->scale_bytes;
  free(o->codes);
  free(o->scales);
  *o = (operand){malloc(codes + 1), malloc(scales + 1), *t, *spec};
  if (!o->codes || !o->scales) {
    w->no_memory = 1;
    return;
  }
  memcpy(o->codes, t->codes, codes);
  memcpy(o->scales, t->scales, scales);
}

static int compute(work *w, mx_error *err) {
  const mx_linear *l = &w->layer;
  const mx_exec exec = {.n_threads = cli_threads(&w->a->threads)};
  const mx_linear_in x = {w->x.at, l->I, MX_F32}, wt = {w->w.at, l->I, MX_F32}, dy = {w->dy.at, l->O, MX_F32};
  const mx_linear_out y = {w->y, l->O, MX_F32, 0}, dx = {w->dx, l->I, MX_F32, 0}, dw = {w->dw, l->I, MX_F32, 0};
  size_t saved, room;
  if (mx_linear_sizes(&saved, &room, l, &exec, err)) return cli_fail(err); /* which refuses what the products of this shape would */
  if (w->a->ref) {
    if (ref_linear_forward(l, y, x, wt, w->bias.at, err) || (w->dy.at && ref_linear_backward(l, dx, dw, w->db, dy, x, wt, err)))
      return cli_fail(err);
    return CLI_FINE;
  }
  char *memory = malloc(saved + room + 64);
  if (!memory) return cli_error("no memory for a layer of %zu x %zu x %zu", l->T, l->I, l->O);
  mx_status status = mx_linear_forward(l, y, x, wt, w->bias.at, memory, memory + saved, &exec, err);
  if (!status && w->dy.at) status = mx_linear_backward(l, dx, dw, w->db, dy, x, wt, memory, memory + saved, &exec, err);
  free(memory);
  return status ? cli_fail(err) : CLI_FINE;
}

/* What one tensor of the output file is. */
typedef struct entry {
  char name[32];
  mx_dtype dtype;
  uint64_t shape[2];
  int n_dims;
  const void *data;
} entry;

static size_t entries_of(entry *e, const work *w) {
  const mx_linear *l = &w->layer;
  size_t n = 0;
  e[n++] = (entry){"y", MX_F32, {l->T, l->O}, 2, w->y};
  if (w->dy.at) {
    e[n++] = (entry){"dx", MX_F32, {l->T, l->I}, 2, w->dx};
    e[n++] = (entry){"dw", MX_F32, {l->O, l->I}, 2, w->dw};
    e[n++] = (entry){"db", MX_F32, {l->O}, 1, w->db};
  }
  for (int q = 0; q < MX_OPERANDS; q++) {
    const operand *o = &w->q[q];
    const mx_tensor *t = &o->tensor;
    if (!o->codes || (q >= MX_Q3 && !w->dy.at)) continue;
    const int floats = mx_spec_is_plain(&o->spec);
    e[n] = (entry){"", floats ? MX_F32 : MX_U8, {t->rows, floats ? t->cols : t->code_stride}, 2, o->codes};
    snprintf(e[n++].name, sizeof e->name, floats ? "q%d.values" : "q%d.codes", q + 1);
    if (floats) continue;
    e[n] = (entry){"", t->scale_bytes == 1 ? MX_U8 : t->scale_bytes == 2 ? MX_U16 : MX_U32, {t->scale_rows, t->scale_cols}, 2, o->scales};
    snprintf(e[n++].name, sizeof e->name, "q%d.scales", q + 1);
    if (!t->has_tensor_scale) continue;
    e[n] = (entry){"", MX_F32, {1}, 1, &t->tensor_scale};
    snprintf(e[n++].name, sizeof e->name, "q%d.tensor_scale", q + 1);
  }
  return n;
}

static mx_status describe(mx_writer *out, const work *w) {
  mx_status status = mx_writer_meta(out, "accum", w->recipe.fused ? w->unit.name : mx_gemm_model_name(w->recipe.model));
  for (int q = 0; q < MX_OPERANDS && !status; q++) {
    char key[24], text[4096];
    if (!w->q[q].codes) continue;
    snprintf(key, sizeof key, "q%d.spec", q + 1);
    mx_spec_print(text, sizeof text, &w->q[q].spec, 1);
    status = mx_writer_meta(out, key, text);
  }
  char text[64];
  for (size_t i = 0; mx_train_key_at(i) && !status; i++) {
    mx_train_key_text(text, sizeof text, &w->recipe, i);
    status = mx_writer_meta(out, mx_train_key_at(i)->name, text);
  }
  if (w->recipe.occ_alpha == 0 || status) return status;
  snprintf(text, sizeof text, "%" PRIu64, w->counts.clamped);
  return mx_writer_meta(out, "occ.clamped", text);
}

static int write_all(const work *w, mx_error *err) {
  entry e[4 + 3 * MX_OPERANDS];
  const size_t n = entries_of(e, w);
  mx_writer *out;
  if (mx_writer_open(&out, w->a->out, err)) return cli_fail(err);
  if (mx_writer_is_npy(out)) {
    mx_writer_abort(out);
    return cli_error("%s: .npy holds one tensor, expected a .safetensors file", w->a->out);
  }
  mx_status status = MX_OK;
  for (size_t i = 0; i < n && !status; i++) status = mx_writer_add(out, e[i].name, e[i].dtype, e[i].n_dims, e[i].shape, NULL);
  if (!status) status = describe(out, w);
  if (status) mx_fail(err, status, "%s: %s", w->a->out, mx_status_text(status));
  if (!status) status = mx_writer_begin(out, err);
  for (size_t i = 0; i < n && !status; i++)
    status = mx_writer_write(out, i, e[i].data, e[i].shape[0] * (e[i].n_dims > 1 ? e[i].shape[1] : 1) * mx_dtype_bytes(e[i].dtype), err);
  if (status) {
    mx_writer_abort(out);
    return cli_fail(err);
  }
  return mx_writer_commit(out, err) ? cli_fail(err) : CLI_FINE;
}

static int read_all(work *w, mx_error *err) {
  const struct args *a = w->a;
  if (matrix_read(&w->x, a->x, "X", err) || matrix_read(&w->w, a->w, "W", err) || (a->dy && matrix_read(&w->dy, a->dy, "DY", err)) ||
      (a->bias && matrix_read(&w->bias, a->bias, "the bias", err)))
    return CLI_TROUBLE;
  if (w->x.cols != w->w.cols)
    return cli_error("%s has %zu columns and %s %zu, expected the same number of input features", a->x, w->x.cols, a->w, w->w.cols);
  if (a->dy && (w->dy.rows != w->x.rows || w->dy.cols != w->w.rows))
    return cli_error("%s: %zu x %zu, expected DY of %zu x %zu, a row for each row of X and a column for each row of W", a->dy, w->dy.rows,
                     w->dy.cols, w->x.rows, w->w.rows);
  if (a->bias && w->bias.rows * w->bias.cols != w->w.rows)
    return cli_error("%s: %zu values, expected one for each of the %zu rows of W", a->bias, w->bias.rows * w->bias.cols, w->w.rows);
  return CLI_FINE;
}

/* Names the keys of --train that one call of one layer has no use for. */
static void warn_of_ignored(const mx_linear_text *text, const mx_linear_recipe *recipe) {
  static const char *const of_many[] = {"high.", "q2.ema", "ramp", "tensor.hold"};
  mx_linear_text untold = *text;
  mx_linear_recipe without;
  mx_mma_model unit;
  mx_error ignored;
  char names[512] = "";
  untold.n_train = 0;
  if (mx_linear_resolve(&without, &unit, &untold, &ignored)) return;
  for (size_t i = 0; mx_train_key_at(i); i++) {
    const char *name = mx_train_key_at(i)->name;
    char is[64], was[64];
    int many = 0;
    for (size_t k = 0; k < sizeof of_many / sizeof *of_many; k++) many |= !strncmp(name, of_many[k], strlen(of_many[k]));
    mx_train_key_text(is, sizeof is, recipe, i);
    mx_train_key_text(was, sizeof was, &without, i);
    const size_t at = strlen(names);
    if (many && strcmp(is, was)) snprintf(names + at, sizeof names - at, " %s", name);
  }
  if (*names) fprintf(stderr, "mxgold: warning: training keys of a whole model or of many steps change nothing here:%s\n", names);
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  (void)ctx;
  work w = {.a = a};
  mx_error err;
  if (!a->out) return cli_error("linear: no output, expected -o OUT.safetensors");
  if (a->step.v >> 36 || a->layer.v >> 20) return cli_error("linear: expected --step below 2^36 and --layer below 2^20");
  const mx_linear_text text = {a->preset, a->recipe,     a->set.items, a->operands.items, a->train.items,
                               a->set.n,  a->operands.n, a->train.n,   a->gemms,          a->model};
  if (mx_linear_resolve(&w.recipe, &w.unit, &text, &err)) return cli_error("linear: %s", err.text);
  warn_of_ignored(&text, &w.recipe);
  mx_writer_install_signal_cleanup();
  int rc = read_all(&w, &err);
  if (!rc) {
    w.layer = (mx_linear){.recipe = &w.recipe,
                          .T = w.x.rows,
                          .I = w.x.cols,
                          .O = w.w.rows,
                          .seed = a->seed.v,
                          .step = a->step.v,
                          .layer = (uint32_t)a->layer.v,
                          .operand = keep,
                          .self = &w,
                          .counts = &w.counts};
    const mx_linear *l = &w.layer;
    w.y = malloc(l->T * l->O * sizeof *w.y + 1);
    w.dx = malloc(l->T * l->I * sizeof *w.dx + 1);
    w.dw = malloc(l->O * l->I * sizeof *w.dw + 1);
    w.db = malloc(l->O * sizeof *w.db + 1);
    rc = w.y && w.dx && w.dw && w.db ? compute(&w, &err) : cli_error("no memory for a layer of %zu x %zu x %zu", l->T, l->I, l->O);
  }
  if (!rc && w.no_memory) rc = cli_error("no memory for the quantised operands");
  if (!rc) rc = write_all(&w, &err);
  for (int q = 0; q < MX_OPERANDS; q++) free(w.q[q].codes), free(w.q[q].scales);
  free(w.y), free(w.dx), free(w.dw), free(w.db);
  free(w.x.at), free(w.w.at), free(w.dy.at), free(w.bias.at);
  return rc;
}

const cli_command cmd_linear = {
    options, sizeof(struct args), run,
    "y = X W^T + bias, dx = DY W, dw = DY^T X and db, the sum of DY's rows, with each product's two operands "
    "quantised along its reduction axis:\n"
    "Q1 X and Q2 W along I, Q3 DY and Q4 W^T along O, Q5 DY^T and Q6 X^T along T. The file holds them as qN.codes, "
    "qN.scales and qN.tensor_scale,\n"
    "packed as mxgold quantize packs them, with each one's spec, its drawn seed and signs included, in the "
    "metadata (qN.spec); an operand with\n"
    "elem=none or bf16 is qN.values. Training keys of a whole model or of many steps (high.*, q2.ema, ramp, tensor.hold) change nothing "
    "here.\nWith occ.alpha the metadata's occ.clamped is how many elements of X were clamped. "
    "Products that are switched off see the raw matrices."};
