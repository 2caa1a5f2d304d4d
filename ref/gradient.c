/* Applies the gradient rules of an operand, one block after another: SPEC "Gradient rules". */
#include "gradient.h"

#include <math.h>
#include <stdlib.h>

#include "math_sums.h"
#include "ref.h"
#include "rules.h"

static int of_scales(const mx_linear_recipe *r) { return r->grad_config != MX_GRAD_STE || r->grad_tensor != MX_GRAD_TENSOR_IGNORE; }

int ref_gradient_acts(const mx_linear_recipe *r, int q) {
  if (ref_elem_format(r->q[q].elem)->kind == MX_KIND_NONE || (r->grad_operands == MX_GRAD_OF_X && q != MX_Q1) ||
      (r->grad_operands == MX_GRAD_OF_W && q != MX_Q2))
    return 0;
  return r->grad_qprime != MX_QPRIME_STE || r->grad_trust_mask != 0 || of_scales(r);
}

static double to_double(num a) {
  return a.kind == NUM_ZERO ? 0 : a.kind == NUM_FINITE ? ldexp((double)a.sig, a.exp - 63) : a.kind == NUM_INF ? INFINITY : NAN;
}

/* What a code is multiplied by whose scale has the value `stored`, and whose tensor scale stands for over / under. */
static double multiplier(const mx_spec *s, double stored, double over, double under) {
  return s->scale_form == MX_SCALE_FORM_ENCODE ? over / (under * stored) : over * stored / under;
}

static double stored_scale(const mx_tensor *t, const mx_spec *s, size_t row, size_t col) {
  size_t height, width;
  ref_block_extent(s, t->rows, t->cols, &height, &width);
  const int columns = width == 1 && height > 1;
  const size_t at = columns ? row / height * t->scale_cols + col : row * t->scale_cols + col / width;
  uint64_t code = 0;
  for (size_t i = t->scale_bytes; i-- > 0;) code = code << 8 | t->scales[at * t->scale_bytes + i];
  return ref_decode(ref_scale_format(s->scale), code);
}

/* One element of a block. */
typedef struct element {
  double v, q, slope, trust, up, dz, dg;
} element;

/* An operand and its rules. */
typedef struct operand {
  const mx_linear_recipe *r;
  const mx_tensor *t;
  const mx_spec *spec;
  const float *x;
  float *g;
  double over, under, rule_max, prescale;
  double unit; /* max|X| under a tensor scale, else 1 */
  double *dg;  /* its derivative, [rows][cols] */
  double of_tensor;
  size_t height, width;
} operand;

/* A block in binary64. */
typedef struct block {
  size_t row, col, rows, cols, n;
  element *e;
  double unit, lever;
} block;

static double lever(const operand *o, const float *x, block *b, double m, double stored) {
  const int encode = o->spec->scale_form == MX_SCALE_FORM_ENCODE, softmax = o->r->grad_config != MX_GRAD_ABSMAX;
  double *dz = malloc((b->n + 1) * sizeof *dz);
  if (!dz) abort();
  const double z = ref_normalise(dz, o->r, softmax, o->r->grad_config == MX_GRAD_SOFTMAX, o->unit, x, b->n), F = o->rule_max;
  for (size_t i = 0; i < b->n; i++) b->e[i].dz = dz[i];
  free(dz);
  const double s = encode ? F * m / z * stored : z / (F * m) * stored, slope = ref_scale_qprime(o->r, o->spec->scale, s);
  if (!(z > 0) || !(m < INFINITY)) return 0;
  return encode ? slope * F * (m / z) * (m / z) / o->prescale : slope / (F * o->prescale);
}

static void take(block *b, const operand *o) {
  const double most = ref_format_max(ref_elem_format(o->spec->elem)), stored = stored_scale(o->t, o->spec, b->row, b->col);
  const double m = multiplier(o->spec, stored, o->over, o->under);
  float *x = malloc((o->height * o->width + 1) * sizeof *x);
  if (!x) abort();
  b->rows = o->t->rows - b->row < o->height ? o->t->rows - b->row : o->height;
  b->cols = o->t->cols - b->col < o->width ? o->t->cols - b->col : o->width;
  b->n = 0;
  for (size_t r = b->row; r < b->row + b->rows; r++)
    for (size_t c = b->col; c < b->col + b->cols; c++) {
      const size_t i = r * o->t->cols + c;
      element e = {.up = (double)o->g[i], .trust = 1, .dg = o->dg ? o->dg[i] : 0};
      x[b->n] = o->x[i];
      e.v = x[b->n] == 0 ? 0 : (double)x[b->n] * o->prescale / m;
      e.q = ref_decode(ref_elem_format(o->spec->elem), ref_code_at(o->t, o->spec, r, c));
      e.slope = ref_qprime(o->r, o->spec->elem, e.v);
      if (o->r->grad_trust_mask && !(fabs(e.v) < most)) e.trust = 0;
      if (isnan(e.v) || isinf(e.v) || isnan(e.q) || isinf(e.q)) e.v = e.q = 0;
      b->e[b->n++] = e;
    }
  b->unit = m / o->prescale;
  b->lever = o->r->grad_config == MX_GRAD_STE ? 0 : lever(o, x, b, m, stored);
  free(x);
}

