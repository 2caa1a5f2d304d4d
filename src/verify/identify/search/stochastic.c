/* Finds out about random rounding what the data show of it. */
#include "verify/identify/search/stochastic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/random.h"
#include "verify/identify/search/sharing.h"

/* How many draws a seed is held to: with fewer, wrong seeds get as far as the blocks; further ones are hardly ever examined. Seeds are tried in
 * runs of so many LANEs, after each of which the time is checked. */
enum { TESTED = 96, LANE = 1 << 16, LANES_A_LOOK = 64 };
/* Seeds below 2^this are tried: for elements, for scales alone, and for the signs of a rotation, by what a trial costs. Fewer lose seeds that are
 * counters or dates; more take time from other rules, and still do not find seeds of 64 random bits. */
enum { SEED_BITS = 24, SCALE_SEED_BITS = 21, SIGN_SEED_BITS = 25 };

/* How many seeds are tried, by how hard the search is: a wrong rule must not take the time of the right one. */
static const uint64_t LEVELS[] = {1 << 17, 1 << 20, UINT64_MAX};

/* Seeds beyond the small ones that are likely. */
static const uint64_t habits[] = {0xDEADBEEF,         0xCAFEBABE,          0x12345678,      123456789,          987654321,
                                  0x9E3779B9,         1234567890,          0x7FFFFFFF,      0xFFFFFFFF,         0x9E3779B97F4A7C15u,
                                  0x123456789ABCDEFu, 0xDEADBEEFCAFEBABEu, 67280421310721u, 0xFFFFFFFFFFFFFFFFu};

/* An element between two codes. */
typedef struct draw {
  uint64_t index;
  double d;       /* its place between them, of the discarded part */
  uint32_t place; /* the lower of the two, and the sign */
  int up;         /* the one of larger magnitude was stored */
} draw;

/* Lists the draws of a block under a plan whose rounding is sr; n grows. beyond counts elements that became neither neighbour. */
static size_t draws_of(draw *out, size_t room, const observation *o, mx_plan *p, const block_at *b, uint64_t *beyond) {
  static const mx_encoding down = {.round = MX_ROUND_RTZ};
  const mx_sample *s = &o->samples[b->sample];
  size_t ld, rows, cols, n = 0;
  const float *x = mxi_observation_x(o, b->sample, &ld) + b->row * ld + b->col;
  mxi_observation_extent(o, b, &rows, &cols);
  const uint32_t sign = p->elem->sign_bits ? 1u << (p->elem->bits - 1) : 0;
  mx_block_scale scale;
  if (mxi_block_scale_find(&scale, p, &b->stats, 0, 0)) return 0;
  if (scale.code != b->scale) mxi_block_scale_given(&scale, p, b->scale);
  for (size_t k = 0; k < rows * cols && n < room; k++) {
    const uint64_t index = (uint64_t)(b->row + k / cols) * s->cols + b->col + k % cols;
    const float at = x[k / cols * ld + k % cols];
    const double y = fabs(mxi_scaled_value(p, &scale, at));
    if (!(y < mx_format_max(p->elem))) continue;
    const uint32_t low = (uint32_t)mx_encode(p->elem, y, &down, 0);
    const double v0 = mx_decode(p->elem, low), v1 = mx_decode(p->elem, low + 1);
    uint32_t seen = s->codes[index];
    if (p->elem->kind == MX_KIND_INT && seen & sign) seen = -seen & 0xFF;
    seen &= ~sign;
    if (y == v0 && seen == low) continue;
    if (seen != low && seen != low + 1) {
      ++*beyond;
      continue;
    }
    if (y > v0) out[n++] = (draw){index, (y - v0) / (v1 - v0), low << 1 | (signbit(at) != 0), seen == low + 1};
  }
  return n;
}

static mx_status plan_towards_zero(mx_plan *p, const observation *o, const mx_spec *spec) {
  mx_spec run = *spec;
  run.elem_round = MX_ROUND_RTZ;
  return mxi_trial_plan(p, o, &run);
}

/* ---- without the seed */

/* Not a mode of SPEC 3.4, but one that kernels have by mistake: round up if the r bits are below the fraction, `<` where a sum would carry. */
enum { MODE_BELOW = MX_SR_COUNT, MODES };

