/* Encodes every float, by table (make exhaustive).
 *
 * Encoding is monotone for each sign, so a format and a rounding are known by their steps: the first float of each code. The steps are found
 * by bisection with ref_encode, and proved by calling it on both sides of each. First, all 2^32 floats go through the library and must agree
 * with the steps. Second, ref_encode itself is run on all 2^32 floats for e2m1, e4m3, ue5m3 and e8m0 under RNE. Third, all 2^31 block maxima
 * go through each scale rule of e8m0: the library's byte must step where the reference's does. (Under e4m3 and ue5m3 a scale is amax / 6
 * through the encoder of the first part.) */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../ref/ref.h"
#include "mxgold/mxgold.h"

enum { MAX_STEPS = 4200, CHUNK = 1 << 16 };
#define INF_BITS UINT32_C(0x7F800000)

typedef struct steps {
  size_t n;
  uint32_t first[MAX_STEPS]; /* magnitude bits at which code[i] begins */
  uint16_t code[MAX_STEPS];
} steps;

static float from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint16_t ref_code(const mx_format *f, uint32_t bits, const mx_encoding *how) {
  return (uint16_t)ref_encode(f, (double)from_bits(bits), how, 0);
}

/* Finds the steps over magnitudes 0 .. Inf of one sign by divide and conquer: a monotone function with equal ends is constant. */
static void find_steps(steps *s, const mx_format *f, uint32_t sign, const mx_encoding *how) {
  uint32_t at = 0;
  s->n = 0;
  for (;;) {
    const uint16_t code = ref_code(f, sign | at, how);
    if (s->n == MAX_STEPS) abort();
    s->first[s->n] = at;
    s->code[s->n++] = code;
    if (ref_code(f, sign | INF_BITS, how) == code) {
      /* It is constant to the end unless it left and came back, which a monotone function does not; this is proved below for every step. */
      return;
    }
    uint32_t low = at, high = INF_BITS; /* the same code at low, another one at high */
    while (high - low > 1) {
      const uint32_t middle = low + (high - low) / 2;
      if (ref_code(f, sign | middle, how) == code)
        low = middle;
      else
        high = middle;
    }
    at = high;
  }
}

static size_t prove_steps(const steps *s, const mx_format *f, uint32_t sign, const mx_encoding *how) {
  size_t wrong = 0;
  for (size_t i = 0; i < s->n; i++) {
    wrong += ref_code(f, sign | s->first[i], how) != s->code[i];
    if (i) wrong += ref_code(f, sign | (s->first[i] - 1), how) != s->code[i - 1];
  }
  return wrong;
}

/* Computes the codes of the CHUNK floats from `bits` on. */
typedef void encode_chunk(uint16_t *out, const mx_format *f, uint32_t bits, const mx_encoding *how);

static void by_library(uint16_t *out, const mx_format *f, uint32_t bits, const mx_encoding *how) {
  static _Thread_local float x[CHUNK];
  static _Thread_local uint8_t bytes[CHUNK];
  for (uint32_t i = 0; i < CHUNK; i++) {
    const uint32_t at = bits + i;
    memcpy(x + i, &at, sizeof at);
  }
  mx_encode_array(f->bits > 8 ? (void *)out : bytes, x, CHUNK, f, how, &(mx_exec){.n_threads = 1});
  for (uint32_t i = 0; f->bits <= 8 && i < CHUNK; i++) out[i] = bytes[i];
}

static void by_reference(uint16_t *out, const mx_format *f, uint32_t bits, const mx_encoding *how) {
  for (uint32_t i = 0; i < CHUNK; i++) out[i] = ref_code(f, bits + i, how);
}

