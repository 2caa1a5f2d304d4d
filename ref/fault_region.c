/* Decides what lies in a region of SPEC 9, and reads blocks. */
#include "fault_run.h"

static int has_number(const ref_region *g, uint64_t i) { return g->modulus ? g->remainder[i % g->modulus] : i >= g->first && i <= g->last; }

static int is(const ref_region *g, const char *name) { return strcmp(g->name, name) == 0; }

int ref_is_subnormal(const mx_format *format, uint64_t code) {
  const num v = ref_value(format, code);
  return format->kind == MX_KIND_FLOAT && v.kind == NUM_FINITE && v.exp < 1 - format->bias;
}

static int block_in(const ref_run *r, const ref_region *g, size_t d, size_t a) {
  const size_t k = d * r->across + a;
  if (is(g, "rows")) return has_number(g, d * r->height);
  if (is(g, "columns")) return has_number(g, a * r->width);
  if (is(g, "blocks")) return has_number(g, a);
  if (is(g, "tail")) return r->cols % r->width != 0 && a + 1 == r->across;
  if (is(g, "order")) return has_number(g, k);
  if (is(g, "scale")) return has_number(g, r->plain[k]);
  if (is(g, "subnormal")) return ref_is_subnormal(r->plan.scale, r->plain[k]);
  if (is(g, "zero")) return num_is_zero(ref_finite_amax(r, d, a));
  return 1;
}

static int element_in(const ref_run *r, const ref_region *g, size_t row, size_t col) {
  if (is(g, "rows")) return has_number(g, row);
  if (is(g, "columns")) return has_number(g, col);
  if (is(g, "memory")) return has_number(g, (uint64_t)row * r->cols + col);
  if (is(g, "elements")) return has_number(g, row % r->height * r->width + col % r->width);
  if (is(g, "negative")) return num_float(r->x[row * r->cols + col]).sign;
  if (is(g, "positive")) return !num_float(r->x[row * r->cols + col]).sign;
  return block_in(r, g, row / r->height, col / r->width);
}

int ref_block_in(const ref_run *r, const ref_fault *f, size_t d, size_t a) {
  for (int i = 0; i < 2; i++)
    if (f->region[i].name && !block_in(r, &f->region[i], d, a)) return 0;
  return 1;
}

int ref_element_in(const ref_run *r, const ref_fault *f, size_t row, size_t col) {
  for (int i = 0; i < 2; i++)
    if (f->region[i].name && !element_in(r, &f->region[i], row, col)) return 0;
  return 1;
}

size_t ref_from(const ref_fault *f, size_t at, size_t n) {
  if (strncmp(f->op, "first of", 8) == 0) return f->number >= 1 ? at / (size_t)f->number * (size_t)f->number : at;
  if (strstr(f->op, "modulo")) return f->number >= 1 ? at % (size_t)f->number : at;
  const long long by = (long long)f->number, to = strstr(f->op, "xor") ? (long long)at ^ by : (long long)at + by;
  return to >= 0 && to < (long long)n ? (size_t)to : at;
}

ref_block ref_load(const ref_run *r, size_t d, size_t a) {
  const size_t n = r->height * r->width;
  for (size_t i = 0; i < n; i++) {
    const size_t row = d * r->height + i / r->width, col = a * r->width + i % r->width;
    r->elements[i] = row < r->rows && col < r->cols ? num_float(r->x[row * r->cols + col]) : num_zero(0);
  }
  return (ref_block){r->elements, n, d * r->across + a};
}

num ref_finite_amax(const ref_run *r, size_t d, size_t a) {
  const ref_block block = ref_load(r, d, a);
  num most = num_zero(0);
  for (size_t i = 0; i < block.n; i++)
    if (block.x[i].kind == NUM_FINITE && num_cmp(num_abs(block.x[i]), most) > 0) most = num_abs(block.x[i]);
  return most;
}

int ref_has_special(const ref_run *r, size_t d, size_t a) {
  const ref_block block = ref_load(r, d, a);
  for (size_t i = 0; i < block.n; i++)
    if (block.x[i].kind == NUM_NAN || block.x[i].kind == NUM_INF) return 1;
  return 0;
}

int ref_largest_is_negative(const ref_run *r, size_t d, size_t a) {
  const ref_block block = ref_load(r, d, a);
  num most = num_zero(0);
  for (size_t i = 0; i < block.n; i++)
    if (!num_is_nan(block.x[i]) && num_cmp(num_abs(block.x[i]), num_abs(most)) > 0) most = block.x[i];
  return most.sign;
}

num ref_cut_to_bf16(num x) {
  if (x.kind == NUM_NAN) return x;
  uint32_t bits = num_bits32(x) & 0xFFFF0000;
  float value;
  memcpy(&value, &bits, sizeof value);
  return num_float(value);
}

num ref_argument(const ref_fault *f) { return num_round(num_double(f->number), NUM_F32); }

num ref_as_amax(num x) {
  if (x.sign) return num_zero(0);
  return x.kind == NUM_INF ? ref_flt_max() : x;
}

num ref_to_format(const mx_format *format, num x) {
  const ref_how nearest = {0};
  num y = ref_value(format, ref_code(format, format->sign_bits ? x : num_abs(x), &nearest, 0));
  if (!format->sign_bits || num_is_nan(y)) y.sign = x.sign;
  return y;
}

num ref_root(num x) {
  if (x.kind != NUM_FINITE) return x;
  const int exp = x.exp - 63, odd = exp & 1; /* x = sig 2^exp, and 2^(exp - odd) has a root */
  const unsigned __int128 square = (unsigned __int128)x.sig << (62 + odd);
  uint64_t s = 0;
  for (int bit = 63; bit >= 0; bit--) {
    const uint64_t t = s | UINT64_C(1) << bit;
    if ((unsigned __int128)t * t <= square) s = t;
  }
  num r = num_int(s);
  r.exp += (exp - odd) / 2 - 31;
  r.sticky = (unsigned __int128)s * s != square;
  return num_round(r, NUM_F32);
}

const ref_plan *ref_plan_at(const ref_run *r, size_t d, size_t a) {
  return r->groups && ref_block_in(r, r->of_groups, d, a) ? &r->groups[d * r->height / r->group] : &r->plan;
}