/* Probability of rounding up. */
static double chance(double d, int mode, int r) {
  const double n = ldexp(1, r);
  double t = floor(d * n);
  if (mode == MODE_BELOW) t = ceil(d * n);
  if (mode == MX_SR_FAST) t = floor((floor(d * 2 * n) + 1) / 2);
  if (mode == MX_SR_SRC || mode == MX_SR_ODD) {
    const double up = floor(d * n + 0.5), tie = d * n - floor(d * n) == 0.5, odd = fmod(up, 2) != 0;
    t = tie && (odd == (mode == MX_SR_SRC)) ? up - 1 : up;
  }
  return t / n;
}

static int by_place(const void *a, const void *b) {
  const draw *x = a, *y = b;
  if (x->place != y->place) return x->place < y->place ? -1 : 1;
  return (x->d > y->d) - (x->d < y->d);
}

/* Draws count as random if at least this share of what chance would send the other way went there. With a lower share a threshold with a few
 * exceptions passes for chance; with a higher one, draws of few random bits do not. Equal values that are rounded differently are the stronger sign:
 * so many must be expected before they count, of which one in four is enough. */
static const double OF_CHANCE = 0.6, ENOUGH_MIXED = 20, MIXED_ONE_IN = 4;

/* Are these the draws of chance, between the same two codes and with the same sign? A rule without chance sends equal values the same way, and,
 * except for few, those below a threshold down and those above it up; chance sends a share of min(d, 1 - d) of them the other way. draws gets sorted.
 * */
static int is_chance(draw *draws, size_t n) {
  double expected_mixed = 0, expected_other = 0;
  size_t mixed = 0, other = 0;
  qsort(draws, n, sizeof *draws, by_place);
  for (size_t i = 0, end; i < n; i = end) {
    size_t up_in = 0, wrong, least;
    for (end = i; end < n && draws[end].place == draws[i].place; end++) up_in += (size_t)draws[end].up;
    wrong = least = end - i - up_in;              /* threshold below all of them: those that went down are the others */
    for (size_t k = i, same; k < end; k = same) { /* equal values */
      size_t ups = 0;
      for (same = k; same < end && draws[same].d == draws[k].d; same++) ups += (size_t)draws[same].up;
      const double m = (double)(same - k), d = draws[k].d;
      expected_mixed += 1 - pow(d, m) - pow(1 - d, m);
      expected_other += m * fmin(d, 1 - d);
      mixed += ups && ups < same - k;
      wrong += ups; /* the threshold moves above them */
      wrong -= same - k - ups;
      least = wrong < least ? wrong : least;
    }
    other += least;
  }
  if (expected_mixed > ENOUGH_MIXED && (double)mixed * MIXED_ONE_IN < expected_mixed) return 0;
  return (double)other > OF_CHANCE * expected_other;
}

/* The logarithm of a thousand: modes and numbers of bits that are this much less likely than the best are ruled out. With less, the right one
 * would be ruled out once in a while; with more, modes stay open that the data tell apart. */
static const double LESS_LIKELY = 7;
/* How much a draw that a mode cannot give counts against it, as a logarithm: enough that a single one rules the mode out beside a mode that gives
 * all draws, and so little that, among modes that cannot give some draws, the one with fewer of them is best. */
static const double IMPOSSIBLE = -40;
/* A mode that comes later in the table must be better by more than the sums of logarithms are rounded. */
static const double ANY_BETTER = 1e-9;

/* A sum of draws is called biased beyond so many of its standard deviations, which chance exceeds once in 10^15. With fewer, some of the many data
 * that people try are called biased; with more, a small bias needs more data to be seen. */
static const double DEVIATIONS = 8;

/* How many draws are needed to believe in chance, and how rarely a code may be neither neighbour of its value. */
enum { ENOUGH_DRAWS = 64, BEYOND_ONE_IN = 1000 };
/* How many draws are examined: more show a smaller bias, and take longer for each rule. */
enum { MOST_DRAWS = 120000 };
/* How many random bits of a draw are tried: SPEC allows no more, and binary32 has no more. */
enum { MOST_BITS = 24 };

