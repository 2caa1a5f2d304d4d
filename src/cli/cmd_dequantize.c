/* mxgold dequantize OUT.safetensors -o Y.npy */
#include <stdlib.h>

#include "cli.h"
#include "mxgold/mxgold.h"
#include "progress.h"

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

enum { PIECE = 4 << 20 };

static int write_values(const cli_context *ctx, const struct args *a, const mx_quantized *q, mx_writer *w, mx_error *err) {
  const mx_tensor *t = &q->tensor;
  size_t block_rows, block_cols;
  mx_spec_block(&q->spec, t->rows, t->cols, &block_rows, &block_cols);
  const size_t want = t->cols ? PIECE / t->cols + 1 : t->rows + 1, whole = (want + block_rows - 1) / block_rows * block_rows;
  const size_t most = whole < t->rows ? whole : t->rows;
  float *values = malloc(most * t->cols * sizeof *values + 1);
  if (!values) return cli_error("%s: no memory for %zu rows", a->in, most);
  const mx_exec exec = {.n_threads = (int)a->threads.v};
  progress p;
  progress_start(&p, ctx, "dequantize", (uint64_t)t->rows * t->cols * 4);
  mx_status status = MX_OK;
  for (size_t r = 0; r < t->rows && !status; r += most) {
    const size_t n = t->rows - r < most ? t->rows - r : most;
    const mx_tensor part = mx_tensor_rows(t, r, n, block_rows);
    status = mx_dequantize(values, t->cols, &part, &q->spec, &exec);
    if (status)
      mx_fail(err, status, "%s: %s", a->in, mx_status_text(status));
    else
      status = mx_writer_write(w, 0, values, n * t->cols * sizeof *values, err);
    progress_at(&p, (uint64_t)(r + n) * t->cols * 4);
  }
  progress_end(&p);
  free(values);
  return status ? cli_fail(err) : CLI_FINE;
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  mx_error err;
  mx_quantized q;
  mx_writer *w;
  size_t index;
  if (!a->out) return cli_error("dequantize: no output, expected -o Y.npy");
  mx_writer_install_signal_cleanup();
  if (mx_quantized_open(&q, a->in, &err)) return cli_fail(&err);
  int rc = CLI_TROUBLE;
  if (mx_file_check_digests(q.file, &err) || mx_writer_open(&w, a->out, &err))
    cli_fail(&err);
  else {
    if (mx_writer_add(w, "dequantized", MX_F32, q.n_dims, q.shape, &index) || mx_writer_begin(w, &err))
      cli_fail(&err);
    else
      rc = write_values(ctx, a, &q, w, &err);
    if (rc)
      mx_writer_abort(w);
    else if (mx_writer_commit(w, &err))
      rc = cli_fail(&err);
  }
  mx_quantized_close(&q);
  return rc;
}

const cli_command cmd_dequantize = {options, sizeof(struct args), run,
                                    "value = code * scale * tensor scale, the exact product rounded once to binary32 (key deq.arith)."};
