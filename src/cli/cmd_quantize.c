/* Runs mxgold quantize: exact codes and scales of a tensor. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/pipeline.h"
#include "cli/base/progress.h"
#include "cli/checkpoint/quantize_all.h"
#include "cli/spec/opts.h"
#include "cli/base/tensor_io.h"
#include "cli/spec/value.h"

struct args {
  const char *in, *out, *bits, *include, *exclude;
  input_form form;
  spec_opts spec;
  cli_f32 tensor_scale;
  cli_u64 threads;
  cli_list fault;
  int dequantized, transpose, all, fake, json, refuse_nan;
};

static const cli_option options[] = {
    {"IN[:TENSOR]", 0, CLI_POS, offsetof(struct args, in), NULL,
     "a .npy file, a tensor of a .safetensors file or a column of an .mxv file; - for standard input", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "OUT.safetensors", "where the codes and scales go; - for standard output", NULL},
    SPEC_OPTIONS(args, spec),
    {"tensor-scale", 0, CLI_F32, offsetof(struct args, tensor_scale), "V",
     "tensor scale in the preset's stored convention, used instead of max|X|", NULL},
    {"bits", 0, CLI_STRING, offsetof(struct args, bits), "B.npy", "uint32 random integers, one per element, for sr.source=given", NULL},
    {"fault", 0, CLI_LIST, offsetof(struct args, fault), "FAULT",
     "what a wrong kernel does instead, \"REGION [and REGION]: STAGE <- OPERATION [ARGUMENT]\"; may be given twice (SPEC section 9)", NULL},
    {"dequantized", 0, CLI_FLAG, offsetof(struct args, dequantized), NULL, "also store the dequantised values", NULL},
    {"transpose", 0, CLI_FLAG, offsetof(struct args, transpose), NULL, "quantise the transpose: blocks along the input's first axis", NULL},
    INPUT_OPTIONS(args, form),
    {"all", 0, CLI_FLAG, offsetof(struct args, all), NULL, "every matrix of a checkpoint, or of MODEL.safetensors.index.json; with --fake",
     NULL},
    {"fake", 0, CLI_FLAG, offsetof(struct args, fake), NULL,
     "write values that went through the quantiser, in the input's own dtype; with --all", NULL},
    {"include", 0, CLI_STRING, offsetof(struct args, include), "REGEX", "--all: only tensors of floats whose name matches, of any dimensions",
     NULL},
    {"exclude", 0, CLI_STRING, offsetof(struct args, exclude), "REGEX", "--all: leave out tensors whose name matches", NULL},
    {"refuse-nan", 0, CLI_FLAG, offsetof(struct args, refuse_nan), NULL,
     "--all: refuse NaN and Inf; by default they and the values that they spoil are counted", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "--all: print the table as JSON", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {0},
};

/* Rows of input that are worked on at a time: about this many values, whole block rows. Each thread has a piece; their codes stay in its cache. */
enum { PIECE = 1 << 18 };

typedef struct work {
  const struct args *args;
  const cli_context *ctx;
  mx_spec spec;
  mx_exec exec;
  input in;
  int type; /* of 16-bit values that are read in place */
  mx_fault faults[MX_FAULTS];
  size_t n_faults;
  size_t rows, cols, block_rows, piece_rows, n_pieces;
  mx_writer *writer;
  mx_quantized_layout layout;
  float amax;         /* so far */
  float tensor_scale; /* as stored */
  progress progress;
} work;

/* What a thread needs for a piece. */
typedef struct desk {
  float *values; /* or halves: what was read, where it is not used in a mapping */
  float *dequantized;
  mx_tensor piece;
  float amax;
} desk;

/* Rows of binary32 values; of 16-bit ones, as the file has them. */
typedef union rows {
  const float *f32;
  const uint16_t *halves;
} rows;

