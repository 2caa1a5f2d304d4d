/* Finds what a kernel does, whatever the order in which its files hold codes and scales. */
#include "cli/verify/find.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an answer leaves unexplained; if it names a bug, what that bug leaves unexplained. */
static uint64_t wrong(const mx_identity *id) {
  if (id->bug.name) return 4 * id->bug.scales + id->bug.codes + id->bug.tensor_scales;
  return 4 * id->scales_differ + id->codes_differ + id->nan_codes_differ + id->values_differ + id->tensor_scales_differ;
}

/* Another packing is the answer only if it is exact or leaves far less unexplained: some order always leaves a little less than another. */
static int is_better(const mx_identity *other, const mx_identity *id) {
  if (other->exact || id->exact) return other->exact > id->exact; /* a spec is a better answer than a bug */
  return !wrong(other) ? wrong(id) != 0 : 4 * wrong(other) < wrong(id);
}

/* Another packing is tried only if codes are wrong everywhere: it cannot explain a few wrong ones. */
static int mostly_wrong(const mx_identity *id) {
  if (id->stochastic) return 0;
  return (id->codes_differ + id->values_differ) * 8 > id->n_codes + id->n_values || id->scales_differ * 8 > id->n_scales;
}

/* The same of the codes alone: the order of nibbles has nothing to do with the scales. */
static int codes_wrong(const mx_identity *id) {
  return !id->stochastic && (id->codes_differ + id->values_differ) * 8 > id->n_codes + id->n_values;
}

/* A bug that gives every byte. */
static int is_told(const mx_identity *id) { return id->bug.name && !(id->bug.codes || id->bug.scales || id->bug.tensor_scales); }
/* May the same bytes be a plain kernel's whose codes are packed in another order? Not if faults are told, none of which moves codes. */
static int may_be_packing(const mx_identity *id) {
  int moves = !is_told(id) || !id->bug.n_faults;
  for (size_t i = 0; i < id->bug.n_faults; i++) {
    const int op = id->bug.fault[i].op;
    moves |= op == MX_FAULT_CODE_SWAP || op == MX_FAULT_CODE_COLUMN || op == MX_FAULT_CODE_COLUMN_XOR || op == MX_FAULT_CODE_REVERSE ||
             mx_fault_row_at(op)->stage == MX_STAGE_LAYOUT;
  }
  return moves;
}
/* An answer that another packing would explain better: codes, or scales, that stand in another order. */
static int is_order(const mx_identity *id) { return is_told(id) && !strcmp(id->bug.name, "another order"); }

/* mx_identify() of one way to read the samples: that it has no answer may be an answer, that memory is short is none, and is remembered. */
static mx_status attempt(mx_identity *id, samples *s, const mx_sample *at, const mx_identify_options *o, mx_error *err) {
  const mx_status status = mx_identify(id, at, s->n, o, err);
  s->no_memory |= status == MX_ERR_NOMEM;
  return status;
}

/* How closely the codes of scales follow the magnitudes of their blocks, whatever the rule is: the square of the correlation of a code with log2 of the
 * largest magnitude. n gets the number of blocks. */
static double follow(size_t *n, const mx_sample *at, const samples *s) {
  double sum[5] = {0}; /* x, y, xx, yy, xy */
  *n = 0;
  for (size_t i = 0; i < s->n; i++) {
    const mx_sample *m = &at[i];
    if (!m->codes || m->scale_bytes != 1 || m->scale_rows != m->rows || !m->scale_cols) return 0;
    const size_t block = (m->cols + m->scale_cols - 1) / m->scale_cols;
    for (size_t k = 0; k < m->rows * m->scale_cols; k++) {
      const float *x = m->x + k / m->scale_cols * m->ld;
      float amax = 0;
      for (size_t c = k % m->scale_cols * block; c < m->cols && c < (k % m->scale_cols + 1) * block; c++) amax = fmaxf(amax, fabsf(x[c]));
      if (!(amax > 0) || isinf(amax)) continue;
      const double a = log2((double)amax), b = (double)((const uint8_t *)m->scales)[k];
      sum[0] += a, sum[1] += b, sum[2] += a * a, sum[3] += b * b, sum[4] += a * b;
      ++*n;
    }
  }
  const double blocks = (double)*n, xx = blocks * sum[2] - sum[0] * sum[0], yy = blocks * sum[3] - sum[1] * sum[1],
               xy = blocks * sum[4] - sum[0] * sum[1];
  return xx > 0 && yy > 0 ? xy * xy / (xx * yy) : 0;
}

/* The square of a correlation between n numbers that have nothing to do with each other is beyond CHANCE / n once in 200 times. From FEW_BLOCKS on it
 * says which layout there may be. With less of it layouts would be tried that are not there, each for as long as one that is. */
static const double CHANCE = 8;
enum { FEW_BLOCKS = 256 };

/* May scales that are read so be the right ones rather than those that lie in the file? */
static int may_be_layout(double *by, const mx_sample *straight, const samples *s) {
  size_t n, plain_n;
  const double plain = follow(&plain_n, s->at, s);
  *by = follow(&n, straight, s) - plain;
  return n < FEW_BLOCKS || *by > CHANCE / (double)n;
}

