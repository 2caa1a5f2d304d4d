/* Implements mx_gemm(): makes a plan from quantised matrices and their specs, and runs it. */
#include "mxgold/gemm.h"

#include <math.h>
#include <string.h>

#include "gemm/internal.h"

static const struct {
  const char *name, *doc;
} models[] = {
#define MX_GEMM_MODEL(id, name, doc) {name, doc},
#include "formats/gemm_models.def"
#undef MX_GEMM_MODEL
};

const char *mx_gemm_model_name(int model) { return model >= 0 && model < MX_GEMM_MODEL_COUNT ? models[model].name : NULL; }
const char *mx_gemm_model_doc(int model) { return model >= 0 && model < MX_GEMM_MODEL_COUNT ? models[model].doc : NULL; }
int mx_gemm_model_find(const char *name) {
  for (int i = 0; i < MX_GEMM_MODEL_COUNT; i++)
    if (!strcmp(models[i].name, name)) return i;
  return -1;
}

mx_status mx_tensor_multiplier(float *out, const mx_tensor *t, const mx_spec *spec) {
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  if (!out || !t || !elem || !scale) return MX_ERR_ARG;
  *out = 1;
  if (elem->kind == MX_KIND_NONE || !t->has_tensor_scale) return MX_OK;
  static const mx_encoding nearest = {0};
  const uint8_t one = (uint8_t)mx_encode(elem, 1, &nearest, 0);
  const uint32_t scale_one = (uint32_t)mx_encode(scale, 1, &nearest, 0);
  uint8_t codes[2] = {one, one}, scales[4], micro[3] = {0};
  if (elem->bits == 4) codes[0] = (uint8_t)(one | one << 4);
  memcpy(scales, &scale_one, sizeof scales);
  mx_tensor unit = *t; /* an element 1 with scale 1, and the tensor scale */
  unit.rows = unit.cols = unit.scale_rows = unit.scale_cols = 1;
  unit.codes = codes;
  unit.scales = scales;
  unit.micro = t->micro ? micro : NULL;
  mx_spec plain = *spec; /* without input.dtype and the like, since 1 / (1 / multiplier) need not be the multiplier */
  plain.deq_arith = MX_DEQ_ARITH_EXACT;
  return mx_dequantize(out, 1, &unit, &plain, NULL);
}

static int is_out_type(int dtype) { return dtype == MX_F32 || dtype == MX_F16 || dtype == MX_BF16; }

mx_status mxi_gemm_plan_init(mxg_plan *p, mx_error *err) {
  const mx_gemm_options *o = &p->o;
  p->model = o->model;
  if (!mx_gemm_model_name(o->model)) return mx_fail(err, MX_ERR_ARG, "model %d, expected MX_GEMM_*", o->model);
  if (!is_out_type(o->out) || !is_out_type(o->c_type))
    return mx_fail(err, MX_ERR_ARG, "D is %s and C %s, expected f32, f16 or bf16", mx_dtype_name(o->out), mx_dtype_name(o->c_type));
  p->alpha = o->alpha ? *o->alpha : 1;
  if (p->alpha == 0) p->K = 0; /* then A and B are not read */
  mxi_gemm_operand_prepare(&p->a);
  mxi_gemm_operand_prepare(&p->b);
  p->a.K = p->b.K = p->K;
  p->kb = p->K / p->block + (p->K % p->block != 0);
  if (p->model == MX_GEMM_FUSED) return mxi_gemm_fused_check(p, err);
  if (p->model == MX_GEMM_EXACT && ((p->a.divides && p->a.scale_bits > 4) || (p->b.divides && p->b.scale_bits > 4)))
    return mx_fail(err, MX_ERR_UNSUPPORTED, "model exact with scale.form=encode and %s scales, expected scales of up to four significant bits",
                   (p->a.divides && p->a.scale_bits > 4 ? p->a : p->b).scale->name);
  const size_t longest = p->block < p->K ? p->block : p->K;
  const int terms = longest ? 64 - __builtin_clzll(longest) : 0;
  const int bits = p->a.hi + p->b.hi + 2 + terms - p->a.lo - p->b.lo;
  p->bounded = bits + p->a.scale_bits + p->b.scale_bits <= 53;
  p->dots_bounded = bits <= 53;
  return MX_OK;
}

