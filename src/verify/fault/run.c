/* Runs the stages of a tensor with faults in it, one after the other. */
#include "verify/fault/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/fault/bits.h"
#include "verify/fault/elements.h"
#include "verify/fault/renamed.h"

static size_t up(size_t n, size_t by) { return n / by + (n % by != 0); }

/* ---- opening */

static void read_stats(fault_run *r) {
  for (size_t k = 0; k < r->down * r->across; k++) {
    const size_t row = k / r->across * r->block_rows, col = k % r->across * r->block_cols;
    mx_block_stats *st = &r->stats[k];
    for (size_t i = row; i < r->rows && i < row + r->block_rows; i++)
      for (size_t c = col; c < r->cols && c < col + r->block_cols; c++) mx_block_stats_add(st, r->x[i * r->cols + c]);
    st->amax = st->has_inf ? INFINITY : st->amax_finite;
  }
}

static int is_subnormal(const mx_format *f, uint32_t code) {
  const int zero = !(code & ((1u << f->man_bits) - 1));
  return f->kind == MX_KIND_FLOAT && !zero && !(code >> f->man_bits & ((1u << f->exp_bits) - 1));
}

/* The error, as select.error defines it, of a block's codes under one of the two scales that select=foursix tries. */
static float error_of(const fault_run *r, size_t d, size_t a, const mx_block_stats *st, int map_to_4) {
  float sum = 0;
  mx_block_scale s;
  const mx_plan *p = mxi_fault_plan(r, d, a);
  if (mxi_block_scale_find(&s, p, st, map_to_4, d * r->across + a)) return 0;
  uint32_t codes[16];
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col += 16) {
      const float *x = r->x + row * r->cols + col;
      size_t n = r->cols - col < 16 ? r->cols - col : 16;
      if ((a + 1) * r->block_cols - col < n) n = (a + 1) * r->block_cols - col;
      for (size_t i = 0; i < n; i++) codes[i] = mxi_element_code(p, &s, x[i], row * r->cols + col + i);
      sum = mxi_candidate_error(p, &s, sum, x, codes, n);
    }
  return sum;
}

/* 1: the map to 4 has the smaller error, 2: the larger one; 0: neither, or there are no two. */
static uint8_t four_of(const fault_run *r, size_t d, size_t a, const mx_block_stats *st) {
  if (r->spec.select != MX_SELECT_FOURSIX) return 0;
  const float six = error_of(r, d, a, st, 0), four = error_of(r, d, a, st, 1);
  return four < six ? 1 : four > six ? 2 : 0;
}

mx_status mxi_fault_set_amax(fault_run *r, float amax) {
  mxi_fault_set_tensor(&r->plan, r, r->amax = amax);
  const mx_status status = mxi_fault_set_groups(r);
  if (status) return status;
  for (size_t k = 0; k < r->down * r->across; k++) {
    r->four[k] = four_of(r, k / r->across, k % r->across, &r->stats[k]);
    if (mxi_block_scale_code(&r->plain[k], mxi_fault_plan(r, k / r->across, k % r->across), &r->stats[k], r->four[k] == 1, k))
      return MX_ERR_DATA;
    r->subnormal[k] = (uint8_t)is_subnormal(r->plan.scale, r->plain[k]);
  }
  return MX_OK;
}

/* Specs whose steps have no stages that a fault could take the place of. */
static mx_status check_defined(const mx_spec *spec, mx_error *err) {
  if (spec->scale_rule == MX_SCALE_RULE_HIF4 || spec->scale_rule == MX_SCALE_RULE_QUEST || spec->elem_round == MX_ROUND_SR ||
      (spec->select && spec->select != MX_SELECT_FOURSIX) || spec->scale_round == MX_SCALE_ROUND_SR || mx_spec_is_plain(spec))
    return mx_fail(err, MX_ERR_CONFLICT,
                   "fault: a spec of scale.rule=hif4 or quest, of stochastic rounding or elem=none runs without faults only");
  return MX_OK;
}

static int is_of_scales(const mx_region *g) { return g->of == MX_REGION_SCALE || g->of == MX_REGION_ZERO || g->of == MX_REGION_SUBNORMAL; }

/* The list of a fault that has one, which no text may have said. */
static mx_status check_list(const mx_fault *f, const mx_spec *spec, mx_error *err) {
  const mx_fault_row *row = mx_fault_row_at(f->op);
  const char *why = "its list of bits is no map of places to places";
  mx_status status = MX_OK;
  if (row->arg == MX_FAULT_ARG_BITS) status = mxi_bits_get(&(place_bits){0}, f) ? MX_OK : MX_ERR_ARG;
  if (row->arg == MX_FAULT_ARG_DIGITS) status = mxi_renamed_check(&why, f, mx_elem_format(spec->elem));
  return status ? mx_fail(err, status, "fault: %s <- %s: %s", mx_stage_name(row->stage), row->op, why) : MX_OK;
}

