/* Tests faults in the reference and in the library: both know the same words, numbers typed by hand hold for both, and random faults over random specs
 * give the same bytes. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mixtures.h"
#include "lib/run.h"
#include "mxgold/mxgold.h"
#include "ref/fault.h"

static uint64_t state = MIXTURES_SEED;

static uint32_t below(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) * n >> 31);
}

/* ---- both */

enum { SAME, REFUSED, DIFFERENT };

typedef struct outcome {
  mx_status library, reference;
  size_t scale, code; /* the first byte that differs; SIZE_MAX: none does */
  int bites;          /* the fault changes a byte of the plain spec */
} outcome;

static int parse(mx_fault *f, ref_fault *ref, const char *text) {
  mx_error err = {0};
  ck_assert_msg(!mx_fault_parse(f, text, &err), "%s: %s", text, err.text);
  ck_assert_msg(!ref_fault_read(ref, text, &err), "%s: %s", text, err.text);
  return 1;
}

static size_t differ(const uint8_t *a, const uint8_t *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (a[i] != b[i]) return i;
  return SIZE_MAX;
}

/* texts: what the library runs; others: what the reference runs, which are the same but for a planted mutant. */
static outcome run(const mx_spec *spec, const float *x, size_t rows, size_t cols, const char texts[][MX_FAULT_TEXT],
                   const char others[][MX_FAULT_TEXT], size_t n) {
  mx_fault f[MX_FAULTS];
  ref_fault ref[MX_FAULTS];
  mx_tensor a = {0}, b = {0}, plain = {0};
  outcome o = {.scale = SIZE_MAX, .code = SIZE_MAX};
  mx_fault unused;
  ref_fault unread;
  for (size_t i = 0; i < n; i++) parse(&f[i], &unread, texts[i]), parse(&unused, &ref[i], others[i]);
  ck_assert_int_eq(mx_tensor_alloc(&a, rows, cols, spec), MX_OK);
  ck_assert_int_eq(mx_tensor_alloc(&b, rows, cols, spec), MX_OK);
  ck_assert_int_eq(mx_tensor_alloc(&plain, rows, cols, spec), MX_OK);
  o.library = mx_quantize_faulty(&a, x, rows, cols, cols, spec, f, n, NULL);
  o.reference = ref_quantize_faulty(&b, x, rows, cols, cols, spec, ref, n, NULL);
  if (!o.library && !o.reference) {
    const size_t scales = a.scale_rows * a.scale_cols * a.scale_bytes, codes = a.rows * a.code_stride;
    o.scale = differ(a.scales, b.scales, scales);
    o.code = differ(a.codes, b.codes, codes);
    if (memcmp(&a.tensor_scale, &b.tensor_scale, sizeof a.tensor_scale) != 0) o.scale = scales;
    if (!mx_quantize(&plain, x, rows, cols, cols, spec, NULL, NULL))
      o.bites = differ(a.scales, plain.scales, scales) != SIZE_MAX || differ(a.codes, plain.codes, codes) != SIZE_MAX ||
                memcmp(&a.tensor_scale, &plain.tensor_scale, sizeof a.tensor_scale) != 0;
  }
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  mx_tensor_free(&plain);
  return o;
}

static int verdict(const outcome *o) {
  if (o->library != o->reference) return DIFFERENT;
  if (o->library) return REFUSED;
  return o->scale == SIZE_MAX && o->code == SIZE_MAX ? SAME : DIFFERENT;
}

/* ---- words */

/* A fault of the library's table with some argument. */
static void spell(char text[MX_FAULT_TEXT], const char *region, int op) {
  static const char *const numbers[] = {"0.5", "0.9", "1.5", "2", "6", "0.1", "100", "-1", "1e30", "33.3", "0"};
  const mx_fault_row *row = mx_fault_row_at(op);
  char argument[128] = "";
  const int rotation = row->stage == MX_STAGE_ROTATION, code = strstr(row->words, " code %s") || strstr(row->words, "code %s ");
  switch (row->arg) {
  case MX_FAULT_ARG_NUMBER:
    snprintf(argument, sizeof argument, " %s", numbers[below(sizeof numbers / sizeof *numbers)]);
    break;
  case MX_FAULT_ARG_COUNT:
    snprintf(argument, sizeof argument, " %d", rotation ? 2 << below(5) : code ? (int)below(300) - 20 : (int)below(9) - 2);
    break;
  case MX_FAULT_ARG_FORMAT: {
    const uint32_t k = below(MX_ELEM_NONE + MX_SCALE_COUNT);
    snprintf(argument, sizeof argument, " %s", k < MX_ELEM_NONE ? mx_elem_format((int)k)->name : mx_scale_format((int)k - MX_ELEM_NONE)->name);
    break;
  }
  case MX_FAULT_ARG_LAYOUT:
    snprintf(argument, sizeof argument, " %s", mx_layout_name((mx_layout)(1 + below(4))));
    break;
  case MX_FAULT_ARG_BITS: {
    uint32_t bits[6];
    const uint32_t rows = below(4), cols = below(3) + !rows, n = rows + cols;
    size_t at = 0;
    for (uint32_t k = 0; k < n; k++) bits[k] = 1u << k;
    for (uint32_t k = 0; k < n; k++) { /* shuffled */
      const uint32_t from = k + below(n - k), own = bits[k];
      bits[k] = bits[from], bits[from] = own;
    }
    for (uint32_t k = below(2) ? 0 : 2 * n; k < 2 * n; k++) { /* and added to each other, so that they stay apart */
      const uint32_t to = below(n), from = below(n);
      if (to != from) bits[to] ^= bits[from];
    }
    for (uint32_t k = 0; k < n; k++)
      for (uint32_t i = n, first = 1; i--;) {
        if (!(bits[k] >> i & 1)) continue;
        at += (size_t)snprintf(argument + at, sizeof argument - at, "%c%c%u",
                               !first ? '^'
                               : k    ? ','
                                      : ' ',
                               i < cols ? 'c' : 'r', (i < cols ? i : i - cols) % 8);
        first = 0;
      }
    break;
  }
  case MX_FAULT_ARG_DIGITS: {
    const uint32_t n = op == MX_FAULT_CODE_TABLE ? 16 : below(2) ? 4 : 8 - 2 * (below(4) == 0);
    for (uint32_t k = 0; k < n; k++) snprintf(argument + k + 1, sizeof argument - k - 1, "%x", below(n));
    *argument = ' ';
    break;
  }
  case MX_FAULT_ARG_RANDOM: {
    static const char *const generators[] = {"philox",
                                             "philox1",
                                             "curand",
                                             "curand4",
                                             "lfsr16",
                                             "lcg",
                                             "xorshifts",
                                             "splitmix",
                                             "numpy",
                                             "numpy32",
                                             "pcg",
                                             "fmix",
                                             "golden",
                                             "lowbias",
                                             "wang",
                                             "xorshift",
                                             "xorshift2",
                                             "xorshift3",
                                             "lcg1",
                                             "weyl",
                                             "mix64",
                                             "hash-9e3779b1-15-85ebca77-13",
                                             "hash-16-045d9f3b-16-045d9f3b-16",
                                             "hash-17-ed5ad4bb-11-ac4c1b51-15",
                                             "hash-4-18",
                                             "hash-2c9277b5-68e31da5-1b56c4e9"};
    static const char *const counts[] = {"index", "padded/2", "column", "row", "block", "lane/4", "tile2", "tile16/8", "index/128"};
    static const char *const parts[] = {"32", "24", "1", "16", "low8", "low32", "folded", "15", "low1", "split16", "split4"};
    const uint32_t g = below(sizeof generators / sizeof *generators);
    const char join = g < 10 ? ':' : "+^"[below(2)];
    snprintf(argument, sizeof argument, " %s %u%c%s %s", generators[g], below(3) ? below(5000) : UINT32_MAX - below(3), join,
             join == ':' && below(3) == 0 ? (below(2) ? "inrow" : "inblock/2") : counts[below(sizeof counts / sizeof *counts)],
             parts[below(sizeof parts / sizeof *parts)]);
    break;
  }
  case MX_FAULT_ARG_RULE: {
    static const char *const rules[] = {"floor", "ceil", "even", "up", "nearest", "down", "half up", "cast"};
    snprintf(argument, sizeof argument, " %s", rules[below(sizeof rules / sizeof *rules)]);
    break;
  }
  default:
    break;
  }
  snprintf(text, MX_FAULT_TEXT, "%s: %s <- %s%s", region, mx_stage_name(row->stage), row->op, argument);
}

