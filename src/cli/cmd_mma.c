/* Runs mxgold mma: matrix products in the bits of a tensor core or matrix core. */
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/file.h"
#include "mxgold/mma.h"
#include "ref/mma.h"

struct args {
  const char *in, *model, *output;
  cli_u64 threads;
  int ref;
};

static const cli_option options[] = {
    {"IN", 0, CLI_POS, offsetof(struct args, in), NULL, "a .safetensors file with a, b and, if wanted, c, scale_a, scale_b", NULL},
    {"model", 'm', CLI_STRING, offsetof(struct args, model), "MODEL", "ARCH/INSTRUCTION, a row of accumulation models, or fused:KEY=VALUE,...",
     NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, output), "FILE", "where d goes (.safetensors, or .npy for d alone)", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads; 0: all (default)", NULL},
    {"ref", 0, CLI_FLAG, offsetof(struct args, ref), NULL, "compute with the slow reference", NULL},
    {0},
};

/* Operands of one call: which tensor is what, and the common shape. */
typedef struct job {
  mx_mma_model model;
  mx_mma_args args;
  int n_dims;
} job;

static const mx_array *find(const mx_file *f, const char *name) {
  for (size_t i = 0; i < mx_file_count(f); i++)
    if (!strcmp(mx_file_at(f, i)->name, name)) return mx_file_at(f, i);
  return NULL;
}

/* A tensor as [T][rows][columns]; two dimensions are one tile. */
static mx_status shape_of(size_t out[3], const char *path, const mx_array *a, mx_error *err) {
  if (a->n_dims != 2 && a->n_dims != 3)
    return mx_fail(err, MX_ERR_SHAPE, "%s: tensor %s has %d dimensions, 2 or 3 expected", path, a->name, a->n_dims);
  for (int i = 0; i < 3; i++) {
    int at = i - (3 - a->n_dims);
    out[i] = at < 0 ? 1 : (size_t)a->shape[at];
  }
  return MX_OK;
}

/* Find a tensor whose values have the width of `type` and whose first dimensions are T and rows (0: taken from it). */
static mx_status operand(const void **data, const mx_file *f, const char *name, const mx_format *type, size_t *T, size_t *rows, size_t *columns,
                         int *n_dims, mx_error *err) {
  const char *path = mx_file_path(f);
  const mx_array *a;
  mx_status status = mx_file_find(&a, f, name, err);
  if (status) return status;
  size_t shape[3], width = mx_mma_bytes(type, 1);
  if ((status = shape_of(shape, path, a, err))) return status;
  if (mx_dtype_bytes(a->dtype) != width)
    return mx_fail(err, MX_ERR_SHAPE, "%s: tensor %s is %s, the model wants %s in words of %zu bytes", path, name, mx_dtype_name(a->dtype),
                   type->name, width);
  if (*n_dims < 0) {
    *n_dims = a->n_dims;
    *T = shape[0];
  }
  if (shape[0] != *T || (*rows && shape[1] != *rows) || a->n_dims != *n_dims)
    return mx_fail(err, MX_ERR_SHAPE, "%s: tensor %s has %zu x %zu rows, %zu x %zu expected", path, name, shape[0], shape[1], *T,
                   *rows ? *rows : shape[1]);
  *rows = shape[1];
  size_t k = type->bits <= 4 ? 2 * shape[2] : shape[2];
  if (*columns && k != *columns) return mx_fail(err, MX_ERR_SHAPE, "%s: tensor %s is %zu deep, %zu expected", path, name, k, *columns);
  *columns = k;
  *data = a->data;
  return MX_OK;
}

static mx_status scales(job *j, const mx_file *f, mx_error *err) {
  const mx_mma_model *m = &j->model;
  if (!m->scale) {
    const char *name = find(f, "scale_a") ? "scale_a" : find(f, "scale_b") ? "scale_b" : NULL;
    return name ? mx_fail(err, MX_ERR_CONFLICT, "%s: tensor %s, but model %s has no scales", mx_file_path(f), name, m->name) : MX_OK;
  }
  size_t blocks = (j->args.K + (size_t)m->block - 1) / (size_t)m->block;
  mx_status status = operand(&j->args.scale_a, f, "scale_a", m->scale, &j->args.T, &j->args.M, &blocks, &j->n_dims, err);
  if (status) return status;
  return operand(&j->args.scale_b, f, "scale_b", m->scale, &j->args.T, &j->args.N, &blocks, &j->n_dims, err);
}