/* What has one number each, and how many draws one number is behind. */
static double find_sharing(random_facts *out, const draw *draws, size_t n, const observation *o) {
  const mx_sample *s = &o->samples[0];
  sharer *all = noted(malloc((n + 1) * sizeof *all), o->lack);
  for (size_t i = 0; i < n && all; i++)
    all[i] = (sharer){(uint32_t)(draws[i].index / s->cols), (uint32_t)(draws[i].index % s->cols), draws[i].d, draws[i].up,
                      (int)(draws[i].place & 1)};
  const size_t numbers = all ? mxi_random_sharing(out->shared, sizeof out->shared, all, n, s->rows, s->cols, o->lack) : n;
  free(all);
  return numbers ? (double)n / (double)numbers : 1;
}

void mxi_random_estimate(random_facts *out, const observation *o, const mx_spec *spec) {
  mx_plan p;
  *out = (random_facts){.mode = MX_SR_FAST, .bits_least = 1, .bits_most = MOST_BITS};
  draw *draws = noted(malloc((MOST_DRAWS + 1) * sizeof *draws), o->lack);
  if (!draws || plan_towards_zero(&p, o, spec)) {
    free(draws);
    return;
  }
  size_t n = 0, n_first = 0; /* of the first sample */
  double bias = 0;
  for (size_t i = 0; i < o->n_blocks && n < MOST_DRAWS; i++) {
    if (o->blocks[i].kind != BLOCK_PLAIN) continue;
    mxi_plan_set_amax(&p, mxi_observation_amax(o, o->blocks[i].sample, &p.spec));
    const size_t before = n;
    n += draws_of(draws + n, MOST_DRAWS - n, o, &p, &o->blocks[i], &out->beyond);
    if (o->blocks[i].sample == 0 && before == n_first) n_first = n;
  }
  const double each = find_sharing(out, draws, n_first, o); /* so many draws say as much as one */
  for (size_t i = 0; i < n; i++) bias += draws[i].up - draws[i].d;
  out->n = n;
  out->bias = n ? bias / (double)n : 0;
  double likelihood[MODES][MOST_BITS + 1], best = -INFINITY;
  for (int mode = 0; mode < MODES; mode++)
    for (int r = 1; r <= MOST_BITS; r++) {
      double sum = 0;
      for (size_t i = 0; i < n; i++) {
        const double c = chance(draws[i].d, mode, r), q = draws[i].up ? c : 1 - c;
        sum += q > 0 ? log(q) : IMPOSSIBLE;
      }
      likelihood[mode][r] = sum;
      if (sum > best + (mode < MX_SR_COUNT ? ANY_BETTER : LESS_LIKELY)) best = sum, out->mode = mode;
    }
  out->bits_least = MOST_BITS;
  out->bits_most = 1;
  for (int mode = 0; mode < MODES; mode++)
    for (int r = 1; r <= MOST_BITS; r++) {
      if (likelihood[mode][r] < best - LESS_LIKELY || (mode == MODE_BELOW && out->mode != mode)) continue;
      if (r < out->bits_least) out->bits_least = r;
      if (r > out->bits_most) out->bits_most = r;
    }
  /* Each draw's surprise has a mean and a variance that its chance gives. */
  double expected = 0, variance = 0, ups = 0, spread = 0;
  for (size_t i = 0; i < n; i++) {
    const double c = chance(draws[i].d, out->mode, out->bits_most);
    ups += draws[i].up - c;
    spread += c * (1 - c);
    if (c <= 0 || c >= 1) continue;
    expected += c * log(c) + (1 - c) * log(1 - c);
    variance += c * (1 - c) * pow(log(c) - log(1 - c), 2);
  }
  out->biased = fabs(ups) >= DEVIATIONS * sqrt(each * spread) + 1 || out->mode == MODE_BELOW;
  if (out->mode == MODE_BELOW) out->mode = MX_SR_FASTEST;
  const double far = fabs(best - expected);
  const int as_expected = far < DEVIATIONS * sqrt(each * variance) + 1;
  if (out->biased && far >= DEVIATIONS * sqrt(variance) + 1)
    out->bits_least = out->bits_most = 0; /* draws of no mode: what fits best says nothing of the bits */
  out->believable = n >= ENOUGH_DRAWS && out->beyond * BEYOND_ONE_IN <= n && (out->biased || as_expected) && is_chance(draws, n);
  free(draws);
}

/* ---- a first look */

/* So many draws are looked at, of so many blocks; fewer than a few say nothing, and are taken for what may be. One in so many may be neither neighbour of its
 * value, as where a rule for the ends of the range is not known yet. */