static mx_status rows_at(rows *out, const work *w, desk *d, size_t first, size_t n, mx_error *err) {
  if (!w->type) return input_at(&out->f32, &w->in, d->values, (uint64_t)first * w->cols, (uint64_t)n * w->cols, err);
  out->halves = (const uint16_t *)(const void *)d->values;
  return mx_array_read(d->values, w->in.array, (uint64_t)first * w->cols * sizeof(uint16_t), (uint64_t)n * w->cols * sizeof(uint16_t), err);
}

/* MX_INPUT_DTYPE_* of 16-bit values, which need not be widened first; 0 for others. */
static int type_of_halves(const input *in, int transpose) {
  const mx_array *a = in->array;
  if (transpose) return 0;
  return a->dtype == MX_F16 ? MX_INPUT_DTYPE_FLOAT16 : a->dtype == MX_BF16 || in->bf16 ? MX_INPUT_DTYPE_BFLOAT16 : 0;
}

/* Rows of a piece. */
static size_t rows_of(const work *w, size_t piece) {
  const size_t first = piece * w->piece_rows;
  return w->rows - first < w->piece_rows ? w->rows - first : w->piece_rows;
}

static void leave(void *self, void *at) {
  desk *d = at;
  (void)self;
  mx_tensor_free(&d->piece);
  free(d->values);
  free(d->dequantized);
  free(d);
}

/* With room for values alone. */
static void *amax_desk(void *self) {
  const work *w = self;
  const size_t most = w->piece_rows < w->rows ? w->piece_rows : w->rows;
  desk *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  d->values = malloc(input_in_place(&w->in) ? 1 : most * w->cols * (w->type ? sizeof(uint16_t) : sizeof *d->values) + 1);
  if (w->args->dequantized) d->dequantized = malloc(most * w->cols * sizeof *d->dequantized + 1);
  if (d->values && (d->dequantized || !w->args->dequantized)) return d;
  leave(self, d);
  return NULL;
}

static void *full_desk(void *self) {
  const work *w = self;
  const size_t most = w->piece_rows < w->rows ? w->piece_rows : w->rows;
  desk *d = amax_desk(self);
  const mx_status status =
      !d ? MX_OK : mx_tensor_alloc(&d->piece, w->args->transpose ? w->cols : most, w->args->transpose ? most : w->cols, &w->spec);
  if (!status) return d;
  leave(self, d);
  return NULL;
}

static mx_status make_amax(void *self, void *at, size_t piece, mx_error *err) {
  work *w = self;
  desk *d = at;
  const size_t n = rows_of(w, piece);
  rows x;
  mx_status status = rows_at(&x, w, d, piece * w->piece_rows, n, err);
  if (status) return status;
  status = w->type ? mx_tensor_amax_16(&d->amax, x.halves, w->type, n, w->cols, w->cols, &w->spec, &w->exec)
                   : mx_tensor_amax(&d->amax, x.f32, n, w->cols, w->cols, &w->spec, &w->exec);
  return status ? mx_fail(err, status, "%s: %s", w->args->in, mx_status_text(status)) : MX_OK;
}

static void advance(work *w, size_t piece) {
  progress_at(&w->progress, (uint64_t)(piece * w->piece_rows + rows_of(w, piece)) * w->cols * mx_dtype_bytes(w->in.array->dtype));
}

static mx_status keep_amax(void *self, void *at, size_t piece, mx_error *err) {
  work *w = self;
  const desk *d = at;
  (void)err;
  if (!(d->amax <= w->amax)) w->amax = isnan(w->amax) ? w->amax : d->amax;
  advance(w, piece);
  return MX_OK;
}

static pipeline pipeline_of(work *w) {
  return (pipeline){.n_pieces = w->n_pieces, .n_threads = cli_threads(&w->args->threads), .self = w, .leave = leave};
}

/* The tensor's largest magnitude. */
static int find_amax(work *w, mx_error *err) {
  if (!spec_needs_amax(&w->spec)) return CLI_FINE;
  pipeline p = pipeline_of(w);
  p.desk = amax_desk, p.make = make_amax, p.keep = keep_amax;
  progress_start(&w->progress, w->ctx, "largest magnitude", w->in.array->n_bytes);
  const mx_status status = w->rows ? pipeline_run(&p, err) : MX_OK;
  progress_end(&w->progress);
  w->exec.amax_known = 1;
  w->exec.amax = w->amax;
  return status ? cli_fail(err) : CLI_FINE;
}

