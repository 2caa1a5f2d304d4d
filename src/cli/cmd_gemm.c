/* Runs mxgold gemm: the product of two quantised matrices under a named accumulation model. */
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/spec/product.h"
#include "ref/gemm.h"
#include "mxgold/gemm.h"
#include "mxgold/mma.h"
#include "mxgold/mxgold.h"

struct args {
  const char *a, *b, *out, *bound;
  product_form product;
  cli_u64 batch;
  int ref;
};

static const cli_option options[] = {
    {"A.safetensors", 0, CLI_POS, offsetof(struct args, a), NULL, "the left operand [M][K], as mxgold quantize writes it", NULL},
    {"B.safetensors", 0, CLI_POS, offsetof(struct args, b), NULL, "the right operand [N][K], also quantised along K", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "D.npy", "D = alpha * A x B^T + beta * C + bias, [M][N] (.npy or .safetensors)",
     NULL},
    {"accum", 0, CLI_STRING, offsetof(struct args, product.accum), "MODEL",
     "how products are summed: f32_block (default), exact, f32_seq, f32_pairwise, f64; or a matrix unit: fused:KEY=VALUE,..., a row of mxgold "
     "models, ARCH/INSTRUCTION",
     NULL},
    PRODUCT_OPTIONS(args, product, "", "type of D; f32 by default (.npy cannot hold bf16)"),
    {"bound", 0, CLI_STRING, offsetof(struct args, bound), "LOHI.safetensors",
     "write the interval of D over all orders of summation: tensors lo and hi, f32", NULL},
    PRODUCT_FAMILY_OPTIONS(args, product),
    {"batch", 0, CLI_U64, offsetof(struct args, batch), "T", "A and B each hold T matrices, one below the other", NULL},
    {"ref", 0, CLI_FLAG, offsetof(struct args, ref), NULL, "compute with the slow reference", NULL},
    {0},
};

typedef struct work {
  const struct args *args;
  mx_quantized a, b;
  mx_file *c_file, *bias_file;
  float alpha, beta;
  float *bias; /* aligned */
  mx_gemm_options options;
  mx_mma_model unit;     /* --accum is a matrix unit's */
  mx_gemm_family family; /* of --bound */
} work;

static int open_c(work *w, size_t rows, size_t cols, mx_error *err) {
  const mx_array *c;
  if (mx_tensor_open(&w->c_file, &c, w->args->product.c, err)) return cli_fail(err);
  if (c->dtype != MX_F32 && c->dtype != MX_F16 && c->dtype != MX_BF16)
    return cli_error("%s: dtype is %s, expected f32, f16 or bf16", w->args->product.c, mx_dtype_name(c->dtype));
  if (c->n_values != rows * cols || c->n_dims < 1 || (cols && c->shape[c->n_dims - 1] != cols))
    return cli_error("%s: %llu values, expected C of %zu x %zu", w->args->product.c, (unsigned long long)c->n_values, rows, cols);
  w->options.c = c->data;
  w->options.c_type = c->dtype;
  return CLI_FINE;
}

static int write_d(const work *w, const void *d, size_t rows, size_t cols, mx_error *err) {
  mx_writer *writer;
  size_t index;
  const uint64_t batch = w->options.batch, shape[3] = {batch, rows / batch, cols};
  if (mx_writer_open(&writer, w->args->out, err)) return cli_fail(err);
  if (w->options.out == MX_BF16 && mx_writer_is_npy(writer)) {
    mx_writer_abort(writer);
    return cli_error("%s: .npy holds no bf16, expected a .safetensors file", w->args->out);
  }
  mx_status status = mx_writer_add(writer, "d", w->options.out, batch > 1 ? 3 : 2, batch > 1 ? shape : shape + 1, &index);
  if (status) mx_fail(err, status, "%s: %s", w->args->out, mx_status_text(status));
  if (!status && !mx_writer_is_npy(writer))
    mx_writer_meta(writer, "accum", w->options.fused ? w->unit.name : mx_gemm_model_name(w->options.model));
  if (!status) status = mx_writer_begin(writer, err);
  if (!status) status = mx_writer_write(writer, index, d, rows * cols * mx_dtype_bytes(w->options.out), err);
  if (status) {
    mx_writer_abort(writer);
    return cli_fail(err);
  }
  return mx_writer_commit(writer, err) ? cli_fail(err) : CLI_FINE;
}

/* --bound: two tensors of the shape of D. */
static int write_bound(const work *w, size_t rows, size_t cols, mx_error *err) {
  const size_t n = rows * cols;
  float *lo = malloc(2 * n * sizeof *lo + 1);
  if (!lo) return cli_error("no memory for the bound of %zu x %zu", rows, cols);
  mx_gemm_options o = w->options;
  o.out = MX_F32;
  const uint64_t shape[2] = {rows, cols};
  size_t index[2];
  mx_writer *writer = NULL;
  mx_error inner;
  if (mx_gemm_bound(lo, lo + n, cols, &w->a.tensor, &w->a.spec, &w->b.tensor, &w->b.spec, &o, &w->family, &inner)) {
    free(lo);
    return cli_error("%s, %s: %s", w->args->a, w->args->b, inner.text);
  }
  mx_status status = mx_writer_open(&writer, w->args->bound, err);
  if (!status && mx_writer_is_npy(writer))
    status = mx_fail(err, MX_ERR_UNSUPPORTED, "%s: two tensors, expected a .safetensors file", w->args->bound);
  if (!status) status = mx_writer_add(writer, "lo", MX_F32, 2, shape, &index[0]);
  if (!status) status = mx_writer_add(writer, "hi", MX_F32, 2, shape, &index[1]);
  if (!status) status = mx_writer_begin(writer, err);
  for (size_t i = 0; i < 2 && !status; i++) status = mx_writer_write(writer, index[i], lo + i * n, n * sizeof *lo, err);
  free(lo);
  if (status) {
    mx_writer_abort(writer);
    return cli_fail(err);
  }
  return mx_writer_commit(writer, err) ? cli_fail(err) : CLI_FINE;
}