enum { LOOKED_DRAWS = 4096, LOOKED_BLOCKS = 256, ODD_ONE_IN = 50 };

static int may_be(draw *draws, size_t n, uint64_t odd) { return n && odd * ODD_ONE_IN <= n && (n < ENOUGH_DRAWS || is_chance(draws, n)); }

int mxi_random_elements_may_be(const search *s, const mx_spec *spec) {
  const observation *o = s->o;
  mx_plan p;
  draw *draws = noted(malloc((LOOKED_DRAWS + 1) * sizeof *draws), o->lack);
  size_t n = 0, plain = 0, seen = 0;
  uint64_t odd = 0;
  int may = 0;
  if (draws && !plan_towards_zero(&p, o, spec)) {
    for (size_t i = 0; i < o->n_blocks; i++) plain += o->blocks[i].kind == BLOCK_PLAIN;
    for (size_t i = 0; i < o->n_blocks && n < LOOKED_DRAWS && odd * ODD_ONE_IN <= LOOKED_DRAWS; i++) {
      if (o->blocks[i].kind != BLOCK_PLAIN) continue;
      const size_t at = seen++;
      if (plain > LOOKED_BLOCKS && at * LOOKED_BLOCKS / plain == (at + 1) * LOOKED_BLOCKS / plain) continue;
      mxi_plan_set_amax(&p, mxi_observation_amax(o, o->blocks[i].sample, &p.spec));
      n += draws_of(draws + n, LOOKED_DRAWS - n, o, &p, &o->blocks[i], &odd);
    }
    may = may_be(draws, n, odd);
  }
  free(draws);
  return may;
}

/* How often a scale is the larger one of its two is counted over a few seeds. */
int mxi_random_scales_may_be(const search *s, const mx_spec *spec) {
  enum { SEEDS = 64 };
  const block_set *set = &s->scales;
  seed_trial t;
  mx_spec drawn = *spec;
  drawn.scale_round = MX_SCALE_ROUND_SR;
  draw *draws = noted(malloc((set->n + 1) * sizeof *draws), s->o->lack);
  size_t n = 0;
  uint64_t odd = 0;
  int may = 0;
  if (draws && !mx_spec_check(&drawn, NULL) && mxi_seed_trial_open(&t, set, &drawn)) {
    for (size_t i = 0; i < set->n && odd * ODD_ONE_IN <= set->n; i++) {
      const uint32_t seen = s->o->blocks[set->at[i].block].scale;
      uint32_t code[SEEDS], least = UINT32_MAX, most = 0, ups = 0;
      for (uint64_t seed = 0; seed < SEEDS; seed++) {
        if (!mxi_seed_trial_scale(&code[seed], &t, i, seed)) code[seed] = seen; /* which says nothing */
        if (code[seed] < least) least = code[seed];
        if (code[seed] > most) most = code[seed];
      }
      for (size_t k = 0; k < SEEDS; k++) ups += code[k] == most;
      if (least == most) /* its neighbours may be drawn too seldom to be seen */
        odd += seen + 1 != least && seen != least && seen != most + 1;
      else if (seen != least && seen != most)
        odd++;
      else
        draws[n++] = (draw){.index = i, .d = (double)ups / SEEDS, .up = seen == most};
    }
    may = may_be(draws, n, odd);
  }
  free(draws);
  return may;
}

/* ---- the seed */

static uint32_t word_of(uint64_t seed, int lfsr, uint64_t index) {
  if (!lfsr) return mx_random(seed, MX_STREAM_ELEMENT, index);
  const uint32_t pair = mx_random(seed, MX_STREAM_ELEMENT, index / 2);
  return index % 2 ? mx_random_lfsr(pair) : pair;
}

/* Could this random word have rounded the draw so, whatever the mode, with enough bits that `slack` covers them? */
static int word_fits(uint32_t word, const draw *d, double slack) {
  const double u = word * 0x1p-32 + d->d; /* up from 1 on, about */
  return d->up ? u >= 1 - slack : u <= 1 + slack;
}

static int fits(uint64_t seed, int lfsr, const draw *draws, size_t n, double slack) {
  for (size_t i = 0; i < n; i++)
    if (!word_fits(word_of(seed, lfsr, draws[i].index), &draws[i], slack)) return 0;
  return 1;
}

