/* Cutting samples into blocks; sets; scores. */
#include "verify/observe.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/random.h"

const float *observation_x(const observation *o, size_t sample, size_t *ld) {
  const mx_sample *s = &o->samples[sample];
  *ld = o->rotated ? s->cols : s->ld;
  return o->rotated ? o->rotated[sample] : s->x;
}

static size_t up(size_t n, size_t by) { return n / by + (n % by != 0); }

static uint32_t scale_seen(const observation *o, const mx_sample *s, size_t row, size_t col) {
  if (!s->scales) return 0;
  const size_t r = s->scale_rows == s->rows ? row : row / o->block_rows;
  uint32_t code = 0;
  memcpy(&code, (const uint8_t *)s->scales + (r * s->scale_cols + col / o->block_cols) * s->scale_bytes, s->scale_bytes);
  return code;
}

/* amax, NaN and Inf of a block. */
static block_at look(const observation *o, size_t sample, size_t row, size_t col) {
  const mx_sample *s = &o->samples[sample];
  size_t ld;
  const float *x = observation_x(o, sample, &ld);
  block_at b = {(uint32_t)sample, (uint32_t)row, (uint32_t)col, scale_seen(o, s, row, col), 0, BLOCK_PLAIN};
  int has_nan = 0, has_inf = 0;
  for (size_t r = row; r < row + o->block_rows && r < s->rows; r++)
    for (size_t c = col; c < col + o->block_cols && c < s->cols; c++) {
      const float a = fabsf(x[r * ld + c]);
      if (isnan(a))
        has_nan = 1;
      else if (isinf(a))
        has_inf = 1;
      else if (a > b.amax)
        b.amax = a;
    }
  b.kind = has_nan              ? BLOCK_NAN
           : has_inf            ? BLOCK_INF
           : b.amax == 0        ? BLOCK_ZERO
           : b.amax < 0x1p-100f ? BLOCK_SMALL
           : b.amax > 0x1p100f  ? BLOCK_LARGE
                                : BLOCK_PLAIN;
  return b;
}

/* Blocks at the ends of the codes seen are put aside: clamps act there. */
static void set_ends(observation *o) {
  const mx_format *f = mx_scale_format(o->formats.scale);
  uint32_t least = UINT32_MAX, largest = 0;
  for (size_t i = 0; i < o->n_blocks; i++) {
    const block_at *b = &o->blocks[i];
    if (b->kind > BLOCK_LARGE || mx_format_is_nan(f, b->scale)) continue;
    least = b->scale < least ? b->scale : least;
    largest = b->scale > largest ? b->scale : largest;
  }
  o->least_scale = least;
  o->largest_scale = largest;
  if (!o->samples[0].codes) return;
  size_t inside = 0;
  for (size_t i = 0; i < o->n_blocks; i++)
    inside += o->blocks[i].kind == BLOCK_PLAIN && o->blocks[i].scale > least && o->blocks[i].scale < largest;
  for (size_t i = 0; i < o->n_blocks; i++) {
    block_at *b = &o->blocks[i];
    if (b->kind != BLOCK_PLAIN) continue;
    const int is_nan = mx_format_is_nan(f, b->scale);
    if (b->scale == 0 || (inside && b->scale == least))
      b->kind = BLOCK_SMALL;
    else if (is_nan || b->scale == f->max_code || (inside && b->scale == largest))
      b->kind = BLOCK_LARGE;
  }
}

static mx_status rotate(observation *o) {
  const mx_spec *f = &o->formats;
  if (!f->had_size) return MX_OK;
  o->rotated = calloc(o->n_samples, sizeof *o->rotated);
  if (!o->rotated) return MX_ERR_NOMEM;
  for (size_t i = 0; i < o->n_samples; i++) {
    const mx_sample *s = &o->samples[i];
    o->rotated[i] = malloc((s->rows * s->cols + 1) * sizeof(float));
    if (!o->rotated[i]) return MX_ERR_NOMEM;
    mx_hadamard(o->rotated[i], s->cols, s->x, s->rows, s->cols, s->ld, f->had_size, f->had_sign, f->had_signs, f->seed);
  }
  return MX_OK;
}

static void choose_witnesses(observation *o);