mx_status mxi_fault_begin(fault_run *r, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld, const mx_fault *faults,
                          size_t n, mx_error *err) {
  *r = (fault_run){.spec = *spec, .faults = faults, .n_faults = n, .rows = rows, .cols = cols, .all_rows = rows};
  const mx_status defined = check_defined(spec, err);
  if (defined) return defined;
  for (size_t i = 0; i < n; i++) {
    const int too_early = is_of_scales(&faults[i].region) || is_of_scales(&faults[i].also);
    if (mxi_fault_stage(&faults[i]) < MX_STAGE_AMAX && too_early)
      return mx_fail(err, MX_ERR_CONFLICT, "fault: %s comes before the scales are known, which that region is made of",
                     mx_stage_name(mxi_fault_stage(&faults[i])));
    if ((faults[i].op == MX_FAULT_TENSOR_SCALE_VALUE || faults[i].op == MX_FAULT_TENSOR_SCALE_TIMES) && faults[i].number < 0)
      return mx_fail(err, MX_ERR_CONFLICT, "fault: tensor scale <- %s %g: expected no number below 0", mx_fault_row_at(faults[i].op)->op,
                     faults[i].number);
    const mx_status listed = check_list(&faults[i], spec, err);
    if (listed) return listed;
  }
  mx_spec_block(spec, rows, cols, &r->block_rows, &r->block_cols);
  if (!r->block_rows || !r->block_cols || ld < cols) return mx_fail(err, MX_ERR_SHAPE, "fault: %zu x %zu, row stride %zu", rows, cols, ld);
  r->down = up(rows, r->block_rows);
  r->across = up(cols, r->block_cols);
  const size_t blocks = r->down * r->across;
  r->x = malloc((rows * cols + 1) * sizeof *r->x);
  r->stats = calloc(blocks + 1, sizeof *r->stats);
  r->subnormal = calloc(blocks + 1, 1);
  r->four = calloc(blocks + 1, 1);
  r->used = calloc(blocks + 1, sizeof *r->used);
  r->room.blocks = malloc((blocks + 1) * sizeof *r->room.blocks);
  r->room.bytes = malloc(2 * blocks + 1);
  r->room.elements = malloc(rows * cols + 1);
  uint32_t *plain = calloc(blocks + 1, sizeof *plain);
  const int room = r->room.blocks && r->room.bytes && r->room.elements;
  mx_status status =
      r->x && r->stats && r->subnormal && r->four && r->used && plain && room ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "out of memory");
  if (!status) status = mxi_fault_input(r, x, ld, err);
  if (!status) status = mxi_fault_tensor_amax(r, x, ld);
  mx_spec run = *spec; /* what x has been through is not done again */
  run.had_size = run.had_sign = 0;
  run.flush = MX_SWITCH_OFF;
  run.nibble = MX_NIBBLE_LOW_FIRST;
  if (!status) status = mxi_plan_init(&r->plan, &run, rows, cols, err);
  r->spec = run;
  r->norm = r->plan.norm;
  r->target = r->plan.target;
  r->chain = r->plan.chain;
  r->plain = plain;
  if (!status) mxi_fault_set_tensor(&r->plan, r, r->amax);
  return status ? status : mxi_fault_set_groups(r);
}

mx_status mxi_fault_blocks(fault_run *r, mx_error *err) {
  read_stats(r);
  for (size_t k = 0; k < r->down * r->across; k++)
    if (r->stats[k].has_nan && r->spec.elem_nan == MX_ELEM_NAN_ERROR)
      return mx_fail(err, MX_ERR_DATA, "a block holds a NaN that the spec refuses");
  const mx_status status = mxi_fault_set_amax(r, r->amax);
  return status ? mx_fail(err, status, status == MX_ERR_NOMEM ? "out of memory" : "a block holds a NaN or an Inf that the spec refuses")
                : MX_OK;
}

mx_status mxi_fault_open(fault_run *r, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld, const mx_fault *faults,
                         size_t n, mx_error *err) {
  const mx_status status = mxi_fault_begin(r, spec, x, rows, cols, ld, faults, n, err);
  return status ? status : mxi_fault_blocks(r, err);
}

void mxi_fault_close(fault_run *r) {
  free(r->x);
  free(r->straight);
  free(r->groups);
  free(r->stats);
  free(r->subnormal);
  free(r->four);
  free(r->plain);
  free(r->used);
  free(r->room.blocks);
  free(r->room.bytes);
  free(r->room.elements);
  *r = (fault_run){0};
}

void mxi_fault_set(fault_run *r, const mx_fault *faults, size_t n) {
  r->faults = faults;
  r->n_faults = n;
}

/* ---- scales */

/* 2^n of the integer n nearest to log2(amax / F): (amax / F)^2 lies between 2^(2n - 1) and 2^(2n + 1). Squares of binary32 are exact in binary64. */
static uint32_t log2_rounded(const fault_run *r, float amax) {
  if (!(amax > 0)) return 0;
  const double square = (double)amax * (double)amax, unit = r->plan.f * r->plan.f;
  int n = ilogb((double)amax) - ilogb(r->plan.f) - 2;
  while (square >= ldexp(unit, 2 * n + 1)) n++;
  return (uint32_t)fmin(fmax(n + r->plan.scale->bias, 0), (double)r->plan.scale->max_code);
}