/* Does spec give the codes of the chosen blocks under the stored scales? Under foursix either scale is accepted, since its error is not known yet. */
static int gives_codes(const search *s, const mx_spec *spec) {
  return !score_total(mxi_set_score(&s->sets[BLOCK_PLAIN], spec, LOOK_BOTH | LOOK_EITHER, 1, NULL));
}

/* mode, bits (not fewer than these) and source that give the chosen blocks with this seed. */
static int settle_mode(search *s, mx_spec *spec, uint64_t seed, int lfsr, uint32_t least_bits) {
  /* 0: as many as SPEC's default. Those that hardware and libraries draw come first, since of two that give the chosen blocks the first is taken. */
  static const int bits[] = {0, 8, 12, 10, 4, 20, 24, 23, 16, 11, 13, 14, 15, 9, 7, 6, 5, 3, 2, 1, 17, 18, 19, 21, 22};
  mx_spec t = *spec;
  t.seed = seed;
  if (lfsr) {
    t.sr_source = MX_SR_SOURCE_AMD_LFSR;
    if (!gives_codes(s, &t)) return 0;
    *spec = t;
    return 1;
  }
  for (size_t b = 0; b < sizeof bits / sizeof bits[0]; b++)
    for (t.sr_mode = 0; t.sr_mode < MX_SR_COUNT; t.sr_mode++) {
      t.sr_bits = (uint32_t)bits[b];
      if (t.sr_bits && t.sr_bits < least_bits) continue;
      if (!gives_codes(s, &t)) continue;
      *spec = t;
      return 1;
    }
  return 0;
}

/* Prescales within these factors of the one that was read off are tried, with a denominator of at most so much: random rounding leaves a few
 * hundredths open. A wider range lets wrong seeds fit with a prescale of their own; a narrower one loses the right one. Only from MANY_BITS bits on,
 * since few bits fit many seeds with some prescale. */
static const float LEAST_PRESCALE = 0.96f, MOST_PRESCALE = 1.04f;
enum { MOST_PRESCALES = 40, MANY_BITS = 7 };

/* The same with numbers near elem.prescale as well: random rounding allows many, and only the seed tells which. Few bits allow many still. */
static int settle_near(search *s, mx_spec *spec, uint64_t seed, int lfsr) {
  static const int denominators[] = {1, 20, 100, 64}; /* whole numbers, twentieths and hundredths as people write them, and 64ths */
  const float k = spec->elem_prescale;
  if (settle_mode(s, spec, seed, lfsr, k != 0 ? MANY_BITS : 0)) return 1;
  for (size_t i = 0; i < sizeof denominators / sizeof denominators[0] && k != 0; i++) {
    const float least = ceilf(LEAST_PRESCALE * k * (float)denominators[i]), most = MOST_PRESCALE * k * (float)denominators[i];
    for (float n = least; n <= most && most - least < MOST_PRESCALES; n++) {
      mx_spec t = *spec;
      t.elem_prescale = (float)((double)n / denominators[i]);
      if (!settle_mode(s, &t, seed, lfsr, MANY_BITS)) continue;
      *spec = t;
      return 1;
    }
  }
  return k != 0 && settle_mode(s, spec, seed, lfsr, 0);
}

/* How many seeds that fit the draws are tried on blocks: with slack for few bits there may be more, and then all are likely to be wrong. */
enum { MOST_GOOD = 64 };
/* Seeds to be tried below which one thread is done before others have started. */
enum { ONE_THREAD = 4096 };

static int try_seeds(search *s, mx_spec *spec, const uint64_t *list, uint64_t first, size_t n, int lfsr, const draw *draws, size_t n_draws,
                     double slack) {
  enum { GROUP = 32, GROUPS_A_PIECE = 32 }; /* seeds whose first words are drawn side by side, and groups that a thread takes at a time */
  uint64_t good[MOST_GOOD];
  size_t n_good = 0;
#pragma omp parallel for schedule(static, GROUPS_A_PIECE) num_threads(s->threads) if (n > ONE_THREAD)
  for (size_t group = 0; group < n; group += GROUP) {
    /* Tests the first word of each seed of a group without a branch between them; it rules out three of four seeds. */
    const size_t in_group = n - group < GROUP ? n - group : GROUP;
    uint32_t words[GROUP];
    for (size_t i = 0; i < in_group; i++) words[i] = word_of(list ? list[group + i] : first + group + i, lfsr, draws[0].index);
    for (size_t i = 0; i < in_group; i++) {
      const uint64_t seed = list ? list[group + i] : first + group + i;
      if (!word_fits(words[i], &draws[0], slack) || !fits(seed, lfsr, draws + 1, n_draws - 1, slack)) continue;
#pragma omp critical(mxi_random_solve)
      if (n_good < MOST_GOOD) good[n_good++] = seed;
    }
  }
  for (size_t k = 0; k < n_good; k++) { /* the least one, whatever the threads did */
    size_t least = k;
    for (size_t i = k; i < n_good; i++)
      if (good[i] < good[least]) least = i;
    const uint64_t seed = good[least];
    good[least] = good[k];
    if (settle_near(s, spec, seed, lfsr)) return 1;
  }
  return 0;
}

