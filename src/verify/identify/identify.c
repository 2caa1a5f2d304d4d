/* Finds the spec that a black box follows. Each reading of formats, block, rotation and input.dtype that the data allow is one inquiry. Presets
 * are tried under all of them first; then the most promising inquiry is followed to its end. In the spec that is found, keys are set back to their
 * defaults where that changes nothing; then it is counted and named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/bugs.h"
#include "verify/identify/chance.h"
#include "verify/identify/by_values.h"
#include "verify/identify/search/hypotheses.h"
#include "verify/identify/inquiry.h"
#include "verify/trial/keys.h"
#include "verify/identify/near.h"
#include "verify/identify/open.h"
#include "verify/identify/wrong.h"
#include "verify/trial/bases.h"
#include "verify/identify/numbers.h"
#include "verify/identify/search/values.h"
#include "mxgold/isa.h"

enum {
  SPARE = 3
}; /* inquiries beyond MAX_INQUIRIES: the presets of a bug and of a fault that says it better, and one of formats that do not look likely */

/* Each number that was fitted must explain at least so many codes. With fewer, noise passes for a rule; with more, a rule passes for noise. */
enum { OF_A_NUMBER = 8 };

/* Formats are inquired into if their spread is within CLOSE_TIMES of the least, or CLOSE_BY octaves beyond it. A wider limit costs an inquiry for
 * each further format; a narrower one loses the right format where few elements, or a coarse format, make its spread no better than another's. There
 * are at most so many inquiries, and more if only values are given, since then nothing but the presets tells formats apart. */
static const double CLOSE_TIMES = 1.3, CLOSE_BY = 0.1;
enum { MOST_FORMATS = 8, MOST_FORMATS_OF_VALUES = 16 };

/* Scale rules that leave up to NEAR_TIMES as many wrong scales as the best one, and NEAR_BY more, are tried together with rules for the elements. */
enum { NEAR_TIMES = 2, NEAR_BY = 16 };

/* How much errors over all blocks count beside those in ordinary blocks: little, since one wrong key at the ends of the range makes many blocks
 * wrong. */
static const double OF_ALL_BLOCKS = 0.01;

/* Before an inquiry that was followed to its end is followed again, it must be so many times better than the others for each time; otherwise it
 * would keep the others waiting. */
enum { AGAIN_TIMES = 4, MOST_LEVELS = 2 };

/* Shares of the time limit, of which at most ten seconds count. The search for known bugs ends soon, so it alone gets more if a caller allows
 * more, as a test on a busy machine does. The first wave ends after as many trials as take its share on most machines, so that it ends at the same
 * point on all of them. */
static const double FIRST_WAVE = 0.2, FOR_BUGS = 0.5, FOR_CHANCE = 0.7, FOR_OPEN_KEYS = 0.3, TRIALS_A_SECOND = 150000;
/* Trials of the rest of the search, after bugs and faults: what is found there takes a tenth of it (the mixtures of tests/test_identify.c), and the
 * others would go on until the clock stops them. */
enum { LAST_TRIALS = 400000 };
static const double SHARED_SECONDS = 10, BUGS_OF_MORE = 0.05; /* bugs: this of the whole where that is more */
/* The time of a call that sets none, as identify.h says. */
static const double DEFAULT_SECONDS = 10;

static double share(double of, double seconds) { return of * fmin(seconds, SHARED_SECONDS); }
static double for_bugs(double seconds) { return fmax(share(FOR_BUGS, seconds), BUGS_OF_MORE * seconds); }

/* How many blocks of a class are added for each spec that turned out wrong. More make each later trial slower; fewer need more rounds. */
enum { LEARN_OPEN = 4 };

/* ---- what the data leave open */

/* Is t as good as what was found, on all of the data? Blocks on which it fails join the chosen ones. */
static int as_good(inquiry *q, const mx_spec *t) {
  mx_spec fitted = *t;
  const int here = t->input_dtype == q->o.formats.input_dtype && (!t->had_size || t->flush == q->o.formats.flush);
  const score chosen = here ? mxi_search_score_until(&q->s, t, EVERY, 1) : (score){0, 0, 0};
  if (score_total(chosen) || chosen.nan_codes > q->best.got.nan_codes || mxi_inquiry_fit_tensor_scale(&q->o, &fitted) ||
      !mxi_keys_same(&fitted, t))
    return 0;
  const score got = mxi_full_score(&q->o, t, q->wrong, q->s.threads);
  if (!score_total(got) && got.nan_codes <= q->best.got.nan_codes) return 1;
  mxi_search_learn(&q->s, q->wrong, t, LEARN_OPEN);
  return 0;
}

/* Set keys back to their defaults where nothing changes, and note which keys could be otherwise. */
static void settle(mx_identity *out, inquiry *q, deadline until) {
  mx_spec *best = &q->best.spec;
  key_values *v = noted(malloc(sizeof *v), q->o.lack);
  for (size_t i = 0; v && mx_key_name(i) && i < MX_MAX_KEYS && !deadline_over(until); i++) {
    const char *key = mx_key_name(i);
    int open = 0;
    mxi_values_of(v, key, &q->o);
    if (!strcmp(key, "input.dtype")) {
      v->n = 3;
      for (int d = 0; d < 3; d++) snprintf(v->text[d], VALUE_TEXT, "%s", mx_key_choice(i, (size_t)d, &(const char *){0}, &(int){0}));
    }
    for (size_t k = 0; k < v->n && !open; k++) {
      mx_spec t = *best;
      if (mx_spec_set(&t, key, v->text[k], NULL) || mxi_keys_same(&t, best) || mx_spec_check(&t, NULL) || !as_good(q, &t)) continue;
      open = 1;
      if (k == 0 && !out->preset && t.input_dtype == q->o.formats.input_dtype) *best = t;
    }
    if (open) out->undecided |= UINT64_C(1) << i;
  }
  free(v);
}