mx_status observation_init(observation *o, const mx_sample *samples, size_t n, const mx_spec *formats, size_t block_rows, size_t block_cols) {
  *o = (observation){.samples = samples, .n_samples = n, .formats = *formats, .block_rows = block_rows, .block_cols = block_cols};
  o->facts = calloc(n, sizeof *o->facts);
  if (!o->facts || rotate(o)) return MX_ERR_NOMEM;
  size_t total = 0;
  for (size_t i = 0; i < n; i++) total += up(samples[i].rows, block_rows) * up(samples[i].cols, block_cols);
  o->blocks = malloc((total + 1) * sizeof *o->blocks);
  if (!o->blocks) return MX_ERR_NOMEM;
  for (size_t i = 0; i < n; i++) {
    size_t ld;
    const float *x = observation_x(o, i, &ld);
    mx_spec counted = {0}, skipped = {.scale_nan = MX_SCALE_NAN_IGNORE};
    o->facts[i].first_block = o->n_blocks;
    mx_tensor_amax(&o->facts[i].amax, x, samples[i].rows, samples[i].cols, ld, &counted, &(mx_exec){.n_threads = 1});
    mx_tensor_amax(&o->facts[i].amax_no_nan, x, samples[i].rows, samples[i].cols, ld, &skipped, &(mx_exec){.n_threads = 1});
    for (size_t r = 0; r < samples[i].rows; r += block_rows)
      for (size_t c = 0; c < samples[i].cols; c += block_cols) o->blocks[o->n_blocks++] = look(o, i, r, c);
  }
  set_ends(o);
  choose_witnesses(o);
  return MX_OK;
}

void observation_free(observation *o) {
  for (size_t i = 0; o->rotated && i < o->n_samples; i++) free(o->rotated[i]);
  free(o->rotated);
  free(o->blocks);
  free(o->facts);
  *o = (observation){0};
}

mx_status set_add(block_set *s, uint32_t block) {
  size_t at = s->n;
  while (at && s->index[at - 1] > block) at--;
  if (at && s->index[at - 1] == block) return MX_OK;
  if (s->n == s->room) {
    const size_t room = s->room ? 2 * s->room : 64;
    uint32_t *index = realloc(s->index, room * sizeof *index);
    if (!index) return MX_ERR_NOMEM;
    s->index = index;
    s->room = room;
  }
  memmove(s->index + at + 1, s->index + at, (s->n - at) * sizeof *s->index);
  s->index[at] = block;
  s->n++;
  return MX_OK;
}

void set_free(block_set *s) {
  free(s->index);
  *s = (block_set){0};
}

/* The tensor's largest magnitude as spec sees it. */
static float amax_for(const observation *o, size_t sample, const mx_spec *spec) {
  const float a = spec->scale_nan == MX_SCALE_NAN_IGNORE ? o->facts[sample].amax_no_nan : o->facts[sample].amax;
  return spec->flush == MX_SWITCH_ON && a < FLT_MIN ? 0 : a;
}

static int tensor_wide(const mx_spec *s) {
  return s->tensor_norm != MX_TENSOR_NORM_NONE || s->scale_nan == MX_SCALE_NAN_TENSOR || s->scale_inf == MX_SCALE_INF_TENSOR;
}

/* Same bits, NaNs being equal. */
static int same_value(float a, float b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return !memcmp(&a, &b, sizeof a);
}

/* What to compare a run with: rows of blocks of a set or of a sample. */
typedef struct place {
  size_t sample, row, col, height, width; /* valid part */
} place;

static int nan_scale(const mx_spec *spec, uint32_t code) {
  const mx_format *f = mx_scale_format(spec->scale);
  const uint32_t magnitude = f->sign_bits ? code & ~(1u << (f->bits - 1)) : code;
  return mx_format_is_nan(f, magnitude);
}

/* Two NaN codes, or two codes of a NaN that differ in its sign alone: which one a library gives depends on its processor. */
static int same_nan(const mx_format *f, uint32_t a, uint32_t b, float x) {
  const uint32_t sign = f->sign_bits ? 1u << (f->bits - 1) : 0;
  if (mx_format_is_nan(f, a & ~sign) && mx_format_is_nan(f, b & ~sign)) return 1;
  return isnan(x) && (a | sign) == (b | sign);
}

static uint32_t packed_code(const mx_tensor *t, unsigned bits, size_t row, size_t c) {
  const uint8_t *codes = t->codes + row * t->code_stride;
  return bits > 4 ? codes[c] : (uint32_t)(codes[c / 2] >> (c % 2 * 4) & 15);
}