/* Compares all floats of one sign, NaN included, with the steps; returns how many differ. */
static uint64_t compare_all(const steps *s, const mx_format *f, uint32_t sign, const mx_encoding *how, encode_chunk *encode) {
  uint64_t differ = 0;
  const uint16_t nan = ref_code(f, sign | 0x7FC00000, how);
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : differ)
  for (uint32_t c = 0; c < UINT32_C(0x80000000) / CHUNK; c++) {
    static _Thread_local uint16_t got[CHUNK];
    const uint32_t begin = c * CHUNK;
    size_t at = 0; /* the step that contains `begin` */
    for (size_t low = 0, high = s->n; low < high;) {
      const size_t middle = (low + high) / 2;
      if (s->first[middle] <= begin)
        at = middle, low = middle + 1;
      else
        high = middle;
    }
    encode(got, f, sign | begin, how);
    for (uint32_t i = 0; i < CHUNK;) { /* from step to step, since all codes within one are the same */
      uint32_t until = CHUNK;
      if (at + 1 < s->n && s->first[at + 1] - begin < until) until = s->first[at + 1] - begin;
      if (begin + i <= INF_BITS && begin + until > INF_BITS + 1) until = INF_BITS + 1 - begin;
      const uint16_t want = begin + i > INF_BITS ? nan : s->code[at];
      uint32_t wrong = 0;
      const uint32_t from = i;
      for (; i < until; i++) wrong += got[i] != want;
      /* rne_f32 is not monotone at one float, the predecessor of its first tie, so the reference itself decides what the steps do not
       * explain. */
      for (uint32_t k = from; wrong && k < until; k++) differ += got[k] != want && got[k] != ref_code(f, sign | (begin + k), how);
      if (at + 1 < s->n && begin + i == s->first[at + 1]) at++;
    }
  }
  return differ;
}

static const char *round_name(int round) {
#define R_(id, name, ...) name,
  static const char *names[] = {MX_LIST_ROUND(R_)};
#undef R_
  return names[round];
}

static void report(const char *what, const char *name, const char *rule, uint64_t n, uint64_t differ, double seconds) {
  printf("%-10s %-14s %-22s %11" PRIu64 " floats %" PRIu64 " differ  %.1f s\n", what, name, rule, n, differ, seconds);
  fflush(stdout);
}

static void progress(size_t done, size_t all) {
  if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%zu of %zu ", done, all);
}

static uint64_t encodes(const mx_format *f, int round, const char *what, encode_chunk *encode) {
  const mx_encoding how = {.round = round};
  const double t = now();
  uint64_t differ = 0;
  for (uint32_t sign = 0; sign < 2; sign++) {
    static steps s;
    find_steps(&s, f, sign << 31, &how);
    differ += prove_steps(&s, f, sign << 31, &how);
    differ += compare_all(&s, f, sign << 31, &how, encode);
  }
  report(what, f->name, round_name(round), UINT64_C(1) << 32, differ, now() - t);
  return differ;
}

/* Elements in a block: one of them is the maximum, the others are 0. */
enum { BLOCK = 16, BLOCKS = CHUNK / BLOCK };

/* The reference's scale byte for a block whose maximum has these bits. */
static uint8_t ref_byte(const mx_spec *spec, uint32_t bits) {
  const float x[BLOCK] = {[5] = from_bits(bits)};
  uint8_t scale = 0, codes[BLOCK];
  mx_tensor t;
  mx_tensor_layout(&t, 1, BLOCK, spec);
  t.codes = codes;
  t.scales = &scale;
  ref_quantize(&t, x, 1, BLOCK, BLOCK, spec, NULL, NULL);
  return scale;
}

/* Finds the steps of the reference's byte over 0 .. FLT_MAX. Rules by log2f are monotone too; rules that wrap are not, and are left out. */
static void find_maxima(steps *s, const mx_spec *spec) {
  s->n = 0;
  for (uint32_t at = 0; at < INF_BITS;) {
    const uint8_t byte = ref_byte(spec, at);
    if (s->n == MAX_STEPS) abort();
    s->first[s->n] = at;
    s->code[s->n++] = byte;
    if (ref_byte(spec, INF_BITS - 1) == byte) break;
    uint32_t low = at, high = INF_BITS - 1;
    while (high - low > 1) {
      const uint32_t middle = low + (high - low) / 2;
      if (ref_byte(spec, middle) == byte)
        low = middle;
      else
        high = middle;
    }
    at = high;
  }
}