static mx_status make(void *self, void *at, size_t piece, mx_error *err) {
  const work *w = self;
  desk *d = at;
  const size_t first = piece * w->piece_rows, n = rows_of(w, piece);
  mx_error inner;
  mx_exec exec = w->exec;
  exec.first_row = first;
  mx_tensor part = mx_tensor_rows(&d->piece, 0, n, w->block_rows);
  rows x;
  mx_status status = rows_at(&x, w, d, first, n, err);
  if (status) return status;
  status = w->type ? mx_quantize_16(&part, x.halves, w->type, n, w->cols, w->cols, &w->spec, &exec, &inner)
                   : mx_quantize(&part, x.f32, n, w->cols, w->cols, &w->spec, &exec, &inner);
  if (status) return mx_fail(err, status, "%s: %s", w->args->in, inner.text);
  d->piece.tensor_scale = part.tensor_scale;
  if (d->dequantized) mx_dequantize(d->dequantized, w->cols, &part, &w->spec, &exec);
  return MX_OK;
}

static mx_status keep(void *self, void *at, size_t piece, mx_error *err) {
  work *w = self;
  desk *d = at;
  const mx_tensor part = mx_tensor_rows(&d->piece, 0, rows_of(w, piece), w->block_rows);
  w->tensor_scale = part.tensor_scale;
  const mx_status status = mx_quantized_append(w->writer, &w->layout, &part, d->dequantized, err);
  advance(w, piece);
  return status;
}

static mx_status write_tensor_scale(work *w, mx_error *err) {
  const ptrdiff_t index = w->layout.index[MX_Q_TENSOR_SCALE];
  return index < 0 ? MX_OK : mx_writer_write(w->writer, (size_t)index, &w->tensor_scale, sizeof w->tensor_scale, err);
}

static int stream(work *w, mx_error *err) {
  pipeline p = pipeline_of(w);
  p.desk = full_desk, p.make = make, p.keep = keep;
  progress_start(&w->progress, w->ctx, "quantize", w->in.array->n_bytes);
  const mx_status status = pipeline_run(&p, err);
  progress_end(&w->progress);
  return status || write_tensor_scale(w, err) ? cli_fail(err) : CLI_FINE;
}

/* --transpose: in one piece, read along columns. */
static mx_status make_transposed(void *self, void *at, size_t piece, mx_error *err) {
  const work *w = self;
  desk *d = at;
  mx_error inner;
  (void)piece;
  rows x;
  mx_status status = rows_at(&x, w, d, 0, w->rows, err);
  if (status) return status;
  status = mx_quantize_transposed(&d->piece, x.f32, w->rows, w->cols, w->cols, &w->spec, &w->exec, &inner);
  if (status) return mx_fail(err, status, "%s: %s", w->args->in, inner.text);
  if (d->dequantized) mx_dequantize(d->dequantized, w->rows, &d->piece, &w->spec, &w->exec);
  return MX_OK;
}

static mx_status keep_transposed(void *self, void *at, size_t piece, mx_error *err) {
  work *w = self;
  const desk *d = at;
  (void)piece;
  w->tensor_scale = d->piece.tensor_scale;
  return mx_quantized_append(w->writer, &w->layout, &d->piece, d->dequantized, err);
}

static int transposed(work *w, mx_error *err) {
  pipeline p = pipeline_of(w);
  p.desk = full_desk, p.make = make_transposed, p.keep = keep_transposed;
  return pipeline_run(&p, err) || write_tensor_scale(w, err) ? cli_fail(err) : CLI_FINE;
}