/* Of two specs that mean the same, takes the plainer one: a scale that stays zero instead of a byte 0 that multiplies by it, a least code instead
 * of a least value. */
static void say_plainly(inquiry *q) {
  mx_spec *best = &q->best.spec, t = *best;
  if (t.scale_byte0 == MX_SCALE_BYTE0_TIMES0 && mx_scale_format(t.scale)->kind != MX_KIND_EXP) {
    t.scale_byte0 = MX_SCALE_BYTE0_VALUE;
    t.scale_zero = MX_SCALE_ZERO_ZERO;
    if (!mx_spec_check(&t, NULL) && as_good(q, &t)) *best = t;
  }
  t = *best;
  if (t.scale_min > 0 && !t.scale_min_byte) {
    const uint64_t code = mx_encode(mx_scale_format(t.scale), (double)t.scale_min, &(mx_encoding){0}, 0);
    t.scale_min = 0;
    t.scale_min_byte = (uint32_t)code;
    if (code && code < 256 && !mx_spec_check(&t, NULL) && as_good(q, &t)) *best = t;
  }
}

/* If every code and scale is explained but the tensor scale is not, sets back all keys that codes and scales do not need, since they say nothing
 * about the tensor scale. */
static void drop_needless(inquiry *q) {
  mx_spec *best = &q->best.spec;
  key_values *v = noted(malloc(sizeof *v), q->o.lack);
  for (size_t i = 0; v && mx_key_name(i); i++) {
    mx_spec t = *best;
    mxi_values_of(v, mx_key_name(i), &q->o);
    if (!v->n || mx_spec_set(&t, mx_key_name(i), v->text[0], NULL) || mxi_keys_same(&t, best) || mx_spec_check(&t, NULL)) continue;
    if (!score_total(mxi_full_score(&q->o, &t, q->wrong, q->s.threads))) *best = t;
  }
  free(v);
  q->best.scales_wrong = mxi_inquiry_fit_tensor_scale(&q->o, best);
}

/* A type of the input that the data do not need is not said. */
static void drop_dtype(inquiry *q) {
  mx_spec t = q->best.spec;
  t.input_dtype = MX_INPUT_DTYPE_FLOAT32;
  if (q->best.spec.input_dtype != t.input_dtype && !mx_spec_check(&t, NULL) && as_good(q, &t)) q->best.spec = t;
}

static int difference(const mx_spec *a, const mx_spec *b) {
  char x[4096], y[4096];
  int n = 0;
  mx_spec_print(x, sizeof x, a, 1);
  mx_spec_print(y, sizeof y, b, 1);
  char *sx = NULL, *sy = NULL, *p = strtok_r(x, " ", &sx), *q = strtok_r(y, " ", &sy);
  for (; p && q; p = strtok_r(NULL, " ", &sx), q = strtok_r(NULL, " ", &sy)) n += strcmp(p, q) != 0;
  return n;
}

/* Another element format weighs as much as so many differing keys, and so does another count of its bits: presets of the same format are the
 * nearer ones. */
enum { FORMAT_KEYS = 8 };
/* More keys than two specs can differ in. */
enum { FARTHEST = MX_MAX_KEYS + 2 * FORMAT_KEYS + 1 };

static void name_presets(mx_identity *out) {
  int least = FARTHEST;
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p;
    const mx_preset *row = mx_preset_at(i);
    if (row->alias_of || mx_preset_find(&p, row->name, NULL)) continue;
    if (mx_spec_equal(&p, &out->spec)) out->preset = row->name;
    if (p.scale != out->spec.scale || p.scale_form != out->spec.scale_form) continue;
    const int n = difference(&p, &out->spec) + FORMAT_KEYS * (p.elem != out->spec.elem) +
                  FORMAT_KEYS * (mx_elem_format(p.elem)->bits !=
                                 mx_elem_format(out->spec.elem)->bits); /* a format that no preset has is told from another one */
    if (n < least) least = n, out->nearest = row->name;
  }
}

