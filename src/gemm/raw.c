/* Implements mx_gemm_raw(): makes a plan from bare pointers, and runs it. */
#include <string.h>

#include "gemm/internal.h"

/* How many bits a code takes in memory. */
static size_t code_bits(const mx_gemm_operand *x) { return x->packing == MX_PACK_BYTES && x->elem->bits < 8 ? 8 : x->elem->bits; }

static mx_status layout_of(mxg_operand *o, const mx_gemm_operand *x, const mx_gemm_problem *p, const char *name, mx_error *err) {
  if (!x->elem || (x->elem->bits != 4 && x->elem->bits != 6 && x->elem->bits != 8 && x->elem->bits != 16 && x->elem->bits != 32))
    return mx_fail(err, MX_ERR_ARG, "operand %s has elements of %s, expected a format of 4, 6, 8, 16 or 32 bits", name,
                   x->elem ? x->elem->name : "no format");
  if (x->packing != MX_PACK_DENSE && x->packing != MX_PACK_BYTES)
    return mx_fail(err, MX_ERR_ARG, "operand %s: packing %d, expected MX_PACK_DENSE or MX_PACK_BYTES", name, x->packing);
  if (x->nibble < 0 || x->nibble >= MX_NIBBLE_COUNT)
    return mx_fail(err, MX_ERR_ARG, "operand %s: nibble %d, expected MX_NIBBLE_LOW_FIRST or MX_NIBBLE_HIGH_FIRST", name, x->nibble);
  switch (code_bits(x)) {
  case 4:
    o->pack = x->nibble == MX_NIBBLE_HIGH_FIRST ? MXG_HIGH_FIRST : MXG_LOW_FIRST;
    break;
  case 6:
    o->pack = MXG_SIX;
    break;
  case 8:
    o->pack = MXG_8;
    break;
  case 16:
    o->pack = MXG_16;
    break;
  default:
    o->pack = MXG_32;
  }
  if (code_bits(x) == 4 && x->nibble == MX_NIBBLE_HALF_BLOCK)
    return mx_fail(err, MX_ERR_UNSUPPORTED, "operand %s: nibble=half_block, expected low_first or high_first", name);
  /* op(A) is M x K and op(B) K x N. In memory a line runs along K if A is row-major and not transposed, or column-major and transposed; for
   * B it is the other way round. */
  const int is_b = name[0] == 'B';
  const int along_k = ((p->order == MX_ROW_MAJOR) != (x->transposed != 0)) != is_b;
  o->k_strided = !along_k;
  const size_t length = along_k ? p->K : o->rows, ld = x->ld ? x->ld : length;
  if (ld < length) return mx_fail(err, MX_ERR_SHAPE, "operand %s has a leading dimension of %zu, expected at least %zu", name, ld, length);
  size_t bits;
  if (__builtin_mul_overflow(ld, code_bits(x), &bits)) return mx_fail(err, MX_ERR_SHAPE, "operand %s: the leading dimension overflows", name);
  o->line_bytes = (bits + 7) / 8;
  return MX_OK;
}

static mx_status scales_of(mxg_operand *o, const mx_gemm_operand *x, const char *name, mx_error *err) {
  o->rows_per_scale = 1;
  o->scale = x->scale;
  if (!x->scale) return MX_OK;
  if (x->scale_form < 0 || x->scale_form >= MX_SCALE_FORM_COUNT)
    return mx_fail(err, MX_ERR_ARG, "operand %s: scale_form %d, expected MX_SCALE_FORM_*", name, x->scale_form);
  if (x->scale_sign < 0 || x->scale_sign >= MX_SCALE_SIGN_COUNT)
    return mx_fail(err, MX_ERR_ARG, "operand %s: scale_sign %d, expected MX_SCALE_SIGN_*", name, x->scale_sign);
  o->scale_bytes = x->scale->bits <= 8 ? 1 : x->scale->bits <= 16 ? 2 : 4;
  o->scale_layout = x->scale_layout;
  o->scale_transposed = x->scale_transposed;
  o->encode = x->scale_form == MX_SCALE_FORM_ENCODE;
  o->scale_signed = x->scale_sign == MX_SCALE_SIGN_SIGNED;
  if (x->scale->bits > 32 || x->scale_layout < 0 || x->scale_layout >= MX_LAYOUT_COUNT)
    return mx_fail(err, MX_ERR_ARG, "operand %s: scale format %s in layout %d, expected up to 32 bits in MX_LAYOUT_*", name, x->scale->name,
                   x->scale_layout);
  if (x->scale_layout != MX_LAYOUT_ROW && o->scale_bytes != 1)
    return mx_fail(err, MX_ERR_SHAPE, "operand %s: %s scales in layout %s, expected one-byte scales", name, x->scale->name,
                   mx_layout_name((mx_layout)x->scale_layout));
  const size_t length = x->scale_transposed ? o->rows : o->kb;
  o->scale_ld = x->scale_ld ? x->scale_ld : length;
  if (o->scale_ld < length)
    return mx_fail(err, MX_ERR_SHAPE, "operand %s has scales with a leading dimension of %zu, expected at least %zu", name, o->scale_ld,
                   length);
  return MX_OK;
}