/* A layout under which scales follow the magnitudes so much better is tried before the file as it lies. */
static const double MUCH_BETTER = 0.25;

static int likely_layout(mx_identity *id, reading *how, samples *s, const mx_identify_options *o) {
  static const size_t blocks[] = {32, 16};
  mx_sample *straight = s->at[0].codes && s->at[0].scale_bytes == 1 ? calloc(s->n, sizeof *straight) : NULL;
  double best = MUCH_BETTER, by;
  size_t b = 0;
  int layout = 0;
  for (int l = 1; l < MX_LAYOUT_COUNT && straight; l++)
    for (size_t k = 0; k < 2; k++)
      if (samples_straighten(straight, s, l, blocks[k]) && may_be_layout(&by, straight, s) && by > best) best = by, b = blocks[k], layout = l;
  const int found = layout && samples_straighten(straight, s, layout, b) && !attempt(id, s, straight, o, NULL) && id->exact;
  free(straight);
  if (!found) return 0;
  how->scale_layout = layout;
  how->layout_block = b;
  how->layout = mx_layout_name((mx_layout)layout);
  return 1;
}

static mx_status try_layouts(mx_identity *best, reading *how, samples *s, const mx_identify_options *o) {
  static const size_t blocks[] = {32, 16};
  for (int l = 1; l < MX_LAYOUT_COUNT; l++)
    for (size_t b = 0; b < 2; b++) {
      mx_sample *straight = calloc(s->n, sizeof *straight);
      mx_identity id;
      s->no_memory |= !straight;
      double by;
      if (straight && samples_straighten(straight, s, l, blocks[b]) && may_be_layout(&by, straight, s) && !attempt(&id, s, straight, o, NULL) &&
          (!best->n_codes || is_better(&id, best))) {
        *best = id;
        how->scale_layout = l;
        how->layout_block = blocks[b];
        how->layout = mx_layout_name((mx_layout)l);
      }
      free(straight);
      if (best->n_codes && best->exact) return MX_OK;
    }
  return best->n_codes ? MX_OK : MX_ERR_SHAPE;
}

static const struct {
  int scale;
  const char *name;
} values_of_codes[] = {{MX_SCALE_E8M0, "values of e8m0"}, {MX_SCALE_E4M3, "values of e4m3"}, {MX_SCALE_UE5M3, "values of ue5m3"}};

/* What scales that are stored as numbers give if they are those of codes. */
typedef struct of_values {
  mx_identity id;
  int any;   /* some format has all of them */
  size_t of; /* the one that leaves least: into values_of_codes */
} of_values;

/* Scales that are stored as numbers may stand for codes of a scale format: then every byte is found soon. 1 if they do; else the numbers stay, and
 * near is the format that comes nearest. */
static int scale_values(mx_identity *id, of_values *near, samples *s, const mx_identify_options *o) {
  mx_sample *as_they_are = s->n && s->at[0].scales ? malloc(s->n * sizeof *s->at) : NULL;
  s->no_memory |= s->n && s->at[0].scales && !as_they_are;
  mx_identify_options quick = *o;
  int found = 0;
  *near = (of_values){.any = 0};
  quick.seconds = (o->seconds > 0 ? o->seconds : 10) / 4;
  if (as_they_are) memcpy(as_they_are, s->at, s->n * sizeof *s->at);
  for (size_t i = 0; as_they_are && i < sizeof values_of_codes / sizeof values_of_codes[0] && !found; i++) {
    const int given = samples_encode_scales(s, values_of_codes[i].scale) && !attempt(id, s, s->at, &quick, NULL);
    found = given && id->exact;
    if (given && (!near->any || wrong(id) < wrong(&near->id))) *near = (of_values){*id, 1, i};
    if (!found) memcpy(s->at, as_they_are, s->n * sizeof *s->at);
  }
  free(as_they_are);
  return found;
}

/* Columns of a block of an answer, 0: it has no such number. */
static size_t block_of(const mx_identity *id) { return id->spec.block_cols > 0 ? (size_t)id->spec.block_cols : id->spec.block_cols ? 0 : 32; }

static void as_values(reading *how, size_t of) {
  how->scale_values = values_of_codes[of].scale;
  how->layout = values_of_codes[of].name;
}

/* The rule is right, what it reads is not. */
static void say_odd(mx_identity *id, const reading *how) {
  const char *text = how->turned ? "quantises the transpose of the input" : "takes each row for a tensor, with a tensor scale of its own";
  id->bug =
      (mx_bug){.name = how->turned ? MX_BUG_TRANSPOSED : MX_BUG_ROW_TENSORS, .preset = id->preset ? id->preset : id->nearest, .spec = id->spec};
  snprintf(id->bug.text, sizeof id->bug.text, "%s", text);
}