static int is_special(const mx_block_stats *st) { return st->has_nan || st->has_inf; }

/* The scale of one block before the faults of its rounding. */
static int made_of(fault_run *r, uint32_t *out, size_t d, size_t a) {
  const size_t k = d * r->across + a;
  int changed, worse = 0;
  for (size_t i = 0; i < r->n_faults; i++) worse |= r->faults[i].op == MX_FAULT_SCALE_WORSE && mxi_fault_block_in(r, &r->faults[i], d, a);
  const mx_block_stats st = mxi_fault_stats(r, d, a, &changed);
  *out = r->plain[k];
  if (!changed && !worse) return 0;
  const int four = changed ? four_of(r, d, a, &st) : r->four[k];
  return mxi_block_scale_code(out, mxi_fault_plan(r, d, a), &st, four == (worse ? 2 : 1), k);
}

/* The squared error of a block under the scale that plan p finds, in binary64, or in units of that scale. */
static double squared_error(uint32_t *code, const fault_run *r, const mx_plan *p, const mx_block_stats *st, size_t d, size_t a, int in_units) {
  double sum = 0;
  mx_block_scale s;
  if (mxi_block_scale_find(&s, p, st, 0, d * r->across + a)) return INFINITY;
  const double divisor = (double)mxi_fault_divisor(p, &s);
  *code = s.code;
  for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
    for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++) {
      const float x = r->x[row * r->cols + col];
      const double c = mx_decode(p->elem, mxi_element_code(p, &s, x, row * r->cols + col));
      const double e = in_units ? c - (double)(x / (float)divisor) : c * divisor - (double)x;
      sum += e * e;
    }
  return sum;
}

/* The scale of the block with its maximum at 6 or at 4, that of the smaller or of the larger error; at 6 where both are alike. */
static uint32_t four_or_six(const fault_run *r, const mx_fault *f, const mx_block_stats *st, size_t d, size_t a, uint32_t otherwise) {
  const int larger = f->op == MX_FAULT_SCALE_FOURSIX_WORSE, in_units = f->op == MX_FAULT_SCALE_FOURSIX_UNITS;
  const mx_plan *six = mxi_fault_plan(r, d, a);
  mx_plan four = *six;
  uint32_t at6 = otherwise, at4 = otherwise;
  four.f = four.vars[MX_VAR_F] = 4;
  const double e6 = squared_error(&at6, r, six, st, d, a, in_units), e4 = squared_error(&at4, r, &four, st, d, a, in_units);
  return (larger ? e4 > e6 : e4 < e6) ? at4 : at6;
}

int mxi_fault_scale_of_largest(uint32_t *code, const mx_plan *plan, const mx_block_stats *st, float largest, uint64_t index) {
  mx_plan other = *plan;
  other.f = (double)fabsf(largest);
  other.vars[MX_VAR_F] = fabsf(largest);
  return mxi_block_scale_code(code, &other, st, 0, index);
}

/* Applies a fault of a scale's rounding that needs no other block's scale. */
static int round_scale(const fault_run *r, const mx_fault *f, size_t d, size_t a, uint32_t *code) {
  const size_t k = d * r->across + a;
  const mx_format *scale = r->plan.scale;
  int changed;
  switch (f->op) {
  case MX_FAULT_SCALE_PLUS:
    *code = (uint32_t)fmin(fmax((double)*code + f->number, 0), (double)scale->max_code);
    return 0;
  case MX_FAULT_SCALE_VALUE:
    *code = mxi_fault_code_of(scale, f->number);
    return 0;
  case MX_FAULT_SCALE_FLUSH:
    if (is_subnormal(scale, *code)) *code = 0;
    return 0;
  case MX_FAULT_SCALE_LOG2:
    if (scale->kind == MX_KIND_EXP && !scale->man_bits && !is_special(&r->stats[k]))
      *code = log2_rounded(r, mxi_fault_stats(r, d, a, &changed).amax_finite);
    return 0;
  case MX_FAULT_SCALE_LARGEST: {
    const mx_block_stats st = mxi_fault_stats(r, d, a, &changed);
    if (is_special(&r->stats[k]) || (float)f->number == 0) return 0;
    return mxi_fault_scale_of_largest(code, mxi_fault_plan(r, d, a), &st, (float)f->number, k);
  }
  case MX_FAULT_SCALE_DOWN:
  case MX_FAULT_SCALE_UP: {
    if (is_special(&r->stats[k])) return 0;
    const mx_block_stats st = mxi_fault_stats(r, d, a, &changed);
    mx_plan other = *mxi_fault_plan(r, d, a); /* its rounding alone is another */
    other.spec.scale_round = f->op == MX_FAULT_SCALE_DOWN ? MX_SCALE_ROUND_DOWN : MX_SCALE_ROUND_UP;
    other.scale_encode = mx_scale_encoding(&other.spec);
    return mxi_block_scale_code(code, &other, &st, (changed ? four_of(r, d, a, &st) : r->four[k]) == 1, k);
  }
  case MX_FAULT_SCALE_FOURSIX:
  case MX_FAULT_SCALE_FOURSIX_WORSE:
  case MX_FAULT_SCALE_FOURSIX_UNITS:
    if (is_special(&r->stats[k]) || r->plan.elem != mx_elem_format(MX_ELEM_E2M1)) return 0;
    {
      const mx_block_stats st = mxi_fault_stats(r, d, a, &changed);
      *code = four_or_six(r, f, &st, d, a, *code);
    }
    return 0;
  default: {
    const mx_block_stats st = mxi_fault_stats(r, d, a, &changed);
    *code = mxi_fault_scale_rounded(r, f, d, a, &st, (changed ? four_of(r, d, a, &st) : r->four[k]) == 1, *code);
    return 0;
  }
  }
}