/* How likely a seed that has nothing to do with the draw rounds it so. */
static double likely(const draw *d) { return d->up ? d->d : 1 - d->d; }

static int by_likelihood(const void *a, const void *b) {
  const double x = likely(a), y = likely(b);
  return (x > y) - (x < y);
}

/* Draws nearer to either end are rounded there under most seeds, and rule out few. At most so many draws of a block are taken, so that a block
 * whose scale follows another rule does not fill the list. */
static const double MIDDLE_FROM = 0.25, MIDDLE_TO = 0.75;
enum { OF_A_BLOCK = 1 + TESTED / 16 };

/* Elements near the middle of their step, spread over the chosen ordinary blocks; those first that turn most seeds down. */
static size_t choose_draws(draw out[TESTED], const search *s, const mx_spec *spec) {
  const observation *o = s->o;
  const block_set *set = &s->sets[BLOCK_PLAIN];
  mx_plan p;
  size_t n = 0;
  uint64_t beyond = 0;
  const size_t area = o->block_rows * o->block_cols;
  draw *draws = noted(malloc((area + 1) * sizeof *draws), o->lack);
  if (!draws || plan_towards_zero(&p, o, spec)) {
    free(draws);
    return 0;
  }
  for (size_t i = 0; i < set->n && n < TESTED; i++) {
    const block_at *b = &o->blocks[set->at[i].block];
    mxi_plan_set_amax(&p, mxi_observation_amax(o, b->sample, &p.spec));
    const size_t m = draws_of(draws, area, o, &p, b, &beyond);
    for (size_t k = 0, taken = 0; k < m && n < TESTED && taken < OF_A_BLOCK; k++)
      if (draws[k].d > MIDDLE_FROM && draws[k].d < MIDDLE_TO) out[n++] = draws[k], taken++;
  }
  free(draws);
  qsort(out, n, sizeof *out, by_likelihood);
  return n;
}

/* Fewer draws than this fit too many seeds by luck. */
enum { LEAST_TESTED = 24 };

/* r random bits shift a draw by up to 2^(1-r): these slacks suit 7 bits or more, 4, and 3. A larger slack accepts seeds that have nothing to do
 * with the draws, each of which costs a trial of all modes, so fewer seeds are tried under it. Below 3 bits seeds are tried one by one. */
static const double SLACK_7_BITS = 0.02, SLACK_4_BITS = 0.14, SLACK_3_BITS = 0.4;
enum { SEEDS_4_BITS = 1 << (SEED_BITS - 2), SEEDS_3_BITS = 1 << 12, SEEDS_ONE_BY_ONE = 256 };
/* Scales depend on the seed if this many other seeds together leave at least as many scales wrong. */
enum { OTHER_SEEDS = 8 };