static void count(mx_identity *out, inquiry *q) {
  const mx_sample *samples = q->o.samples;
  const attempt *best = &q->best;
  out->spec = best->spec;
  out->exact = mxi_attempt_exact(best);
  out->scales_differ = best->got.scales;
  out->nan_codes_differ = best->got.nan_codes;
  out->tensor_scales_differ = best->scales_wrong;
  *(samples[0].codes ? &out->codes_differ : &out->values_differ) = best->got.codes;
  for (size_t i = 0; i < q->o.n_samples; i++) {
    *(samples[0].codes ? &out->n_codes : &out->n_values) += (uint64_t)samples[i].rows * samples[i].cols;
    if (samples[i].codes) out->n_scales += (uint64_t)samples[i].scale_rows * samples[i].scale_cols;
  }
  if (out->exact) return;
  values_count values;
  if (!samples[0].codes && mxi_values_of_spec(&values, &best->spec, samples, q->o.n_samples, 0, q->s.threads, q->o.lack))
    out->zero_signs_differ = values.zeros;
  for (size_t i = q->o.n_samples; i-- > 0;) {
    float of_spec = 1;
    if (!samples[i].has_tensor_scale) continue;
    if (best->spec.tensor_norm && mx_tensor_scale(&of_spec, mxi_observation_amax(&q->o, i, &best->spec), &best->spec)) continue;
    if (!memcmp(&of_spec, &samples[i].tensor_scale, sizeof of_spec) || (isnan(of_spec) && isnan(samples[i].tensor_scale))) continue;
    out->tensor_scale_stored = samples[i].tensor_scale;
    out->tensor_scale_of_spec = of_spec;
  }
  mxi_full_score(&q->o, &best->spec, q->wrong, q->s.threads);
  if (!out->bug.name && samples[0].codes) mxi_note_scattered(&out->bug, q, q->wrong);
  mxi_smallest_wrong(out, q, q->wrong);
}

/* A spec with numbers that were read off the data and that no preset has: a bug over a preset is the better explanation. */
static uint64_t odd_numbers(const mx_spec *s) {
  return (uint64_t)(s->tensor_target != 0) + (s->elem_prescale != 0) + (s->tensor_given != 0) + (s->scale_min != 0) + (s->scale_min_byte != 0) +
         (s->scale_max_byte != 0) + (s->scale_max != MX_SCALE_MAX_ELEM && s->scale_max != MX_SCALE_MAX_POW2);
}

/* Where the nearest preset is wrong in more than one cell in so many, the keys explain so much that they are no accident. */
enum { DOUBTED_ONE_IN = 100 };

/* A fault that gives every byte as the keys do is named beside them. Returns 1 if it is so much likelier that it is the answer. */
static int name_rival(mx_identity *out, const mx_bug *rival, int found) {
  if (!found) return 0;
  out->grade = found > 1 ? MX_GRADE_CONFIRMED : MX_GRADE_FITS;
  out->bug = *rival;
  return found > 1;
}

/* A few keys over a preset that explain a few bytes may do so because the data are short of something: then a fault over a preset may, too. */
static int doubt(mx_identity *out, inquiry *q, const mx_sample *samples, size_t n, deadline until) {
  mx_spec p;
  if (!samples[0].codes || !out->nearest || mx_preset_find(&p, out->nearest, NULL)) return 0;
  mx_bug rival;
  const score wrong = mxi_full_score(&q->o, &p, q->wrong, q->s.threads);
  if (wrong.codes * DOUBTED_ONE_IN > out->n_codes || wrong.scales * DOUBTED_ONE_IN > out->n_scales) return 0;
  const int keys = difference(&p, &out->spec);
  if (keys > FEW_KEYS) return 0;
  const double rarely = mxi_bits_of_keys(&out->spec, out->nearest);
  return name_rival(out, &rival, mxi_rival_of_spec(&rival, &out->spec, BITS_OF_A_KEY * keys, rarely, samples, n, until));
}

/* A number that was fitted may give these bytes where a plain fault over a preset that people know gives them too, and other keys where one over the
 * nearest preset does, or, if few know that, over one that people know. A preset that gives every byte of an ordinary tensor stays confirmed. Returns 1 if the fault is so much likelier than the keys
 * that it is the answer. */
static int doubt_fitted(mx_identity *out, const mx_sample *samples, size_t n, deadline until) {
  mx_bug rival;
  const char *over = odd_numbers(&out->spec) ? NULL : out->nearest;
  if (!samples[0].codes || out->preset || (!over && !odd_numbers(&out->spec))) return 0;
  const double bits = out->nearest ? mxi_bits_of_keys(&out->spec, out->nearest) : 0;
  int found = mxi_plain_rival_of_spec(&rival, &out->spec, bits, over, NULL, samples, n, until);
  const int few_know = out->nearest && !mxi_preset_well_known(out->nearest);
  if (!found && over && few_know) found = mxi_plain_rival_of_spec(&rival, &out->spec, bits, NULL, NULL, samples, n, until);
  if (!found && few_know) found = mxi_plain_rival_of_spec(&rival, &out->spec, bits, NULL, out->nearest, samples, n, until);
  return name_rival(out, &rival, found);
}

static mx_status check_samples(const mx_sample *s, size_t n, mx_error *err) {
  if (!s || !n) return mx_fail(err, MX_ERR_ARG, "mx_identify: no sample");
  for (size_t i = 0; i < n; i++) {
    if (!s[i].x || (!s[i].codes && !s[i].values) || (s[i].codes && !s[i].scales))
      return mx_fail(err, MX_ERR_ARG, "mx_identify: a sample needs x, and codes with scales, or values");
    if (!s[i].codes != !s[0].codes || s[i].scale_bytes != s[0].scale_bytes)
      return mx_fail(err, MX_ERR_ARG, "mx_identify: samples of different kinds");
    if (!s[i].rows || !s[i].cols || s[i].ld < s[i].cols || s[i].rows > UINT32_MAX || s[i].cols > UINT32_MAX)
      return mx_fail(err, MX_ERR_SHAPE, "mx_identify: %zu x %zu, row stride %zu", s[i].rows, s[i].cols, s[i].ld);
  }
  return MX_OK;
}