/* Shares of the time limit that the file as it lies gets: half where scales that were read as values have come near already, for their answer may be the
 * better one and has had its time; more where the order of nibbles is stated, since then fewer orders are left to try; most where codes leave other
 * orders and layouts, which show soon; the whole where nothing else can be tried. Any more, and a wrong packing would eat the time of the right one. */
static const double SHARE_BESIDE_VALUES = 0.5, SHARE_OF_STATED = 0.7, SHARE_OF_CODES = 0.85;

/* The time limit where none is given, in seconds, and what part of it one other packing gets: a right one shows within that. */
enum { SECONDS = 10, PACKING_PART = 20 };

int find_answer(mx_identity *id, reading *how, samples *s, const mx_identify_options *first) {
  mx_error err = {0};
  const float all = first->seconds > 0 ? (float)first->seconds : SECONDS;
  size_t block = (size_t)first->block_cols;
  int best = samples_likely_nibble(s, &block);
  *how = (reading){.scale_values = -1};
  if (best > 0 && !samples_repack(s, best, block ? block : 32)) best = s->nibble;
  of_values near;
  const int values = scale_values(id, &near, s, first);
  mx_identify_options most = *first, shorter = *first, *o = &shorter; /* a right packing shows soon */
  most.seconds = (double)all * (near.any ? SHARE_BESIDE_VALUES : s->nibble >= 0 ? SHARE_OF_STATED : s->at[0].codes ? SHARE_OF_CODES : 1);
  shorter.seconds = (double)all / PACKING_PART;
  const int laid_out = !values && !near.any && !s->layout && likely_layout(id, how, s, &shorter);
  mx_status status = values || laid_out ? MX_OK : attempt(id, s, s->at, &most, &err);
  if (values)
    as_values(how, near.of);
  else if (near.any && (status || (!id->exact && wrong(&near.id) <= wrong(id))) && samples_encode_scales(s, values_of_codes[near.of].scale)) {
    *id = near.id, status = MX_OK;
    as_values(how, near.of);
  }
  if (best == MX_NIBBLE_HALF_BLOCK && !status && id->exact && block_of(id) != block) { /* halves of something else: no key says that */
    best = MX_NIBBLE_LOW_FIRST;
    status = samples_repack(s, best, 32) ? attempt(id, s, s->at, &most, &err) : MX_ERR_NOMEM;
  }
  const int order = !status && is_order(id), told = !status && is_told(id) && !(order && id->codes_differ), tried = best;
  if (!first->block_cols && tried != MX_NIBBLE_HALF_BLOCK) block = !status && block_of(id) > 1 ? block_of(id) : 32;
  for (int k = 0;
       !status && !id->exact && (!told || s->nibble >= 0) && codes_wrong(id) && may_be_packing(id) && best >= 0 && k < MX_NIBBLE_COUNT; k++) {
    mx_identity other;
    if (k == tried || samples_order_is_sure(s, tried, k, block)) continue;
    if (!samples_repack(s, k, block)) break;
    if (!attempt(&other, s, s->at, o, NULL) && is_better(&other, id) &&
        (k != MX_NIBBLE_HALF_BLOCK || !other.exact || block_of(&other) == block))
      *id = other, best = k;
  }
  if (best >= 0 && s->nibble != best) samples_repack(s, best, block); /* what is tried next is tried in the best order */
  if ((status || (!id->exact && (order ? id->scales_differ != 0 : !told) && mostly_wrong(id))) && s->at[0].codes) {
    mx_identity other = {0};
    if (!status) other = *id;
    if (!try_layouts(&other, how, s, o)) *id = other, status = MX_OK;
  }
  if (!status && !id->exact && !told && mostly_wrong(id) && samples_turn(s)) {
    mx_identity other;
    if (!attempt(&other, s, s->at, o, NULL) && is_better(&other, id)) {
      *id = other, s->turned = 1;
    }
  }
  if (s->no_memory) return cli_error("out of memory");
  if (!how->layout) how->layout = s->layout;
  how->nibble = best;
  how->nibble_block = block ? block : 32;
  how->turned = s->turned;
  if (best > 0) id->spec.nibble = id->bug.spec.nibble = best;
  if (status) return cli_fail(&err);
  how->row_scales = s->row_scales;
  if (reading_is_odd(how) && id->exact) say_odd(id, how);
  return CLI_FINE;
}

int read_alike(samples *s, const reading *how) {
  if ((how->nibble < 0) != (s->nibble < 0) || how->row_scales != s->row_scales) return 0;
  if (how->nibble > 0 && !samples_repack(s, how->nibble, how->nibble_block)) return 0;
  if (how->scale_values >= 0 && !samples_encode_scales(s, how->scale_values)) return 0;
  if (how->scale_layout > MX_LAYOUT_ROW && !samples_straighten(s->at, s, how->scale_layout, how->layout_block)) return 0;
  return how->turned == s->turned || (how->turned && samples_turn(s));
}

const char *reading_nibble(const reading *how) {
  static const char *const names[] = {"low_first", "high_first", "half_block"};
  return how->nibble < 0 ? NULL : names[how->nibble];
}
