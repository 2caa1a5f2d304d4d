/* Runs the fast kernels: quantising in one or both directions, dequantising, and measuring their speed. */
#include "hip_backend/run/ops.h"

#include <math.h>
#include <string.h>
#include <vector>

#include "hip_backend/run/args.h"
#include "hip_backend/run/buffer.h"
#include "hip_backend/run/plan.h"

/* How many groups of 256 lanes share n pieces of work if each lane does `each` at a time. Measured on an H200 over 2^29 elements: with few
 * groups the memory is idle, and with a group for each piece of work time is lost on tables and on starting. Dequantising with power-of-two
 * scales needs no table and is fastest with the most groups. SOME_GROUPS is a multiple of an H200's 132 multiprocessors and of an MI355X's
 * 256. HIP takes fewer than 2^32 lanes. */
enum { SOME_GROUPS = 132 * 256, MANY_GROUPS = (1 << 24) - 1 };
static unsigned fast_grid(const mxh_device *dev, size_t n, size_t each, size_t most) {
  const size_t blocks = (n + 256 * each - 1) / (256 * each);
  if (!strcmp(mxh_kind(dev), "host")) most = 4;
  return (unsigned)(blocks < most ? blocks : most);
}
static unsigned quantize_grid(const mxh_device *dev, size_t elements) { return fast_grid(dev, elements / 8, 2, SOME_GROUPS); }
static unsigned dequantize_grid(const mxh_device *dev, size_t elements, const fast_dequantize_args *d) {
  return fast_grid(dev, elements / 4, 4, d->e4m3 ? SOME_GROUPS : MANY_GROUPS);
}

static bool fast_rule_of(fast_rule *f, const mx_spec *s) {
  size_t br, bc;
  mx_spec_block(s, 1, 32, &br, &bc);
  *f = {};
  f->drop = s->elem_zero_sign == MX_ZERO_SIGN_DROP_INPUT;
  if (s->elem != MX_ELEM_E2M1 || br != 1 || (bc != 16 && bc != 32) || s->block_rows == MX_BLOCK_WHOLE || s->block_cols == MX_BLOCK_WHOLE ||
      s->nibble != MX_NIBBLE_LOW_FIRST || s->had_size || s->input_dtype != MX_INPUT_DTYPE_FLOAT32 || s->flush != MX_SWITCH_OFF ||
      s->elem_round != MX_ROUND_RNE || s->elem_overflow != MX_OVERFLOW_SATURATE || s->elem_saturate_to != MX_SATURATE_TO_MAX ||
      s->select != MX_SELECT_ABSMAX || s->elem_prescale != 0 || s->scale_min != 0 || s->scale_min_byte || s->scale_max_byte ||
      s->elem_nan == MX_ELEM_NAN_ERROR || s->scale_used != MX_SCALE_USED_STORED || s->scale_form != MX_SCALE_FORM_DECODE ||
      (s->elem_zero_sign != MX_ZERO_SIGN_KEEP && !f->drop))
    return false;
  for (int act : {s->scale_nan, s->scale_inf - 1})
    if (act == MX_SCALE_NAN_ERROR || act == MX_SCALE_NAN_TENSOR || act == MX_SCALE_NAN_IGNORE || act == MX_SCALE_NAN_CLAMP) return false;
  if (s->chain == MX_CHAIN_TE) {
    f->lead = MXD_LEAD_TE;
    return s->scale == MX_SCALE_E4M3 && s->scale_round == MX_SCALE_ROUND_RNE && bc == 16;
  }
  f->lead = s->scale_rule == MX_SCALE_RULE_EVEN ? MXD_LEAD_EVEN : MXD_LEAD_FLOOR;
  f->even_add = f->lead == MXD_LEAD_EVEN ? 0x200000u : 0;
  return s->chain == MX_CHAIN_EXACT && s->scale == MX_SCALE_E8M0 && s->tensor_norm == MX_TENSOR_NORM_NONE &&
         s->elem_arith == MX_ELEM_ARITH_EXACT &&
         (s->scale_rule == MX_SCALE_RULE_EVEN ? s->scale_even_bits <= 1
                                              : s->scale_rule == MX_SCALE_RULE_FLOOR && s->scale_log2 == MX_SCALE_LOG2_BITS);
}
bool mxh_fast(const mx_spec *spec) {
  fast_rule f;
  return fast_rule_of(&f, spec);
}

