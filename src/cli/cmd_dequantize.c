/* Runs mxgold dequantize: values of a quantised tensor. */
#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/tensor_io.h"

struct args {
  const char *in, *out;
  cli_u64 threads;
};

static const cli_option options[] = {
    {"FILE", 0, CLI_POS, offsetof(struct args, in), NULL, "what mxgold quantize wrote", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "Y.npy", "float32 values in the shape of the input (.npy or .safetensors)", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {0},
};

typedef struct work {
  const char *path;
  const mx_quantized *q;
  size_t block_rows;
  mx_exec exec;
} work;

/* Whole block rows. */
static mx_status piece(void *self, void *room, uint64_t first, size_t n, mx_error *err) {
  const work *w = self;
  const mx_tensor *t = &w->q->tensor, part = mx_tensor_rows(t, (size_t)(first / t->cols), n / t->cols, w->block_rows);
  const mx_status status = mx_dequantize(room, t->cols, &part, &w->q->spec, &w->exec);
  return status ? mx_fail(err, status, "%s: %s", w->path, mx_status_text(status)) : MX_OK;
}

static void passed(void *self, uint64_t first, size_t n) {
  const work *w = self;
  const mx_tensor *t = &w->q->tensor, part = mx_tensor_rows(t, (size_t)(first / t->cols), n / t->cols, w->block_rows);
  mx_file_release(w->q->file, part.codes, part.rows * part.code_stride);
  mx_file_release(w->q->file, part.scales, part.scale_rows * part.scale_cols * part.scale_bytes);
}

static int write_values(const cli_context *ctx, const struct args *a, const mx_quantized *q) {
  const mx_tensor *t = &q->tensor;
  size_t block_cols;
  work w = {.path = a->in, .q = q};
  mx_spec_block(&q->spec, t->rows, t->cols, &w.block_rows, &block_cols);
  const output o = {.command = "dequantize",
                    .path = a->out,
                    .name = "dequantized",
                    .dtype = MX_F32,
                    .n_dims = q->n_dims,
                    .shape = q->shape,
                    .n_values = (uint64_t)t->rows * t->cols,
                    .unit = (uint64_t)w.block_rows * t->cols,
                    .n_threads = cli_threads(&a->threads),
                    .piece = piece,
                    .passed = passed,
                    .self = &w};
  w.exec.n_threads = output_pieces(&o) > 1 ? 1 : o.n_threads;
  return output_write(ctx, &o);
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  mx_error err;
  mx_quantized q;
  if (!a->out) return cli_error("dequantize: no output, expected -o Y.npy");
  mx_writer_install_signal_cleanup();
  if (mx_quantized_open(&q, a->in, &err)) return cli_fail(&err);
  const int rc = mx_file_check_digests(q.file, &err) ? cli_fail(&err) : write_values(ctx, a, &q);
  mx_quantized_close(&q);
  return rc;
}

const cli_command cmd_dequantize = {options, sizeof(struct args), run,
                                    "value = code * scale * tensor scale, the exact product rounded once to binary32 (key deq.arith)."};
