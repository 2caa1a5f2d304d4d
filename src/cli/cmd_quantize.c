/* mxgold quantize IN[:TENSOR] -o OUT.safetensors */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "mxgold/mxgold.h"
#include "progress.h"
#include "quantize_all.h"
#include "spec_opts.h"
#include "tensor_io.h"

struct args {
  const char *in, *out, *bits, *include, *exclude;
  input_form form;
  spec_opts spec;
  cli_f64 tensor_scale;
  cli_u64 threads;
  int dequantized, transpose, all, fake, json;
};

static const cli_option options[] = {
    {"IN[:TENSOR]", 0, CLI_POS, offsetof(struct args, in), NULL, "a .npy file, or a tensor of a .safetensors file; - for standard input", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "OUT.safetensors", "where the codes and scales go; - for standard output", NULL},
    SPEC_OPTIONS(args, spec),
    {"tensor-scale", 0, CLI_F64, offsetof(struct args, tensor_scale), "V",
     "tensor scale in the preset's stored convention, used instead of max|X|", NULL},
    {"bits", 0, CLI_STRING, offsetof(struct args, bits), "B.npy", "uint32 random integers, one an element, for sr.source=given", NULL},
    {"dequantized", 0, CLI_FLAG, offsetof(struct args, dequantized), NULL, "store the dequantised values too", NULL},
    {"transpose", 0, CLI_FLAG, offsetof(struct args, transpose), NULL, "quantise the transpose: blocks along the input's first axis", NULL},
    INPUT_OPTIONS(args, form),
    {"all", 0, CLI_FLAG, offsetof(struct args, all), NULL, "every matrix of a checkpoint, or of MODEL.safetensors.index.json; with --fake",
     NULL},
    {"fake", 0, CLI_FLAG, offsetof(struct args, fake), NULL,
     "write values that went through the quantiser, in the input's own dtype; with --all", NULL},
    {"include", 0, CLI_STRING, offsetof(struct args, include), "REGEX", "--all: tensors of floats whose name matches, of any dimensions", NULL},
    {"exclude", 0, CLI_STRING, offsetof(struct args, exclude), "REGEX", "--all: but for those whose name matches", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "--all: print the table as JSON", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {0},
};

/* Rows of input that are worked on at a time: about this many values, whole block rows. */
enum { PIECE = 4 << 20 };

typedef struct work {
  const struct args *args;
  const cli_context *ctx;
  mx_spec spec;
  mx_exec exec;
  input in;
  size_t rows, cols, piece_rows;
  float *values; /* a piece as binary32, where the file's own bytes cannot serve */
  float *dequantized;
  mx_tensor piece;
  size_t piece_made; /* its rows and one more; 0: there is none yet */
} work;

static const float *rows_at(work *w, size_t first, size_t n) {
  return input_at(&w->in, w->values, (uint64_t)first * w->cols, (uint64_t)n * w->cols);
}

static size_t piece_at(const work *w, size_t first) { return w->rows - first < w->piece_rows ? w->rows - first : w->piece_rows; }

/* The tensor's largest magnitude, before the first block can be scaled. */
static int find_amax(work *w, mx_error *err) {
  const int tensor_wide = w->spec.scale_nan == MX_SCALE_NAN_TENSOR || w->spec.scale_inf == MX_SCALE_INF_TENSOR;
  if (!tensor_wide && (w->spec.tensor_norm == MX_TENSOR_NORM_NONE || w->spec.tensor_given)) return CLI_FINE;
  progress p;
  progress_start(&p, w->ctx, "largest magnitude", w->in.array->n_bytes);
  float all = 0;
  for (size_t r = 0; r < w->rows; r += w->piece_rows) {
    const size_t n = piece_at(w, r);
    float amax;
    const mx_status status = mx_tensor_amax(&amax, rows_at(w, r, n), n, w->cols, w->cols, &w->spec, &w->exec);
    if (status) return cli_fail((mx_fail(err, status, "%s: %s", w->args->in, mx_status_text(status)), err));
    if (!(amax <= all)) all = isnan(all) ? all : amax;
    progress_at(&p, (uint64_t)(r + n) * w->cols * mx_dtype_bytes(w->in.array->dtype));
  }
  progress_end(&p);
  w->exec.amax_known = 1;
  w->exec.amax = all;
  return CLI_FINE;
}

static int one_piece(work *w, mx_writer *writer, const mx_quantized_layout *layout, size_t first, size_t n, mx_error *err) {
  if (w->piece_made != n + 1) {
    mx_tensor_free(&w->piece);
    const mx_status status = mx_tensor_alloc(&w->piece, n, w->cols, &w->spec);
    if (status) return mx_fail(err, status, "%s: no memory for %zu rows", w->args->in, n);
    w->piece_made = n + 1;
  }
  w->exec.first_row = first;
  mx_error inner;
  mx_status status = mx_quantize(&w->piece, rows_at(w, first, n), n, w->cols, w->cols, &w->spec, &w->exec, &inner);
  if (status) return mx_fail(err, status, "%s: %s", w->args->in, inner.text);
  if (w->dequantized) mx_dequantize(w->dequantized, w->cols, &w->piece, &w->spec, &w->exec);
  return mx_quantized_append(writer, layout, &w->piece, w->dequantized, err);
}

static int write_tensor_scale(const mx_tensor *t, mx_writer *writer, const mx_quantized_layout *layout, mx_error *err) {
  if (layout->index[MX_Q_TENSOR_SCALE] < 0) return MX_OK;
  return mx_writer_write(writer, (size_t)layout->index[MX_Q_TENSOR_SCALE], &t->tensor_scale, sizeof t->tensor_scale, err);
}

static int stream(work *w, mx_writer *writer, const mx_quantized_layout *layout, mx_error *err) {
  progress p;
  progress_start(&p, w->ctx, "quantize", w->in.array->n_bytes);
  size_t first = 0;
  do { /* once for an empty tensor, for the sake of its tensor scale */
    const size_t n = piece_at(w, first);
    if (one_piece(w, writer, layout, first, n, err)) return cli_fail(err);
    first += n;
    progress_at(&p, (uint64_t)first * w->cols * mx_dtype_bytes(w->in.array->dtype));
  } while (first < w->rows);
  progress_end(&p);
  return write_tensor_scale(&w->piece, writer, layout, err) ? cli_fail(err) : CLI_FINE;
}

/* --transpose: in one piece, read along columns. */
static int transposed(work *w, mx_writer *writer, const mx_quantized_layout *layout, mx_error *err) {
  if (mx_tensor_alloc(&w->piece, w->cols, w->rows, &w->spec)) return cli_error("%s: no memory", w->args->in);
  mx_error inner;
  if (mx_quantize_transposed(&w->piece, rows_at(w, 0, w->rows), w->rows, w->cols, w->cols, &w->spec, &w->exec, &inner))
    return cli_error("%s: %s", w->args->in, inner.text);
  if (w->dequantized) mx_dequantize(w->dequantized, w->rows, &w->piece, &w->spec, &w->exec);
  if (mx_quantized_append(writer, layout, &w->piece, w->dequantized, err)) return cli_fail(err);
  return write_tensor_scale(&w->piece, writer, layout, err) ? cli_fail(err) : CLI_FINE;
}

static int with_input(work *w, const char *out, mx_error *err) {
  const mx_array *a = w->in.array;
  size_t block_rows, block_cols;
  mx_spec_block(&w->spec, w->rows, w->cols, &block_rows, &block_cols);
  const size_t want = w->cols ? PIECE / w->cols + 1 : w->rows, whole = (want + block_rows - 1) / block_rows * block_rows;
  w->piece_rows = w->args->transpose || whole > w->rows ? (w->rows ? w->rows : 1) : whole;
  const size_t most = w->piece_rows < w->rows ? w->piece_rows : w->rows;
  w->values = malloc(most * w->cols * sizeof *w->values + 1);
  if (w->args->dequantized) w->dequantized = malloc(most * w->cols * sizeof *w->dequantized + 1);
  if (!w->values || (w->args->dequantized && !w->dequantized)) return cli_error("%s: no memory for %zu rows", w->args->in, most);
  if (!w->args->transpose && find_amax(w, err)) return CLI_TROUBLE;
  mx_writer *writer;
  if (mx_writer_open(&writer, out, err)) return cli_fail(err);
  if (mx_writer_is_npy(writer)) {
    mx_writer_abort(writer);
    return cli_error("%s: a .npy file holds one tensor, expected a name that ends in .safetensors", out);
  }
  const uint64_t flipped[2] = {w->cols, w->rows};
  mx_quantized_layout layout;
  int rc = CLI_TROUBLE;
  if (mx_quantized_declare(&layout, writer, &w->spec, w->args->spec.preset, w->args->transpose ? flipped : a->shape,
                           w->args->transpose ? 2 : a->n_dims, w->in.bf16 ? MX_BF16 : a->dtype, w->args->dequantized, err) ||
      mx_writer_begin(writer, err))
    cli_fail(err);
  else
    rc = w->args->transpose ? transposed(w, writer, &layout, err) : stream(w, writer, &layout, err);
  if (rc) {
    mx_writer_abort(writer);
    return rc;
  }
  return mx_writer_commit(writer, err) ? cli_fail(err) : CLI_FINE;
}

/* sr.source=given: one random integer an element. */
static int open_bits(work *w, mx_file **file, mx_error *err) {
  const mx_array *bits;
  if (mx_tensor_open(file, &bits, w->args->bits, err)) return cli_fail(err);
  if (bits->dtype != MX_U32 || bits->n_values != w->in.array->n_values || (uintptr_t)bits->data % 4)
    return cli_error("%s: %s, %llu values, expected u32 and one for each of the %llu elements", w->args->bits, mx_dtype_name(bits->dtype),
                     (unsigned long long)bits->n_values, (unsigned long long)w->in.array->n_values);
  w->spec.given_bits = (const uint32_t *)(const void *)bits->data;
  w->spec.sr_source = MX_SR_SOURCE_GIVEN;
  return CLI_FINE;
}

/* --all: what goes with it, and what does not. */
static int run_all(const cli_context *ctx, const struct args *a, const mx_spec *spec) {
  if (!a->fake) return cli_error("quantize: --all without --fake, expected both");
  if (a->bits || a->dequantized || a->transpose || a->tensor_scale.given || a->form.dtype || a->form.shape)
    return cli_error("quantize: --all does not go with --bits, --dequantized, --transpose, --tensor-scale, --dtype or --shape");
  mx_writer_install_signal_cleanup();
  const quantize_all_options o = {a->in, a->out, a->include, a->exclude, a->spec.preset, spec, (int)a->threads.v, a->json};
  return quantize_all(ctx, &o);
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  work w = {.args = a, .ctx = ctx, .exec.n_threads = (int)a->threads.v};
  mx_error err;
  if (!a->out) return cli_error("quantize: no output, expected -o OUT.safetensors");
  if (spec_from_options(&w.spec, &a->spec)) return CLI_TROUBLE;
  if (a->all) return run_all(ctx, a, &w.spec);
  if (a->fake || a->include || a->exclude || a->json) return cli_error("quantize: --fake, --include, --exclude and --json go with --all");
  if (a->tensor_scale.given) {
    w.spec.tensor_given = 1;
    w.spec.tensor_given_value = (float)a->tensor_scale.v;
    if (mx_spec_check(&w.spec, &err)) return cli_fail(&err);
  }
  mx_writer_install_signal_cleanup();
  mx_file *bits = NULL;
  if (input_open(&w.in, a->in, &a->form)) return CLI_TROUBLE;
  const mx_array *in = w.in.array;
  int rc = mx_matrix_of(&w.rows, &w.cols, in->shape, in->n_dims) ? CLI_FINE : cli_error("%s: the shape overflows", a->in);
  if (!rc && a->bits) rc = open_bits(&w, &bits, &err);
  if (!rc) rc = with_input(&w, a->out, &err);
  mx_tensor_free(&w.piece);
  free(w.values);
  free(w.dequantized);
  if (bits) mx_file_close(bits);
  input_close(&w.in);
  return rc;
}

const cli_command cmd_quantize = {
    options, sizeof(struct args), run,
    "The output holds codes, scales and, if the spec has one, tensor_scale, with the whole spec in its metadata; mxgold presets says what a\n"
    "preset stands for. Inputs of more than two dimensions are taken as [product of the leading ones, last]."};