/* A tensor scale of few bits, as one in twenty inputs of bfloat16 has it by chance, rounds next to nothing, so that kernels which round elsewhere give the
 * same bytes: none of them is confirmed. */
static int hides_roundings(const mx_sample *s, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &s[i].tensor_scale, sizeof bits);
    if (!s[i].has_tensor_scale || s[i].tensor_scale == 1 || bits & 0xFFFF) return 0;
  }
  return 1;
}
/* A kernel that rounds its tensor scale has one of few bits for all other data, too. */
static int shortens_tensor_scale(const mx_bug *b) {
  for (size_t i = 0; i < b->n_faults; i++)
    if (b->fault[i].op == MX_FAULT_TENSOR_SCALE_POWER || b->fault[i].op == MX_FAULT_TENSOR_SCALE_BF16) return 1;
  return 0;
}

/* A preset with another target is as sure as the preset: the stored number says the target, and what rounds elsewhere is open under either. But a
 * maximum and a tensor scale of few bits give any target few digits: it must be a power of two times the largest numbers of the formats. */
static int has_a_target_alone(const mx_identity *out) {
  mx_spec p;
  if (!mxi_target_is_of_formats(&out->spec)) return 0;
  if (!out->exact || !out->nearest || mx_preset_find(&p, out->nearest, NULL) || out->spec.tensor_target == 0) return 0;
  p.tensor_target = out->spec.tensor_target;
  return mxi_preset_well_known(out->nearest) && mx_spec_equal(&p, &out->spec);
}

static int has_dtype_preset(int dtype) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p;
    if (!mx_preset_at(i)->alias_of && !mx_preset_find(&p, mx_preset_at(i)->name, NULL) && p.input_dtype == dtype) return 1;
  }
  return 0;
}

/* Returns the inquiry that leaves the least unexplained; one that was followed to its end already must be far better than the others. */
static inquiry *most_promising(inquiry *all, size_t n) {
  inquiry *best = NULL;
  double least = INFINITY;
  for (size_t i = 0; i < n; i++) {
    const double r = all[i].residue * pow(AGAIN_TIMES, all[i].level);
    if (all[i].level < MOST_LEVELS && r < least) least = r, best = &all[i];
  }
  return best;
}

/* Tries presets of formats that do not look likely, since data of few numbers show nothing. Returns the inquiry that is exact. */
static inquiry *unlikely_presets(inquiry *q, const hypothesis *h, size_t n, const mx_sample *samples, size_t n_samples,
                                 const mx_identify_options *options, int threads, search_budget *budget) {
  hypothesis *more = noted(calloc(MAX_HYPOTHESES, sizeof *more), budget->until.lack);
  size_t n_more = 0;
  inquiry *found = NULL;
  if (more) mxi_preset_hypotheses(more, &n_more, samples, n_samples, options, h, n);
  for (size_t i = 0; i < n_more && !found; i++) {
    if (mxi_inquiry_open(q, &more[i], more[i].formats.input_dtype, more[i].formats.flush, samples, n_samples, threads, budget))
      mxi_inquiry_presets(q);
    if (mxi_attempt_exact(&q->best))
      found = q;
    else
      mxi_inquiry_close(q);
  }
  free(more);
  return found;
}

/* Is there a subnormal number? Only then the key flush changes codes. Because it acts before a rotation, both of its values are tried instead of
 * being searched for. */
static int has_subnormal(const mx_sample *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t r = 0; r < s[i].rows; r++)
      for (size_t c = 0; c < s[i].cols; c++) {
        const float a = fabsf(s[i].x[r * s[i].ld + c]);
        if (a > 0 && a < 0x1p-126f) return 1;
      }
  return 0;
}

/* Follows an inquiry to its end once more, each time with more effort. */
static void advance(inquiry *q) {
  if (!q->level) q->ordinary = q->residue;
  mxi_inquiry_finish(q, q->level++ > 0);
  /* A spec that fits ordinary blocks is right there. The other blocks are few, and a single wrong key makes many of them wrong, so errors over all
   * blocks count little. */
  if (q->best.any) q->residue = q->ordinary + OF_ALL_BLOCKS * (double)mxi_attempt_badness(&q->best) / (double)(q->o.n_blocks + 1);
}

/* Is there a tensor scale that means something? Arithmetic in 16 bits has none (SPEC 3). */
static int has_tensor_scale(const mx_sample *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (s[i].has_tensor_scale && s[i].tensor_scale != 1) return 1;
  return 0;
}

/* How far a wave has come, which looks for scale rules that explain every ordinary block and for what follows from them; it stops when its budget
 * is used up, and goes on from there. */
typedef struct wave {
  size_t at;
  uint64_t least;
  int again; /* another one follows */
} wave;