static mx_status read_operands(job *j, const mx_file *f, mx_error *err) {
  mx_mma_args *g = &j->args;
  const mx_mma_model *m = &j->model;
  j->n_dims = -1;
  mx_status status = operand(&g->a, f, "a", m->a, &g->T, &g->M, &g->K, &j->n_dims, err);
  if (status == MX_ERR_SHAPE && !m->whole_k && err && strlen(err->text) + 40 < sizeof err->text)
    strcat(err->text, "; a=, b=, ab=, c=, d= name other types");
  if (!status) status = operand(&g->b, f, "b", m->b, &g->T, &g->N, &g->K, &j->n_dims, err);
  if (!status && find(f, "c")) status = operand(&g->c, f, "c", m->c, &g->T, &g->M, &g->N, &j->n_dims, err);
  if (!status) status = scales(j, f, err);
  if (!status && m->whole_k && g->K % (size_t)m->k)
    status = mx_fail(err, MX_ERR_SHAPE, "%s: K=%zu is not a multiple of %d, the k of %s", mx_file_path(f), g->K, m->k, m->name);
  return status;
}

static mx_status write_d(const char *path, const job *j, const void *d, mx_error *err) {
  const mx_mma_args *g = &j->args;
  size_t width = mx_mma_bytes(j->model.d, 1), index;
  mx_dtype dtype = width == 2 ? MX_U16 : width == 4 ? MX_U32 : MX_U64;
  uint64_t shape[3] = {g->T, g->M, g->N};
  char keys[512];
  mx_accum_text(keys, sizeof keys, &j->model.accum);
  mx_writer *w;
  mx_status status = mx_writer_open(&w, path, err);
  if (status) return status;
  status = mx_writer_add(w, "d", dtype, j->n_dims, shape + 3 - j->n_dims, &index);
  if (!status) status = mx_writer_meta(w, "model", j->model.name);
  if (!status) status = mx_writer_meta(w, "parameters", keys);
  if (!status) status = mx_writer_meta(w, "held", j->model.held);
  if (!status) status = mx_writer_begin(w, err);
  if (!status) status = mx_writer_write(w, index, d, g->T * g->M * g->N * width, err);
  if (!status) return mx_writer_commit(w, err);
  mx_writer_abort(w);
  return status;
}

static mx_status work(const struct args *a, const mx_file *f, mx_error *err) {
  job j = {0};
  mx_status status = mx_mma_model_find(&j.model, a->model, err);
  if (!status) status = read_operands(&j, f, err);
  if (status) return status;
  const mx_mma_args *g = &j.args;
  size_t n, n_bytes;
  if (__builtin_mul_overflow(g->M, g->N, &n) || __builtin_mul_overflow(n, g->T, &n) ||
      __builtin_mul_overflow(n, mx_mma_bytes(j.model.d, 1), &n_bytes))
    return mx_fail(err, MX_ERR_SHAPE, "%s: d of %zu x %zu x %zu values is too large", a->in, g->T, g->M, g->N);
  void *d = malloc(n_bytes ? n_bytes : 1);
  if (!d) return mx_fail(err, MX_ERR_NOMEM, "%s: no memory for d (%zu bytes)", a->in, n_bytes);
  mx_exec exec = {.n_threads = cli_threads(&a->threads)};
  if (a->ref && (status = ref_mma(d, &j.model, g))) mx_fail(err, status, "%s under %s: %s", a->in, j.model.name, mx_status_text(status));
  if (!a->ref) status = mx_mma(d, &j.model, g, &exec, err);
  if (!status) status = write_d(a->output, &j, d, err);
  free(d);
  return status;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  mx_error err = {0};
  mx_file *f;
  if (!a->model) return cli_error("--model is missing: ARCH/INSTRUCTION or a row that `mxgold models` lists");
  if (!a->output) return cli_error("-o is missing: where d goes");
  if (mx_file_open(&f, a->in, &err)) return cli_fail(&err);
  mx_status status = work(a, f, &err);
  mx_file_close(f);
  return status ? cli_fail(&err) : CLI_FINE;
}

const cli_command cmd_mma = {
    options, sizeof(struct args), run,
    "D[t] = A[t] x B[t]^T + C[t], in the bits of the device that the model names. Tensors are raw bit patterns (U8, U16, U32, "
    "U64): a [T,M,K], b [T,N,K], c [T,M,N] (if it is missing the sums start from nothing), scale_a [T,M,K/block], scale_b "
    "[T,N,K/block]; d [T,M,N]. Without T there is one tile. Four-bit elements are packed two per byte, low nibble = even k, and "
    "each row starts on a byte: K is twice the number of bytes, so that an odd number of elements ends in a 0.\n"
    "K may be any multiple of the instruction's k; M and N are free. Keys of a model may be changed after a colon: "
    "ada/mma_m16n8k16_f32_f16_f16_f32:rules=h200. `mxgold models` lists models, `mxgold models --keys` the keys."};