static int solve_elements(search *s, mx_spec *spec, int many) {
  const struct {
    double slack;
    int lfsr;
    uint64_t end;
  } pass[] = {{SLACK_7_BITS, 0, UINT64_C(1) << SEED_BITS},
              {SLACK_7_BITS, 1, UINT64_C(1) << SEED_BITS},
              {SLACK_4_BITS, 0, SEEDS_4_BITS},
              {SLACK_3_BITS, 0, SEEDS_3_BITS}};
  draw draws[TESTED];
  const size_t n = choose_draws(draws, s, spec);
  if (n < LEAST_TESTED) return 0;
  for (size_t k = 0; k < sizeof pass / sizeof pass[0] && !budget_over(s->budget); k++) {
    if (!many && try_seeds(s, spec, habits, 0, sizeof habits / sizeof habits[0], pass[k].lfsr, draws, n, pass[k].slack)) return 1;
    const uint64_t end = pass[k].end < LEVELS[many] ? pass[k].end : LEVELS[many];
    for (uint64_t first = many ? LEVELS[many - 1] : 0; first < end && !budget_over(s->budget); first += LANES_A_LOOK * LANE) {
      const uint64_t left = end - first;
      if (try_seeds(s, spec, NULL, first, left < LANES_A_LOOK * LANE ? left : LANES_A_LOOK * LANE, pass[k].lfsr, draws, n, pass[k].slack))
        return 1;
    }
  }
  for (uint64_t seed = 0; many == 1 && seed < SEEDS_ONE_BY_ONE && !budget_over(s->budget); seed++) /* as long as 2^20 of them above */
    if (settle_mode(s, spec, seed, 0, 0)) return 1;
  return 0;
}

/* Do scales of the set depend on the seed? */
static int shows_seed(const block_set *set, const mx_spec *spec) {
  mx_spec t = *spec;
  uint64_t wrong = 0;
  for (t.seed = 1; t.seed <= OTHER_SEEDS; t.seed++) wrong += mxi_set_score(set, &t, LOOK_SCALES, 0, NULL).scales;
  return wrong >= OTHER_SEEDS;
}

/* A right seed gives every scale except those whose rule is not known yet: if more than one in so many is wrong, it is another seed. */
enum { SEED_WRONG_ONE_IN = 50 };
/* On how many blocks a seed's scales are tried first: with fewer, wrong seeds fit by chance; with more, each seed takes longer. */
enum { SCALE_BLOCKS = 128 };

/* A block, and under how many of a few seeds it has the scale that was seen. */
typedef struct telling {
  set_item item;
  size_t fits, at;
} telling;