static inquiry *first_wave(wave *w, inquiry *all, size_t n, search_budget *budget) {
  for (; w->at < n && !budget_over(budget); w->at++) {
    inquiry *q = &all[w->at];
    mxi_inquiry_cores(q);
    if (q->cores.n && !q->cores.got[0].scales) {
      mxi_inquiry_specs(q);
      if (q->residue == 0) advance(q); /* what explains every ordinary block is likely right: the others can wait */
    }
    if (mxi_attempt_exact(&q->best) || mxi_inquiry_hidden_draws(q)) return q;
    if (w->again && budget_over(budget)) { /* once more from here, with more of it */
      q->residue = INFINITY;
      q->level = 0;
      break;
    }
    if (q->cores.n && q->cores.got[0].scales < w->least) w->least = q->cores.got[0].scales;
  }
  return NULL;
}

/* The elements' rules of inquiries whose scales are nearly explained. */
static void specs_of_near(const wave *w, inquiry *all, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (isinf(all[i].residue) && all[i].cores.n && all[i].cores.got[0].scales <= NEAR_TIMES * w->least + NEAR_BY) mxi_inquiry_specs(&all[i]);
}

/* A wrong scale counts as much as so many wrong codes, most of which it causes. A larger number prefers rules that fit scales by luck. */
enum { SCALE_CODES = 4 };
static uint64_t leaves_of(const attempt *a) { return a->got.codes + a->got.nan_codes + SCALE_CODES * a->got.scales + a->scales_wrong; }
static uint64_t bug_leaves(const mx_bug *b) { return b->codes + SCALE_CODES * b->scales + b->tensor_scales; }
static uint64_t preset_leaves(const mx_bug *b) { return b->preset_codes + SCALE_CODES * b->preset_scales + b->preset_tensor; }

/* An inquiry whose answer is the preset of a bug. */
static inquiry *of_preset(inquiry *all, size_t *n_all, const mx_bug *bug, const mx_sample *samples, size_t n_samples, int threads,
                          search_budget *budget) {
  inquiry *q = &all[*n_all];
  hypothesis h = {.formats = bug->spec};
  mx_spec_block(&bug->spec, samples[0].rows, samples[0].cols, &h.block_rows, &h.block_cols);
  ++*n_all;
  if (!mxi_inquiry_open(q, &h, bug->spec.input_dtype, bug->spec.flush, samples, n_samples, threads, budget)) return NULL;
  mxi_inquiry_take(q, &bug->spec);
  return q;
}

/* Given values alone, starts an inquiry with the preset, under any block, that comes nearest. Returns it if nothing can come nearer. */
static inquiry *of_values(inquiry *all, size_t *n_all, const mx_sample *samples, size_t n_samples, const mx_identify_options *options,
                          int threads, search_budget *budget) {
  mx_bug near = {0};
  values_count got;
  if (!mxi_values_preset(&near.spec, samples, n_samples, options, threads, budget->until)) return NULL;
  inquiry *q = of_preset(all, n_all, &near, samples, n_samples, threads, budget);
  if (!q || mxi_attempt_exact(&q->best)) return q;
  const int all_but_zeros = mxi_values_of_spec(&got, &near.spec, samples, n_samples, 0, threads, budget->until.lack) && !got.wrong;
  return all_but_zeros && !mxi_has_negative_zero(near.spec.elem) ? q : NULL;
}

enum { MOST_KEYED = 3 };

/* A spec whose scales are those of every ordinary block, if it has few keys over a preset and is none. */
static void add_keyed(keyed_spec out[MOST_KEYED], size_t *n, const pool *p) {
  if (!p->n || p->got[0].scales || odd_numbers(&p->spec[0]) || mxi_spec_random(&p->spec[0]) || *n == MOST_KEYED) return;
  mx_identity near = {.spec = p->spec[0]};
  mx_spec preset;
  name_presets(&near);
  if (near.preset || !near.nearest || mx_preset_find(&preset, near.nearest, NULL)) return;
  const int keys = difference(&preset, &near.spec);
  for (size_t k = 0; k < *n; k++)
    if (mx_spec_equal(&out[k].spec, &near.spec)) return;
  if (keys <= FEW_KEYS) out[(*n)++] = (keyed_spec){.preset = near.nearest, .spec = near.spec, .keys = keys};
}

/* What is wrong under such specs may be a fault: under those of the scales one of the elements, under those of the elements another one. */
static size_t keyed_specs(keyed_spec out[MOST_KEYED], const inquiry *all, size_t n_all) {
  size_t n = 0;
  for (size_t i = 0; i < n_all; i++) {
    add_keyed(out, &n, &all[i].cores);
    add_keyed(out, &n, &all[i].specs);
  }
  return n;
}