/* Faults that take another block's code, in block rows [first, end). */
static void move(fault_run *r, const mx_fault *f, uint32_t *codes, int of_rows, size_t first, size_t end) {
  const uint32_t *from = r->room.blocks;
  memcpy(r->room.blocks, codes, r->down * r->across * sizeof *codes);
  for (size_t d = first; d < end; d++)
    for (size_t a = 0; a < r->across; a++) {
      const size_t row = of_rows ? mxi_fault_other(f, d, r->down) : d, block = of_rows ? a : mxi_fault_other(f, a, r->across);
      if (mxi_fault_block_in(r, f, d, a)) codes[d * r->across + a] = from[row * r->across + block];
    }
}

static uint32_t stored_of(const fault_run *r, const mx_fault *f, size_t d, size_t a, const uint32_t *stored) {
  const size_t k = d * r->across + a;
  uint32_t code = stored[k];
  switch (f->op) {
  case MX_FAULT_STORE_PLUS:
    return mxi_fault_code_of(r->plan.scale, (double)code + f->number);
  case MX_FAULT_STORE_VALUE:
    return mxi_fault_code_of(r->plan.scale, f->number);
  case MX_FAULT_STORE_SIGN: {
    const uint32_t sign = mxi_fault_sign_bit(r->plan.scale);
    return sign ? (code & ~sign) | (mxi_fault_largest_is_negative(r, d, a) ? sign : 0) : code;
  }
  case MX_FAULT_STORE_RECIPROCAL: {
    const double v = mx_decode(r->plan.scale, code);
    return v > 0 && isfinite(v) ? (uint32_t)mx_encode(r->plan.scale, 1 / v, &(mx_encoding){0}, 0) : code;
  }
  case MX_FAULT_STORE_FLUSH:
    return is_subnormal(r->plan.scale, code) ? 0 : code;
  case MX_FAULT_STORE_KEEP:
    return a ? stored[k - 1] : code; /* blocks are stored from the first on, so that is the last that was not kept */
  case MX_FAULT_STORE_KEEP_FROM:
    return a ? stored[k - 1] : mxi_fault_code_of(r->plan.scale, f->number);
  case MX_FAULT_STORE_DOWN: {
    const size_t down = up(r->rows, r->block_cols), across = up(r->cols, r->block_rows);
    return down * across == r->down * r->across ? mxi_fault_code_down(r, k / across, k % across, code) : code;
  }
  case MX_FAULT_STORE_AMAX_TIMES:
    return mxi_fault_code_of_amax(r, f, d, a, code);
  case MX_FAULT_STORE_RULE:
    return mxi_fault_code_by_rule(r, f, &r->stats[k], k, code);
  default:
    return code;
  }
}

/* Does it store the scale of another row, or of another block in the row? */
static int stores_row(int op) {
  return op == MX_FAULT_STORE_ROW || op == MX_FAULT_STORE_ROW_XOR || op == MX_FAULT_STORE_FIRST_ROW || op == MX_FAULT_STORE_ROW_MODULO;
}
static int stores_block(int op) {
  return op == MX_FAULT_STORE_BLOCK || op == MX_FAULT_STORE_BLOCK_XOR || op == MX_FAULT_STORE_FIRST_BLOCK || op == MX_FAULT_STORE_BLOCK_MODULO;
}

int mxi_fault_moves_rows(const fault_run *r) {
  for (size_t i = 0; i < r->n_faults; i++)
    if (r->faults[i].op == MX_FAULT_SCALE_ROW || stores_row(r->faults[i].op)) return 1;
  return 0;
}

