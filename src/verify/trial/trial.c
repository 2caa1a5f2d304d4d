/* Runs specs on chosen blocks by the scalar rules. */
#include "verify/trial/trial.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/block/select.h"
#include "verify/trial/memo.h"

int mxi_nan_scale(const mx_format *f, uint32_t code) { return mx_format_is_nan(f, f->sign_bits ? code & ~(1u << (f->bits - 1)) : code); }

int mxi_same_nan(const mx_format *f, uint32_t a, uint32_t b, float x) {
  const uint32_t sign = f->sign_bits ? 1u << (f->bits - 1) : 0;
  if (mx_format_is_nan(f, a & ~sign) && mx_format_is_nan(f, b & ~sign)) return 1;
  return isnan(x) && (a | sign) == (b | sign);
}

/* ---- a block under a plan */

typedef struct cell {
  const observation *o;
  const block_at *b;
  const float *x; /* its first element */
  size_t ld, rows, cols, n_cols /* of the tensor */;
  uint64_t index; /* of its first element */
  uint64_t key;   /* of the plan, for the memo; 0: not kept */
  double most;    /* the largest element */
} cell;

static void cell_of(cell *c, const observation *o, const block_at *b) {
  size_t ld;
  const float *x = mxi_observation_x(o, b->sample, &ld);
  *c = (cell){.o = o, .b = b, .x = x + b->row * ld + b->col, .ld = ld, .n_cols = o->samples[b->sample].cols};
  mxi_observation_extent(o, b, &c->rows, &c->cols);
  c->index = (uint64_t)b->row * c->n_cols + b->col;
}