static mx_status operand_of(mxg_operand *o, const mx_gemm_operand *x, const mx_gemm_problem *p, size_t rows, size_t block, const char *name,
                            mx_error *err) {
  memset(o, 0, sizeof *o);
  o->elem = x->elem;
  o->rows = rows;
  o->K = p->K;
  o->block = block;
  o->kb = p->K / block + (p->K % block != 0);
  o->multiplier = x->multiplier ? *x->multiplier : 1;
  const mx_status status = layout_of(o, x, p, name, err);
  return status ? status : scales_of(o, x, name, err);
}

/* Moves the operand to matrix t of the batch. */
static mx_status move_to(mxg_operand *o, const mx_gemm_operand *x, size_t t, const char *name, mx_error *err) {
  const size_t bits = code_bits(x) * x->stride;
  if (bits % 8) return mx_fail(err, MX_ERR_SHAPE, "operand %s: a stride of %zu elements is not a whole number of bytes", name, x->stride);
  o->data = x->list ? x->list[t] : x->data ? (const uint8_t *)x->data + t * (bits / 8) : NULL;
  o->scales = x->scale_list ? x->scale_list[t] : x->scales ? (const uint8_t *)x->scales + t * x->scale_stride * o->scale_bytes : NULL;
  if (o->rows && o->K && (!o->data || (o->scale && !o->scales)))
    return mx_fail(err, MX_ERR_ARG, "operand %s has no %s", name, o->data ? "scales" : "data");
  return MX_OK;
}

static mx_status check_pairs(const mx_gemm_problem *p, mx_error *err) {
  for (size_t i = 0; p->pairs && i < p->n_pairs; i++)
    if (p->pairs[i][0] >= p->M || p->pairs[i][1] >= p->N)
      return mx_fail(err, MX_ERR_SHAPE, "pair %zu is (%zu, %zu), expected below (%zu, %zu)", i, p->pairs[i][0], p->pairs[i][1], p->M, p->N);
  return MX_OK;
}

static mx_status plan_of(mxg_plan *plan, const mx_gemm_problem *p, mx_error *err) {
  *plan =
      (mxg_plan){.M = p->M, .N = p->N, .K = p->K, .block = p->block ? p->block : 32, .o = p->options, .col_major = p->order == MX_COL_MAJOR};
  const size_t length = plan->col_major ? p->M : p->N;
  plan->ldd = p->ldd ? p->ldd : length;
  plan->ldc = p->options.ldc ? p->options.ldc : length;
  const size_t shortest = plan->ldd < plan->ldc || p->pairs ? plan->ldd : plan->ldc;
  if (p->order != MX_ROW_MAJOR && p->order != MX_COL_MAJOR)
    return mx_fail(err, MX_ERR_ARG, "order %d, expected MX_ROW_MAJOR or MX_COL_MAJOR", p->order);
  if (shortest < length) return mx_fail(err, MX_ERR_SHAPE, "C or D has a leading dimension of %zu, expected at least %zu", shortest, length);
  mx_status status = operand_of(&plan->a, &p->a, p, p->M, plan->block, "A", err);
  if (!status) status = operand_of(&plan->b, &p->b, p, p->N, plan->block, "B", err);
  if (!status) status = mxi_gemm_plan_init(plan, err);
  if (!status) status = check_pairs(p, err);
  return status;
}

static const void *matrix(const void *first, const void *const *list, size_t stride, size_t t, mx_dtype dtype) {
  return list ? list[t] : first ? (const uint8_t *)first + t * stride * mx_dtype_bytes(dtype) : NULL;
}

mx_status mx_gemm_raw(const mx_gemm_problem *p, mx_error *err) {
  if (!p) return mx_fail(err, MX_ERR_ARG, "gemm: the problem is NULL");
  mxg_plan plan;
  mx_status status = plan_of(&plan, p, err);
  if (status) return status;
  const size_t batch = p->options.batch ? p->options.batch : 1;
  size_t n = p->n_pairs;
  if ((!p->pairs && __builtin_mul_overflow(p->M, p->N, &n)) || __builtin_mul_overflow(n ? n : 1, batch, &n) || n > SIZE_MAX / 8)
    return mx_fail(err, MX_ERR_SHAPE, "gemm: %zu x %zu outputs in a batch of %zu are too many", p->M, p->N, batch);
  const size_t stride_d = p->stride_d || !p->pairs ? p->stride_d : p->n_pairs;
  const int has_c = p->options.c || p->list_c;
  plan.beta = has_c ? (p->options.beta ? *p->options.beta : 1) : 0;
  for (size_t t = 0; t < batch && !status; t++) { /* pointers are checked first, so that an error leaves D unchanged */
    status = move_to(&plan.a, &p->a, t, "A", err);
    if (!status) status = move_to(&plan.b, &p->b, t, "B", err);
    if (!status && !matrix(p->d, (const void *const *)p->list_d, stride_d, t, plan.o.out) && p->M && p->N)
      status = mx_fail(err, MX_ERR_ARG, "gemm: d is NULL");
  }
  for (size_t t = 0; t < batch && !status; t++) {
    move_to(&plan.a, &p->a, t, "A", err);
    move_to(&plan.b, &p->b, t, "B", err);
    void *d = p->list_d ? p->list_d[t] : (uint8_t *)p->d + t * stride_d * mx_dtype_bytes(plan.o.out);
    status = mxi_gemm_run(&plan, d, has_c ? matrix(p->options.c, p->list_c, p->stride_c, t, plan.o.c_type) : NULL, p->pairs, p->n_pairs);
    if (status) return mx_fail(err, status, "gemm: %s", mx_status_text(status));
  }
  return status;
}