int mxi_fault_scales_of(fault_run *r, uint32_t *stored, size_t first, size_t end) {
  for (size_t d = first; d < end; d++)
    for (size_t a = 0; a < r->across; a++)
      if (made_of(r, &r->used[d * r->across + a], d, a)) return 1;
  for (size_t i = 0; i < r->n_faults; i++) {
    const mx_fault *f = &r->faults[i];
    if (mxi_fault_stage(f) != MX_STAGE_SCALE) continue;
    if (f->op == MX_FAULT_SCALE_ROW) move(r, f, r->used, 1, first, end);
    if (f->op == MX_FAULT_SCALE_BLOCK) move(r, f, r->used, 0, first, end);
    for (size_t d = first; d < end; d++)
      for (size_t a = 0; a < r->across; a++)
        if (mxi_fault_block_in(r, f, d, a) && round_scale(r, f, d, a, &r->used[d * r->across + a])) return 1;
  }
  memcpy(stored + first * r->across, r->used + first * r->across, (end - first) * r->across * sizeof *stored);
  for (size_t i = 0; i < r->n_faults; i++) {
    const mx_fault *f = &r->faults[i];
    if (mxi_fault_stage(f) != MX_STAGE_STORE) continue;
    if (stores_row(f->op) || stores_block(f->op)) move(r, f, stored, stores_row(f->op), first, end);
    for (size_t d = first; d < end; d++)
      for (size_t a = 0; a < r->across; a++)
        if (mxi_fault_block_in(r, f, d, a)) stored[d * r->across + a] = stored_of(r, f, d, a, stored);
  }
  return 0;
}

int mxi_fault_scales(fault_run *r, uint32_t *stored) { return mxi_fault_scales_of(r, stored, 0, r->down); }

/* ---- codes */

/* Code of the element `by` columns away in its row, or the element's own beyond the ends. */
static uint8_t code_from(const fault_run *r, const uint8_t *row, size_t c, ptrdiff_t by) {
  const ptrdiff_t to = (ptrdiff_t)c + by;
  return to >= 0 && (size_t)to < r->cols ? row[to] : row[c];
}

/* Applies the faults of a code that need other elements of the row. */
static void exchange(const fault_run *r, const mx_fault *f, uint8_t *row, uint8_t *old, size_t at) {
  const mx_format *e = r->plan.elem;
  const unsigned sign = e->sign_bits ? 1u << (e->bits - 1) : 0;
  const size_t group = f->number >= 2 ? (size_t)f->number : 2;
  memcpy(old, row, r->cols);
  for (size_t c = 0; c < r->cols; c++) {
    if (!mxi_fault_element_in(r, f, at, c)) continue;
    const size_t first = c / r->block_cols * r->block_cols, width = r->cols - first < r->block_cols ? r->cols - first : r->block_cols;
    const ptrdiff_t turn = ((ptrdiff_t)(c - first) + (ptrdiff_t)f->number % (ptrdiff_t)width + (ptrdiff_t)width) % (ptrdiff_t)width;
    const uint8_t rolled = old[first + (size_t)turn];
    const uint8_t pair = code_from(r, old, c, c % 2 ? -1 : 1), away = old[mxi_fault_other(f, c, r->cols)];
    if (f->op == MX_FAULT_CODE_SWAP) row[c] = pair;
    if (f->op == MX_FAULT_CODE_COLUMN || f->op == MX_FAULT_CODE_COLUMN_XOR) row[c] = away;
    if (f->op == MX_FAULT_CODE_REVERSE) row[c] = code_from(r, old, c, (ptrdiff_t)(group - 1) - 2 * (ptrdiff_t)(c % group));
    if (f->op == MX_FAULT_CODE_SIGN_OF || f->op == MX_FAULT_CODE_SIGN_XOR) row[c] = (uint8_t)mxi_fault_with_sign(e, row[c], away & sign);
    if (f->op == MX_FAULT_CODE_SIGN_ROLLED) row[c] = (uint8_t)mxi_fault_with_sign(e, row[c], rolled & sign);
    if (f->op == MX_FAULT_CODE_SMEARED && c % 2 && old[c - 1] & sign) row[c] = (uint8_t)(2 * sign - 1);
    if (f->op == MX_FAULT_CODE_SIGN_OF_PAIR) row[c] = (uint8_t)mxi_fault_with_sign(e, row[c], pair & sign);
  }
}

/* A fault of the code that stands behind one that exchanges codes. */
static void store_later(const fault_run *r, const mx_fault *f, uint8_t *codes, size_t d, const uint32_t *scales) {
  for (size_t a = 0; a < r->across; a++) {
    fault_block b;
    mxi_fault_block(&b, r, d, a, scales[d * r->across + a]);
    for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
      for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++)
        if (mxi_fault_element_in(r, f, row, col))
          codes[row * r->cols + col] = (uint8_t)mxi_fault_element_stored(r, &b, f, row, col, codes[row * r->cols + col]);
  }
}