/* Sum of what the gradient has to do with the scale. */
static double sum_of(const block *b) {
  double sum = 0;
  for (size_t i = 0; i < b->n; i++) sum += b->e[i].up * (b->e[i].q - b->e[i].v * b->e[i].slope);
  return sum;
}

static double of_tensor(const block *b, double g) {
  double moment = 0;
  for (size_t i = 0; i < b->n; i++) moment += b->e[i].v * b->e[i].dz;
  return b->unit / g * (1 - b->lever * moment) * sum_of(b);
}

static void give(const operand *o, const block *b) {
  const int full = o->r->grad_jacobian == MX_JACOBIAN_FULL;
  const double sum = full ? sum_of(b) : 0;
  for (size_t i = 0; i < b->n; i++) {
    const element *e = &b->e[i];
    double out;
    if (full) {
      out = e->up * e->slope;
      if (of_scales(o->r)) out += b->lever * sum * e->dz;
      if (o->dg) out += o->of_tensor * e->dg;
    } else {
      double d = e->slope;
      if (of_scales(o->r)) d += b->lever * (e->q - e->v * e->slope) * e->dz;
      if (o->dg) d += b->unit / o->unit * (e->q - e->v * d) * e->dg;
      out = e->up * d;
    }
    o->g[(b->row + i / b->cols) * o->t->cols + b->col + i % b->cols] = ref_math_store(out * e->trust);
  }
}

/* All blocks, in order: their gradients (last), or what they add to the tensor scale's. */
static void all(operand *o, int last) {
  block b = {.e = malloc((o->height * o->width + 1) * sizeof *b.e)};
  if (!b.e) abort();
  double sum = 0;
  for (b.row = 0; b.row < o->t->rows; b.row += o->height)
    for (b.col = 0; b.col < o->t->cols; b.col += o->width) {
      take(&b, o);
      if (last)
        give(o, &b);
      else
        sum += of_tensor(&b, o->unit);
    }
  if (!last) o->of_tensor = sum;
  free(b.e);
}

mx_status ref_gradient(float *g, const float *x, const mx_tensor *t, const mx_spec *spec, const mx_linear_recipe *r) {
  ref_plan plan;
  const mx_status status = ref_plan_make(&plan, spec, t->rows, t->cols);
  if (status) return status;
  num over = num_int(1), under = num_int(1);
  if (t->has_tensor_scale) ref_tensor_multiplier(&plan, num_float(t->tensor_scale), &over, &under);
  const size_t n = t->rows * t->cols;
  operand o = {.r = r, .t = t, .spec = spec, .x = x, .g = g, .over = to_double(over), .under = to_double(under), .unit = 1};
  o.prescale = spec->elem_prescale != 0 ? (double)spec->elem_prescale : 1;
  o.rule_max = spec->scale_rule == MX_SCALE_RULE_VALUE ? to_double(plan.most) : ldexp(1, ref_format_emax(ref_elem_format(spec->elem)));
  o.height = plan.block_rows;
  o.width = plan.block_cols;
  if (spec->tensor_norm != MX_TENSOR_NORM_NONE) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
    o.unit = most > 0 ? most : 1;
  }
  if (r->grad_tensor != MX_GRAD_TENSOR_IGNORE) {
    if (!(o.dg = malloc((n + 1) * sizeof *o.dg))) return MX_ERR_NOMEM;
    ref_normalise(o.dg, r, r->grad_tensor == MX_GRAD_TENSOR_SOFTMAX, 0, 1, x, n);
  }
  if (o.dg && r->grad_jacobian == MX_JACOBIAN_FULL) all(&o, 0);
  all(&o, 1);
  free(o.dg);
  return MX_OK;
}