static const char *const regions[] = {"all",
                                      "rows%4=3",
                                      "rows=1-2",
                                      "rows%3=0,2",
                                      "columns=0-15",
                                      "columns%5=1-3",
                                      "blocks%2=1",
                                      "blocks=1-",
                                      "tail",
                                      "zero",
                                      "subnormal",
                                      "negative",
                                      "positive",
                                      "scale=100-130",
                                      "scale=0-8",
                                      "elements%2=1",
                                      "elements=0-9",
                                      "elements=15",
                                      "order%4=1",
                                      "order=2-3",
                                      "blocks%2=1 and rows%4=1-3",
                                      "negative and rows=1-",
                                      "columns=0-15 and tail",
                                      "zero and rows%2=0",
                                      "elements%2=1 and blocks=0"};

/* What the library can read, the reference can read: a row of faults.def or a region that ref lacks is found here. */
START_TEST(every_word_is_known_to_both) {
  mx_fault f;
  ref_fault ref;
  char text[MX_FAULT_TEXT];
  for (int op = 1; op < MX_FAULT_COUNT; op++) {
    spell(text, "all", op);
    parse(&f, &ref, text);
    ck_assert_msg(f.op == op && !strcmp(ref.op, mx_fault_row_at(op)->op) && ref.stage == mx_fault_row_at(op)->stage, "%s", text);
  }
  for (int of = 0; of < MX_REGION_COUNT; of++) {
    const mx_fault some = {.region = {.of = of, .first = 3, .last = 5}, .op = 1};
    mx_fault_print(text, sizeof text, &some);
    parse(&f, &ref, text);
    ck_assert(f.region.of == of && f.also.of == MX_REGION_ALL && !ref.region[1].name);
  }
  parse(&f, &ref, "rows=3- and tail: input <- relu");
  ck_assert(f.region.of == MX_REGION_ROWS && f.region.first == 3 && f.also.of == MX_REGION_TAIL);
  ck_assert(!strcmp(ref.region[0].name, "rows") && ref.region[0].first == 3 && !strcmp(ref.region[1].name, "tail"));
}
END_TEST

START_TEST(both_refuse_what_is_no_word) {
  static const char *const texts[] = {"",
                                      "all: input relu",
                                      "input <- relu",
                                      "all: output <- relu",
                                      "all: input <- softmax",
                                      "all: input <- relu 3",
                                      "all: input <- clip",
                                      "all: input <- clip 1e999",
                                      "all: input <- column 1.5",
                                      "all: input <- column 9999999999",
                                      "all: divisor <- as e9m9",
                                      "all: layout <- scales in row",
                                      "all: divisor <- rule quest",
                                      "all: divisor <- rule",
                                      "rows: input <- relu",
                                      "rows%0=0: input <- relu",
                                      "rows%129=0: input <- relu",
                                      "rows%4=4: input <- relu",
                                      "rows%4=3,: input <- relu",
                                      "rows=7-3: input <- relu",
                                      "rows=1,2: input <- relu",
                                      "tail=3: input <- relu",
                                      "rows=3 and: input <- relu",
                                      "rows=3 and tail and blocks=1: input <- relu",
                                      "rows=3 and all: input <- relu",
                                      "all and rows=3: input <- relu",
                                      "all: code <- bits",
                                      "all: code <- bits 0",
                                      "all: code <- bits 4321",
                                      "all: code <- bits 012345678",
                                      "all: code <- bits 01 23",
                                      "all: code <- table",
                                      "all: code <- table 0123456789abcde",
                                      "all: code <- table 0123456789abcdef0",
                                      "all: code <- table 0123456789ABCDEF",
                                      "all: layout <- codes by bits",
                                      "all: layout <- codes by bits c0,",
                                      "all: layout <- codes by bits c1",
                                      "all: layout <- codes by bits c0,c0",
                                      "all: layout <- codes by bits c0,c2",
                                      "all: layout <- codes by bits c0c1",
                                      "all: layout <- codes by bits c0,x1",
                                      "all: layout <- codes by bits c0^",
                                      "all: layout <- codes by bits ^c0",
                                      "all: layout <- codes by bits c0,c1^c1",
                                      "all: layout <- codes by bits c0,c1^r1",
                                      "all: layout <- codes by bits c0,,c1",
                                      "all: layout <- codes by bits c0^c1,c1^c0",
                                      "all: layout <- codes by bits c0^c1,c1^c2,c0^c2",
                                      "all: layout <- codes by bits c0^r0,c1,c0^c1^r0",
                                      "all: layout <- codes by bits r0,r0^c0,c0,c1",
                                      "all: layout <- codes by bits r0,c0,r1,c1,r2,c2,r3,c3,r4,c4,r5,c5,r6,c6",
                                      "all: element rounding <- random carry",
                                      "all: element rounding <- random carry pcg",
                                      "all: element rounding <- random carry pcg 7:index 24",
                                      "all: element rounding <- random carry philox 7+index 24",
                                      "all: element rounding <- random carry pcg 4294967296+index 24",
                                      "all: element rounding <- random carry pcg 7+index/3 24",
                                      "all: element rounding <- random carry pcg 7+tile 24",
                                      "all: element rounding <- random carry pcg 7+tile3 24",
                                      "all: element rounding <- random carry pcg 7+index2 24",
                                      "all: element rounding <- random carry pcg 7+index 33",
                                      "all: element rounding <- random carry pcg 7+index 0",
                                      "all: element rounding <- random carry pcg 7+index",
                                      "all: element rounding <- random carry pcg 7+index 24 bits",
                                      "all: element rounding <- random carry pcg-15 7+index 24",
                                      "all: element rounding <- random carry hash 7+index 24",
                                      "all: element rounding <- random carry hash- 7+index 24",
                                      "all: element rounding <- random carry hash-15 7:index 24",
                                      "all: element rounding <- random carry hash-3 7+index 24",
                                      "all: element rounding <- random carry hash-19 7+index 24",
                                      "all: element rounding <- random carry hash-9e3779b2 7+index 24",
                                      "all: element rounding <- random carry hash-9e3779b 7+index 24",
                                      "all: element rounding <- random carry hash-9e3779b11 7+index 24",
                                      "all: element rounding <- random carry hash-4-5-6-7 7+index 24",
                                      "all: element rounding <- random carry hash-9e3779b1-15-9e3779b1-9e3779b1-85ebca6b 7+index 24",
                                      "lanes=3: input <- relu"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    mx_fault f;
    ref_fault ref;
    mx_error err = {0};
    ck_assert_msg(mx_fault_parse(&f, texts[i], NULL) == MX_ERR_ARG, "%s", texts[i]);
    ck_assert_msg(ref_fault_read(&ref, texts[i], &err) == MX_ERR_ARG, "%s", texts[i]);
    ck_assert_msg(*err.text && !strchr(err.text, '\n'), "%s: %s", texts[i], err.text);
  }
}
END_TEST

/* ---- numbers typed by hand */

/* A matrix of 2 x 32: row 0 holds 6, -1 and zeros, row 1 holds 3, -1 and zeros. Under ocp-mxfp4 the scales are 2^0 and 2^-1, bytes 127 and 126, and the
 * first bytes of codes A7 (6 is 7, -1 is A) and C7 (3 / 0.5 = 6 is 7, -2 is C). Under nvfp4-plain max|X| is 6 and T = 6 / 2688. */