/* Inquiries under the formats that fit about as well, each with every input.dtype; the first that is exact ends it. */
static inquiry *inquire(mx_bug *bug, inquiry *all, size_t *n_all, const hypothesis *h, size_t n, const mx_sample *samples, size_t n_samples,
                        const mx_identify_options *options, int threads, search_budget *budget) {
  const deadline until = budget->until;
  const double allowed = mxi_deadline_left(until);
  int rotated = 0;
  for (size_t i = 0; i < n; i++) rotated |= h[i].formats.had_size != 0;
  const int flushes = rotated && has_subnormal(samples, n_samples);
  const int dtypes = has_tensor_scale(samples, n_samples) ? MX_INPUT_DTYPE_FLOAT32 + 1 : MX_INPUT_DTYPE_COUNT;
  for (int dtype = 0; dtype < dtypes; dtype++) /* presets first: most kernels are one */
    for (size_t k = 0; k < n * (1 + (size_t)flushes) && *n_all < MAX_INQUIRIES; k++) {
      inquiry *q = &all[*n_all];
      const int flush = k >= n;
      if (flush && !h[k % n].formats.had_size) continue;
      ++*n_all;
      if (!mxi_inquiry_open(q, &h[k % n], dtype, flush, samples, n_samples, threads, budget)) return NULL;
      if (!dtype || has_dtype_preset(dtype)) mxi_inquiry_presets(q);
      if (mxi_attempt_exact(&q->best)) return q;
    }
  inquiry *preset = unlikely_presets(&all[*n_all], h, n, samples, n_samples, options, threads, budget);
  *n_all += preset != NULL;
  if (preset) return preset;
  preset = samples[0].codes ? NULL : of_values(all, n_all, samples, n_samples, options, threads, budget);
  if (preset) return preset;
  wave w = {.least = UINT64_MAX, .again = 1};
  budget->most = budget->tried + (uint64_t)(TRIALS_A_SECOND * share(FIRST_WAVE, allowed));
  budget->until = mxi_deadline_before(until, allowed - 2 * share(FIRST_WAVE, allowed)); /* a slow machine */
  budget->until.provisional = 1;
  inquiry *q = first_wave(&w, all, *n_all, budget);
  budget->most = UINT64_MAX;
  budget->until = until;
  w.again = 0;
  mx_bug faulty = {0};
  keyed_spec keyed[MOST_KEYED];
  const size_t n_keyed = keyed_specs(keyed, all, *n_all);
  if (q) { /* numbers that were fitted are an answer where nothing says it better */
    if (!samples[0].codes || !mxi_attempt_exact(&q->best) || !odd_numbers(&q->best.spec) || mxi_numbers_hold(q, as_good)) return q;
    if (!mxi_name_faults(&faulty, keyed, n_keyed, samples, n_samples, mxi_deadline_within(until, for_bugs(allowed)))) return q;
    if (!mxi_faults_are_plain(&faulty)) return q; /* another fitted number says no more */
    *bug = faulty;
    return of_preset(all, n_all, bug, samples, n_samples, threads, budget);
  }
  chance drawn = {0};
  const int is_whole = w.at == *n_all, in_sight = samples[0].codes && mxi_chance_is_in_sight(all, *n_all);
  for (int later = 0; later < 2; later++) {
    if (is_whole && later == !in_sight) { /* none is left: a seed that gives every byte is soon found, and then it is not a bug */
      specs_of_near(&w, all, *n_all);
      q = mxi_chance_with_usual_seed(&drawn, all, *n_all, mxi_deadline_before(until, (1 - FOR_CHANCE) * allowed));
      if (q) return q;
    }
    if (later || !samples[0].codes) continue;
    if (mxi_name_cause(bug, &faulty, keyed, n_keyed, samples, n_samples, threads, for_bugs(allowed), until))
      return of_preset(all, n_all, bug, samples, n_samples, threads, budget);
  }
  budget->most = budget->tried + LAST_TRIALS;
  q = first_wave(&w, all, *n_all, budget);
  if (q) return q;
  if (faulty.name && faulty.confirmed) { /* keys might have said it, and do not */
    *bug = faulty;
    return of_preset(all, n_all, bug, samples, n_samples, threads, budget);
  }
  specs_of_near(&w, all, *n_all);
  inquiry *random = mxi_chance_inquiry(&drawn, all, *n_all, mxi_deadline_before(until, (1 - FOR_CHANCE) * allowed));
  if (random) return random;
  while (!budget_over(budget) && (q = most_promising(all, *n_all))) {
    advance(q);
    if (mxi_attempt_exact(&q->best) || mxi_inquiry_hidden_draws(q)) return q;
  }
  if (faulty.name) { /* it fits these data, and no spec does */
    *bug = faulty;
    return of_preset(all, n_all, bug, samples, n_samples, threads, budget);
  }
  inquiry *best = NULL;
  for (size_t i = 0; i < *n_all; i++)
    if (all[i].best.any && (!best || mxi_attempt_better(&all[i].best, &best->best))) best = &all[i];
  if (best && bug->name && leaves_of(&best->best) <= bug_leaves(bug)) bug->name = NULL;
  /* Does an answer that is not exact explain enough to justify the numbers that were read off the data? */
  if (!bug->preset || !(bug->name || !best || leaves_of(&best->best) + OF_A_NUMBER * odd_numbers(&best->best.spec) >= preset_leaves(bug)))
    return best;
  q = of_preset(all, n_all, bug, samples, n_samples, threads, budget);
  if (!q || bug->name || bug->preset_scales) return q;
  q->random = bug->spec; /* the time may have been too short to look for chance */
  q->random.elem_round = MX_ROUND_SR;
  if (mx_spec_check(&q->random, NULL) || !mxi_inquiry_estimate(q)) mxi_inquiry_take(q, &bug->spec);
  return q;
}

static int keys_from(const char *preset, const mx_spec *spec) {
  mx_spec p;
  return preset && !mx_preset_find(&p, preset, NULL) ? difference(&p, spec) : FARTHEST;
}

/* Rewrites the spec for a scale format whose codes have the same steps; tensor.target makes up for the factor (2^8 between e4m3 and ue5m3).
 * Returns 0 if there is no such format. */
