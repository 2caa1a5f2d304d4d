/* Defines gemm and mma: products of quantised matrices, and of raw operands in the bits of a matrix unit. */
#include <stdlib.h>
#include <string.h>

#include "ext.h"

/* A number type that D and C may have. */
static int product_type(mx_dtype *out, const char *name) {
  static const struct {
    const char *name;
    mx_dtype type;
  } rows[] = {{"float32", MX_F32}, {"f32", MX_F32}, {"float16", MX_F16}, {"f16", MX_F16}, {"bfloat16", MX_BF16}, {"bf16", MX_BF16}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (!strcmp(rows[i].name, name)) {
      *out = rows[i].type;
      return 0;
    }
  mxp_raisef(MX_ERR_ARG, "out", "'%s': expected float32, float16 or bfloat16", name);
  return -1;
}

static int model_of(mx_gemm_options *o, mx_mma_model *unit, const char *text) {
  mx_error err;
  o->model = mx_gemm_model_find(text);
  if (o->model >= 0 && o->model != MX_GEMM_FUSED) return 0;
  o->model = MX_GEMM_FUSED;
  o->fused = unit;
  const mx_status status = mx_mma_model_find(unit, text, &err);
  if (!status) return 0;
  mxp_raise(status, "accum", err.text);
  return -1;
}

static int matrix_c(mx_gemm_options *o, mxp_array *c, size_t rows, size_t cols) {
  size_t r, k;
  o->c_type = mxp_is(c, MXP_FLOAT, 4) ? MX_F32 : mxp_is(c, MXP_FLOAT, 2) ? MX_F16 : MX_BF16;
  if (o->c_type == MX_BF16 && !mxp_is(c, MXP_BFLOAT, 2)) {
    mxp_raise_dtype("c", "dtype %s, expected float32, float16 or bfloat16", c->dtype);
    return -1;
  }
  if (mxp_matrix(c, &r, &k, &o->ldc, "c")) return -1;
  if (r != rows || k != cols) {
    mxp_raisef(MX_ERR_SHAPE, "c", "%zu x %zu, expected %zu x %zu", r, k, rows, cols);
    return -1;
  }
  o->c = c->data;
  return 0;
}

static int vector_bias(mx_gemm_options *o, mxp_array *bias, size_t cols) {
  if (bias->n != cols) {
    mxp_raisef(MX_ERR_SHAPE, "bias", "%zu values, expected one for each of the %zu columns", bias->n, cols);
    return -1;
  }
  return mxp_floats(&o->bias, bias, "bias");
}

static PyObject *gemm(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { A, B, ACCUM, ALPHA, BETA, C, BIAS, OUT, BATCH, THREADS, LIKE, COUNT };
  static const char *const names[] = {"a", "b", "accum", "alpha", "beta", "c", "bias", "out", "batch", "threads", "like", NULL};
  PyObject *v[COUNT], *result = NULL;
  mxp_state *state = mxp_state_of(module);
  mxp_operand a = {0}, b = {0};
  mxp_array c = {0}, bias = {0};
  mxp_result d = {0};
  mx_mma_model unit;
  mx_gemm_options o = {0};
  mx_error err;
  float alpha = 1, beta = 1;
  uint64_t batch = 1;
  mx_status status = MX_ERR_ARG;
  if (mxp_arguments(v, "gemm", names, 3, args, n_args, keywords)) return NULL;
  if (!v[A] || !v[B]) return PyErr_Format(PyExc_TypeError, "gemm() needs a and b, two Quantized");
  const char *accum = v[ACCUM] ? mxp_text(v[ACCUM], "accum") : "f32_block", *type = v[OUT] ? mxp_text(v[OUT], "out") : "float32";
  if (!accum || !type || model_of(&o, &unit, accum) || product_type(&o.out, type) || (v[ALPHA] && mxp_float(&alpha, v[ALPHA], "alpha")) ||
      (v[BETA] && mxp_float(&beta, v[BETA], "beta")) || (v[BATCH] && mxp_unsigned(&batch, v[BATCH], "batch", 1 << 30)) ||
      mxp_threads(&o.exec.n_threads, v[THREADS]))
    return NULL;
  if (v[BETA] && !v[C]) return mxp_raise(MX_ERR_ARG, "beta", "beta without c");
  o.alpha = v[ALPHA] ? &alpha : NULL;
  o.beta = v[BETA] ? &beta : NULL;
  o.batch = batch ? batch : 1;
  if (mxp_operand_get(&a, state, v[A], "a") || mxp_operand_get(&b, state, v[B], "b")) goto end;
  const size_t rows = a.tensor.rows, cols = b.tensor.rows / o.batch;
  if (rows % o.batch || b.tensor.rows % o.batch) {
    mxp_raisef(MX_ERR_SHAPE, "batch", "%zu rows of a and %zu of b, expected multiples of %zu", rows, b.tensor.rows, o.batch);
    goto end;
  }
  if (v[C] && (mxp_array_get(&c, state, v[C], "c") || matrix_c(&o, &c, rows, cols))) goto end;
  if (v[BIAS] && (mxp_array_get(&bias, state, v[BIAS], "bias") || vector_bias(&o, &bias, cols))) goto end;
  const Py_ssize_t shape[3] = {(Py_ssize_t)o.batch, (Py_ssize_t)(rows / o.batch), (Py_ssize_t)cols};
  const int stacked = v[BATCH] != NULL;
  if (mxp_result_make(&d, state, o.out == MX_F32 ? MXP_F32 : o.out == MX_F16 ? MXP_F16 : MXP_U16, stacked ? 3 : 2, stacked ? shape : shape + 1))
    goto end;
  MXP_WORK
  status = mx_gemm(d.data, cols, &a.tensor, a.spec, &b.tensor, b.spec, &o, &err);
  MXP_WORK_END
  if (status) mxp_raise(status, "a, b", err.text);
end:
  result = mxp_result_end(&d, status != MX_OK);
  if (result && o.out == MX_BF16) {
    PyObject *arrays = PyImport_ImportModule("mxgold._arrays"), *wide = arrays ? PyObject_CallMethod(arrays, "bfloat16", "O", result) : NULL;
    Py_XDECREF(arrays);
    Py_DECREF(result);
    result = wide;
  }
  mxp_array_release(&bias);
  mxp_array_release(&c);
  mxp_operand_release(&b);
  mxp_operand_release(&a);
  return mxp_like(state, result, v[LIKE]);
}

/* An operand of mma: [rows][columns] or [T][rows][columns] of raw bits of a type's width. */
static int tile(mxp_array *x, const mx_format *type, const char *name, int *n_dims, size_t *T, size_t *rows, size_t *columns) {
  const size_t width = type ? mx_mma_bytes(type, 1) : 1;
  if (x->item != width || x->kind == MXP_OTHER || x->kind == MXP_BOOL) {
    mxp_raise_dtype(name, "dtype %s, expected words of %zu bytes, for %s", x->dtype, width, type ? type->name : "scales");
    return -1;
  }
  if ((x->n_dims != 2 && x->n_dims != 3) || (*n_dims && x->n_dims != *n_dims)) {
    mxp_raisef(MX_ERR_SHAPE, name, "%d dimensions, expected %d", x->n_dims, *n_dims ? *n_dims : 2);
    return -1;
  }
  const Py_ssize_t *shape = x->shape + x->n_dims - 2;
  const size_t tiles = x->n_dims == 3 ? (size_t)x->shape[0] : 1;
  if ((*n_dims && tiles != *T) || (*rows && (size_t)shape[0] != *rows) || (*columns && (size_t)shape[1] != *columns)) {
    mxp_raisef(MX_ERR_SHAPE, name, "%zu tiles of %zd x %zd, expected %zu of %zu x %zu", tiles, shape[0], shape[1], *n_dims ? *T : tiles,
               *rows ? *rows : (size_t)shape[0], *columns ? *columns : (size_t)shape[1]);
    return -1;
  }
  *n_dims = x->n_dims;
  *T = tiles;
  *rows = (size_t)shape[0];
  *columns = (size_t)shape[1];
  return mxp_contiguous(x);
}

static PyObject *mma(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *keywords) {
  enum { A, B, C, MODEL, SCALE_A, SCALE_B, THREADS, LIKE, COUNT };
  static const char *const names[] = {"a", "b", "c", "model", "scale_a", "scale_b", "threads", "like", NULL};
  PyObject *v[COUNT];
  mxp_state *state = mxp_state_of(module);
  mxp_array x[5] = {0};
  mxp_result d = {0};
  mx_mma_model m;
  mx_error err;
  mx_exec exec = {0};
  int n_dims = 0;
  size_t T = 0, M = 0, N = 0, wa = 0, wb = 0;
  mx_status status = MX_ERR_ARG;
  if (mxp_arguments(v, "mma", names, 3, args, n_args, keywords)) return NULL;
  if (!v[A] || !v[B] || !v[MODEL]) return PyErr_Format(PyExc_TypeError, "mma() needs a, b and model");
  const char *text = mxp_text(v[MODEL], "model");
  if (!text || mxp_threads(&exec.n_threads, v[THREADS])) return NULL;
  if ((status = mx_mma_model_find(&m, text, &err))) return mxp_raise(status, "model", err.text);
  status = MX_ERR_ARG;
  if ((v[SCALE_A] != NULL) != (m.scale != NULL) || (v[SCALE_B] != NULL) != (m.scale != NULL))
    return mxp_raisef(MX_ERR_ARG, "scale_a, scale_b", m.scale ? "%s has scales, expected both" : "%s has no scales, expected none", m.name);
  const mx_format *types[2] = {m.a, m.b};
  for (int i = 0; i < 2; i++)
    if (mxp_array_get(&x[i], state, v[i], names[i]) || tile(&x[i], types[i], names[i], &n_dims, &T, i ? &N : &M, i ? &wb : &wa)) goto end;
  const size_t K = m.a->bits <= 4 ? 2 * wa : wa, K_of_b = m.b->bits <= 4 ? 2 * wb : wb;
  if (K != K_of_b) {
    mxp_raisef(MX_ERR_SHAPE, "b", "%zu elements along K, expected %zu as in a", K_of_b, K);
    goto end;
  }
  size_t blocks = m.scale ? (K + (size_t)m.block - 1) / (size_t)m.block : 0, n = N;
  if (v[C] && (mxp_array_get(&x[2], state, v[C], "c") || tile(&x[2], m.c, "c", &n_dims, &T, &M, &n))) goto end;
  for (int i = 0; i < 2 && m.scale; i++)
    if (mxp_array_get(&x[3 + i], state, v[SCALE_A + i], names[SCALE_A + i]) ||
        tile(&x[3 + i], NULL, names[SCALE_A + i], &n_dims, &T, i ? &N : &M, &blocks))
      goto end;
  const size_t width = mx_mma_bytes(m.d, 1);
  const Py_ssize_t shape[3] = {(Py_ssize_t)T, (Py_ssize_t)M, (Py_ssize_t)N};
  if (mxp_result_make(&d, state,
                      width == 1   ? MXP_U8
                      : width == 2 ? MXP_U16
                      : width == 4 ? MXP_U32
                                   : MXP_U64,
                      n_dims, n_dims == 3 ? shape : shape + 1))
    goto end;
  const mx_mma_args operands = {
      T, M, N, K, x[0].data, x[1].data, v[C] ? x[2].data : NULL, m.scale ? x[3].data : NULL, m.scale ? x[4].data : NULL};
  MXP_WORK
  status = mx_mma(d.data, &m, &operands, &exec, &err);
  MXP_WORK_END
  if (status) mxp_raise(status, "a, b", err.text);
end:
  for (int i = 0; i < 5; i++) mxp_array_release(&x[i]);
  return mxp_like(state, mxp_result_end(&d, status != MX_OK), v[LIKE]);
}

PyMethodDef mxp_product_methods[] = {
    MXP_ROW(
        "gemm", gemm,
        "gemm(a, b, accum='f32_block', *, alpha=None, beta=None, c=None, bias=None, out='float32', batch=None, threads=0, like=None)\n--\n\n"
        "D = alpha * A x B^T + beta * C + bias of quantised matrices, bit for bit under a named accumulation model.\n\n"
        "a: Quantized [M][K]; b: Quantized [N][K], quantised along K with the same block. accum: f32_block, exact, f32_seq, f32_pairwise, f64, "
        "group64,\n"
        "a row of `mxgold models`, ARCH/INSTRUCTION, or 'fused:KEY=VALUE,...'. c: [M][N] of float32, float16 or bfloat16; bias: [N]. out: type "
        "of "
        "D.\n"
        "batch: a and b hold as many matrices, one below the other; D then is [batch][M][N]. threads: no bit depends on them.\n\n"
        "Returns float32 [M][N], or what `out` says. Raises SpecError (an unknown model, blocks that differ), ShapeError, DtypeError.\n\n"
        ">>> import numpy as np, mxgold\n"
        ">>> a = mxgold.quantize(np.ones((2, 32), np.float32), preset='ocp-mxfp4')\n"
        ">>> mxgold.gemm(a, a)\n"
        "array([[32., 32.],\n"
        "       [32., 32.]], dtype=float32)"),
    MXP_ROW(
        "mma", mma,
        "mma(a, b, c=None, *, model, scale_a=None, scale_b=None, threads=0, like=None)\n--\n\n"
        "D = A x B^T + C in the bits of a matrix unit.\n\n"
        "a: raw bits [T][M][K] or [M][K]; b: [T][N][K]; c: [T][M][N], without it the sums start from nothing. Arrays of the model's widths, "
        "integers\n"
        "or floats seen as bits; 4-bit elements two a byte, low nibble first. scale_a: uint8 [T][M][K/block], scale_b: [T][N][K/block], if the "
        "model\n"
        "has scales. model: ARCH/INSTRUCTION ('hopper/mma_m16n8k16_f32_f16_f16_f32'), a row of `mxgold models`, with keys after a colon.\n\n"
        "Returns raw bits [T][M][N] of the model's d, uint8 to uint64. Raises SpecError, ShapeError, DtypeError."),
    {0}};