/* --fault: in one piece, since a fault may reach anywhere. */
static mx_status make_faulty(void *self, void *at, size_t piece, mx_error *err) {
  const work *w = self;
  desk *d = at;
  mx_error inner;
  (void)piece;
  const size_t down = w->args->transpose ? w->cols : w->rows, across = w->args->transpose ? w->rows : w->cols;
  rows x;
  mx_status status = rows_at(&x, w, d, 0, w->rows, err);
  float *turned = !status && w->args->transpose ? malloc((down * across + 1) * sizeof *turned) : NULL;
  if (status) return status;
  if (w->args->transpose && !turned) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t r = 0; turned && r < down; r++)
    for (size_t c = 0; c < across; c++) turned[r * across + c] = x.f32[c * down + r];
  status = mx_quantize_faulty(&d->piece, turned ? turned : x.f32, down, across, across, &w->spec, w->faults, w->n_faults, &inner);
  free(turned);
  if (status) return mx_fail(err, status, "%s: %s", w->args->in, inner.text);
  if (d->dequantized) mx_dequantize(d->dequantized, across, &d->piece, &w->spec, &w->exec);
  return MX_OK;
}

static int faulty(work *w, mx_error *err) {
  pipeline p = pipeline_of(w);
  p.desk = full_desk, p.make = make_faulty, p.keep = keep_transposed;
  return pipeline_run(&p, err) || write_tensor_scale(w, err) ? cli_fail(err) : CLI_FINE;
}

static int with_input(work *w, const char *out, mx_error *err) {
  const mx_array *a = w->in.array;
  size_t block_cols;
  mx_spec_block(&w->spec, w->rows, w->cols, &w->block_rows, &block_cols);
  w->type = type_of_halves(&w->in, w->args->transpose || w->n_faults);
  const size_t want = w->cols ? PIECE / w->cols + 1 : w->rows, whole = (want + w->block_rows - 1) / w->block_rows * w->block_rows;
  w->piece_rows = w->args->transpose || w->n_faults || whole > w->rows ? (w->rows ? w->rows : 1) : whole;
  w->n_pieces = w->rows ? (w->rows - 1) / w->piece_rows + 1 : 1; /* an empty tensor still gets one scale, so that it has a tensor scale */
  if (pipeline_threads(w->n_pieces, cli_threads(&w->args->threads)) > 1) w->exec.n_threads = 1;
  if (!w->args->transpose && !w->n_faults && find_amax(w, err)) return CLI_TROUBLE;
  if (mx_writer_open(&w->writer, out, err)) return cli_fail(err);
  if (mx_writer_is_npy(w->writer)) {
    mx_writer_abort(w->writer);
    return cli_error("%s: a .npy file holds one tensor, expected a name that ends in .safetensors", out);
  }
  const uint64_t flipped[2] = {w->cols, w->rows};
  int rc = CLI_TROUBLE;
  if (mx_quantized_declare(&w->layout, w->writer, &w->spec, spec_preset_label(&w->args->spec, &w->spec),
                           w->args->transpose ? flipped : a->shape, w->args->transpose ? 2 : a->n_dims, w->in.bf16 ? MX_BF16 : a->dtype,
                           w->args->dequantized, err) ||
      mx_writer_begin(w->writer, err))
    cli_fail(err);
  else
    rc = w->n_faults ? faulty(w, err) : w->args->transpose ? transposed(w, err) : stream(w, err);
  if (rc) {
    mx_writer_abort(w->writer);
    return rc;
  }
  return mx_writer_commit(w->writer, err) ? cli_fail(err) : CLI_FINE;
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
  const quantize_all_options o = {
      a->in, a->out, a->include, a->exclude, spec_preset_label(&a->spec, spec), spec, cli_threads(&a->threads), a->json, a->refuse_nan};
  return quantize_all(ctx, &o);
}

/* Mapped pages count as resident until the file is closed, so that a tensor is read and not mapped; but one that is read twice would be copied twice,
 * half as much processor time again, and up to this size it is mapped. */
enum { MAP_MOST = 1 << 30 };