static int in_scale_format(mx_spec *t, const mx_spec *spec, int scale) {
  const mx_format *from = mx_scale_format(spec->scale), *to = mx_scale_format(scale);
  *t = *spec;
  if (!spec->tensor_norm || spec->scale == scale || !from->man_bits || from->man_bits != to->man_bits || from->kind != to->kind) return 0;
  const double most = mx_format_max(mx_elem_format(spec->elem)),
               target = spec->tensor_target != 0 ? spec->tensor_target : most * mx_format_max(from);
  t->scale = (uint8_t)scale;
  t->tensor_target = (float)ldexp(target, from->bias - to->bias);
  if (t->tensor_target == (float)(most * mx_format_max(to))) t->tensor_target = 0;
  return !mx_spec_check(t, NULL);
}

/* Finds the preset nearest to an exact answer, in whose terms the answer is then stated; also under another scale format if the data allow both. */
static const char *nearest(mx_identity *out, inquiry *all, size_t n, inquiry **best) {
  const char *near = mxi_near_preset(*best, as_good);
  inquiry *const found = *best;
  const hypothesis *h = &found->h;
  for (size_t i = 0; i < n; i++) {
    inquiry *q = &all[i];
    mx_spec t;
    if (q == found || q->h.block_rows != h->block_rows || q->h.block_cols != h->block_cols || q->h.formats.elem != h->formats.elem ||
        q->h.formats.had_size != h->formats.had_size || !in_scale_format(&t, &found->best.spec, q->h.formats.scale) ||
        q->o.formats.input_dtype != t.input_dtype || (t.had_size && q->o.formats.flush != t.flush))
      continue;
    mxi_inquiry_take(q, &t);
    if (!mxi_attempt_exact(&q->best)) continue;
    out->undecided |= UINT64_C(1) << mxi_key_find("scale") | UINT64_C(1) << mxi_key_find("tensor.target");
    const char *other = mxi_near_preset(q, as_good);
    if (keys_from(other, &q->best.spec) < keys_from(near, &(*best)->best.spec)) *best = q, near = other;
  }
  return near;
}

static int is_blank(const mx_sample *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t r = 0; r < s[i].rows; r++)
      for (size_t c = 0; c < s[i].cols; c++)
        if (isfinite(s[i].x[r * s[i].ld + c]) && s[i].x[r * s[i].ld + c] != 0) return 0;
  return 1;
}

/* Is there one code everywhere, except for its sign? Then the data say nothing about the rule. */
static int is_constant(const mx_sample *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < s[i].rows * s[i].cols; k++)
      if (s[i].codes ? s[i].codes[k] != s[0].codes[0] : s[i].values[k] != s[0].values[0]) return 0;
  return 1;
}

/* Are so many of the elements zero, of numbers that are not, that the rest cannot tell what a number was fitted to? */
static int is_nearly_nothing(const mx_sample *s, size_t n, const mx_spec *spec) {
  enum { AT_LEAST_ONE_IN = 64 };
  const uint32_t sign =
      spec->elem == MX_ELEM_NONE || mx_elem_format(spec->elem)->kind != MX_KIND_FLOAT ? 0 : 1u << (mx_elem_format(spec->elem)->bits - 1);
  uint64_t numbers = 0, codes = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; s[i].codes && k < s[i].rows * s[i].cols; k++) {
      numbers += s[i].x[k / s[i].cols * s[i].ld + k % s[i].cols] != 0;
      codes += (s[i].codes[k] & ~sign) != 0;
    }
  return s[0].codes && codes * AT_LEAST_ONE_IN < numbers;
}