/* One block of a run, at (row, col) of t, against what was seen at p. */
static score compare_block(const observation *o, const mx_spec *spec, const mx_tensor *t, const float *values, size_t row, size_t col,
                           place p) {
  const mx_sample *s = &o->samples[p.sample];
  score n = {0, 0, 0};
  if (!s->codes) {
    for (size_t r = 0; r < p.height; r++)
      for (size_t c = 0; c < p.width; c++)
        n.codes += !same_value(values[(row + r) * t->cols + col + c], s->values[(p.row + r) * s->cols + p.col + c]);
    return n;
  }
  const size_t at = (t->scale_rows == t->rows ? row : row / o->block_rows) * t->scale_cols + col / o->block_cols;
  const uint32_t seen = scale_seen(o, s, p.row, p.col), got = mx_scale_code_at(t, at);
  const int seen_nan = nan_scale(spec, seen);
  if (got != seen) *(seen_nan && nan_scale(spec, got) ? &n.nan_codes : &n.scales) = 1;
  const mx_format *f = mx_elem_format(spec->elem);
  size_t ld;
  const float *x = observation_x(o, p.sample, &ld);
  for (size_t r = 0; r < p.height; r++) {
    const uint8_t *codes = s->codes + (p.row + r) * s->cols + p.col;
    for (size_t c = 0; c < p.width; c++) {
      const uint32_t code = packed_code(t, f->bits, row + r, col + c);
      if (code == codes[c]) continue;
      const int soft = seen_nan || same_nan(f, code, codes[c], x[(p.row + r) * ld + p.col + c]);
      *(soft ? &n.nan_codes : &n.codes) += 1;
    }
  }
  return n;
}

/* Random integers that element (row, col) of a sample gets, as an array for sr.source=given. */
static uint32_t random_for(const mx_spec *spec, const mx_sample *s, size_t row, size_t col) {
  const uint64_t index = (uint64_t)row * s->cols + col;
  if (spec->sr_source == MX_SR_SOURCE_AMD_LFSR) {
    const uint32_t seed = mx_random(spec->seed, MX_STREAM_ELEMENT, index / 2);
    return (index % 2 ? mx_random_lfsr(seed) : seed) >> (9 + mx_elem_format(spec->elem)->man_bits);
  }
  return mx_random(spec->seed, MX_STREAM_ELEMENT, index) >> (32 - (spec->sr_bits ? spec->sr_bits : 16));
}

static void give_bits(mx_spec *run, uint32_t *bits) {
  if (run->sr_source == MX_SR_SOURCE_AMD_LFSR) {
    run->sr_bits = 23u - mx_elem_format(run->elem)->man_bits;
    run->sr_mode = MX_SR_FASTEST;
  }
  run->sr_source = MX_SR_SOURCE_GIVEN;
  run->given_bits = bits;
}

static place place_of(const observation *o, const block_at *b) {
  const mx_sample *s = &o->samples[b->sample];
  const size_t h = s->rows - b->row, w = s->cols - b->col;
  return (place){b->sample, b->row, b->col, h < o->block_rows ? h : o->block_rows, w < o->block_cols ? w : o->block_cols};
}

/* Blocks index[0 .. n) of one sample (of any, if the spec is not tensor-wide), one under the other. */
static score group_score(const block_set *set, const uint32_t *index, size_t n, const mx_spec *spec, uint8_t *wrong) {
  const observation *o = set->of;
  const size_t br = o->block_rows, bc = o->block_cols;
  score total = {0, 0, 0};
  mx_spec run = *spec;
  run.block_rows = (int)br;
  run.block_cols = (int)bc;
  run.had_size = 0;
  run.nibble = MX_NIBBLE_LOW_FIRST;
  float *x = calloc(n * br * bc + 1, sizeof *x), *values = o->samples[0].codes ? NULL : malloc((n * br * bc + 1) * sizeof *values);
  uint32_t *bits = run.elem_round == MX_ROUND_SR ? calloc(n * br * bc + 1, sizeof *bits) : NULL;
  mx_tensor t = {0};
  mx_status s = !x || (!values && !o->samples[0].codes) || (!bits && run.elem_round == MX_ROUND_SR) ? MX_ERR_NOMEM : MX_OK;
  for (size_t i = 0; i < n && !s; i++) {
    const block_at *b = &o->blocks[index[i]];
    const place p = place_of(o, b);
    size_t ld;
    const float *from = observation_x(o, b->sample, &ld);
    for (size_t r = 0; r < p.height; r++) {
      memcpy(x + (i * br + r) * bc, from + (p.row + r) * ld + p.col, p.width * sizeof *x);
      for (size_t c = 0; bits && c < p.width; c++) bits[(i * br + r) * bc + c] = random_for(spec, &o->samples[b->sample], p.row + r, p.col + c);
    }
  }
  if (bits) give_bits(&run, bits);
  if (!s) s = mx_tensor_alloc(&t, n * br, bc, &run);
  if (!s) {
    const mx_exec exec = {.n_threads = 1, .amax_known = 1, .amax = amax_for(o, o->blocks[index[0]].sample, spec)};
    s = mx_quantize(&t, x, n * br, bc, bc, &run, &exec, NULL);
  }
  if (!s && values) s = mx_dequantize(values, bc, &t, &run, &(mx_exec){.n_threads = 1});
  for (size_t i = 0; i < n; i++) {
    score one = {1, br * bc, 0};
    if (!s) one = compare_block(o, spec, &t, values, i * br, 0, place_of(o, &o->blocks[index[i]]));
    total.scales += one.scales;
    total.codes += one.codes;
    total.nan_codes += one.nan_codes;
    if (wrong && (one.scales || one.codes || one.nan_codes)) wrong[index[i]] = 1;
  }
  mx_tensor_free(&t);
  free(x);
  free(values);
  free(bits);
  return total;
}