static const struct {
  const char *preset, *faults[2];
  uint8_t scale[2], code[2]; /* of the first block of each row; and its first byte */
} worked[] = {
    {"ocp-mxfp4", {"all: input <- times 2"}, {128, 127}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"rows=1: input <- abs"}, {127, 126}, {0xA7, 0x47}},
    {"ocp-mxfp4", {"all: input <- minus mean 2"}, {126, 126}, {0xF7, 0xE6}},      /* 3.5, -3.5: 7 saturates; 2, -2 */
    {"ocp-mxfp4", {"all: input <- column 1"}, {126, 125}, {0x0C, 0x0E}},          /* -1, 0, ..., and the 3 of row 1 */
    {"ocp-mxfp4", {"all: rotation <- unnormalised 2"}, {127, 127}, {0x76, 0x64}}, /* 5 is a tie, 7; 2, 4 */
    {"ocp-mxfp4", {"all: rotation <- normalised twice 2"}, {126, 126}, {0x76, 0x64}},
    {"ocp-mxfp4", {"all: rotation <- sequency 4"}, {126, 126}, {0x66, 0x44}},        /* 2.5, 2.5, 3.5, 3.5; 1, 1, 2, 2 */
    {"ocp-mxfp4", {"all: rotation <- down 2"}, {127, 126}, {0xB7, 0x06}},            /* 9, -2 and 3, 0, each over sqrt 2 */
    {"nvfp4-plain", {"rows=9: code <- abs"}, {0x7E, 0x76}, {0xA7, 0xC7}},            /* nowhere: 1 / T = 448, 0.5 / T = 224 */
    {"nvfp4-plain", {"all: tensor amax <- value 2688"}, {0x38, 0x30}, {0xA7, 0xC7}}, /* T = 1: scales of 1 and 0.5 */
    {"nvfp4-plain", {"all: tensor amax <- times 448"}, {0x38, 0x30}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"rows=1: tensor amax <- only"}, {0x7E, 0x7E}, {0xC7, 0xC7}},     /* T = 3 / 2688: 896 saturates at 448, 6 / 0.5 at 6 */
    {"nvfp4-plain", {"all: divisor <- no tensor scale"}, {0x7E, 0x76}, {0x80, 0x80}}, /* 6 / 448, -1 / 448 */
    {"ocp-mxfp4", {"all: block amax <- mean times 32"}, {127, 127}, {0xA7, 0xA5}},    /* 7 and 4 */
    {"ocp-mxfp4", {"all: block amax <- rows 2"}, {127, 127}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"all: block amax <- unsigned"}, {125, 125}, {0xE7, 0xE7}},
    {"ocp-mxfp4", {"all: input <- abs", "all: block amax <- unsigned"}, {127, 126}, {0x27, 0x47}},
    {"ocp-mxfp4", {"elements=0: block amax <- without"}, {125, 125}, {0xE7, 0xE7}},
    {"ocp-mxfp4", {"all: code <- sign bit 23"}, {127, 126}, {0xAF, 0xC7}}, /* exponents 129 and 127, 128 and 127 */
    {"ocp-mxfp4", {"all: layout <- codes of row xor 1"}, {127, 126}, {0xC7, 0xA7}},
    /* 5.4, -.9; 2.7, -.9: T of 5, 483.8 and 241.9; of 5.4 and maxima of 5 and 2, 414.8 and 165.9 */
    {"nvfp4-plain", {"all: input <- times 0.9", "all: tensor amax <- integer"}, {0x7E, 0x77}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"all: tensor amax <- at least 12"}, {0x76, 0x6E}, {0xA7, 0xC7}}, /* T = 12 / 2688: 224 and 112 */
    {"nvfp4-plain", {"all: tensor amax <- at least 5"}, {0x7E, 0x76}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"all: input <- times 0.9", "all: block amax <- integer"}, {0x7D, 0x72}, {0xA7, 0xD7}},
    {"ocp-mxfp4", {"all: block amax <- negative"}, {125, 125}, {0xE7, 0xE7}},      /* of 1: 24 and 12 saturate, -4 */
    {"ocp-mxfp4", {"all: block amax <- plus 2"}, {128, 127}, {0x95, 0xA5}},        /* of 8 and 5: 3, -0.5; 3, -1 */
    {"ocp-mxfp4", {"all: input <- transposed"}, {127, 0}, {0x57, 0x00}},           /* 6, 3, -1, -1 in row 0; row 1 zeros */
    {"ocp-mxfp4", {"all: input <- pitch 1"}, {127, 126}, {0xA7, 0x0C}},            /* row 1: -1, zeros, 3 */
    {"ocp-mxfp4", {"all: rotation <- unfinished 2"}, {127, 126}, {0x96, 0xB6}},    /* each over sqrt 2 alone */
    {"ocp-mxfp4", {"all: block amax <- with next -32"}, {127, 127}, {0xA7, 0xA5}}, /* nothing before row 0, which is before row 1 */
    {"ocp-mxfp4", {"all: block amax <- with block -1"}, {127, 127}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"all: block amax <- running in 4"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: block amax <- strided"}, {127, 126}, {0xA7, 0xC7}},     /* of one block a row that is the block */
    {"ocp-mxfp4", {"all: block amax <- average 0.5"}, {127, 127}, {0xA7, 0xA5}}, /* 3 + 1.5 */
    {"ocp-mxfp4", {"all: rotation <- unnormalised 2", "all: block amax <- before rotation"}, {127, 126}, {0x76, 0x76}},
    {"ocp-mxfp4", {"all: scale rounding <- log2 of amax rounded"}, {128, 127}, {0x95, 0xA5}}, /* 2.58 and 1.58 */
    /* 7.98 and 3.99: 2.9964 and 1.9964, over 2.9922 and 1.9961, from which on the nearest bfloat16 is the integer */
    {"ocp-mxfp4", {"all: input <- times 1.33", "all: scale rounding <- log2 bfloat16"}, {128, 127}, {0x96, 0xB6}},
    {"ocp-mxfp4", {"all: input <- times 1.33", "all: scale rounding <- log2 float16"}, {127, 126}, {0xB7, 0xD7}},
    {"ocp-mxfp4", {"all: layout <- scales written at pitch 2"}, {127, 127}, {0xA7, 0xC7}}, /* the second place is a gap */
    {"ocp-mxfp4", {"all: layout <- scales written over zeros at pitch 2"}, {127, 0}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: layout <- scales read at pitch 2"}, {127, 127}, {0xA7, 0xC7}}, /* the third place, of two */
    {"ocp-mxfp4", {"all: layout <- scales read over zeros at pitch 2"}, {127, 0}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: rotation <- bfloat16 steps 2"}, {127, 126}, {0x66, 0x75}}, /* 3.54, 4.95; 1.41, 2.83 */
    {"ocp-mxfp4", {"all: rotation <- to bfloat16 2"}, {127, 126}, {0x66, 0x75}},
    {"ocp-mxfp4", {"all: input <- times 0.7495", "all: clamp <- bfloat16"}, {127, 126}, {0xA6, 0xB6}}, /* 0.75 is a tie */
    {"ocp-mxfp4", {"all: input <- times 0.7495", "all: clamp <- float16"}, {127, 126}, {0x96, 0xB6}},
    {"ocp-mxfp4", {"all: input <- times 0.8335", "all: element rounding <- float16 cut"}, {127, 126}, {0xA6, 0xB6}}, /* 5.001 is 5, a tie */
    {"ocp-mxfp4", {"all: block amax <- running down 1"}, {127, 127}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"all: divisor <- lanes down of 1"}, {127, 126}, {0xE7, 0xE7}}, /* -1 by the scale of 1 */
    {"ocp-mxfp4", {"all: input <- negate", "elements%2=0: block amax <- no abs"}, {125, 125}, {0x6F, 0x6F}},
    {"ocp-mxfp4", {"all: scale rounding <- or of exponents"}, {253, 253}, {0x80, 0x80}}, /* 129 or 127, 128 or 127: 255 */
    {"nvfp4-plain",
     {"all: scale rounding <- format ue5m3"},
     {0xBE, 0xB6},
     {0xF7, 0xF7}}, /* 448 and 224 with a bias of 15; as E4M3 1.75 and 0.875 */
    {"nvfp4-plain", {"all: scale rounding <- value 128"}, {0x80, 0x80}, {0xF7, 0xF7}}, /* -0 is 0: 6 and -1 without end, of their own signs */
    {"nvfp4-plain", {"all: scale rounding <- flush first"}, {0x7E, 0x76}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"all: scale rounding <- bfloat16"}, {0x7E, 0x76}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"rows=1: scale store <- keep from 99"}, {127, 99}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: divisor <- order -1"}, {127, 126}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"order=1: scale store <- plus 1"}, {127, 127}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"all: scale rounding <- value 0", "all: divisor <- zero to zero"}, {0, 0}, {0x80, 0x80}},
    {"nvfp4-plain", {"all: scale rounding <- value 0", "all: divisor <- reciprocal, NaN to largest"}, {0, 0}, {0xF7, 0xF7}},
    {"nvfp4-plain", {"all: scale rounding <- value 0", "rows=1: divisor <- zero to +0"}, {0, 0}, {0xF7, 0x00}}, /* 6 / 0 */
    {"ocp-mxfp4", {"all: divisor <- block modulo 2"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: divisor <- row modulo 1"}, {127, 126}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"all: scale store <- row modulo 1"}, {127, 127}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: scale store <- block modulo 1"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: block amax <- row modulo 1"}, {127, 127}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"all: block amax <- block modulo 1"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: clamp <- row 1"}, {127, 126}, {0xA5, 0xC7}},
    {"ocp-mxfp4", {"all: clamp <- column 1"}, {127, 126}, {0x0A, 0x0C}},
    {"ocp-mxfp4", {"columns=1: clamp <- column -1"}, {127, 126}, {0x77, 0x77}}, /* 3 by 2^-1 is 6 as well */
    {"ocp-mxfp4", {"all: divisor <- block over 2"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: divisor <- repeated"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: divisor <- lanes alike in 1"}, {127, 126}, {0xE7, 0xE7}}, /* -1 by 2^-2 */
    {"ocp-mxfp4", {"all: divisor <- lanes from"}, {127, 126}, {0xE7, 0xE7}},
    {"ocp-mxfp4", {"all: divisor <- lanes to"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"elements=1: divisor <- plus 1"}, {127, 126}, {0x97, 0xA7}},
    {"ocp-mxfp4", {"all: layout <- codes by bits c1,c0"}, {127, 126}, {0x07, 0x07}}, /* -1 is at column 2 */
    {"ocp-mxfp4", {"all: layout <- codes by bits r0,c0"}, {127, 126}, {0x77, 0xCA}},
    {"ocp-mxfp4", {"all: layout <- codes by bits c0^r0"}, {127, 126}, {0xA7, 0x7C}},    /* row 1 has its pairs swapped */
    {"ocp-mxfp4", {"all: layout <- codes by bits c0,c1^c0"}, {127, 126}, {0x07, 0x07}}, /* -1 is at column 3 */
    {"ocp-mxfp4", {"all: layout <- codes by bits c0,c1^r0,r0"}, {127, 126}, {0xA7, 0x00}},
    {"ocp-mxfp4", {"all: layout <- codes by bits c0,r0^c0"}, {127, 126}, {0xC7, 0xA7}}, /* -1 and -2 change rows */
    {"ocp-mxfp4", {"all: layout <- codes by bits c0,r1,r0"}, {127, 126}, {0xA7, 0xC7}}, /* row 1 would hold row 2, which there is none of */
    {"ocp-mxfp4", {"all: layout <- scales by bits r0"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: layout <- scales tiled by bits r0"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: layout <- scales transposed"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: layout <- codes transposed in 2"}, {127, 126}, {0x77, 0xCA}},
    {"ocp-mxfp4", {"all: scale rounding <- row 1"}, {126, 126}, {0xC7, 0xC7}},
    {"ocp-mxfp4", {"all: scale rounding <- value 128"}, {128, 128}, {0x95, 0x93}},
    {"ocp-mxfp4", {"all: scale rounding <- plus 1", "all: scale rounding <- row 1"}, {127, 127}, {0xA7, 0xA5}}, /* in this order */
    {"ocp-mxfp4", {"rows=1: scale rounding <- row -1", "rows=1: scale rounding <- plus 1"}, {127, 128}, {0xA7, 0x93}},
    {"ocp-mxfp4", {"all: scale store <- amax times 2"}, {128, 127}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"rows=0: scale store <- value 256"}, {0, 126}, {0xA7, 0xC7}}, /* wraps */
    {"ocp-mxfp4", {"all: divisor <- plus 1"}, {127, 126}, {0x95, 0xA5}},
    {"ocp-mxfp4", {"all: divisor <- row -1"}, {127, 126}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"all: divisor <- unrounded"}, {127, 126}, {0xA7, 0xC7}}, /* by 1 and 0.5 */
    {"ocp-mxfp4", {"all: divisor <- unrounded reciprocal"}, {127, 126}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"all: scale rounding <- value 56", "all: divisor <- before rounding"}, {0x38, 0x38}, {0xA7, 0xC7}}, /* by 448 T, 224 T */
    {"ocp-mxfp4", {"all: scale rounding <- rule half up"}, {128, 127}, {0x95, 0xA5}},                                    /* from 6 and 3 on */
    {"ocp-mxfp4", {"all: input <- times 0.125", "all: scale rounding <- rule cast"}, {125, 124}, {0x95, 0xA5}}, /* -0.42 is 0, -1.42 is -1 */
    {"ocp-mxfp4", {"all: block amax <- window 1"}, {126, 125}, {0xC7, 0xE7}}, /* of the 3 of row 1, and of -1 */
    {"ocp-mxfp4", {"all: code <- negate by largest", "all: input <- negate"}, {127, 126}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"all: input <- negate", "all: scale store <- sign of largest"}, {0xFE, 0xF6}, {0x2F, 0x4F}},
    {"nvfp4-plain", {"all: scale rounding <- value 0", "all: divisor <- exponent 0 as normal"}, {0, 0}, {0xF7, 0xF7}}, /* by T / 128 */
    {"ocp-mxfp4",
     {"all: input <- times 0.8125", "all: element rounding <- exponent 0 as normal"},
     {127, 126},
     {0x96, 0xB6}},                                                                                      /* 0.8125: 1.5 / 2 */
    {"ocp-mxfp4", {"all: divisor <- before rounding"}, {127, 126}, {0x96, 0xB6}},                        /* by 1.5: 4, -2/3; by 0.75: 4, -4/3 */
    {"ocp-mxfp4", {"all: block amax <- plus 6", "all: divisor <- unrounded"}, {128, 128}, {0x95, 0x94}}, /* by 2: 3, -0.5; by 1.5: 2, -2/3 */
    {"ocp-mxfp4", {"all: scale store <- reciprocal"}, {127, 128}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"all: tensor scale <- used bfloat16"}, {0x7E, 0x76}, {0xA7, 0xC7}}, /* 448.9 and 224.4 */
    {"ocp-mxfp4", {"all: block amax <- rotated 4"}, {126, 126}, {0xC7, 0xC7}},           /* 3.5 and 2 */
    {"ocp-mxfp4", {"all: block amax <- of transposed tile"}, {127, 125}, {0xA7, 0xE7}},  /* of columns 0 and 1: 6 and 1 */
    {"ocp-mxfp4", {"all: input <- times 0.75", "all: element rounding <- subnormal toward zero"}, {127, 126}, {0x96, 0xB6}},
    {"ocp-mxfp4", {"all: code <- sign xor 1"}, {127, 126}, {0x2F, 0x4F}},
    {"ocp-mxfp4", {"memory=32: code <- negate"}, {127, 126}, {0xA7, 0xCF}},
    {"ocp-mxfp4", {"all: divisor <- as e4m3"}, {127, 126}, {0x00, 0x80}}, /* 7F is NaN: zeros; 7E is 448 */
    {"ocp-mxfp4", {"all: divisor <- as number e4m3"}, {127, 126}, {0x80, 0x80}},
    {"ocp-mxfp4", {"all: divisor <- row xor 1"}, {127, 126}, {0xC7, 0xA5}},
    {"nvfp4-plain", {"all: tensor scale <- value 1"}, {0x38, 0x30}, {0xA7, 0xC7}}, /* as if T were 1 */
    {"ocp-mxfp4", {"all: scale store <- row xor 1", "rows=0: layout <- row xor 1"}, {127, 127}, {0xC7, 0xC7}},
    {"ocp-mxfp4", {"all: divisor <- zero"}, {127, 126}, {0xF7, 0xF7}},
    {"ocp-mxfp4", {"all: clamp <- before 2"}, {127, 126}, {0xA4, 0xC6}}, /* 2 / 1; 2 / 0.5 */
    {"ocp-mxfp4", {"all: element rounding <- times 0.5"}, {127, 126}, {0x95, 0xA5}},
    {"ocp-mxfp4",
     {"all: input <- times 0.75", "all: element rounding <- away from zero"},
     {127, 126},
     {0xA7, 0xB7}}, /* 4.5, -0.75; 4.5, -1.5 */
    {"ocp-mxfp4", {"all: input <- times 0.75", "all: element rounding <- toward zero"}, {127, 126}, {0x96, 0xB6}},
    {"ocp-mxfp4", {"all: element rounding <- clip 4"}, {127, 126}, {0xA6, 0xC6}},
    {"ocp-mxfp4", {"all: element rounding <- bits behind the point -1"}, {127, 126}, {0x87, 0xC7}}, /* multiples of 2: -1 is a tie */
    /* 4.5, -0.75; 4.5, -1.5: */
    {"ocp-mxfp4", {"all: input <- times 0.75", "all: element rounding <- up from 4.5"}, {127, 126}, {0xA7, 0xB7}},
    {"ocp-mxfp4", {"all: input <- times 0.75", "all: element rounding <- up beyond 0.75"}, {127, 126}, {0x96, 0xB6}},
    {"ocp-mxfp4", {"all: element rounding <- up from 1"}, {127, 126}, {0xB7, 0xC7}}, /* -1 is a number of the format, and becomes -1.5 */
    {"ocp-mxfp4", {"all: element rounding <- up beyond 1"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: input <- times 0.75", "all: element rounding <- flush"}, {127, 126}, {0x86, 0xB6}},
    {"ocp-mxfp4", {"all: input <- times 0.75", "all: element rounding <- subnormal times 2"}, {127, 126}, {0xB6, 0xB6}},
    {"ocp-mxfp4", {"all: input <- times 0.75", "all: element rounding <- guard bits 0"}, {127, 126}, {0x96, 0xB6}},
    {"ocp-mxfp4", {"all: input <- times 0.75", "all: element rounding <- float16 then cut"}, {127, 126}, {0x96, 0xB6}},
    {"ocp-mxfp4", {"all: element rounding <- up from 4.5", "all: element rounding <- toward zero"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4",
     {"all: input <- times 0.875", "all: element rounding <- carry lost"},
     {127, 126},
     {0xA7, 0xA7}}, /* 5.25, -0.875; -1.75 becomes -1 */
    {"ocp-mxfp4",
     {"all: input <- times 1.25", "all: element rounding <- saturated, carry lost"},
     {127, 126},
     {0xA7, 0xC7}},                                                                                                /* 7.5, -1.25; 7.5, -2.5 */
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: element rounding <- carry lost"}, {127, 126}, {0xA6, 0xC6}},  /* 8 becomes 4 */
    {"ocp-mxfp4", {"all: input <- times 0.875", "all: element rounding <- half added"}, {127, 126}, {0x97, 0xB7}}, /* 5.25, -0.875: 6, -0.5 */
    {"ocp-mxfp4",
     {"all: input <- times 0.8125", "all: element rounding <- flush rounded"},
     {127, 126},
     {0x86, 0xB6}}, /* 4.875, -0.8125; 4.875, -1.625 */
    {"ocp-mxfp4", {"all: input <- times 0.875", "all: element rounding <- flush rounded"}, {127, 126}, {0xA7, 0xC7}}, /* -0.875 is a tie */
    {"ocp-mxfp4", {"all: divisor <- reciprocal estimate 8"}, {127, 126}, {0xA7, 0xC7}},                               /* 511 / 512: 5.99 */
    {"ocp-mxfp4", {"all: divisor <- reciprocal estimate 1"}, {127, 126}, {0xA6, 0xB6}}, /* 2^5 / 5 is 6, r = 3: times 3/4 */
    {"ocp-mxfp4", {"all: divisor <- first of rows 2"}, {127, 126}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"all: block amax <- first of rows 2"}, {127, 127}, {0xA7, 0xA5}},
    {"ocp-mxfp4", {"all: scale store <- first of rows 2"}, {127, 127}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: scale store <- first of blocks 2"}, {127, 126}, {0xA7, 0xC7}}, /* of one block a row that is the block */
    {"ocp-mxfp4", {"all: divisor <- down"}, {127, 126}, {0xE7, 0xE5}},                  /* 2^0 of 6 and 3, 2^-2 of -1 and -1 */
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: element rounding <- modulo"}, {127, 126}, {0xA8, 0xC8}}, /* 7.5 is 8 */
    /* two words of the rounding: 7.5, -1.25; 7.5, -2.5 */
    {"ocp-mxfp4", {"all: element rounding <- modulo", "all: element rounding <- times 1.25"}, {127, 126}, {0xA8, 0xC8}},
    {"ocp-mxfp4", {"all: element rounding <- times 1.25", "all: element rounding <- ties away"}, {127, 126}, {0xB7, 0xD7}},
    {"ocp-mxfp4", {"all: input <- times 0.7", "all: code <- flush"}, {127, 126}, {0x86, 0xB6}}, /* -0.5; -1.5 */
    {"ocp-mxfp4", {"all: code <- plus 1"}, {127, 126}, {0xB8, 0xD8}},
    {"ocp-mxfp4", {"all: divisor <- inverted"}, {127, 126}, {0xA7, 0x93}}, /* 1.5, -0.5 */
    {"ocp-mxfp4", {"all: divisor <- twice"}, {127, 126}, {0xA7, 0xE7}},    /* 12, -4 */
    {"ocp-mxfp4",
     {"all: input <- scaled format e5m2", "all: element rounding <- away from zero"},
     {127, 126},
     {0xB7, 0xD7}},                                                                     /* -1 times 57344 / 6 becomes -10240, and -1.07 */
    {"nvfp4-plain", {"all: scale rounding <- largest 12"}, {0x76, 0x6E}, {0xC7, 0xE7}}, /* 224 and 112: 12 saturates, -2; 12, -4 */
    {"nvfp4-plain",
     {"all: tensor scale <- rows 1"},
     {0x7E, 0x7E},
     {0xA7, 0xC7}}, /* each row's largest scale is 448; 6 and -1, 3 and -1 over 0.5 */
    {"nvfp4-plain",
     {"all: tensor scale <- last of rows 1"},
     {0x7E, 0x7E},
     {0xA7, 0xC7}}, /* the same; the stored tensor scale is not looked at here */
    {"nvfp4-plain",
     {"all: input <- times 2", "all: tensor amax <- as given"},
     {0x7E, 0x7E},
     {0xC7, 0xC7}}, /* T = 6 / 2688: scales of 896 and 448 become 448; 12 and -2 over 1, 6 and -2 over 1 */
    {"nvfp4-plain", {"all: tensor scale <- target 6"}, {0x38, 0x30}, {0xA7, 0xC7}},     /* T = 1 */
    {"nvfp4-plain", {"all: tensor scale <- power of two"}, {0x7E, 0x78}, {0xA7, 0xC7}}, /* T = 2^-9: 512 saturates, 256 */
    {"nvfp4-plain", {"all: tensor scale <- running 1"}, {0x7E, 0x76}, {0xA7, 0xC7}},    /* row 0 has the largest number */
    {"nvfp4-plain", {"rows=1: tensor scale <- running before 1"}, {0x7E, 0x76}, {0xA7, 0xC7}},
    {"nvfp4-plain", {"all: tensor scale <- running before 1"}, {0x7E, 0x76}, {0xF7, 0xC7}}, /* T = 1 / 2688: 2688 saturates at 448, 36 and -6 */
    {"nvfp4-plain",
     {"all: tensor scale <- times 0.5", "all: scale rounding <- modulo"},
     {0x06, 0x7E},
     {0xF7, 0xC7}}, /* 896 is 0x86 without 0x80 */
    {"ocp-mxfp4", {"all: scale store <- rule ceil"}, {128, 127}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: divisor <- rule ceil"}, {127, 126}, {0x95, 0xA5}},
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: scale rounding <- rule up"}, {128, 127}, {0x96, 0xA6}}, /* 7.5 / 2, -0.625; 3.75, -1.25 */
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: scale rounding <- rule nearest"}, {127, 126}, {0xA7, 0xC7}}, /* 1.25 is nearer to 1 */
    {"ocp-mxfp4", {"all: input <- over column amax"}, {125, 125}, {0xE6, 0xE4}},                                  /* 1 and -1; 0.5 and -1 */
    {"ocp-mxfp4", {"all: input <- over root of column amax"}, {126, 125}, {0xC6, 0xE6}}, /* 2.449 over 0.5, -2; 1.22 over 0.25, -4 */
    {"nvfp4-plain",
     {"rows=1: input <- times 0.8125", "all: divisor <- scale reciprocal bits 1"},
     {0x7E, 0x73},
     {0xA7, 0xB6}}, /* 1 / 176 = 1.45 2^-8: 4.27, -1.42 */
    {"nvfp4-plain",
     {"rows=1: input <- times 0.8125", "all: divisor <- scale reciprocal nearest bits 1"},
     {0x7E, 0x73},
     {0xA7, 0xC7}}, /* 1.5 2^-8 */
    {"ocp-mxfp4",
     {"elements=1: input <- times 0.125", "all: element rounding <- shift bits 1"},
     {127, 126},
     {0x97, 0xA7}}, /* -0.125, 3 bits: 1; -0.25, 2: 0 */
    {"ocp-mxfp4", {"all: code <- sign of 1"}, {127, 126}, {0x2F, 0x4F}},
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: element rounding <- ties to odd"}, {127, 126}, {0xB7, 0xD7}}, /* -1.25 and -2.5 */
    {"ocp-mxfp4",
     {"elements=1: input <- times 0.75", "all: element rounding <- subnormal without leading one"},
     {127, 126},
     {0x87, 0xB7}}, /* -0.75 less -0.5; -1.5 is normal */
    /* -1.25 and -2.5 are half way; the numbers of columns 1 of rows 0 and 1 are 1 and 33 times 0.618034: 0.618 and 0.395 */
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: element rounding <- random below weyl 0+index 32"}, {127, 126}, {0xA7, 0xD7}},
    {"ocp-mxfp4", {"all: input <- times 1.25", "rows=1: element rounding <- random above weyl 0+index 32"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: element rounding <- random carry weyl 0+index 24"}, {127, 126}, {0xB7, 0xC7}},
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: element rounding <- random carry of half weyl 0+index 24"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: input <- times 1.25", "all: element rounding <- random floor weyl 0+index 16"}, {127, 126}, {0xA7, 0xD7}},
    {"ocp-mxfp4",
     {"all: input <- times 1.25", "all: element rounding <- random then nearest weyl 0+index 16"},
     {127, 126},
     {0xB7, 0xD7}}, /* 1.25 and .309; 2.5 and .395 */
    {"ocp-mxfp4",
     {"all: input <- times 1.25", "all: element rounding <- random signed weyl 0+index 16"},
     {127, 126},
     {0xA7, 0xC6}}, /* .5 - .382, .5 + .395; the largest and 32 times 0.618034: .777, one less */
    {"ocp-mxfp4",
     {"elements=1: input <- times 0.75", "all: element rounding <- random of own step weyl 0+index 16"},
     {127, 126},
     {0x97, 0xB7}}, /* .75 and .618 of .25; 1.5 and less than one of .5 */
    /* -1.29 and -2.58, with .118 and -.105 of a step of .5 and of 1, or of .5 and of .5 */
    {"ocp-mxfp4", {"all: input <- times 1.29", "all: element rounding <- random centred weyl 0+index 16"}, {127, 126}, {0xB7, 0xC7}},
    {"ocp-mxfp4",
     {"all: input <- times 1.29", "all: element rounding <- random centred of least step weyl 0+index 16"},
     {127, 126},
     {0xB7, 0xD7}},
    /* -1.3085 and -2.617: .617 of a step; the numbers of 1 and 33 are .6080 and .6271 */
    {"ocp-mxfp4",
     {"all: input <- times 1.3085", "all: element rounding <- random below hash-9e3779b1-15-85ebca77-13 12345+index 32"},
     {127, 126},
     {0xB7, 0xC7}},
    /* .35 of a step; .6040 and .1039 */
    {"ocp-mxfp4",
     {"all: input <- times 1.175", "all: element rounding <- random below hash-16-045d9f3b-16-045d9f3b-16 7+index 24"},
     {127, 126},
     {0xA7, 0xD7}},
    /* NumPy 2.4: default_rng(1234).random(34)[[1, 33]] is .3802 and .9220, default_rng(7).integers(2**32, size=34, dtype="uint32") / 2**32 .6251 and .9955 */
    {"ocp-mxfp4", {"all: input <- times 1.1903", "all: element rounding <- random below numpy 1234:index 32"}, {127, 126}, {0xB7, 0xC7}},
    {"ocp-mxfp4", {"all: input <- times 1.1899", "all: element rounding <- random below numpy 1234:index 32"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: input <- times 1.3128", "all: element rounding <- random below numpy32 7:index 24"}, {127, 126}, {0xB7, 0xC7}},
    {"ocp-mxfp4", {"all: input <- times 1.3122", "all: element rounding <- random below numpy32 7:index 24"}, {127, 126}, {0xA7, 0xC7}},
    {"ocp-mxfp4", {"all: input <- negate", "all: code <- sign smeared"}, {127, 126}, {0xFF, 0xFF}},
    {"ocp-mxfp4", {"all: code <- bits 1203"}, {127, 126}, {0x97, 0xA7}}, /* 1010 is 1001, 1100 is 1010 */
    {"ocp-mxfp4", {"all: code <- bits 3210"}, {127, 126}, {0x5E, 0x3E}}, /* 0111 is 1110, 1010 is 0101, 1100 is 0011 */
    {"ocp-mxfp4", {"all: code <- bits 1233"}, {127, 126}, {0xD3, 0xE3}}, /* an arithmetic shift */
    {"ocp-mxfp4", {"rows=1: code <- table 0123456f8badcefb"}, {127, 126}, {0xA7, 0xCF}},
    {"ocp-mxfp4", {"all: code <- table fedcba9876543210", "all: code <- +0 for -0"}, {127, 126}, {0x50, 0x30}},
    {"ocp-mxfp4", {"all: code <- reverse 2"}, {127, 126}, {0x7A, 0x7C}},
    {"ocp-mxfp4", {"all: code <- two's complement"}, {127, 126}, {0xE7, 0xC7}},
    {"ocp-mxfp4", {"all: code <- swap pairs", "elements=0: code <- value 1"}, {127, 126}, {0x71, 0x71}}, /* in this order */
    {"ocp-mxfp4", {"rows=1: layout <- zero"}, {127, 0}, {0xA7, 0x00}},
    {"ocp-mxfp4", {"rows=1: layout <- codes of row -1"}, {127, 126}, {0xA7, 0xA7}}};

START_TEST(worked_numbers_hold_for_both) {
  static float x[64];
  x[0] = 6, x[1] = -1, x[32] = 3, x[33] = -1;
  for (size_t i = 0; i < sizeof worked / sizeof *worked; i++) {
    mx_spec spec;
    mx_fault f[2];
    ref_fault ref[2];
    size_t n = 0;
    ck_assert_int_eq(mx_preset_find(&spec, worked[i].preset, NULL), MX_OK);
    for (; n < 2 && worked[i].faults[n]; n++) parse(&f[n], &ref[n], worked[i].faults[n]);
    for (int reference = 0; reference < 2; reference++) {
      mx_tensor t;
      ck_assert_int_eq(mx_tensor_alloc(&t, 2, 32, &spec), MX_OK);
      ck_assert_int_eq(reference ? ref_quantize_faulty(&t, x, 2, 32, 32, &spec, ref, n, NULL)
                                 : mx_quantize_faulty(&t, x, 2, 32, 32, &spec, f, n, NULL),
                       MX_OK);
      for (size_t r = 0; r < 2; r++) {
        ck_assert_msg(t.scales[r * t.scale_cols] == worked[i].scale[r], "%s, reference %d: scale %02X of row %zu", worked[i].faults[0],
                      reference, t.scales[r * t.scale_cols], r);
        ck_assert_msg(t.codes[r * t.code_stride] == worked[i].code[r], "%s, reference %d: codes %02X of row %zu", worked[i].faults[0],
                      reference, t.codes[r * t.code_stride], r);
      }
      mx_tensor_free(&t);
    }
  }
}
END_TEST

/* Each factor of a hash, and what is printed is what was read. */
START_TEST(hashes_have_the_same_factors) {
  static const char *const factors[] = {"9e3779b1", "9e3779b9", "85ebca6b", "85ebca77", "c2b2ae35", "c2b2ae3d", "27d4eb2d", "27d4eb2f",
                                        "2c1b3c6d", "297a2d39", "7feb352d", "846ca68b", "045d9f3b", "165667b1", "cc9e2d51", "1b873593",
                                        "5bd1e995", "2c9277b5", "108ef2d9", "0019660d", "41c64e6d", "0466f45d", "0127409f", "04f9ffb7",
                                        "01000193", "ed5ad4bb", "ac4c1b51", "31848bab", "b5297a4d", "68e31da5", "1b56c4e9"};
  enum { FACTORS = sizeof factors / sizeof *factors, ROWS = 4, COLS = 64 };
  static float x[ROWS * COLS];
  uint64_t digest[FACTORS];
  const mx_spec spec = {0};
  for (size_t i = 0; i < ROWS * COLS; i++) x[i] = (float)(i * 37 % 101) / 8;
  for (size_t k = 0; k < FACTORS; k++) {
    char text[1][MX_FAULT_TEXT], again[MX_FAULT_TEXT];
    mx_fault f;
    mx_tensor t;
    snprintf(text[0], sizeof text[0], "all: element rounding <- random below hash-15-%s-18-9e3779b1-4 4294967295+index/128 split16",
             factors[k]);
    ck_assert_int_eq(mx_fault_parse(&f, text[0], NULL), MX_OK);
    mx_fault_print(again, sizeof again, &f);
    ck_assert_str_eq(again, text[0]);
    snprintf(text[0], sizeof text[0], "all: element rounding <- random below hash-%s-15-%s 7+index 32", factors[k], factors[k]);
    const outcome o = run(&spec, x, ROWS, COLS, (const char(*)[MX_FAULT_TEXT])text, (const char(*)[MX_FAULT_TEXT])text, 1);
    ck_assert_msg(verdict(&o) == SAME && o.bites, "%s", text[0]);
    ck_assert_int_eq(mx_fault_parse(&f, text[0], NULL), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&t, ROWS, COLS, &spec), MX_OK);
    ck_assert_int_eq(mx_quantize_faulty(&t, x, ROWS, COLS, COLS, &spec, &f, 1, NULL), MX_OK);
    digest[k] = 0;
    for (size_t i = 0; i < ROWS * t.code_stride; i++) digest[k] = digest[k] * 1099511628211u + t.codes[i];
    for (size_t i = 0; i < k; i++) ck_assert_msg(digest[i] != digest[k], "%s and %s are one", factors[i], factors[k]);
    mx_tensor_free(&t);
  }
}
END_TEST

/* Rules of scales ask for the log2 of a tensor scale, and tensor.given takes no number below 0: as a fault it is refused too. */
START_TEST(both_refuse_negative_tensor_scales) {
  static const char texts[][1][MX_FAULT_TEXT] = {{"all: tensor scale <- times -1"}, {"rows=1: tensor scale <- value -0.5"}};
  static const char *const presets[] = {"nvfp4-plain", "te-nvfp4", "ocp-mxfp4"};
  static float x[64];
  x[0] = 6, x[33] = -1;
  for (size_t p = 0; p < sizeof presets / sizeof *presets; p++)
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
      mx_spec spec;
      ck_assert_int_eq(mx_preset_find(&spec, presets[p], NULL), MX_OK);
      const outcome o = run(&spec, x, 2, 32, texts[i], texts[i], 1);
      ck_assert_int_eq(o.library, MX_ERR_CONFLICT);
      ck_assert_int_eq(o.reference, MX_ERR_CONFLICT);
    }
}
END_TEST

/* A maximum of -0 is stored as 0, and a NaN in the rows so far is in their maximum; both say so. */
START_TEST(maxima_without_a_number) {
  static const struct {
    const char *preset, fault[1][MX_FAULT_TEXT];
    float first;
  } kernels[] = {{"te-4over6", {"all: tensor amax <- times -1"}, 0},
                 {"nvfp4-plain", {"all: tensor scale <- running 1"}, NAN},
                 {"te-nvfp4", {"all: tensor scale <- running before 1"}, NAN}};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    static float x[128];
    mx_spec spec;
    mx_fault f;
    mx_tensor t;
    ck_assert_int_eq(mx_preset_find(&spec, kernels[i].preset, NULL), MX_OK);
    x[0] = kernels[i].first, x[33] = x[65] = x[97] = isnan(x[0]) ? 3 : 0;
    const outcome o = run(&spec, x, 4, 32, kernels[i].fault, kernels[i].fault, 1);
    ck_assert_msg(verdict(&o) == SAME, "%s: scale byte %zd, code byte %zd", kernels[i].fault[0], (ssize_t)o.scale, (ssize_t)o.code);
    ck_assert_int_eq(mx_fault_parse(&f, kernels[i].fault[0], NULL), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&t, 4, 32, &spec), MX_OK);
    ck_assert_int_eq(mx_quantize_faulty(&t, x, 4, 32, 32, &spec, &f, 1, NULL), MX_OK);
    ck_assert(x[0] != 0 || !signbit(t.tensor_scale));
    mx_tensor_free(&t);
  }
}
END_TEST

/* Ends of the range. A scale that is zero divides by 0 under a fault that takes its reciprocal, also where its byte means 2^-127: of numbers that are rounded
 * to zero for their maximum, and of zeros. Infinite quotients saturate, NaN counts as +Inf. And what binary16 makes infinite, from 65520 on, has the upper
 * byte of its Inf, which is that of E5M2: 1.99975 is 65528 over 2^-15, 1.9995 is 65520 less a little. */
START_TEST(ends_of_the_range) {
  static const char reciprocal[1][MX_FAULT_TEXT] = {"all: divisor <- reciprocal, NaN to largest"};
  static const char unrounded[1][MX_FAULT_TEXT] = {"all: divisor <- before rounding"};
  static const char upper_byte[1][MX_FAULT_TEXT] = {"all: element rounding <- float16 then cut"};
  static const struct {
    const char *spec;
    float x;
    uint8_t scale, codes;
    const char (*fault)[MX_FAULT_TEXT];
  } kernels[] = {{"scale.rule=even scale.zero=max elem.overflow=ieee", 1e-44f, 0, 0xF7, reciprocal},
                 {"scale.rule=even scale.zero=zero", 1e-44f, 0, 0xF7, reciprocal},
                 {"scale.zero=zero scale.allzero=chain", 0, 0, 0x77, reciprocal},
                 {"scale.zero=max scale.allzero=chain", 0, 0, 0x77, reciprocal},
                 {"elem.arith=div32", 0x1.8p-147f, 0, 0xD5, unrounded}, /* over 1.5 2^-149, as binary32 2^-148: 3 */
                 {"elem=e5m2", 1.99975f, 112, 0x7C, upper_byte},
                 {"elem=e5m2", -1.99975f, 112, 0xFC, upper_byte},
                 {"elem=e5m2", 1.9995f, 112, 0x7B, upper_byte},
                 {"elem=e5m2fnuz", 1.99975f, 112, 0x7F, upper_byte}};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    static float x[32];
    mx_spec spec = {0};
    mx_fault f;
    mx_tensor t;
    ck_assert_int_eq(mx_spec_parse(&spec, kernels[i].spec, NULL), MX_OK);
    for (size_t k = 0; k < 32; k++) x[k] = k % 2 ? -kernels[i].x : kernels[i].x;
    const outcome o = run(&spec, x, 1, 32, kernels[i].fault, kernels[i].fault, 1);
    ck_assert_msg(verdict(&o) == SAME, "%s: code byte %zd", kernels[i].spec, (ssize_t)o.code);
    ck_assert_int_eq(mx_fault_parse(&f, kernels[i].fault[0], NULL), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&t, 1, 32, &spec), MX_OK);
    ck_assert_int_eq(mx_quantize_faulty(&t, x, 1, 32, 32, &spec, &f, 1, NULL), MX_OK);
    ck_assert_msg(t.scales[0] == kernels[i].scale && t.codes[0] == kernels[i].codes, "%s: scale %02X, codes %02X", kernels[i].spec, t.scales[0],
                  t.codes[0]);
    mx_tensor_free(&t);
  }
}
END_TEST