void mxi_fault_codes(const fault_run *r, uint8_t *codes, const uint32_t *scales, size_t first, size_t end) {
  if (!scales) scales = r->used;
  for (size_t d = first; d < r->down && d < end; d++) {
    for (size_t a = 0; a < r->across; a++) {
      fault_block b;
      mxi_fault_block(&b, r, d, a, scales[d * r->across + a]);
      for (size_t row = d * r->block_rows; row < r->rows && row < (d + 1) * r->block_rows; row++)
        for (size_t col = a * r->block_cols; col < r->cols && col < (a + 1) * r->block_cols; col++)
          codes[row * r->cols + col] = (uint8_t)mxi_fault_element(r, &b, row, col);
    }
    int exchanged = 0; /* what comes before the first exchange is in the codes already */
    for (size_t i = 0; i < r->n_faults; i++) {
      if (mxi_fault_stage(&r->faults[i]) != MX_STAGE_CODE) continue;
      const int now = mxi_fault_exchanges(r->faults[i].op);
      if (!now && exchanged) store_later(r, &r->faults[i], codes, d, scales);
      for (size_t row = d * r->block_rows; now && row < r->rows && row < (d + 1) * r->block_rows; row++)
        exchange(r, &r->faults[i], codes + row * r->cols, r->room.elements, row);
      exchanged |= now;
    }
  }
}

/* ---- layout */

static void move_block(const fault_run *r, uint8_t *to, const uint8_t *from, size_t d, size_t a, size_t from_d, size_t from_a) {
  for (size_t i = 0; i < r->block_rows; i++) {
    const size_t row = d * r->block_rows + i, other = from_d * r->block_rows + i;
    if (row >= r->rows || other >= r->rows) continue;
    for (size_t c = 0; c < r->block_cols; c++) {
      const size_t col = a * r->block_cols + c, from_col = from_a * r->block_cols + c;
      if (col < r->cols && from_col < r->cols) to[row * r->cols + col] = from[other * r->cols + from_col];
    }
  }
}

static int lay_out(const fault_run *r, const mx_fault *f, uint32_t *scales) {
  const size_t n = r->down * r->across, size = mx_layout_size((mx_layout)f->format, r->down, r->across);
  uint8_t *from = r->room.bytes, *to = r->room.bytes + n;
  if (size != n || r->plan.scale->bits > 8) return 0;
  for (int k = 0; k <= (f->op == MX_FAULT_LAYOUT_SWIZZLE_TWICE); k++) {
    for (size_t i = 0; i < n; i++) from[i] = (uint8_t)scales[i];
    mx_layout_pack(to, (mx_layout)f->format, from, r->down, r->across, 0);
    for (size_t d = 0; d < r->down; d++)
      for (size_t a = 0; a < r->across; a++)
        if (mxi_fault_block_in(r, f, d, a)) scales[d * r->across + a] = to[d * r->across + a];
  }
  return 1;
}

/* The scales column by column, read as rows. */
static void transpose_scales(const fault_run *r, const mx_fault *f, uint32_t *scales) {
  const size_t n = r->down * r->across;
  memcpy(r->room.blocks, scales, n * sizeof *scales);
  for (size_t i = 0; i < n; i++)
    if (mxi_fault_block_in(r, f, i / r->across, i % r->across)) scales[i] = r->room.blocks[i % r->down * r->across + i / r->down];
}

int mxi_fault_is_pitch(int op) {
  return op == MX_FAULT_LAYOUT_WRITTEN || op == MX_FAULT_LAYOUT_WRITTEN_ZERO || op == MX_FAULT_LAYOUT_READ || op == MX_FAULT_LAYOUT_READ_ZERO;
}

/* The scales of rows that are written n places apart, the next over the end of the last where that is too near, and read without a gap, or the reverse. */
static void at_pitch(const fault_run *r, const mx_fault *f, uint32_t *scales) {
  const size_t n = r->down * r->across, pitch = f->number >= 1 && f->number < MXI_NO_STEPS ? (size_t)f->number : r->across;
  const int written = f->op == MX_FAULT_LAYOUT_WRITTEN || f->op == MX_FAULT_LAYOUT_WRITTEN_ZERO,
            zero = f->op == MX_FAULT_LAYOUT_WRITTEN_ZERO || f->op == MX_FAULT_LAYOUT_READ_ZERO;
  const uint32_t one = zero ? 0 : (uint32_t)mx_encode(r->plan.scale, 1, &(mx_encoding){0}, 0);
  memcpy(r->room.blocks, scales, n * sizeof *scales);
  for (size_t k = 0; k < n; k++) {
    const size_t row = k / pitch < r->down ? k / pitch : r->down - 1, at = k - row * pitch;
    const size_t from = written ? row * r->across + at : k / r->across * pitch + k % r->across;
    const int none = written ? at >= r->across : from >= n;
    if (mxi_fault_block_in(r, f, k / r->across, k % r->across)) scales[k] = none ? one : r->room.blocks[from];
  }
}

/* The codes of each whole tile of n rows and columns with its rows and columns exchanged. */
static void transpose_codes(const fault_run *r, const mx_fault *f, uint8_t *codes) {
  const size_t n = f->number >= 1 ? (size_t)f->number : 1, rows = r->rows / n * n, cols = r->cols / n * n;
  memcpy(r->room.elements, codes, r->rows * r->cols);
  for (size_t row = 0; row < rows; row++)
    for (size_t col = 0; col < cols; col++)
      if (mxi_fault_element_in(r, f, row, col))
        codes[row * r->cols + col] = r->room.elements[(row / n * n + col % n) * r->cols + col / n * n + row % n];
}