/* By columns, and twice: through a mapping. */
static int open_input(work *w) {
  const struct args *a = w->args;
  struct stat is;
  struct rlimit space;
  if (input_open(&w->in, a->in, &a->form, a->transpose ? MX_BY_MAPPING : MX_BY_READING)) return CLI_TROUBLE;
  if (a->transpose || !spec_needs_amax(&w->spec) || w->in.array->dtype != MX_F32 || w->in.array->n_bytes > MAP_MOST) return CLI_FINE;
  if (stat(mx_file_path(w->in.file), &is) || !S_ISREG(is.st_mode)) return CLI_FINE;     /* a pipe is read once */
  if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur != RLIM_INFINITY) return CLI_FINE; /* it may be too little for a mapping */
  input_close(&w->in);
  return input_open(&w->in, a->in, &a->form, MX_BY_MAPPING);
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  work w = {.args = a, .ctx = ctx, .exec.n_threads = cli_threads(&a->threads)};
  mx_error err;
  if (!a->out) return cli_error("quantize: no output, expected -o OUT.safetensors");
  if (spec_from_options(&w.spec, &a->spec)) return CLI_TROUBLE;
  for (size_t i = 0; i < a->fault.n; i++) {
    if (i == MX_FAULTS) return cli_error("quantize: %zu times --fault, expected at most %d", a->fault.n, MX_FAULTS);
    if (mx_fault_parse(&w.faults[i], a->fault.items[i], &err)) return cli_fail(&err);
    w.n_faults++;
  }
  if (a->all && w.n_faults) return cli_error("quantize: --all does not go with --fault");
  if (a->all) return run_all(ctx, a, &w.spec);
  if (a->fake || a->include || a->exclude || a->json || a->refuse_nan)
    return cli_error("quantize: --fake, --include, --exclude, --refuse-nan and --json go with --all");
  if (a->tensor_scale.given) {
    if (a->tensor_scale.v < 0) return cli_error("quantize: --tensor-scale %g: expected a finite number above 0", (double)a->tensor_scale.v);
    if (!isfinite(a->tensor_scale.v) || a->tensor_scale.v == 0)
      return cli_error("quantize: --tensor-scale %g: expected a finite number above 0; --set tensor.given=%g is for kernels that are given it",
                       (double)a->tensor_scale.v, (double)a->tensor_scale.v);
    w.spec.tensor_given = 1;
    w.spec.tensor_given_value = a->tensor_scale.v;
    if (mx_spec_check(&w.spec, &err)) return cli_fail(&err);
  }
  mx_writer_install_signal_cleanup();
  mx_file *bits = NULL;
  if (open_input(&w)) return CLI_TROUBLE;
  const mx_array *in = w.in.array;
  int rc = mx_matrix_of(&w.rows, &w.cols, in->shape, in->n_dims) ? CLI_FINE : cli_error("%s: the shape overflows", a->in);
  if (!rc && a->bits) rc = open_bits(&w, &bits, &err);
  if (!rc) rc = with_input(&w, a->out, &err);
  if (bits) mx_file_close(bits);
  input_close(&w.in);
  return rc;
}

const cli_command cmd_quantize = {
    options, sizeof(struct args), run,
    "The output holds codes, scales and, if the spec has one, tensor_scale, with the whole spec in its metadata; mxgold presets says what a\n"
    "preset stands for. Inputs of more than two dimensions are taken as [product of the leading ones, last].\n"
    "An input is read in pieces, whatever its size. One of binary32 that has to be read twice, for the scale of the whole tensor, and has at "
    "most\n"
    "1 GiB is mapped: it then counts as resident memory, which the system takes back when it needs it.\n"
    "--all leaves unchanged, and names, tensors that are not floats or not matrices, results in an .mxv, and those whose columns had.size does "
    "not divide. Its "
    "memory stays\n"
    "under 1 GiB for any size; a block of more than 48 Mi values (block=col, block=tensor) is refused. If bits are random, each tensor has\n"
    "a seed of its own: the spec's seed xor the 64-bit FNV-1a hash of its name."};