/* ---- random */

/* Plain numbers of some magnitude with zeros among them, blocks of zeros, and now and then the numbers of mixtures_odd_data. */
static void fill(float *x, size_t n) {
  const uint32_t kind = below(8);
  if (kind == 0) {
    mixtures_odd_data(x, n, &state);
    return;
  }
  const int magnitude = kind == 1 ? -130 + (int)below(20) : (int)below(12) - 6;
  for (size_t i = 0; i < n; i++) {
    if (i % 16 == 0 && below(5) == 0) { /* a stretch of zeros */
      for (size_t k = 0; k < 40 && i < n; k++, i++) x[i] = below(2) ? 0.0f : -0.0f;
      if (i >= n) break;
    }
    const float u = (float)((int)below(1 << 20) - (1 << 19)) * 0x1p-16f;
    x[i] = below(7) == 0 ? 0 : ldexpf(below(4) ? u : (float)((int)below(25) - 12) / 2, magnitude + (i / 48 % 3 == 2 ? -4 : 0));
  }
}

/* A spec that faults are defined for, more often than not. */
static void draw(mx_spec *spec) {
  for (;;) {
    const uint32_t kind = below(4);
    if (kind == 0) {
      const mx_preset *p = mx_preset_at(below((uint32_t)mx_preset_count()));
      if (!mx_preset_find(spec, p->name, NULL)) return;
    } else if (kind == 1 ? mixtures_draw_odd(spec, &state) : mixtures_draw(spec, &state)) {
      if (spec->elem_round == MX_ROUND_SR && below(8)) continue;
      return;
    }
  }
}