/* Applies the faults by which blocks hold the contents of another place, or nothing. */
static void misplace(const fault_run *r, const mx_fault *f, uint8_t *codes, uint32_t *stored) {
  const int of_blocks = f->op == MX_FAULT_LAYOUT_BLOCK || f->op == MX_FAULT_LAYOUT_BLOCK_XOR;
  const int zero = f->op == MX_FAULT_LAYOUT_ZERO || f->op == MX_FAULT_LAYOUT_CODES_ZERO,
            scales = f->op != MX_FAULT_LAYOUT_CODES_ROW && f->op != MX_FAULT_LAYOUT_CODES_ROW_XOR && f->op != MX_FAULT_LAYOUT_CODES_ZERO;
  memcpy(r->room.blocks, stored, r->down * r->across * sizeof *stored);
  memcpy(r->room.elements, codes, r->rows * r->cols);
  for (size_t d = 0; d < r->down; d++)
    for (size_t a = 0; a < r->across; a++) {
      if (!mxi_fault_block_in(r, f, d, a)) continue;
      const size_t row = of_blocks ? d : mxi_fault_other(f, d, r->down), block = of_blocks ? mxi_fault_other(f, a, r->across) : a;
      if (zero) {
        for (size_t y = d * r->block_rows; y < r->rows && y < (d + 1) * r->block_rows; y++)
          for (size_t x = a * r->block_cols; x < r->cols && x < (a + 1) * r->block_cols; x++) codes[y * r->cols + x] = 0;
        if (scales) stored[d * r->across + a] = 0;
      } else {
        move_block(r, codes, r->room.elements, d, a, row, block);
        if (scales) stored[d * r->across + a] = r->room.blocks[row * r->across + block];
      }
    }
}

int mxi_fault_layout(const fault_run *r, uint8_t *codes, uint32_t *stored) {
  for (size_t i = 0; i < r->n_faults; i++) {
    const mx_fault *f = &r->faults[i];
    if (mxi_fault_stage(f) != MX_STAGE_LAYOUT) continue;
    if (f->op == MX_FAULT_LAYOUT_SCALES_BITS || f->op == MX_FAULT_LAYOUT_SCALES_TILED || f->op == MX_FAULT_LAYOUT_CODES_BITS) {
      if (!mxi_fault_by_bits(r, f, codes, stored)) return 0;
    } else if (f->op == MX_FAULT_LAYOUT_SCALES_TRANSPOSED)
      transpose_scales(r, f, stored);
    else if (mxi_fault_is_pitch(f->op))
      at_pitch(r, f, stored);
    else if (f->op == MX_FAULT_LAYOUT_CODES_TRANSPOSED)
      transpose_codes(r, f, codes);
    else if (f->op != MX_FAULT_LAYOUT_SWIZZLE && f->op != MX_FAULT_LAYOUT_SWIZZLE_TWICE)
      misplace(r, f, codes, stored);
    else if (!lay_out(r, f, stored))
      return 0;
  }
  return 1;
}

/* ---- a tensor */

/* Writes codes of one byte each into the tensor; a short last block is filled up as with zeros. */
static void pack(mx_tensor *t, const fault_run *r, const uint8_t *codes, int nibble, uint8_t *row) {
  const unsigned bits = r->plan.elem->bits;
  for (size_t i = 0; i < r->rows; i++) {
    memset(row, 0, t->cols_padded + 1);
    memcpy(row, codes + i * r->cols, r->cols);
    if (bits == 4)
      mx_pack4(t->codes + i * t->code_stride, row, t->cols_padded, nibble, r->block_cols);
    else
      memcpy(t->codes + i * t->code_stride, row, t->cols_padded);
  }
}

static void store_scales(mx_tensor *t, const fault_run *r, const uint32_t *scales) {
  const int repeated = t->scale_rows == t->rows && r->block_rows > 1 && r->block_cols > 1;
  for (size_t d = 0; d < t->scale_rows; d++)
    for (size_t a = 0; a < t->scale_cols; a++) {
      const uint32_t code = scales[(repeated ? d / r->block_rows : d) * r->across + a];
      for (size_t k = 0; k < t->scale_bytes; k++) t->scales[(d * t->scale_cols + a) * t->scale_bytes + k] = (uint8_t)(code >> 8 * k);
    }
}

int mxi_fault_is_down(const mx_fault *f) { return f->op == MX_FAULT_LAYOUT_DOWN || f->op == MX_FAULT_LAYOUT_DOWN_SCALES; }