namespace {
/* A matrix on the device, and its result. */
struct fast_job {
  mxd_plan p;
  mxh_buffer plan, amax, codes, scales, counter, special;
  fast_args a;
  fast_job(mxh_device *dev, const mx_spec *spec, size_t rows, size_t cols, const float *x, size_t row_step)
      : p(), plan(dev, sizeof p), amax(dev, 4), codes(dev, rows * cols / 2), scales(dev, rows * cols / 16), counter(dev, 4),
        special(dev, rows * cols / 16 * 4), a() {
    mxh_plan_make(&p, spec, rows, cols, nullptr);
    fast_rule_of(&a.rule, spec);
    a.x.at = x;
    a.x.row_step = (int64_t)row_step;
    a.x.col_step = 1;
    a.plan = plan.as<mxd_plan>();
    a.codes = codes.as<uint32_t>();
    a.scales = scales.as<uint8_t>();
    a.n_special = counter.as<uint32_t>();
    a.special = special.as<uint32_t>();
    a.block = (uint32_t)p.block_cols;
    a.blocks_per_row = (uint32_t)(cols / p.block_cols);
    a.n_blocks = (uint32_t)(rows * cols / p.block_cols);
    a.shift = p.block_cols == 32 ? 2 : 1;
    a.dense = row_step == cols;
  }
  bool there() const { return p.rows * p.cols < 1ull << 33 && plan.p && amax.p && codes.p && scales.p && counter.p && special.p; }
  /* Finds amax of the whole tensor if the plan needs it, and then the tensor-level numbers of the plan. */
  int start(mxh_device *dev, unsigned grid) {
    if (plan.put(&p, sizeof p) || amax.fill(0, 4) || counter.fill(0, 4)) return 1;
    fast_amax_args m = {};
    m.x = a.x.at;
    m.amax = amax.as<uint32_t>();
    m.n4 = p.rows * p.cols / 4;
    tensor_plan_args t = {};
    t.plan = plan.as<mxd_plan>();
    t.amax = amax.as<uint32_t>();
    if (p.needs_amax && mxh_launch(dev, "mxh_amax_fast", grid < 2048 ? grid : 2048, 256, &m, sizeof m)) return 1;
    return mxh_launch(dev, "mxh_tensor_plan", 1, 64, &t, sizeof t);
  }
  int rest(mxh_device *dev) { return mxh_launch(dev, "mxh_quantize_special", mxh_grid(dev, 1 << 20), 256, &a, sizeof a); }
  int take(mxh_device *dev, mx_tensor *out) {
    mxd_plan after;
    if (codes.get(out->codes, p.rows * p.cols / 2) || scales.get(out->scales, a.n_blocks) || plan.get(&after, sizeof after)) return 1;
    (void)dev;
    out->tensor_scale = after.tensor_scale;
    out->has_tensor_scale = after.has_tensor_scale;
    return 0;
  }
};
} // namespace

int mxh_quantize_fast(mxh_device *dev, mx_tensor *out, const float *x, size_t rows, size_t cols, const mx_spec *spec) {
  mxh_buffer in(dev, rows * cols * 4);
  fast_job j(dev, spec, rows, cols, in.as<float>(), cols);
  if (!j.there() || in.put(x, rows * cols * 4)) return 1;
  return j.start(dev, mxh_grid(dev, rows * cols / 8)) ||
         mxh_launch(dev, "mxh_quantize_fast", quantize_grid(dev, rows * cols), 256, &j.a, sizeof j.a) || j.rest(dev) || j.take(dev, out);
}

int mxh_quantize_both(mxh_device *dev, mx_tensor *along, mx_tensor *across, const float *x, size_t rows, size_t cols, const mx_spec *spec) {
  mxh_buffer in(dev, rows * cols * 4);
  fast_job j(dev, spec, rows, cols, in.as<float>(), cols), k(dev, spec, cols, rows, in.as<float>(), 1);
  k.a.x.col_step = (int64_t)cols;
  if (!j.there() || !k.there() || in.put(x, rows * cols * 4) || j.start(dev, 1) || k.start(dev, 1)) return 1;
  both_args b = {};
  b.along = j.a;
  b.across = k.a;
  b.rows = (uint32_t)rows;
  b.cols = (uint32_t)cols;
  const unsigned tiles = (unsigned)(rows / 32 * (cols / 32)), grid = mxh_grid(dev, (size_t)tiles * 256);
  return mxh_launch(dev, "mxh_quantize_both", grid, 128, &b, sizeof b) || j.rest(dev) || k.rest(dev) || j.take(dev, along) ||
         k.take(dev, across);
}