mx_status mx_identify(mx_identity *out, const mx_sample *samples, size_t n, const mx_identify_options *options, mx_error *err) {
  static const mx_identify_options none = {0};
  if (!out) return mx_fail(err, MX_ERR_ARG, "mx_identify: NULL argument");
  *out = (mx_identity){0};
  if (!options) options = &none;
  mx_status status = check_samples(samples, n, err);
  if (status) return status;
  hypothesis *h = calloc(MAX_HYPOTHESES, sizeof *h);
  inquiry *all = calloc(MAX_INQUIRIES + SPARE, sizeof *all), *best = NULL;
  size_t n_hypotheses = 0, close = 1, n_all = 0;
  if (!h || !all) {
    free(h);
    free(all);
    return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  }
  shortage lack = {0};
  status = mxi_find_hypotheses(h, &n_hypotheses, samples, n, options, &lack, err);
  const int threads = mx_thread_count(options->n_threads);
  const double allowed = options->seconds > 0 ? options->seconds : DEFAULT_SECONDS;
  search_budget budget = {.most = UINT64_MAX, .until = mxi_deadline_in(allowed, &lack)};
  const size_t most = samples[0].codes ? MOST_FORMATS : MOST_FORMATS_OF_VALUES;
  while (close < n_hypotheses && close < most && (!samples[0].codes || h[close].spread < CLOSE_TIMES * h[0].spread + CLOSE_BY)) close++;
  if (status == MX_ERR_SHAPE && samples[0].codes) { /* what does not look like any format may be one with a bug */
    mxi_name_bug(&out->bug, samples, n, NULL, threads, mxi_deadline_in(for_bugs(allowed), &lack));
    if (out->bug.preset) status = MX_OK, best = of_preset(all, &n_all, &out->bug, samples, n, threads, &budget);
  }
  if (status == MX_ERR_SHAPE && !samples[0].codes) status = MX_OK, close = 0; /* blocks of no preset */
  out->blank = is_blank(samples, n);
  if (!status && !best) best = inquire(&out->bug, all, &n_all, h, close, samples, n, options, threads, &budget);
  budget.most = UINT64_MAX; /* what follows on an answer is short */
  if (best) {
    out->spec = best->best.spec;
    name_presets(out);
    if (mxi_attempt_exact(&best->best) && !out->preset) say_plainly(best);
    if (mxi_attempt_exact(&best->best) && !options->no_undecided) settle(out, best, mxi_deadline_in(FOR_OPEN_KEYS * allowed, &lack));
    if (mxi_attempt_exact(&best->best) && !out->preset) drop_dtype(best);
    const char *near = mxi_attempt_exact(&best->best) && !out->preset ? nearest(out, all, n_all, &best) : NULL;
    if (!mxi_attempt_exact(&best->best) && !score_total(best->best.got) && samples[0].codes && !out->bug.name) drop_needless(best);
    count(out, best);
    if (out->exact && (out->preset || !odd_numbers(&out->spec))) out->bug = (mx_bug){0};
    const int a_limit = odd_numbers(&out->spec) == 1 && (out->spec.scale_min_byte || out->spec.scale_max_byte); /* no stranger than a bug */
    const int holds = out->exact && (!samples[0].codes || mxi_numbers_hold(best, as_good));
    const int fitted = out->exact && !out->preset && odd_numbers(&out->spec) && !holds; /* what holds needs no bug */
    if (fitted && !a_limit && samples[0].codes && !options->no_undecided) {
      if (!mxi_name_bug(&out->bug, samples, n, NULL, threads, mxi_deadline_in(for_bugs(allowed), &lack)))
        out->bug.name = NULL; /* a description explains no more */
    }
    name_presets(out);
    if (near) out->nearest = near;
    if (!out->exact) out->preset = NULL; /* it is the nearest one, not the name */
    const int said = out->bug.name && !(out->bug.codes || out->bug.scales || out->bug.tensor_scales);
    const int says_nothing = out->blank || is_constant(samples, n);
    if (out->exact && !says_nothing) out->grade = holds ? MX_GRADE_CONFIRMED : MX_GRADE_FITS;
    if (out->grade == MX_GRADE_CONFIRMED && !out->preset && odd_numbers(&out->spec) && is_nearly_nothing(samples, n, &out->spec))
      out->grade = MX_GRADE_FITS;
    if (!out->exact && said && !says_nothing && out->bug.n_faults) out->grade = out->bug.confirmed ? MX_GRADE_CONFIRMED : MX_GRADE_FITS;
    int faulty = 0; /* a fault is likelier than the keys */
    if (out->exact && out->grade == MX_GRADE_CONFIRMED && !out->preset)
      faulty = doubt(out, best, samples, n, mxi_deadline_in(for_bugs(allowed), &lack));
    if (out->exact && out->grade == MX_GRADE_CONFIRMED && !faulty)
      faulty = doubt_fitted(out, samples, n, mxi_deadline_in(for_bugs(allowed), &lack));
    if (faulty) {
      inquiry *of_fault = of_preset(all, &n_all, &out->bug, samples, n, threads, &budget);
      if (of_fault) best = of_fault;
      out->undecided = 0;
      count(out, best);
      out->nearest = out->bug.preset;
    }
    if (out->grade == MX_GRADE_CONFIRMED && !out->preset && hides_roundings(samples, n) && !has_a_target_alone(out) &&
        (out->exact || !shortens_tensor_scale(&out->bug)))
      out->grade = MX_GRADE_FITS;
    if (!out->exact && out->grade && !options->no_undecided)
      out->undecided = mxi_keys_open_beside(best, &out->bug, mxi_deadline_in(FOR_OPEN_KEYS * allowed, &lack));
    if (out->grade && !out->preset && (out->exact || out->bug.n_faults) && samples[0].codes && !options->no_undecided)
      out->n_also = mxi_alternatives(out->also, &best->best.spec, out->bug.fault, out->exact ? 0 : out->bug.n_faults, samples, n,
                                     mxi_deadline_in(FOR_OPEN_KEYS * allowed, &lack));
    out->stochastic = out->exact ? mxi_spec_random(&out->spec) : best->stochastic;
    out->random_bits_least = best->facts.bits_least;
    out->random_bits_most = best->facts.bits_most;
    out->random_bias = best->facts.bias;
    out->random_biased = best->facts.biased;
    out->random_n = best->facts.n;
    out->random_beyond = best->facts.beyond;
    memcpy(out->random_shared, best->facts.shared, sizeof out->random_shared);
  } else if (!status)
    status = mx_fail(err, MX_ERR_TIME, "identify: the time ran out before any spec was run over these data");
  for (size_t i = 0; i < n_all; i++) mxi_inquiry_close(&all[i]);
  out->specs_tried = budget.tried;
  out->complete = !short_of_time(&lack);
  free(all);
  free(h);
  if (!short_of_memory(&lack)) return status;
  *out = (mx_identity){0}; /* what was found without it may be wrong */
  return mx_fail(err, MX_ERR_NOMEM, "out of memory");
}