/* Compares all 2^31 maxima: the library in rows of blocks, with the maximum at each place in turn, and the reference by its steps. */
static uint64_t maxima(const char *name, const char *keys) {
  mx_spec spec = {0};
  if (mx_spec_parse(&spec, keys, NULL)) abort();
  spec.block_cols = BLOCK;
  const double t = now();
  static steps s;
  find_maxima(&s, &spec);
  uint64_t differ = 0;
#pragma omp parallel reduction(+ : differ)
  {
    float *x = calloc(CHUNK, sizeof *x);
    mx_tensor q;
    if (!x || mx_tensor_alloc(&q, 1, CHUNK, &spec)) abort();
#pragma omp for schedule(dynamic, 64)
    for (uint32_t c = 0; c < INF_BITS / BLOCKS; c++) {
      for (uint32_t i = 0; i < BLOCKS; i++) x[i * BLOCK + i % BLOCK] = from_bits(c * BLOCKS + i);
      mx_quantize(&q, x, 1, CHUNK, CHUNK, &spec, &(mx_exec){.n_threads = 1}, NULL);
      size_t at = 0;
      for (uint32_t i = 0; i < BLOCKS; i++) {
        while (at + 1 < s.n && c * BLOCKS + i >= s.first[at + 1]) at++;
        differ += q.scales[i] != s.code[at];
      }
    }
    mx_tensor_free(&q);
    free(x);
  }
  report("maxima", name, "", INF_BITS, differ, now() - t);
  return differ;
}

int main(int argc, char **argv) {
  const char *only = argc > 1 ? argv[1] : NULL; /* part of a format's or rule's name */
  const char *phase = getenv("PHASE");          /* only encode, reference or maxima */
#define PHASE(name) (!phase || !strcmp(phase, name))
  uint64_t differ = 0;
  const double t = now();
  size_t done = 0, ran = 0;
  const size_t all = (MX_ELEM_COUNT - 2 + MX_SCALE_COUNT - 2) * 8;
  for (int i = 0; PHASE("encode") && i < MX_ELEM_COUNT + MX_SCALE_COUNT; i++) {
    const mx_format *f = i < MX_ELEM_COUNT ? mx_elem_format(i) : mx_scale_format(i - MX_ELEM_COUNT);
    const int repeated =
        i >= MX_ELEM_COUNT && f->kind == MX_KIND_FLOAT && f->sign_bits; /* e4m3 is an element too; bf16, fp32 are not block codes */
    if (f->kind == MX_KIND_NONE || repeated || (only && !strstr(f->name, only))) continue;
    for (int round = MX_ROUND_RNE; round < MX_ROUND_SCAN_Y;
         round++) { /* the roundings that search for the nearest value need a block's scale */
      if (round == MX_ROUND_SR) continue;
      differ += encodes(f, round, "encode", by_library);
      progress(++done, all);
      ran++;
    }
  }
  static const char *whole[] = {"e2m1", "e4m3", "ue5m3", "e8m0"};
  for (size_t i = 0; PHASE("reference") && i < 4; i++)
    if (!only || strstr(whole[i], only)) ran++, differ += encodes(mx_format_find(whole[i]), MX_ROUND_RNE, "reference", by_reference);
  static const char *rules[][2] = {{"floor", "scale.rule=floor"},
                                   {"floor-log2f", "scale.rule=floor scale.log2=log2f"},
                                   {"ceil", "scale.rule=ceil"},
                                   {"ceil-log2f", "scale.rule=ceil scale.log2=log2f"},
                                   {"even", "scale.rule=even"},
                                   {"value-rne", "scale.rule=value"},
                                   {"value-up", "scale.rule=value scale.round=up"},
                                   {"value-up-recip32", "scale.rule=value scale.round=up scale.arith=recip32"},
                                   {"value-up-div32-bump", "scale.rule=value scale.round=up scale.arith=div32 scale.subnormal=bump"},
                                   {"value-up-log2f", "scale.rule=value scale.round=up scale.arith=div32 scale.log2=log2f"},
                                   {"value-down", "scale.rule=value scale.round=down"},
                                   {"value-rna", "scale.rule=value scale.round=rna"},
                                   {"quest", "scale.rule=quest"},
                                   {"encode-form", "scale.rule=value scale.form=encode elem.arith=mul32"}};
  for (size_t i = 0; PHASE("maxima") && i < sizeof rules / sizeof rules[0]; i++)
    if (!only || strstr(rules[i][0], only)) ran++, differ += maxima(rules[i][0], rules[i][1]);
  if (!ran) {
    fprintf(stderr, "exhaustive: no format or rule has '%s' in its name\n", only ? only : "");
    return 2;
  }
  printf("exhaustive: %" PRIu64 " differ, %.0f s, %d threads\n", differ, now() - t, omp_get_max_threads());
  return differ != 0;
}