enum { ROUNDS = 6, ROUNDS_OF_RARE = 60, ROUNDS_OF_ALL = 400, MOST = 33 * 130, FULL_TILES = 0 };

START_TEST(random_faults_give_the_same_bytes) {
  static const struct {
    size_t rows, cols;
  } shapes[] = {[FULL_TILES] = {32, 128}, {1, 1}, {3, 67}, {5, 64}, {2, 130}, {17, 33}, {4, 48}, {8, 32}, {33, 16}, {7, 19}, {8, 128}};
  static float x[MOST];
  static size_t ran[MX_FAULT_COUNT], bit[MX_FAULT_COUNT];
  char texts[MX_FAULTS][MX_FAULT_TEXT], spelled[2048];
  size_t all = 0, refused = 0, wrong = 0;
  const int rounds = run_whole() ? ROUNDS_OF_ALL : ROUNDS;
  for (int op = 1; op < MX_FAULT_COUNT; op++)
    for (int round = 0; round < rounds || (!bit[op] && round < ROUNDS_OF_RARE); round++) {
      mx_spec spec;
      const size_t n = 1 + (below(3) == 0);
      const int laid_out =
          mx_fault_row_at(op)->arg == MX_FAULT_ARG_LAYOUT || op == MX_FAULT_LAYOUT_SCALES_TILED; /* few layouts need no padding */
      const int down = op == MX_FAULT_LAYOUT_DOWN || op == MX_FAULT_LAYOUT_DOWN_SCALES;          /* as many scales one way as the other */
      const int full = laid_out || ((down || mx_fault_row_at(op)->stage == MX_STAGE_ROTATION) && below(2));
      const size_t shape = full ? FULL_TILES : below(sizeof shapes / sizeof *shapes), rows = shapes[shape].rows, cols = shapes[shape].cols;
      draw(&spec);
      if (laid_out) spec = (mx_spec){.block_cols = 16};
      fill(x, rows * cols);
      spell(texts[0], below(3) ? "all" : regions[below(sizeof regions / sizeof *regions)], op);
      spell(texts[1], regions[below(sizeof regions / sizeof *regions)], (int)(1 + below(MX_FAULT_COUNT - 1)));
      while (n == 2 && mx_fault_row_at(op)->stage == MX_STAGE_ELEMENT && below(4)) { /* words of the rounding act together */
        const int beside = (int)(1 + below(MX_FAULT_COUNT - 1));
        if (mx_fault_row_at(beside)->stage != MX_STAGE_ELEMENT) continue;
        spell(texts[1], below(2) ? "all" : regions[below(sizeof regions / sizeof *regions)], beside);
        break;
      }
      if (n == 2 && below(2)) { /* in either order, of one stage too */
        char first[MX_FAULT_TEXT];
        memcpy(first, texts[0], sizeof first), memcpy(texts[0], texts[1], sizeof first), memcpy(texts[1], first, sizeof first);
      }
      const outcome o = run(&spec, x, rows, cols, (const char(*)[MX_FAULT_TEXT])texts, (const char(*)[MX_FAULT_TEXT])texts, n);
      all++;
      refused += verdict(&o) == REFUSED;
      ran[op] += !o.library, bit[op] += o.bites;
      if (verdict(&o) != DIFFERENT) continue;
      wrong++;
      mx_spec_print(spelled, sizeof spelled, &spec, 0);
      fprintf(stderr, "%zu x %zu, '%s'%s%s%s, %s: status %d and %d, scale byte %zd, code byte %zd\n", rows, cols, texts[0], n > 1 ? ", '" : "",
              n > 1 ? texts[1] : "", n > 1 ? "'" : "", spelled, o.library, o.reference, (ssize_t)o.scale, (ssize_t)o.code);
    }
  for (int op = 1; op < MX_FAULT_COUNT; op++) {
    const mx_fault_row *row = mx_fault_row_at(op);
    ck_assert_msg(bit[op] > 0, "%s <- %s changed nothing in %zu runs", mx_stage_name(row->stage), row->op, ran[op]);
  }
  ck_assert_uint_lt(refused, all / 2);
  ck_assert_msg(!wrong, "%zu of %zu", wrong, all);
}
END_TEST