static float flushed(const mx_plan *p, float x) { return p->spec.flush == MX_SWITCH_ON && fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

static mx_block_stats stats_of(const mx_plan *p, const block_at *b) {
  mx_block_stats s = b->stats;
  if (p->spec.flush == MX_SWITCH_ON && s.amax_finite < FLT_MIN) {
    s.amax_finite = 0;
    if (!s.has_inf) s.amax = 0;
  }
  return s;
}

static uint64_t block_index(const observation *o, const block_at *b) {
  const size_t cols = o->samples[b->sample].cols, across = cols / o->block_cols + (cols % o->block_cols != 0);
  return (uint64_t)(b->row / o->block_rows) * across + b->col / o->block_cols;
}

mx_status mxi_trial_plan(mx_plan *p, const observation *o, const mx_spec *spec) {
  mx_spec run = *spec;
  run.block_rows = (int)o->block_rows;
  run.block_cols = (int)o->block_cols;
  run.had_size = 0;
  run.nibble = MX_NIBBLE_LOW_FIRST;
  if (run.input_dtype != o->formats.input_dtype) return MX_ERR_CONFLICT; /* x has been through another one */
  if (o->formats.had_size) {
    if (run.flush != o->formats.flush) return MX_ERR_CONFLICT;
    run.flush = MX_SWITCH_OFF; /* done before the rotation */
  }
  return mxi_plan_init(p, &run, o->samples[0].rows, o->samples[0].cols, NULL);
}

/* Error of a candidate of select=foursix: the whole block, filled up with +0. */
static float error_of(const mx_plan *p, const cell *c, const mx_block_scale *scale, float *values, uint32_t *codes) {
  const size_t n = c->o->block_cols;
  const mx_spec *s = &p->spec;
  float error = 0, amax = p->vars[MX_VAR_A], target = (float)p->target;
  uint32_t bits[2];
  memcpy(&bits[0], &amax, sizeof amax);
  memcpy(&bits[1], &target, sizeof target);
  uint64_t key = mxi_hash_with(mxi_memo_key_of_seen(mxi_memo_key_of_scale(c->key, p, scale), p, MEMO_ALL), (uint64_t)bits[0] << 32 | bits[1]);
  key = mxi_hash_with(key, (uint64_t)(s->select_error * 2 + s->select_sum) << 32 | (uint32_t)(c->b - c->o->blocks));
  memo_entry *kept = c->key ? mxi_memo_at(c->o->memo, key) : NULL;
  if (kept && kept->key == key) return kept->error;
  for (size_t r = 0; r < c->rows; r++) {
    for (size_t i = 0; i < n; i++) {
      values[i] = i < c->cols ? flushed(p, c->x[r * c->ld + i]) : 0;
      codes[i] = mxi_element_code(p, scale, values[i], c->index + r * c->n_cols + i);
    }
    error = mxi_candidate_error(p, scale, error, values, codes, n);
  }
  if (kept) *kept = (memo_entry){.key = key, .error = error};
  return error;
}

/* The scale of a block; 1 if its code is not the one seen. Elements are then judged by the code seen. */
static int scale_wrong(mx_block_scale *out, const mx_plan *p, const cell *c, int how) {
  const block_at *b = c->b;
  const mx_block_stats st = stats_of(p, b);
  const uint64_t index = block_index(c->o, b);
  if (!(how & 2)) {
    uint32_t four;
    if (mxi_block_scale_code(&out->code, p, &st, 0, index)) return 1;
    if (out->code == b->scale) return 0;
    return p->spec.select != MX_SELECT_FOURSIX || mxi_block_scale_code(&four, p, &st, 1, index) || four != b->scale;
  }
  if (mxi_block_scale_find(out, p, &st, 0, index)) return 1;
  if (p->spec.select == MX_SELECT_FOURSIX) {
    mx_block_scale four;
    if (!mxi_block_scale_find(&four, p, &st, 1, index) && four.code != out->code) {
      if (how & LOOK_EITHER) { /* which one wins depends on the draws */
        if (four.code == b->scale) *out = four;
        return out->code != b->scale;
      }
      const size_t n = c->o->block_cols;
      float *values = noted(malloc((n + 1) * sizeof *values), c->o->lack);
      uint32_t *codes = noted(malloc((n + 1) * sizeof *codes), c->o->lack);
      const int wins = values && codes && error_of(p, c, &four, values, codes) < error_of(p, c, out, values, codes);
      free(values);
      free(codes);
      const mx_block_scale other = wins ? *out : four;
      if (wins) *out = four;
      if (out->code != b->scale && other.code == b->scale) {
        *out = other;
        return 1;
      }
    }
  }
  return out->code != b->scale;
}

/* Scales become the lower neighbour (0) or the upper one (1) of their number, or are drawn again (2). */
static void set_neighbour(mx_plan *p, int which) {
  static const int rules[3][2] = {{MX_SCALE_ROUND_DOWN, MX_ROUND_RTZ}, {MX_SCALE_ROUND_UP, MX_ROUND_RTP}, {MX_SCALE_ROUND_SR, MX_ROUND_SR}};
  p->spec.scale_round = rules[which][0];
  p->scale_encode.round = rules[which][1];
}

/* If the seed is not known, the scale may be either neighbour. */
static int scale_wrong_leniently(mx_block_scale *out, mx_plan *p, const cell *c, int how) {
  int wrong = 1;
  for (int i = 0; i < 2 && wrong; i++) {
    set_neighbour(p, i);
    wrong = scale_wrong(out, p, c, how);
  }
  set_neighbour(p, 2);
  return wrong;
}

static uint32_t code_by(mx_plan *p, const mx_block_scale *scale, float x, double y, uint64_t index, int round) {
  p->spec.elem_round = p->encode.round = round;
  const uint32_t code = mxi_element_code_of(p, scale, x, y, index);
  p->spec.elem_round = p->encode.round = MX_ROUND_SR;
  return code;
}

/* If the seed is not known, the scale may be either neighbour, and the elements are those of the one that was seen. */
static int hif4_block(uint8_t codes[64], uint32_t *scale, mx_plan *p, const cell *c, const float *x, int how) {
  uint8_t micro[3];
  const uint64_t index = block_index(c->o, c->b);
  if (!(how & LOOK_LENIENT) || p->spec.scale_round != MX_SCALE_ROUND_SR) return mxi_hif4_block(codes, scale, micro, p, x, c->cols, index);
  int refused = 0;
  for (int i = 0; i < 2 && !refused && (!i || *scale != c->b->scale); i++) {
    set_neighbour(p, i);
    refused = mxi_hif4_block(codes, scale, micro, p, x, c->cols, index);
  }
  set_neighbour(p, 2);
  return refused;
}

static score hif4_score(mx_plan *p, const cell *c, const set_item *item, int how) {
  uint8_t codes[64];
  uint32_t scale;
  float x[64];
  score n = {0, 0, 0};
  for (size_t i = 0; i < c->cols; i++) x[i] = flushed(p, c->x[i]);
  if (hif4_block(codes, &scale, p, c, x, how)) return (score){1, 1, 0};
  const int seen_nan = mxi_nan_scale(p->scale, c->b->scale);
  if (scale != c->b->scale) *(seen_nan && mxi_nan_scale(p->scale, scale) ? &n.nan_codes : &n.scales) = 1;
  const uint8_t *seen = c->o->samples[c->b->sample].codes + c->index;
  for (size_t i = 0; i < item->n && how & 2; i++) {
    const uint32_t at = item->look[i];
    if (codes[at] != seen[at]) *(seen_nan || mxi_same_nan(p->elem, codes[at], seen[at], x[at]) ? &n.nan_codes : &n.codes) += 1;
  }
  return n;
}

static void mix(uint64_t *print, uint64_t code) {
  if (print) *print = (*print ^ code) * 0x9E3779B97F4A7C15u;
}

/* Which of zero_sign, overflow and saturate_to can matter to an element. With the scanning roundings none can; a code that is made from other
 * codes may see all of them. */
static unsigned sees(const mx_plan *p, const cell *c, const mx_block_scale *scale, double y, uint32_t code) {
  if (scale->how == MX_BY_CHAIN && p->chain->again.n) return MEMO_ALL;
  if (p->spec.elem_round == MX_ROUND_SCAN_X || p->spec.elem_round == MX_ROUND_SCAN_Y) return 0;
  if (y == 0) return MEMO_ZERO;
  const int to_zero = y < 0 && !(code & ((1u << (p->elem->bits - p->elem->sign_bits)) - 1));
  return (to_zero ? MEMO_TO_ZERO : 0u) | (fabs(y) > c->most ? MEMO_BEYOND : 0u);
}

/* Compares element (r, c) of a block: 0 as seen, 1 a NaN with another code, 2 wrong. seen_of (may be NULL) collects MEMO_*. */
static int element_wrong(mx_plan *p, const cell *c, const mx_block_scale *scale, size_t at, int how, uint64_t *print, unsigned *seen_of) {
  const size_t r = at / c->o->block_cols, k = at % c->o->block_cols;
  const float x = flushed(p, c->x[r * c->ld + k]);
  const uint64_t index = c->index + r * c->n_cols + k;
  const uint32_t seen = c->o->samples[c->b->sample].codes[index];
  const double y = mxi_scaled_value(p, scale, x);
  if (p->spec.elem_round == MX_ROUND_SR && how & LOOK_LENIENT) {
    if (seen_of) *seen_of = MEMO_ALL;
    if (code_by(p, scale, x, y, index, MX_ROUND_RTP) == seen || code_by(p, scale, x, y, index, MX_ROUND_RTN) == seen) return 0;
    return 2;
  }
  const uint32_t code = mxi_element_code_of(p, scale, x, y, index);
  if (seen_of) *seen_of |= sees(p, c, scale, y, code);
  mix(print, code);
  return code == seen ? 0 : mxi_same_nan(p->elem, code, seen, x) ? 1 : 2;
}

/* A plan's tensor-level numbers belong to one sample. */
typedef struct sample_turn {
  uint32_t sample;
  uint64_t key; /* of mxi_memo_key_of_plan() */
} sample_turn;
static const sample_turn FIRST_TURN = {UINT32_MAX, 0};

static void plan_sample(mx_plan *p, const observation *o, uint32_t sample, sample_turn *at) {
  if (at->sample == sample || !(mxi_plan_needs_amax(p) || at->sample == UINT32_MAX)) return;
  p->tensor_nan = 0;
  mxi_plan_set_amax(p, mxi_observation_amax(o, sample, &p->spec));
  *at = (sample_turn){sample, mxi_memo_key_of_plan(p)};
}

/* Counts wrong ones among the chosen elements of a block under its scale. What was found before is used again if nothing that the elements see has
 * changed since. `already` is what is wrong without them. */
static memo_entry elements_score(mx_plan *p, const cell *c, const mx_block_scale *scale, const set_item *item, int how, uint64_t already,
                                 uint64_t room) {
  memo *m = c->o->memo;
  const uint64_t key =
      mxi_hash_with(mxi_memo_key_of_scale(c->key, p, scale), (uint64_t)item->block << 32 | item->n << 8 | (unsigned)(how & LOOK_LENIENT));
  memo_entry *what = mxi_memo_at(m, key), *kept = NULL, now = {0};
  const int known = what && what->key == key;
  if (what) { /* until it is known what they depend on, everything counts */
    now.key = mxi_memo_key_of_seen(key, p, known ? what->sees : MEMO_ALL);
    kept = mxi_memo_at(m, now.key);
    if (kept->key == now.key && (!kept->some || already + kept->codes > room)) return *kept;
  }
  const int seen_nan = mxi_nan_scale(p->scale, c->b->scale);
  uint32_t i = 0;
  unsigned seen_of = 0;
  for (; i < item->n && already + now.codes <= room; i++) {
    const int bad = element_wrong(p, c, scale, item->look[i], how, &now.print, &seen_of);
    if (bad) *(seen_nan || bad == 1 ? &now.nan_codes : &now.codes) += 1;
  }
  now.some = i < item->n;
  if (what && !known && !now.some) {
    *what = (memo_entry){.key = key, .sees = seen_of};
    now.key = mxi_memo_key_of_seen(key, p, seen_of);
    kept = mxi_memo_at(m, now.key);
  }
  if (kept) *kept = now;
  return now;
}

static score item_score(mx_plan *p, uint64_t plan_key, const observation *o, const set_item *item, int how, uint64_t room, uint64_t *print) {
  const block_at *b = &o->blocks[item->block];
  cell c;
  cell_of(&c, o, b);
  c.key = plan_key;
  c.most = mx_format_max(p->elem);
  if (p->spec.scale_rule == MX_SCALE_RULE_HIF4) return hif4_score(p, &c, item, how);
  score n = {0, 0, 0};
  mx_block_scale scale;
  const int lenient = how & LOOK_LENIENT && p->spec.scale_round == MX_SCALE_ROUND_SR;
  if (lenient || (how & LOOK_LENIENT && p->spec.elem_round == MX_ROUND_SR)) how |= LOOK_EITHER;
  const int wrong = lenient ? scale_wrong_leniently(&scale, p, &c, how) : scale_wrong(&scale, p, &c, how);
  const int seen_nan = mxi_nan_scale(p->scale, b->scale);
  mix(print, scale.code);
  if (wrong) *(seen_nan && mxi_nan_scale(p->scale, scale.code) ? &n.nan_codes : &n.scales) = 1;
  if (!(how & 2) || score_total(n) > room) return n;
  if (wrong && scale.code != b->scale && scale.how != MX_AS_IS) mxi_block_scale_given(&scale, p, b->scale);
  const memo_entry now = elements_score(p, &c, &scale, item, how, score_total(n), room);
  mix(print, now.print);
  n.codes += now.codes;
  n.nan_codes += now.nan_codes;
  return n;
}

static score values_score(const block_set *set, const mx_spec *spec, uint8_t *wrong);

score mxi_set_score_print(const block_set *s, const mx_spec *spec, int how, uint64_t limit, uint8_t *wrong, uint64_t *print) {
  const observation *o = s->of;
  mx_plan p;
  score total = {0, 0, 0};
  if (!o->samples[0].codes) return values_score(s, spec, wrong);
  if (mxi_trial_plan(&p, o, spec)) return score_worst();
  sample_turn turn = FIRST_TURN;
  size_t *against =
      limit && !wrong && !print ? mxi_memo_against(o->memo, s->at) : NULL; /* the block on which a spec fails most is tried first */
  const size_t first = against && *against < s->n ? *against : 0;
  for (size_t k = 0; k < s->n; k++) {
    const size_t i = !k ? first : k <= first ? k - 1 : k;
    plan_sample(&p, o, o->blocks[s->at[i].block].sample, &turn);
    const score one = item_score(&p, turn.key, o, &s->at[i], how, limit ? limit - score_total(total) : UINT64_MAX, print);
    if (wrong) wrong[i] = !score_clean(one);
    total = score_sum(total, one);
    if (!limit || score_total(total) <= limit) continue;
    if (against) *against = i;
    break;
  }
  return total;
}

score mxi_set_score(const block_set *s, const mx_spec *spec, int how, uint64_t limit, uint8_t *wrong) {
  return mxi_set_score_print(s, spec, how, limit, wrong, NULL);
}

int mxi_seed_trial_open(seed_trial *t, const block_set *set, const mx_spec *spec) {
  t->set = set;
  t->sample = UINT32_MAX;
  return !mxi_trial_plan(&t->plan, set->of, spec);
}

int mxi_seed_trial_fits(seed_trial *t, uint64_t seed) {
  const observation *o = t->set->of;
  mx_block_scale scale;
  sample_turn turn = {t->sample, 0};
  t->plan.spec.seed = seed;
  for (size_t i = 0; i < t->set->n; i++) {
    cell c;
    cell_of(&c, o, &o->blocks[t->set->at[i].block]);
    plan_sample(&t->plan, o, c.b->sample, &turn);
    t->sample = turn.sample;
    if (scale_wrong(&scale, &t->plan, &c, LOOK_SCALES) &&
        !(mxi_nan_scale(t->plan.scale, c.b->scale) && mxi_nan_scale(t->plan.scale, scale.code)))
      return 0;
  }
  return 1;
}

int mxi_seed_trial_scale(uint32_t *code, seed_trial *t, size_t i, uint64_t seed) {
  const observation *o = t->set->of;
  const block_at *b = &o->blocks[t->set->at[i].block];
  const mx_block_stats st = stats_of(&t->plan, b);
  sample_turn turn = {t->sample, 0};
  t->plan.spec.seed = seed;
  plan_sample(&t->plan, o, b->sample, &turn);
  t->sample = turn.sample;
  return !mxi_block_scale_code(code, &t->plan, &st, 0, block_index(o, b));
}

void mxi_set_wrong_codes(const block_set *s, const mx_spec *spec, uint32_t scales[256], uint32_t codes[256]) {
  const observation *o = s->of;
  const mx_format *f = mx_elem_format(o->formats.elem);
  mx_plan p;
  sample_turn turn = FIRST_TURN;
  if (!o->samples[0].codes || spec->scale_rule == MX_SCALE_RULE_HIF4 || mxi_trial_plan(&p, o, spec)) return;
  for (size_t i = 0; i < s->n; i++) {
    const block_at *b = &o->blocks[s->at[i].block];
    mx_block_scale scale;
    cell c;
    cell_of(&c, o, b);
    plan_sample(&p, o, b->sample, &turn);
    const int wrong = scale_wrong(&scale, &p, &c, LOOK_BOTH);
    if (wrong && b->scale < 256) scales[b->scale]++;
    if (wrong && scale.code != b->scale && scale.how != MX_AS_IS) mxi_block_scale_given(&scale, &p, b->scale);
    for (uint32_t k = 0; k < s->at[i].n; k++) {
      const size_t at = s->at[i].look[k], r = at / o->block_cols, col = at % o->block_cols;
      if (!element_wrong(&p, &c, &scale, at, LOOK_BOTH, NULL, NULL)) continue;
      codes[o->samples[b->sample].codes[c.index + r * c.n_cols + col] & ((1u << (f->bits - f->sign_bits)) - 1)]++;
    }
  }
}

score mxi_scales_score(const observation *o, const mx_spec *spec, unsigned classes, int how, uint8_t *wrong) {
  mx_plan p;
  score total = {0, 0, 0};
  if (mxi_trial_plan(&p, o, spec)) return score_worst();
  sample_turn turn = FIRST_TURN;
  for (size_t i = 0; i < o->n_blocks; i++) {
    if (wrong) wrong[i] = 0;
    if (!(classes >> o->blocks[i].kind & 1)) continue;
    const set_item item = {.block = (uint32_t)i};
    plan_sample(&p, o, o->blocks[i].sample, &turn);
    const score one = item_score(&p, turn.key, o, &item, how & ~2, UINT64_MAX, NULL);
    if (wrong) wrong[i] = one.scales != 0;
    total = score_sum(total, one);
  }
  return total;
}

void mxi_set_item_look_at(set_item *item, uint32_t at) {
  for (uint32_t i = 0; i < item->n; i++)
    if (item->look[i] == at) return;
  if (item->n < LOOKED) item->look[item->n++] = at;
}

void mxi_set_item_add_wrong(set_item *item, const observation *o, const mx_spec *spec) {
  mx_plan p;
  sample_turn turn = FIRST_TURN;
  uint32_t added = 0;
  mx_block_scale scale;
  cell c;
  cell_of(&c, o, &o->blocks[item->block]);
  if (mxi_trial_plan(&p, o, spec) || spec->scale_rule == MX_SCALE_RULE_HIF4) return;
  plan_sample(&p, o, c.b->sample, &turn);
  if (scale_wrong(&scale, &p, &c, LOOK_BOTH) && scale.code != c.b->scale && scale.how != MX_AS_IS)
    mxi_block_scale_given(&scale, &p, c.b->scale);
  for (size_t k = 0; k < c.rows * c.cols && added < 8; k++) {
    const size_t at = k / c.cols * o->block_cols + k % c.cols;
    if (!element_wrong(&p, &c, &scale, at, 0, NULL, NULL)) continue;
    const uint32_t before = item->n;
    mxi_set_item_look_at(item, (uint32_t)at);
    added += item->n != before;
  }
}

/* ---- values alone: whole blocks by mx_quantize(), one under the other */

static uint64_t stacked_score(const block_set *set, size_t first, size_t n, const mx_spec *spec, uint8_t *wrong) {
  const observation *o = set->of;
  const size_t br = o->block_rows, bc = o->block_cols;
  uint64_t total = 0;
  mx_spec run = *spec;
  run.block_rows = (int)br;
  run.block_cols = (int)bc;
  run.had_size = 0;
  if (o->formats.had_size) run.flush = MX_SWITCH_OFF;
  run.nibble = MX_NIBBLE_LOW_FIRST;
  float *x = noted(calloc(n * br * bc + 1, sizeof *x), o->lack), *values = noted(malloc((n * br * bc + 1) * sizeof *values), o->lack);
  mx_tensor t = {0};
  mx_status s = !x || !values ? MX_ERR_NOMEM : MX_OK;
  for (size_t i = 0; i < n && !s; i++) {
    cell c;
    cell_of(&c, o, &o->blocks[set->at[first + i].block]);
    for (size_t r = 0; r < c.rows; r++) memcpy(x + (i * br + r) * bc, c.x + r * c.ld, c.cols * sizeof *x);
  }
  if (!s) s = mx_tensor_alloc(&t, n * br, bc, &run);
  if (!s) {
    const float amax = mxi_observation_amax(o, o->blocks[set->at[first].block].sample, spec);
    s = mx_quantize(&t, x, n * br, bc, bc, &run, &(mx_exec){.n_threads = 1, .amax_known = 1, .amax = amax}, NULL);
  }
  if (!s) s = mx_dequantize(values, bc, &t, &run, &(mx_exec){.n_threads = 1});
  for (size_t i = 0; i < n; i++) {
    uint64_t bad = s ? br * bc : 0;
    cell c;
    cell_of(&c, o, &o->blocks[set->at[first + i].block]);
    const float *seen = o->samples[c.b->sample].values + c.index;
    for (size_t r = 0; r < c.rows && !s; r++)
      for (size_t k = 0; k < c.cols; k++) bad += !same_value(values[(i * br + r) * bc + k], seen[r * c.n_cols + k]);
    total += bad;
    if (wrong) wrong[first + i] = bad != 0;
  }
  noted_status(s, o->lack);
  mx_tensor_free(&t);
  free(x);
  free(values);
  return total;
}

static score values_score(const block_set *set, const mx_spec *spec, uint8_t *wrong) {
  const observation *o = set->of;
  score total = {0, 0, 0};
  const int wide = spec->tensor_norm != MX_TENSOR_NORM_NONE || spec->scale_nan == MX_SCALE_NAN_TENSOR || spec->scale_inf == MX_SCALE_INF_TENSOR;
  if (mx_spec_check(spec, NULL)) return score_worst();
  for (size_t i = 0, end; i < set->n; i = end) {
    end = i + 1;
    while (end < set->n && end - i < 256 && (!wide || o->blocks[set->at[end].block].sample == o->blocks[set->at[i].block].sample)) end++;
    total.codes += stacked_score(set, i, end - i, spec, wrong);
  }
  return total;
}