static int by_fits(const void *a, const void *b) {
  const telling *x = a, *y = b;
  if (x->fits != y->fits) return x->fits < y->fits ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

/* The first blocks of a set, those first that turn most seeds down: most seeds are then turned down by the first or the second. */
static size_t most_telling(set_item out[SCALE_BLOCKS], const block_set *set, const mx_spec *spec) {
  enum { SEEDS = 64 };
  const size_t n = set->n < SCALE_BLOCKS ? set->n : SCALE_BLOCKS;
  telling *t = noted(calloc(n + 1, sizeof *t), set->of->lack);
  for (size_t i = 0; t && i < n; i++) {
    const block_set one = {.of = set->of, .n = 1, .at = &set->at[i]};
    seed_trial trial;
    t[i] = (telling){set->at[i], 0, i};
    if (mxi_seed_trial_open(&trial, &one, spec))
      for (uint64_t seed = 0; seed < SEEDS; seed++) t[i].fits += (size_t)mxi_seed_trial_fits(&trial, seed);
  }
  if (!t) return 0;
  qsort(t, n, sizeof *t, by_fits);
  for (size_t i = 0; i < n; i++) out[i] = t[i].item;
  free(t);
  return n;
}

/* scale.round=sr alone: the seed that gives the scales of a few blocks gives those of the others. */
static int solve_scales(search *s, mx_spec *spec, int many) {
  enum { ASKED = 256 }; /* seeds after which a thread asks for the time, and takes more of them */
  const observation *o = s->o;
  uint64_t found = UINT64_MAX;
  const size_t n_habits = sizeof habits / sizeof habits[0];
  const uint64_t most = UINT64_C(1) << SCALE_SEED_BITS, end = most < LEVELS[many] ? most : LEVELS[many];
  const block_set *set =
      shows_seed(&s->scales, spec) ? &s->scales : &s->sets[BLOCK_SMALL]; /* below the least code alone, under powers of two */
  uint64_t plain = 0;
  if (!shows_seed(set, spec)) return 0;
  for (size_t i = 0; i < o->n_blocks; i++) plain += o->blocks[i].kind == BLOCK_PLAIN;
  set_item *first = noted(malloc(SCALE_BLOCKS * sizeof *first), o->lack);
  const size_t n_first = first ? most_telling(first, set, spec) : 0;
#pragma omp parallel num_threads(s->threads) if (n_first)
  {
    const block_set few = {.of = o, .n = n_first, .at = first}; /* of foursix's two scales either will do */
    seed_trial one;
    mx_spec t = *spec;
    int late = !n_first || !mxi_seed_trial_open(&one, &few, spec);
#pragma omp for schedule(dynamic, ASKED)
    for (uint64_t i = 0; i < end + n_habits; i++) {
      t.seed = i < n_habits ? habits[i] : i - n_habits;
      uint64_t least;
#pragma omp atomic read
      least = found;
      if (i % ASKED == 0) late |= budget_over(s->budget); /* a call of the system */
      if (least <= i || late || !mxi_seed_trial_fits(&one, t.seed)) continue;
      /* Where either of foursix's two scales will do, a few blocks fit many a seed. */
      if (t.select == MX_SELECT_FOURSIX && mxi_scales_score(o, &t, 1u << BLOCK_PLAIN, LOOK_SCALES, NULL).scales * SEED_WRONG_ONE_IN > plain)
        continue;
#pragma omp critical(mxi_random_solve)
      if (i < found) found = i;
    }
  }
  free(first);
  if (found == UINT64_MAX) return 0;
  spec->seed = found < n_habits ? habits[found] : found - n_habits;
  return 1;
}

int mxi_random_settle(search *s, mx_spec *spec) {
  mx_spec t = *spec, best = *spec;
  score least = score_worst();
  for (t.sr_source = MX_SR_SOURCE_PHILOX; t.sr_source <= MX_SR_SOURCE_AMD_LFSR; t.sr_source++)
    for (t.sr_bits = 0; t.sr_bits <= MOST_BITS && score_total(least); t.sr_bits++)
      for (t.sr_mode = 0; t.sr_mode < MX_SR_COUNT && score_total(least); t.sr_mode++) {
        if ((t.sr_source == MX_SR_SOURCE_AMD_LFSR && (t.sr_bits || t.sr_mode)) || mx_spec_check(&t, NULL)) continue;
        if (!gives_codes(s, &t)) continue;
        const score got = mxi_search_score(s, &t, EVERY);
        if (score_less(got, least)) least = got, best = t;
      }
  *spec = best;
  return least.codes != UINT32_MAX;
}

int mxi_random_solve(search *s, mx_spec *spec, int many) {
  mx_spec t = *spec;
  if (t.had_size && t.had_sign == MX_HAD_SIGN_FRESH) return mxi_random_settle(s, spec);          /* the signs have said it */
  const int elements = t.elem_round == MX_ROUND_SR, scales = t.scale_round == MX_SCALE_ROUND_SR; /* one seed for both */
  if (!elements || !solve_elements(s, &t, many)) {
    if (!scales || !solve_scales(s, &t, many) || (elements && !mxi_random_settle(s, &t))) return 0;
  }
  *spec = t;
  return 1;
}

/* How many seeds are tried for 16 signs, which every 65,536th seed fits: with more, chance finds one. */
enum { SHORT_SIGN_SEEDS = 1 << 12 };
/* Seeds that a thread takes at a time. */
enum { SIGN_SEEDS_A_PIECE = 4096 };

int mxi_random_solve_signs(uint64_t *seed, const uint8_t *signs, unsigned size, int n_threads) {
  const size_t n_habits = sizeof habits / sizeof habits[0];
  const uint64_t end = size < 32 ? SHORT_SIGN_SEEDS : (UINT64_C(1) << SIGN_SEED_BITS) + n_habits;
  uint32_t want[4] = {0};
  uint64_t found = UINT64_MAX;
  memcpy(want, signs, size / 8);
  const uint32_t mask = size < 32 ? (1u << size) - 1 : UINT32_MAX;
#pragma omp parallel for schedule(dynamic, SIGN_SEEDS_A_PIECE) num_threads(n_threads)
  for (uint64_t i = 0; i < end; i++) {
    const uint64_t k = i < n_habits ? habits[i] : i - n_habits;
    uint64_t least;
#pragma omp atomic read
    least = found;
    int same = i < least && ((mx_random(k, MX_STREAM_SIGN, 0) ^ want[0]) & mask) == 0;
    for (unsigned w = 1; same && w < size / 32; w++) same = mx_random(k, MX_STREAM_SIGN, w) == want[w];
    if (!same) continue;
#pragma omp critical(mxi_random_solve)
    if (i < found) found = i;
  }
  if (found == UINT64_MAX) return 0;
  *seed = found < n_habits ? habits[found] : found - n_habits;
  return 1;
}