static fast_dequantize_args dequantize_of(const mxd_plan &p, const void *codes, const uint8_t *scales, float *out, float tensor_scale) {
  fast_dequantize_args d = {};
  d.codes = static_cast<const uint16_t *>(codes);
  d.scales = scales;
  d.out = out;
  d.n4 = (uint32_t)(p.rows * p.cols / 4);
  d.shift = p.block_cols == 32 ? 3 : 2;
  d.e4m3 = p.spec.scale == MX_SCALE_E4M3;
  d.two_level = p.has_tensor_scale;
  d.times = p.store == MXD_STORE_DIVISOR ? 1 : (double)tensor_scale;
  d.over = p.store == MXD_STORE_DIVISOR ? (double)tensor_scale : p.store == MXD_STORE_AMAX ? (p.uses_chain ? p.target : p.norm) : 1;
  d.deq_arith = p.spec.deq_arith;
  if (d.deq_arith == MX_DEQ_ARITH_TWO_STEP || (d.deq_arith == MX_DEQ_ARITH_SCALE_FIRST && p.store == MXD_STORE_AMAX)) {
    d.times = (double)((float)d.times / (float)d.over);
    d.over = 1;
  }
  d.ratio_hi = (float)(d.times / d.over);
  d.ratio_lo = (float)(d.times / d.over - (double)d.ratio_hi);
  return d;
}
int mxh_dequantize_fast(mxh_device *dev, float *out, const mx_tensor *t, const mx_spec *spec) {
  mxd_plan p;
  if (mxh_plan_make(&p, spec, t->rows, t->cols, nullptr) || t->rows * t->cols >= 1ull << 33) return 1;
  const size_t n = t->rows * t->cols;
  mxh_buffer codes(dev, n / 2), scales(dev, n / 16), y(dev, n * 4);
  if (codes.put(t->codes, n / 2) || scales.put(t->scales, t->rows * t->scale_cols)) return 1;
  const fast_dequantize_args d = dequantize_of(p, codes.p, scales.as<uint8_t>(), y.as<float>(), t->tensor_scale);
  return mxh_launch(dev, "mxh_dequantize_fast", dequantize_grid(dev, n, &d), 256, &d, sizeof d) || y.get(out, n * 4);
}

int mxh_bench(mxh_device *dev, size_t rows, size_t cols, const mx_spec *spec, int n, double *quantize_rate, double *dequantize_rate,
              double *copy_rate) {
  const size_t elements = rows * cols;
  mxh_buffer x(dev, elements * 4), y(dev, elements * 4);
  fast_job j(dev, spec, rows, cols, x.as<float>(), cols);
  if (!x.p || !y.p || !j.there()) return 1;
  fill_args f = {};
  f.x = x.as<float>();
  f.n = elements;
  f.seed = 1;
  const unsigned grid = mxh_grid(dev, elements / 8);
  if (mxh_launch(dev, "mxh_fill_random", grid, 256, &f, sizeof f) || j.start(dev, grid)) return 1;
  const fast_dequantize_args d = dequantize_of(j.p, j.codes.p, j.scales.as<uint8_t>(), y.as<float>(), 3.5f);
  const unsigned q_grid = quantize_grid(dev, elements), d_grid = dequantize_grid(dev, elements, &d);
  copy_args c = {};
  c.x = x.as<float>();
  c.y = y.as<float>();
  c.n4 = elements / 4;
  double seconds;
  const double out_bytes = (double)elements / 2 + (double)j.a.n_blocks;
  *quantize_rate = *dequantize_rate = *copy_rate = 0;
  for (int round = 0; round < n + 1;
       round++) { /* the first round warms up, and the best of the others counts; the three operations take turns */
    if (j.counter.fill(0, 4) || mxh_time_begin(dev) || mxh_launch(dev, "mxh_quantize_fast", q_grid, 256, &j.a, sizeof j.a) || j.rest(dev) ||
        mxh_time_end(dev, &seconds))
      return 1;
    double rate = ((double)elements * 4 + out_bytes) / seconds;
    if (round && rate > *quantize_rate) *quantize_rate = rate;
    if (mxh_time_begin(dev) || mxh_launch(dev, "mxh_dequantize_fast", d_grid, 256, &d, sizeof d) || mxh_time_end(dev, &seconds)) return 1;
    rate = ((double)elements * 4 + out_bytes) / seconds;
    if (round && rate > *dequantize_rate) *dequantize_rate = rate;
    if (mxh_time_begin(dev) || mxh_launch(dev, "mxh_copy", grid, 256, &c, sizeof c) || mxh_time_end(dev, &seconds)) return 1;
    rate = (double)elements * 8 / seconds;
    if (round && rate > *copy_rate) *copy_rate = rate;
  }
  return mxh_sync(dev);
}