/* The comparison sees a reference that does something else at one stage: each pair is one fault of the library and a wrong twin. */
START_TEST(a_mutant_of_the_reference_is_seen) {
  static const char *const pairs[][2] = {{"all: input <- clip 3", "all: input <- clip 3.5"},
                                         {"all: rotation <- hadamard 32", "all: rotation <- sequency 32"},
                                         {"all: tensor amax <- times 0.5", "all: tensor amax <- times 0.25"},
                                         {"all: tensor scale <- times 2", "all: tensor scale <- value 2"},
                                         {"all: block amax <- rank 2", "all: block amax <- rank 3"},
                                         {"all: scale rounding <- up", "all: scale rounding <- toward zero"},
                                         {"all: scale store <- row 1", "rows=1-: scale store <- row 1"},
                                         {"all: layout <- blocks down, scales across", "all: layout <- blocks down"},
                                         {"all: block amax <- with next 1", "all: block amax <- with next -1"},
                                         {"all: divisor <- lanes alike in 1", "all: divisor <- lanes alike in 2"},
                                         {"all: divisor <- no tensor scale", "all: divisor <- skip"},
                                         {"all: clamp <- before 2", "all: clamp <- before 2.5"},
                                         {"all: element rounding <- ties up", "all: element rounding <- ties down"},
                                         {"all: element rounding <- up from 2.25", "all: element rounding <- up beyond 2.75"},
                                         {"all: element rounding <- guard bits 1", "all: element rounding <- guard bits 3"},
                                         {"all: divisor <- scale reciprocal bits 3", "all: divisor <- scale reciprocal nearest bits 3"},
                                         {"all: input <- over column amax", "all: input <- over root of column amax"},
                                         {"all: code <- sign of 1", "all: code <- sign rolled 1"},
                                         {"elements=15: code <- negate", "elements=14: code <- negate"},
                                         {"rows%2=1 and blocks=0: code <- negate", "rows%2=1: code <- negate"},
                                         {"all: layout <- row 1", "all: layout <- codes of row 1"}};
  static float x[32 * 128];
  mx_spec spec;
  ck_assert_int_eq(mx_preset_find(&spec, "nvfp4-plain", NULL), MX_OK);
  for (size_t i = 0; i < 32 * 128; i++) x[i] = (float)((int)below(49) - 24) / 8 * (float)(1 << i / 16 % 4);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    char own[1][MX_FAULT_TEXT], other[1][MX_FAULT_TEXT];
    snprintf(own[0], sizeof own[0], "%s", pairs[i][0]);
    snprintf(other[0], sizeof other[0], "%s", pairs[i][1]);
    outcome o = run(&spec, x, 32, 128, (const char(*)[MX_FAULT_TEXT])own, (const char(*)[MX_FAULT_TEXT])own, 1);
    ck_assert_msg(verdict(&o) == SAME, "%s: scale byte %zd, code byte %zd", own[0], (ssize_t)o.scale, (ssize_t)o.code);
    o = run(&spec, x, 32, 128, (const char(*)[MX_FAULT_TEXT])own, (const char(*)[MX_FAULT_TEXT])other, 1);
    ck_assert_msg(verdict(&o) == DIFFERENT, "%s and %s give the same bytes", own[0], other[0]);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("fault_ref");
  TCase *c = tcase_create("fault_ref");
  tcase_set_timeout(c, 600);
  tcase_add_test(c, every_word_is_known_to_both);
  tcase_add_test(c, both_refuse_what_is_no_word);
  tcase_add_test(c, worked_numbers_hold_for_both);
  tcase_add_test(c, both_refuse_negative_tensor_scales);
  tcase_add_test(c, maxima_without_a_number);
  tcase_add_test(c, ends_of_the_range);
  tcase_add_test(c, a_mutant_of_the_reference_is_seen);
  tcase_add_test(c, random_faults_give_the_same_bytes);
  tcase_add_test(c, hashes_have_the_same_factors);
  suite_add_tcase(s, c);
  return run_suite(s);
}