/* The reference takes its operands as checked: mx_gemm() does that on a batch of no work (alpha 0 reads nothing). */
static mx_status ref_gemm_checked(void *d, size_t ldd, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                                  const mx_gemm_options *how, mx_error *err) {
  static const float nothing = 0;
  mx_gemm_options check = *how;
  check.alpha = &nothing;
  const mx_status status = mx_gemm(d, ldd, a, a_spec, b, b_spec, &check, err);
  return status ? status : ref_gemm(d, ldd, a, a_spec, b, b_spec, how, err);
}

static mx_status model_of(work *w, mx_error *err) {
  const char *text = w->args->product.accum;
  w->options.model = text ? mx_gemm_model_find(text) : MX_GEMM_F32_BLOCK;
  if (w->options.model >= 0 && w->options.model != MX_GEMM_FUSED) return MX_OK;
  w->options.model = MX_GEMM_FUSED;
  w->options.fused = &w->unit;
  return mx_mma_model_find(&w->unit, text, err);
}

static int product(work *w, mx_error *err) {
  const size_t batch = w->options.batch, rows = w->a.tensor.rows;
  if (w->b.tensor.rows % batch || rows % batch)
    return cli_error("%zu rows of A and %zu of B, expected multiples of the batch, %zu", rows, w->b.tensor.rows, batch);
  const size_t cols = w->b.tensor.rows / batch;
  size_t n;
  if (__builtin_mul_overflow(rows, cols, &n) || n > SIZE_MAX / 8) return cli_error("D of %zu x %zu is too large", rows, cols);
  if (w->args->product.c && open_c(w, rows, cols, err)) return CLI_TROUBLE;
  if (w->args->product.bias && !(w->options.bias = w->bias = product_bias(&w->bias_file, w->args->product.bias, cols))) return CLI_TROUBLE;
  void *d = malloc(n * mx_dtype_bytes(w->options.out) + 1);
  if (!d) return cli_error("no memory for D of %zu x %zu", rows, cols);
  mx_error inner;
  int rc = (w->args->ref ? ref_gemm_checked : mx_gemm)(d, cols, &w->a.tensor, &w->a.spec, &w->b.tensor, &w->b.spec, &w->options, &inner)
               ? cli_error("%s, %s: %s", w->args->a, w->args->b, inner.text)
               : CLI_FINE;
  if (!rc) rc = write_d(w, d, rows, cols, err);
  if (!rc && w->args->bound) rc = write_bound(w, rows, cols, err);
  free(d);
  return rc;
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  (void)ctx;
  work w = {.args = a, .alpha = a->product.alpha.v, .beta = a->product.beta.v};
  mx_error err;
  if (!a->out) return cli_error("gemm: no output, expected -o D.npy");
  if (family_of(&w.family, "gemm", a->bound != NULL, a->product.bits, a->product.fraction, a->product.sums)) return CLI_TROUBLE;
  if (product_factors("gemm", &a->product)) return CLI_TROUBLE;
  if (model_of(&w, &err)) return cli_fail(&err);
  w.options.out = a->product.type ? (mx_dtype)mx_dtype_find(a->product.type) : MX_F32;
  w.options.alpha = a->product.alpha.given ? &w.alpha : NULL;
  w.options.beta = a->product.beta.given ? &w.beta : NULL;
  w.options.batch = a->batch.given && a->batch.v ? a->batch.v : 1;
  w.options.exec.n_threads = cli_threads(&a->product.threads);
  mx_writer_install_signal_cleanup();
  int rc = CLI_TROUBLE;
  if (mx_quantized_open(&w.a, a->a, &err) || mx_quantized_open(&w.b, a->b, &err))
    cli_fail(&err);
  else
    rc = product(&w, &err);
  free(w.bias);
  if (w.c_file) mx_file_close(w.c_file);
  if (w.bias_file) mx_file_close(w.bias_file);
  if (w.b.file) mx_quantized_close(&w.b);
  if (w.a.file) mx_quantized_close(&w.a);
  return rc;
}

const cli_command cmd_gemm = {
    options, sizeof(struct args), run,
    "Models: f32_block adds each block's exact dot times its scales with one rounding; exact rounds the whole expression once; f32_seq and\n"
    "f32_pairwise sum rounded products of dequantised values in binary32, f64 in binary64. Tensor scales are applied last; see gemm.h.\n"
    "A matrix unit (mxgold models lists them) sums over K in its instructions and groups, from nothing; block scales are part of the sum, and\n"
    "alpha, C and bias follow in binary32 (SPEC section 4).\n"
    "A and B may have different elements and scales; their blocks along K must agree."};