score set_score(const block_set *set, const mx_spec *spec, uint8_t *wrong, uint64_t limit) {
  const observation *o = set->of;
  score total = {0, 0, 0};
  const int apart = tensor_wide(spec);
  for (size_t i = 0, end; i < set->n; i = end) {
    end = i + 1;
    while (end < set->n && end - i < 256 && (!apart || o->blocks[set->index[end]].sample == o->blocks[set->index[i]].sample)) end++;
    const score one = group_score(set, set->index + i, end - i, spec, wrong);
    total.scales += one.scales;
    total.codes += one.codes;
    total.nan_codes += one.nan_codes;
    if (limit && score_total(total) > limit) break;
  }
  return total;
}

/* One sample whole, as it lies. */
static score sample_score(const observation *o, const mx_spec *spec, size_t i, uint8_t *wrong, int n_threads) {
  const mx_sample *s = &o->samples[i];
  score total = {0, 0, 0};
  size_t ld, block = o->facts[i].first_block;
  const float *x = observation_x(o, i, &ld);
  mx_spec run = *spec;
  mx_tensor t = {0};
  run.block_rows = (int)o->block_rows;
  run.block_cols = (int)o->block_cols;
  run.had_size = 0;
  run.nibble = MX_NIBBLE_LOW_FIRST;
  float *values = s->codes ? NULL : malloc((s->rows * s->cols + 1) * sizeof *values);
  const mx_exec exec = {.n_threads = n_threads, .amax_known = 1, .amax = amax_for(o, i, spec)};
  mx_status status = mx_tensor_alloc(&t, s->rows, s->cols, &run);
  if (!status) status = mx_quantize(&t, x, s->rows, s->cols, ld, &run, &exec, NULL);
  if (!status && values) status = mx_dequantize(values, s->cols, &t, &run, &exec);
  for (size_t r = 0; r < s->rows; r += o->block_rows)
    for (size_t c = 0; c < s->cols; c += o->block_cols, block++) {
      const place p = place_of(o, &o->blocks[block]);
      score one = {1, p.height * p.width, 0};
      if (!status) one = compare_block(o, spec, &t, values, r, c, p);
      total.scales += one.scales;
      total.codes += one.codes;
      total.nan_codes += one.nan_codes;
      if (wrong) wrong[block] = one.scales || one.codes || one.nan_codes;
    }
  mx_tensor_free(&t);
  free(values);
  return total;
}

/* Many small samples run beside each other; a large one uses the threads itself. */
score full_score(const observation *o, const mx_spec *spec, uint8_t *wrong, int n_threads) {
  uint64_t scales = 0, codes = 0, nan_codes = 0;
  const int many = o->n_samples > 1;
#pragma omp parallel for schedule(dynamic, 8) num_threads(many ? n_threads : 1) reduction(+ : scales, codes, nan_codes)
  for (size_t i = 0; i < o->n_samples; i++) {
    const score one = sample_score(o, spec, i, wrong, many ? 1 : n_threads);
    scales += one.scales;
    codes += one.codes;
    nan_codes += one.nan_codes;
  }
  return (score){scales, codes, nan_codes};
}

static int tensor_scale_wrong(const observation *o, const mx_spec *spec, size_t sample) {
  const mx_sample *s = &o->samples[sample];
  float got = 1;
  if (!s->has_tensor_scale) return 0;
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) return s->tensor_scale != 1;
  return mx_tensor_scale(&got, amax_for(o, sample, spec), spec) || !same_value(got, s->tensor_scale);
}

uint64_t tensor_scales_wrong(const observation *o, const mx_spec *spec, int all) {
  uint64_t n = 0;
  if (all)
    for (size_t i = 0; i < o->n_samples; i++) n += (uint64_t)tensor_scale_wrong(o, spec, i);
  else
    for (size_t i = 0; i < o->n_witnesses; i++) n += (uint64_t)tensor_scale_wrong(o, spec, o->witness[i]);
  return n;
}

static void choose_witnesses(observation *o) {
  enum { MOST = sizeof o->witness / sizeof o->witness[0] };
  for (size_t i = 0; i < o->n_samples && o->n_witnesses < MOST; i++) {
    int known = !isfinite(o->facts[i].amax) || o->facts[i].amax < 0x1p-100f || o->facts[i].amax > 0x1p100f;
    for (size_t k = 0; k < o->n_witnesses && !known; k++) known = same_value(o->facts[i].amax, o->facts[o->witness[k]].amax);
    if (!known) o->witness[o->n_witnesses++] = (uint32_t)i;
  }
}