/* Quantises the transposed matrix and turns it back. */
static mx_status quantize_down(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_fault *down,
                               const mx_fault *other, size_t n, mx_error *err) {
  mx_tensor t = {0};
  float *x = malloc((rows * cols + 1) * sizeof *x);
  uint8_t *codes = malloc(rows * cols + 1), *row = malloc(out->cols_padded + 1);
  mx_status status = x && codes && row ? mx_tensor_alloc(&t, cols, rows, spec) : MX_ERR_NOMEM;
  if (status) mx_fail(err, status, "%s", mx_status_text(status));
  for (size_t i = 0; i < rows * cols && !status; i++) x[i % cols * rows + i / cols] = src[i / cols * ld + i % cols];
  const size_t scales = t.scale_rows * t.scale_cols;
  if (!status) status = check_defined(spec, err); /* without another fault the other matrix is quantised as any is */
  if (!status && (!mxi_fault_is_everywhere(down) || scales != out->scale_rows * out->scale_cols || t.scale_bytes != out->scale_bytes))
    status = mx_fail(err, MX_ERR_CONFLICT, "fault: blocks down: everywhere, and of as many scales as along the rows");
  if (!status) status = mx_quantize_faulty(&t, x, cols, rows, rows, spec, other, n, err);
  for (size_t i = 0; i < rows * cols && !status; i++) codes[i] = (uint8_t)mx_code_at(&t, spec, i % cols, i / cols);
  for (size_t k = 0; k < scales && !status; k++) {
    const size_t from = down->op == MX_FAULT_LAYOUT_DOWN ? k % t.scale_rows * t.scale_cols + k / t.scale_rows : k;
    memcpy(out->scales + k * t.scale_bytes, t.scales + from * t.scale_bytes, t.scale_bytes);
  }
  if (!status) {
    size_t block_rows;
    fault_run r = {.rows = rows, .cols = cols, .plan.elem = mx_elem_format(spec->elem)};
    mx_spec_block(spec, rows, cols, &block_rows, &r.block_cols);
    pack(out, &r, codes, spec->nibble, row);
    out->has_tensor_scale = t.has_tensor_scale;
    out->tensor_scale = t.tensor_scale;
  }
  mx_tensor_free(&t);
  free(x);
  free(codes);
  free(row);
  return status;
}

mx_status mx_quantize_faulty(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_fault *faults,
                             size_t n, mx_error *err) {
  if (!out || !spec || (!src && rows && cols) || (!faults && n) || n > MX_FAULTS)
    return mx_fail(err, MX_ERR_ARG, "mx_quantize_faulty: NULL, or more than %d faults", MX_FAULTS);
  for (size_t i = 0; i < n; i++)
    if (!mx_fault_row_at(faults[i].op)) return mx_fail(err, MX_ERR_ARG, "mx_quantize_faulty: fault %zu is none", i);
  mx_status status = mx_spec_check(spec, err);
  if (status || !n || !rows || !cols) return status ? status : mx_quantize(out, src, rows, cols, ld, spec, NULL, err);
  mx_tensor want;
  if ((status = mx_tensor_layout(&want, rows, cols, spec))) return mx_fail(err, status, "%s", mx_status_text(status));
  if (want.rows != out->rows || want.cols != out->cols || want.code_stride != out->code_stride || want.scale_rows != out->scale_rows ||
      want.scale_cols != out->scale_cols)
    return mx_fail(err, MX_ERR_SHAPE, "out was allocated for another shape or spec");
  for (size_t i = 0; i < n; i++) {
    const mx_fault *other = &faults[n > 1 ? !i : 0]; /* of one fault there is no other, and n - 1 says so */
    if (n > 1 && mxi_fault_is_down(&faults[i]) && mxi_fault_is_down(other)) return mx_fail(err, MX_ERR_CONFLICT, "fault: blocks down, twice");
    if (mxi_fault_is_down(&faults[i])) return quantize_down(out, src, rows, cols, ld, spec, &faults[i], other, n - 1, err);
  }
  fault_run r;
  status = mxi_fault_open(&r, spec, src, rows, cols, ld, faults, n, err);
  uint8_t *codes = status ? NULL : malloc(rows * cols + 1), *row = status ? NULL : malloc(out->cols_padded + 1);
  uint32_t *stored = status ? NULL : malloc((r.down * r.across + 1) * sizeof *stored);
  if (!status && (!codes || !row || !stored)) status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
  if (!status && mxi_fault_scales(&r, stored)) status = mx_fail(err, MX_ERR_DATA, "a block holds a NaN or an Inf that the spec refuses");
  if (!status) {
    mxi_fault_codes(&r, codes, NULL, 0, SIZE_MAX);
    if (!mxi_fault_layout(&r, codes, stored))
      status = mx_fail(err, MX_ERR_CONFLICT,
                       "fault: the layout holds more bytes than the %zu x %zu scales of this tensor, or these are no bytes", r.down, r.across);
  }
  if (!status) {
    pack(out, &r, codes, spec->nibble, row);
    store_scales(out, &r, stored);
    out->has_tensor_scale = r.plan.has_tensor_scale;
    out->tensor_scale = r.plan.has_tensor_scale ? r.plan.tensor_scale : 1;
  }
  free(codes);
  free(row);
  free(stored);
  mxi_fault_close(&r);
  return status;
}
