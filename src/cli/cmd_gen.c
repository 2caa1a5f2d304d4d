/* Runs mxgold gen SUITE: vectors for a spec. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/files.h"
#include "mxgold/mxgold.h"
#include "cli/base/shape.h"
#include "cli/spec/opts.h"

struct args {
  const char *suite, *out, *shape, *readmemh;
  spec_opts spec;
  int inputs, dequantized;
};

static const char *suite_names(size_t index) { return mx_suite_name((int)index); }

static const cli_option options[] = {
    {"SUITE", 0, CLI_POS, offsetof(struct args, suite), NULL, "which vectors to make", suite_names},
    SPEC_OPTIONS(args, spec),
    {"shape", 0, CLI_STRING, offsetof(struct args, shape), "RxC", "shape of the tensor; by default that of the suite", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "FILE", "a .mxv or .safetensors file, with the expected results", NULL},
    {"inputs", 0, CLI_FLAG, offsetof(struct args, inputs), NULL, "write only the inputs, as on standard output", NULL},
    {"dequantized", 0, CLI_FLAG, offsetof(struct args, dequantized), NULL,
     "add the dequantised values as a last column; .safetensors always has them", NULL},
    {"readmemh", 0, CLI_STRING, offsetof(struct args, readmemh), "PREFIX",
     "write one file per column, PREFIX.COLUMN.hex, for Verilog's $readmemh", NULL},
    {0},
};

static int write_readmemh(const mx_vectors *v, const char *prefix) {
  for (size_t i = 0; i < v->n_filled; i++) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s.%s.hex", prefix, v->columns[i].name) >= (int)sizeof path)
      return cli_error("--readmemh: the name is too long");
    mx_text t;
    mx_error err;
    if (mx_text_begin(&t, path, &err)) return cli_error("%s", err.text);
    mx_vectors_print_readmemh(v, i, t.to);
    if (mx_text_end(&t, &err)) return cli_error("%s", err.text);
  }
  return CLI_FINE;
}

/* Codes, scales and so on of n tensors, as they lie in the columns of v. */
static mx_status write_column(mx_writer *w, size_t index, const mx_vectors *v, const char *name, mx_error *err) {
  const mx_column *c = &v->columns[mx_vectors_find(v, name)];
  return mx_writer_write(w, index, c->data, v->n_cases * c->count * c->width, err);
}

static mx_dtype dtype_of(const mx_column *c) { return c->width == 1 ? MX_U8 : c->width == 2 ? MX_U16 : c->width == 4 ? MX_U32 : MX_U64; }

/* Many small tensors: one dimension more than a matrix, one code a number. */
static mx_status write_stack(mx_writer *w, const mx_vectors *v, const mx_cases *g, mx_error *err) {
  const uint64_t x[3] = {g->n, g->rows, g->ld};
  size_t index[MX_VECTOR_COLUMNS];
  mx_status s = mx_writer_add(w, "input", MX_F32, 3, x, &index[0]);
  for (size_t i = 1; i < v->n_columns && !s; i++) {
    const mx_column *c = &v->columns[i];
    const uint64_t shape[3] = {g->n, g->rows, c->count / (g->rows ? g->rows : 1)}, flat[2] = {g->n, c->count};
    const int is_values = !strcmp(c->name, "dequantized");
    const int is_float = is_values || !strcmp(c->name, "tensor_scale"), by_row = is_values || !strcmp(c->name, "codes");
    s = mx_writer_add(w, c->name, is_float ? MX_F32 : dtype_of(c), by_row ? 3 : 2, by_row ? shape : flat, &index[i]);
  }
  for (size_t i = 0; i < v->n_meta && !s; i++) s = mx_writer_meta(w, v->keys[i], v->values[i]);
  if (s) return mx_fail(err, s, "cannot declare tensors: %s", mx_status_text(s));
  s = mx_writer_begin(w, err);
  for (size_t i = 0; i < v->n_columns && !s; i++) s = write_column(w, index[i], v, v->columns[i].name, err);
  return s;
}

/* One matrix: what mxgold quantize writes, with the input beside it. */
static mx_status write_matrix(mx_writer *w, const struct args *a, const mx_spec *spec, const mx_vectors *v, const mx_cases *g, mx_error *err) {
  const uint64_t shape[2] = {g->rows, g->cols}, padded[2] = {g->rows, g->ld};
  mx_quantized_layout layout;
  size_t input;
  mx_tensor t = {0};
  float *values = malloc((g->rows * g->cols + 1) * sizeof *values);
  if (!values) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  mx_status s = mx_quantized_declare(&layout, w, spec, spec_preset_label(&a->spec, spec), shape, 2, MX_F32, 1, err);
  if (!s && mx_writer_add(w, "input", MX_F32, 2, padded, &input)) s = mx_fail(err, MX_ERR_ARG, "cannot declare tensor input");
  if (!s) s = mx_writer_meta(w, "suite", a->suite);
  if (!s) s = mx_writer_meta(w, "gen.seed", mx_vectors_meta(v, "gen.seed"));
  if (!s) s = mx_writer_begin(w, err);
  if (!s) s = mx_tensor_alloc(&t, g->rows, g->cols, spec);
  if (!s) s = mx_quantize(&t, g->x, g->rows, g->cols, g->ld, spec, NULL, err);
  if (!s) s = mx_dequantize(values, g->cols, &t, spec, NULL);
  if (!s) s = mx_quantized_append(w, &layout, &t, values, err);
  if (!s && t.has_tensor_scale) s = mx_writer_write(w, (size_t)layout.index[MX_Q_TENSOR_SCALE], &t.tensor_scale, sizeof t.tensor_scale, err);
  if (!s) s = mx_writer_write(w, input, g->x, g->rows * g->ld * sizeof(float), err);
  mx_tensor_free(&t);
  free(values);
  return s;
}