/* Fills in an operand, except where the matrices of a batch begin. */
static mx_status operand_of(mxg_operand *o, const mx_tensor *t, const mx_spec *spec, size_t block) {
  size_t rows, cols;
  mx_spec_block(spec, t->rows, t->cols, &rows, &cols);
  memset(o, 0, sizeof *o);
  o->elem = mx_elem_format(spec->elem);
  o->block = block;
  o->kb = t->cols / block + (t->cols % block != 0);
  o->data = t->codes;
  o->line_bytes = t->code_stride;
  o->rows_per_scale = 1;
  const int plain = o->elem->kind == MX_KIND_NONE;
  if (plain) {
    o->pack = MXG_32;
    o->multiplier = 1;
    return MX_OK;
  }
  o->pack = o->elem->bits != 4                                  ? MXG_8
            : spec->nibble == MX_NIBBLE_HIGH_FIRST              ? MXG_HIGH_FIRST
            : spec->nibble == MX_NIBBLE_HALF_BLOCK && block > 1 ? MXG_HALF_BLOCK
                                                                : MXG_LOW_FIRST;
  o->scale = mx_scale_format(spec->scale);
  o->scales = t->scales;
  o->micro = t->micro;
  o->scale_bytes = t->scale_bytes;
  o->scale_ld = t->scale_cols;
  if (t->scale_rows != t->rows) o->rows_per_scale = rows;
  o->encode = spec->scale_form == MX_SCALE_FORM_ENCODE;
  o->scale_signed = spec->scale_sign == MX_SCALE_SIGN_SIGNED;
  return mx_tensor_multiplier(&o->multiplier, t, spec);
}

/* The block along K if both have the same, otherwise 0. */
static size_t common_block(const mx_tensor *a, const mx_spec *as, const mx_tensor *b, const mx_spec *bs, size_t *of_a, size_t *of_b) {
  size_t rows;
  mx_spec_block(as, a->rows, a->cols, &rows, of_a);
  mx_spec_block(bs, b->rows, b->cols, &rows, of_b);
  if (mx_spec_is_plain(as)) *of_a = *of_b;
  if (mx_spec_is_plain(bs)) *of_b = *of_a;
  return *of_a == *of_b ? *of_a : 0;
}

void mxi_gemm_move_to(mxg_operand *o, const mx_tensor *whole, size_t t, size_t rows) {
  o->rows = rows;
  o->data = whole->codes + t * rows * whole->code_stride;
  o->scale_row0 = t * rows;
}

mx_status mxi_gemm_plan_of_tensors(mxg_plan *p, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                                   const mx_gemm_options *options, size_t ldd, mx_error *err) {
  if (!a || !b || !a_spec || !b_spec || !mx_elem_format(a_spec->elem) || !mx_elem_format(b_spec->elem))
    return mx_fail(err, MX_ERR_ARG, "gemm: an operand or its spec is missing");
  *p = (mxg_plan){.K = a->cols, .ldd = ldd};
  if (options) p->o = *options;
  if (!p->o.batch) p->o.batch = 1;
  const size_t batch = p->o.batch;
  if (a->cols != b->cols) return mx_fail(err, MX_ERR_SHAPE, "A has %zu columns and B %zu, expected the same K", a->cols, b->cols);
  if (a->rows % batch || b->rows % batch)
    return mx_fail(err, MX_ERR_SHAPE, "%zu and %zu rows, expected multiples of the batch, %zu", a->rows, b->rows, batch);
  p->M = a->rows / batch;
  p->N = b->rows / batch;
  p->ldc = p->o.ldc ? p->o.ldc : p->N;
  if (ldd < p->N || p->ldc < p->N)
    return mx_fail(err, MX_ERR_SHAPE, "a row stride of %zu, expected at least N = %zu", ldd < p->N ? ldd : p->ldc, p->N);
  size_t block_a, block_b;
  p->block = common_block(a, a_spec, b, b_spec, &block_a, &block_b);
  if (!p->block && p->K) return mx_fail(err, MX_ERR_CONFLICT, "A has blocks of %zu along K and B of %zu, expected the same", block_a, block_b);
  if (!p->block) p->block = 1;
  mx_status status = operand_of(&p->a, a, a_spec, p->block);
  if (!status) status = operand_of(&p->b, b, b_spec, p->block);
  if (status) return mx_fail(err, status, "gemm: %s", mx_status_text(status));
  if ((status = mxi_gemm_plan_init(p, err))) return status;
  p->beta = p->o.c ? (p->o.beta ? *p->o.beta : 1) : 0;
  return MX_OK;
}

mx_status mx_gemm(void *d, size_t ldd, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                  const mx_gemm_options *options, mx_error *err) {
  mxg_plan p;
  mx_status status = mxi_gemm_plan_of_tensors(&p, a, a_spec, b, b_spec, options, ldd, err);
  if (status) return status;
  if (!d && p.M && p.N) return mx_fail(err, MX_ERR_ARG, "gemm: d is NULL");
  const size_t bytes = mx_dtype_bytes(p.o.out), c_bytes = mx_dtype_bytes(p.o.c_type);
  for (size_t t = 0; t < p.o.batch && !status; t++) {
    mxi_gemm_move_to(&p.a, a, t, p.M);
    mxi_gemm_move_to(&p.b, b, t, p.N);
    status = mxi_gemm_run(&p, (uint8_t *)d + t * p.M * ldd * bytes, p.o.c ? (const uint8_t *)p.o.c + t * p.M * p.ldc * c_bytes : NULL, NULL, 0);
  }
  return status ? mx_fail(err, status, "gemm: %s", mx_status_text(status)) : MX_OK;
}