/* Only what a kernel is given: [cases][rows][cols] or a matrix. */
static mx_status write_inputs(mx_writer *w, const mx_vectors *v, const mx_cases *g, mx_error *err) {
  const uint64_t shape[3] = {g->n, g->rows, g->ld};
  size_t input;
  mx_status s = mx_writer_add(w, "input", MX_F32, g->n == 1 ? 2 : 3, g->n == 1 ? shape + 1 : shape, &input);
  for (size_t i = 0; i < v->n_meta && !s; i++) s = mx_writer_meta(w, v->keys[i], v->values[i]);
  if (s) return mx_fail(err, s, "cannot declare tensors: %s", mx_status_text(s));
  s = mx_writer_begin(w, err);
  return s ? s : mx_writer_write(w, input, g->x, g->n * g->rows * g->ld * sizeof *g->x, err);
}

static int write_safetensors(const struct args *a, const mx_spec *spec, const mx_vectors *v, const mx_cases *g) {
  mx_error err = {0};
  mx_writer *w;
  if (mx_writer_open(&w, a->out, &err)) return cli_fail(&err);
  const mx_status s = a->inputs ? write_inputs(w, v, g, &err) : g->n == 1 ? write_matrix(w, a, spec, v, g, &err) : write_stack(w, v, g, &err);
  if (s) {
    mx_writer_abort(w);
    return *err.text ? cli_fail(&err) : cli_error("%s: %s", a->out, mx_status_text(s));
  }
  return mx_writer_commit(w, &err) ? cli_fail(&err) : CLI_FINE;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  mx_spec spec;
  uint64_t shape[2] = {0};
  mx_error err;
  if (spec_from_options(&spec, &a->spec)) return CLI_TROUBLE;
  if (a->shape && shape_parse(shape, 2, a->shape) != 2) return cli_error("gen: --shape %s: expected RxC, such as 64x256", a->shape);
  if (a->shape && (mx_suite_find(a->suite) == MX_SUITE_MINIMAL || mx_suite_find(a->suite) == MX_SUITE_SPECIAL))
    return cli_error("gen: --shape %s: suite %s has tensors of its own shape, expected no --shape", a->shape, a->suite);
  if (a->out && strcmp(a->out, "-") && !file_ends_with(a->out, ".safetensors") && !file_ends_with(a->out, ".mxv"))
    return cli_error("gen: -o %s: expected .mxv or .safetensors", a->out);
  mx_cases cases;
  const uint64_t seed = a->spec.seed.v;
  if (mx_generate(&cases, mx_suite_find(a->suite), &spec, shape[0], shape[1], seed, &err)) return cli_fail(&err);
  const int pipe = (!a->out || !strcmp(a->out, "-")) && !a->readmemh;
  mx_vectors v;
  const int tensors = a->out && file_ends_with(a->out, ".safetensors");
  const int what = (pipe || a->inputs ? MX_VECTORS_INPUTS : 0) | (a->dequantized || (tensors && cases.n > 1) ? MX_VECTORS_VALUES : 0);
  int rc = CLI_FINE;
  if (mx_cases_to_vectors(&v, &cases, &spec, a->suite, spec_preset_label(&a->spec, &spec), seed, what, &err)) rc = cli_fail(&err);
  if (!rc && a->readmemh) rc = write_readmemh(&v, a->readmemh);
  if (!rc && tensors)
    rc = write_safetensors(a, &spec, &v, &cases);
  else if (!rc && (pipe || a->out) && mx_vectors_save(&v, a->out ? a->out : "-", &err))
    rc = cli_fail(&err);
  mx_vectors_free(&v);
  mx_cases_free(&cases);
  return rc;
}

const cli_command cmd_gen = {
    options, sizeof(struct args), run,
    "Without -o the vectors go to standard output with only their inputs: mxgold gen ties --preset NAME | your_program | mxgold verify -. "
    "Your "
    "program copies the header lines and appends its codes and scales to each line, in the columns that the header names.\n"
    "The same suite, spec and seed give the same bits on every machine."};
