/* Lists the faults that are tried. */
#include "verify/fault/search/options.h"

#include <math.h>
#include <string.h>

#include "mxgold/quantize.h"
#include "verify/fault/run.h"

typedef struct list {
  option *at;
  size_t n;
  int first, last;
} list;

static option *add(list *l, int op, double number) {
  const int stage = mx_fault_row_at(op)->stage;
  static option spare;
  if (stage < l->first || stage > l->last || l->n == MOST_OPTIONS) return &spare;
  option *o = &l->at[l->n++];
  *o = (option){.fault = {.region = {.of = MX_REGION_ALL}, .op = op, .number = number}};
  return o;
}

static void add_each(list *l, int op, const double *numbers, size_t n) {
  for (size_t i = 0; i < n; i++) add(l, op, numbers[i]);
}
#define EACH(l, op, ...) add_each(l, op, (const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static void add_format(list *l, int op, int format) { add(l, op, 0)->fault.format = format; }

static void add_placed(list *l, int op, double number, mx_region region) {
  option *o = add(l, op, number);
  o->fault.region = region;
  o->placed = 1;
}

static mx_region interval(int of, uint64_t first, uint64_t last) { return (mx_region){.of = of, .first = first, .last = last}; }
static mx_region every(int of, uint32_t modulus, uint32_t at) {
  mx_region g = {.of = of, .modulus = modulus};
  g.set[at] = 1;
  return g;
}
static mx_region all_but(uint32_t n, uint32_t at) {
  mx_region g = {.of = MX_REGION_ELEMENTS, .modulus = n};
  memset(g.set, 1, n);
  g.set[at] = 0;
  return g;
}

/* Formats that something is rounded to on the way. */
static const int ways[] = {MX_ELEM_E4M3, MX_ELEM_E5M2, MX_ELEM_E3M2, MX_ELEM_E2M3, MX_ELEM_E2M1, MX_ELEM_INT8};

static void early(list *l, int stores_scale, size_t block, size_t rows, size_t cols) {
  static const int plain[] = {MX_FAULT_INPUT_RELU,     MX_FAULT_INPUT_ABS, MX_FAULT_INPUT_NEGATE, MX_FAULT_INPUT_BF16,
                              MX_FAULT_INPUT_BF16_CUT, MX_FAULT_INPUT_F16, MX_FAULT_INPUT_SILU};
  add(l, MX_FAULT_TENSOR_SCALE_DIVISOR, 0);
  option *reciprocal = add(l, MX_FAULT_TENSOR_SCALE_STORED_RCP, 0);
  reciprocal->common = stores_scale;
  reciprocal->rare = !stores_scale;                          /* of a divisor it is the scale: presets that store one are likelier */
  add(l, MX_FAULT_TENSOR_SCALE_STORED_DIVISOR, 0)->rare = 1; /* who has tensor.target / max|X| computes with it */
  add(l, MX_FAULT_TENSOR_SCALE_STORED_AMAX, 0)->common = 1;
  add(l, MX_FAULT_TENSOR_SCALE_POWER, 0);
  add(l, MX_FAULT_TENSOR_SCALE_BF16, 0);
  add(l, MX_FAULT_TENSOR_SCALE_F16, 0);
  add(l, MX_FAULT_TENSOR_SCALE_USED_BF16, 0);
  add(l, MX_FAULT_TENSOR_SCALE_USED_F16, 0);
  EACH(l, MX_FAULT_TENSOR_SCALE_TARGET, 1536, 448, 6); /* largest scales of 256, and the largest element or scale alone */
  static const int numbers[] = {MX_FAULT_TENSOR_SCALE_VALUE, MX_FAULT_TENSOR_SCALE_TIMES};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    option *o = add(l, numbers[i], 0); /* of a tensor scale that is rounded, that is the likelier */
    o->fit = FIT_TENSOR;
    o->rare = 1;
  }
  static const int grouping[] = {MX_FAULT_TENSOR_SCALE_ROWS, MX_FAULT_TENSOR_SCALE_LAST, MX_FAULT_TENSOR_SCALE_RUNNING,
                                 MX_FAULT_TENSOR_SCALE_BEFORE};
  for (size_t i = 0; i < sizeof grouping / sizeof *grouping; i++)
    for (size_t n = 1; n < rows && n <= 256; n *= 2) {
      option *o = add(l, grouping[i], (double)n);
      o->fit = FIT_ROWS;
      o->rare = grouping[i] == MX_FAULT_TENSOR_SCALE_BEFORE;
    }
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) add(l, plain[i], 0);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    add_format(l, MX_FAULT_INPUT_FORMAT, ways[i]), add_format(l, MX_FAULT_INPUT_SCALED_FORMAT, ways[i]);
  add(l, MX_FAULT_INPUT_CLIP, 0)->fit = FIT_CODES;
  add(l, MX_FAULT_INPUT_CLIP, 0)->fit = FIT_SCALES;
  add(l, MX_FAULT_INPUT_MEAN, (double)block);
  if (block != cols) add(l, MX_FAULT_INPUT_MEAN, (double)cols);
  EACH(l, MX_FAULT_INPUT_MEAN, 16, 32, 64, 128);
  add(l, MX_FAULT_INPUT_OVER_ROOT, 0);
  add(l, MX_FAULT_INPUT_OVER_COLUMN, 0);
  EACH(l, MX_FAULT_INPUT_COLUMN, 1, -1);
  add(l, MX_FAULT_INPUT_TRANSPOSED, 0);
  add(l, MX_FAULT_INPUT_PITCH, 0)->fit = FIT_PITCH;
  option *zero = add(l, MX_FAULT_INPUT_ZERO, 0);
  zero->fit = FIT_ZERO;
  zero->placed = 1;
  for (double n = 16; n <= 128; n *= 2) {
    add(l, MX_FAULT_ROTATION_HADAMARD, n);
    add(l, MX_FAULT_ROTATION_RAW, n);
    add(l, MX_FAULT_ROTATION_SEQUENCY, n);
    add(l, MX_FAULT_ROTATION_TWICE, n);
    add(l, MX_FAULT_ROTATION_DOWN, n);
    add(l, MX_FAULT_ROTATION_UNFINISHED, n);
    add(l, MX_FAULT_ROTATION_BF16_STEPS, n);
    add(l, MX_FAULT_ROTATION_BF16, n);
  }
  add(l, MX_FAULT_TENSOR_NOABS, 0);
  add(l, MX_FAULT_TENSOR_BF16, 0);
  add(l, MX_FAULT_TENSOR_INTEGER, 0)->common = 1; /* a clip at an integer just below the maximum would be an accident */
  add(l, MX_FAULT_TENSOR_LEAST, 1)->common = 1;   /* where the maximum begins at 1 */
  EACH(l, MX_FAULT_TENSOR_TIMES, 0.9, 0.95, 0.5, 2);
  for (size_t n = 1; n < rows; n *= 2) { /* the part that was read alone, or whose maximum was stored last */
    add_placed(l, MX_FAULT_TENSOR_ONLY, 0, interval(MX_REGION_ROWS, 0, n - 1));
    add_placed(l, MX_FAULT_TENSOR_ONLY, 0, interval(MX_REGION_ROWS, rows - n, UINT64_MAX));
  }
  for (size_t n = 2; n <= 8; n *= 2) {
    add_placed(l, MX_FAULT_TENSOR_ONLY, 0, interval(MX_REGION_ROWS, 0, rows / n - 1));
    add_placed(l, MX_FAULT_TENSOR_ONLY, 0, interval(MX_REGION_ROWS, rows - rows / n, UINT64_MAX));
    add_placed(l, MX_FAULT_TENSOR_ONLY, 0, interval(MX_REGION_COLUMNS, 0, cols / n - 1));
  }
}

/* Places that are taken modulo the rows, or the blocks in a row, of a tile. */
static void modulo(list *l, int of_rows, int of_blocks, size_t down, size_t across) {
  for (size_t n = 4; of_rows && n < down && n <= 128; n *= 2) add(l, of_rows, (double)n);
  for (size_t n = 2; of_blocks && n < across && n <= 16; n *= 2) add(l, of_blocks, (double)n);
}

/* The elements of a block whose number has none of the bits of the mask: lane 0's own where steps of a reduction are missing. */
static mx_region without(uint32_t area, uint32_t mask) {
  mx_region g = {.of = MX_REGION_ELEMENTS, .modulus = area};
  for (uint32_t i = 0; i < area; i++) g.set[i] = !(i & mask);
  return g;
}

/* Steps of a butterfly reduction that are missing: one, the last ones, the first ones. */
static size_t missing_steps(uint32_t out[32], size_t area) {
  size_t n = 0;
  for (uint32_t bit = 1; bit < area; bit *= 2) out[n++] = bit;
  for (uint32_t bit = 4; bit < area; bit *= 2) out[n++] = bit - 1, out[n++] = (uint32_t)area - bit / 2;
  return n;
}
static int steps_in(size_t area) { return area >= 4 && area <= MX_REGION_MOST && !(area & (area - 1)); }

/* Maxima over other elements than the block's, as loops and reductions that end too late, too early or at the wrong place have them. */
static void maxima_elsewhere(list *l, size_t width, size_t area, size_t cols) {
  EACH(l, MX_FAULT_AMAX_RUNNING_IN, 2, 4, 8, 16);
  EACH(l, MX_FAULT_AMAX_RUNNING_DOWN, 1, 2, 4, 8, 16, 32);
  for (uint32_t k = 0; k < 2; k++) add_placed(l, MX_FAULT_AMAX_NOABS, 0, every(MX_REGION_ELEMENTS, 2, k)); /* a mask for one of a pair */
  EACH(l, MX_FAULT_AMAX_FIRST_ROW, 2, 4, 8, 16);
  EACH(l, MX_FAULT_AMAX_FIRST_BLOCK, 2, 4, 8);
  if (cols % width) add(l, MX_FAULT_AMAX_STALE, 0);
  /* A window is a rival of a loop that reads on: few blocks have their maximum among the elements that it leaves out. */
  for (double n = 1; n <= (double)width; n *= 2)
    for (int sign = 1; sign >= -1; sign -= 2) {
      if (sign > 0 || n < (double)width) add(l, MX_FAULT_AMAX_NEXT, sign * n); /* the block before is a word of its own */
      add(l, MX_FAULT_AMAX_WINDOW, sign * n);
    }
  if (cols % width) add(l, MX_FAULT_AMAX_NEXT, (double)(width - cols % width));
  EACH(l, MX_FAULT_AMAX_WITH_BLOCK, -1, 1);
  EACH(l, MX_FAULT_AMAX_AVERAGE, 0.9, 0.1, 0.99, 0.95, 0.5);
  add(l, MX_FAULT_AMAX_WHOLE_ROW, 0);
  add(l, MX_FAULT_AMAX_STRIDED, 0);
  EACH(l, MX_FAULT_AMAX_STRIDED_IN, 2, 4, 8, 16);
  add(l, MX_FAULT_AMAX_STRAIGHT, 0);
  for (double n = 16; n <= 128; n *= 2) add(l, MX_FAULT_AMAX_ROTATED, n);
  add(l, MX_FAULT_AMAX_TURNED, 0);
  uint32_t steps[32];
  for (size_t i = 0, n = steps_in(area) ? missing_steps(steps, area) : 0; i < n; i++)
    add_placed(l, MX_FAULT_AMAX_ONLY, 0, without((uint32_t)area, steps[i]));
}

/* 1 / F held in bfloat16: maxima that are multiplied by it are off by one factor. (That of binary16 is so near 1 that it passes for another rule of ties.) */
static void short_reciprocal(list *l, const mx_spec *spec) {
  const double most = mx_format_max(mx_elem_format(spec->elem));
  const double by = most * (double)mxi_round_dtype((float)(1 / most), MX_INPUT_DTYPE_BFLOAT16);
  if (by != 1) add(l, MX_FAULT_AMAX_TIMES, by);
}

static void maxima(list *l, const mx_spec *spec, size_t area, size_t across) {
  add(l, MX_FAULT_AMAX_NOABS, 0);
  add(l, MX_FAULT_AMAX_UNSIGNED, 0);
  add(l, MX_FAULT_AMAX_NEGATIVE, 0)->rare = 1; /* where every block has a negative number, raw bits are the likelier */
  add(l, MX_FAULT_AMAX_INTEGER, 0)->rare = 1;  /* of small maxima it makes zeros, as plainer faults do */
  for (double n = 2; n <= 8 && n < (double)area; n++) add(l, MX_FAULT_AMAX_RANK, n);
  EACH(l, MX_FAULT_AMAX_PERCENTILE, 99, 99.9, 99.5, 98, 95, 97.5, 97, 96, 90, 80, 75, 50);
  EACH(l, MX_FAULT_AMAX_MEAN, 1, 1.5, 2, 2.5, 3, 4, 6);
  EACH(l, MX_FAULT_AMAX_RMS, 1, 1.5, 2, 2.5, 3, 4);
  EACH(l, MX_FAULT_AMAX_BLOCKS, 2, 4, 8);
  add(l, MX_FAULT_AMAX_RUNNING, 0);
  EACH(l, MX_FAULT_AMAX_BLOCK, -1, 1, -2, 2);
  EACH(l, MX_FAULT_AMAX_ROW, -1, 1);
  add(l, MX_FAULT_AMAX_BLOCK, 0)->fit = FIT_PLACE;
  add(l, MX_FAULT_AMAX_ROW, 0)->fit = FIT_PLACE;
  add(l, MX_FAULT_AMAX_BF16, 0);
  add(l, MX_FAULT_AMAX_BF16_CUT, 0);
  add(l, MX_FAULT_AMAX_F16, 0);
  EACH(l, MX_FAULT_AMAX_LEAST, 1); /* a tail of ones, which may fit without a limit that the data show */
  short_reciprocal(l, spec);
  add(l, MX_FAULT_AMAX_TIMES, 0)->fit = FIT_SCALES;
  add(l, MX_FAULT_AMAX_LEAST, 0)->fit = FIT_SCALES;
  add(l, MX_FAULT_AMAX_MOST, 0)->fit = FIT_SCALES;
  add(l, MX_FAULT_AMAX_PLUS, 0)->fit = FIT_SCALES;
  add(l, MX_FAULT_AMAX_MEAN, 0)->fit = FIT_SCALES;
  add(l, MX_FAULT_AMAX_RMS, 0)->fit = FIT_SCALES;
  option *whatever = add(l, MX_FAULT_AMAX_VALUE, 0); /* of a maximum that nothing exceeds, a floor is the likelier */
  whatever->fit = FIT_SCALES;
  whatever->rare = 1;
  for (size_t n = 2; n <= 8; n *= 2) {
    add_placed(l, MX_FAULT_AMAX_ONLY, 0, interval(MX_REGION_ELEMENTS, 0, area / n - 1));
    add_placed(l, MX_FAULT_AMAX_ONLY, 0, interval(MX_REGION_ELEMENTS, area - area / n, UINT64_MAX));
    for (uint32_t k = 0; k < n; k++) add_placed(l, MX_FAULT_AMAX_ONLY, 0, every(MX_REGION_ELEMENTS, (uint32_t)n, k));
  }
  add_placed(l, MX_FAULT_AMAX_ONLY, 0, interval(MX_REGION_ELEMENTS, 0, 0));
  for (uint32_t k = 0; area <= MX_REGION_MOST && k < area; k++) add_placed(l, MX_FAULT_AMAX_ONLY, 0, all_but((uint32_t)area, k));
  for (size_t n = 1; n < area; n *= 2) { /* the last block of a row is read in part */
    option *end = add(l, MX_FAULT_AMAX_WITHOUT, 0);
    end->fault.region = interval(MX_REGION_ELEMENTS, n, UINT64_MAX);
    end->fault.also = interval(MX_REGION_BLOCKS, across - 1, UINT64_MAX);
    end->placed = 1;
  }
  option *some = add(l, MX_FAULT_AMAX_ONLY, 0);
  some->fit = FIT_PLACE;
  some->placed = 1;
}

/* Other rules that make a power of two. */
static void rules(list *l, int op, const mx_spec *spec) {
  const mx_format *scale = mx_scale_format(spec->scale);
  for (int k = 0; mxi_fault_rule(k) && scale->kind == MX_KIND_EXP && !scale->man_bits; k++) {
    option *o = add(l, op, 0);
    o->fault.format = k;
    o->rare = mxi_fault_rule(k)->rule < 0;
  }
}

static void scales(list *l, const mx_spec *spec) {
  EACH(l, MX_FAULT_SCALE_PLUS, 1, -1, 2, -2);
  add(l, MX_FAULT_SCALE_LARGEST, 0)->fit = FIT_SCALES;
  add(l, MX_FAULT_SCALE_LOG2, 0);
  const mx_format *format = mx_scale_format(spec->scale);
  if (format->kind == MX_KIND_EXP) {
    add(l, MX_FAULT_SCALE_LOG2_AMAX, 0);
    add(l, MX_FAULT_SCALE_LOG2_BF16, 0);
    for (int k = 0; mxi_fault_rule(k); k++) /* the others are keys */
      if (mxi_fault_rule(k)->rule < 0) add_format(l, MX_FAULT_SCALE_RULE, k);
    add(l, MX_FAULT_SCALE_LOG2_F16, 0);
    add(l, MX_FAULT_SCALE_OR, 0);
  } else {
    static const int others[] = {MX_ELEM_E4M3FNUZ, MX_ELEM_E5M2, MX_ELEM_COUNT + MX_SCALE_UE5M3, MX_ELEM_COUNT + MX_SCALE_E8M0, MX_ELEM_E4M3};
    add(l, MX_FAULT_SCALE_BF16, 0);
    add(l, MX_FAULT_SCALE_F16, 0);
    add(l, MX_FAULT_SCALE_FLUSH_FIRST, 0);
    add(l, MX_FAULT_SCALE_MODULO, 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
      if (mxi_fault_format(others[i]) != format) add_format(l, MX_FAULT_SCALE_FORMAT, others[i]);
  }
  add(l, MX_FAULT_SCALE_FLUSH, 0);
  add(l, MX_FAULT_SCALE_DOWN, 0);
  add(l, MX_FAULT_SCALE_UP, 0);
  if (spec->select == MX_SELECT_FOURSIX) add(l, MX_FAULT_SCALE_WORSE, 0);
  if (spec->elem == MX_ELEM_E2M1 && spec->select == MX_SELECT_ABSMAX && mx_scale_format(spec->scale)->kind != MX_KIND_EXP) {
    add(l, MX_FAULT_SCALE_FOURSIX, 0);
    add(l, MX_FAULT_SCALE_FOURSIX_WORSE, 0);
    add(l, MX_FAULT_SCALE_FOURSIX_UNITS, 0);
  }
  EACH(l, MX_FAULT_SCALE_ROW, -1, 1);
  EACH(l, MX_FAULT_SCALE_VALUE, 126, 127, 0, 254, 56);
  EACH(l, MX_FAULT_SCALE_BLOCK, -1, 1);
  option *code = add(l, MX_FAULT_SCALE_VALUE, 0); /* of codes that nobody writes by hand */
  code->fit = FIT_PLACE;
  code->rare = 1;
  EACH(l, MX_FAULT_STORE_PLUS, 1, -1, 2, -2, -127, 127);
  EACH(l, MX_FAULT_STORE_ROW, -1, 1, -2, 2, -4, 4, -8, -16, -32, -64, -128);
  EACH(l, MX_FAULT_STORE_BLOCK, -1, 1, -2, 2, -4, 4);
  EACH(l, MX_FAULT_STORE_ROW_XOR, 1, 2, 4, 8, 16, 32, 64, 3, 7, 15, 31);
  EACH(l, MX_FAULT_STORE_BLOCK_XOR, 1, 2, 4, 3, 7, 15, 8);
  EACH(l, MX_FAULT_STORE_FIRST_ROW, 2, 4, 8, 16, 32);
  EACH(l, MX_FAULT_STORE_FIRST_BLOCK, 2, 4, 8);
  add(l, MX_FAULT_STORE_DOWN, 0);
  EACH(l, MX_FAULT_STORE_VALUE, 0, 127, 255, 254, 56, 1, 120);
  static const int placed[] = {MX_FAULT_STORE_PLUS, MX_FAULT_STORE_VALUE, MX_FAULT_STORE_ROW, MX_FAULT_STORE_BLOCK};
  for (size_t i = 0; i < sizeof placed / sizeof *placed; i++) add(l, placed[i], 0)->fit = FIT_PLACE;
  add(l, MX_FAULT_STORE_FLUSH, 0);
  add(l, MX_FAULT_STORE_RECIPROCAL, 0);
  add(l, MX_FAULT_STORE_SIGN, 0);
  add_placed(l, MX_FAULT_STORE_KEEP, 0, (mx_region){.of = MX_REGION_ZERO});
  add_placed(l, MX_FAULT_STORE_KEEP, 0, (mx_region){.of = MX_REGION_TAIL});
  static const double resets[] = {127, 0, 1, 126, 56};
  for (size_t i = 0; i < sizeof resets / sizeof *resets; i++) {
    add_placed(l, MX_FAULT_STORE_KEEP_FROM, resets[i], (mx_region){.of = MX_REGION_ZERO});
    add_placed(l, MX_FAULT_STORE_KEEP_FROM, resets[i], (mx_region){.of = MX_REGION_SUBNORMAL});
  }
  rules(l, MX_FAULT_STORE_RULE, spec);
  add(l, MX_FAULT_STORE_AMAX_TIMES, 0)->fit = FIT_SCALES;
}

/* Are all divisors powers of two? Then reciprocals have no bits. */
static int has_powers(const mx_spec *spec) {
  return mx_scale_format(spec->scale)->kind == MX_KIND_EXP && spec->tensor_norm == MX_TENSOR_NORM_NONE;
}

/* Bits of mantissa of the types of 16 bits. */
enum { BITS_OF_BF16 = 7, BITS_OF_F16 = 10 };

static void divisors(list *l, const mx_spec *spec, size_t area) {
  uint32_t steps[32];
  for (size_t i = 0, n = steps_in(area) ? missing_steps(steps, area) : 0; i < n; i++) add(l, MX_FAULT_DIVISOR_LANES, steps[i]);
  if (area <= MX_REGION_MOST) add(l, MX_FAULT_DIVISOR_LANES_FROM, 0), add(l, MX_FAULT_DIVISOR_LANES_TO, 0);
  EACH(l, MX_FAULT_DIVISOR_ORDER, -1, 1);
  add(l, MX_FAULT_DIVISOR_ORDER, 0)->fit = FIT_PLACE;
  EACH(l, MX_FAULT_DIVISOR_OVER, 2, 4);
  for (size_t n = 1; n < area && n <= 16; n *= 2) add(l, MX_FAULT_DIVISOR_LANES_DOWN, (double)n);
  add(l, MX_FAULT_DIVISOR_REPEATED, 0);
  EACH(l, MX_FAULT_DIVISOR_ROW, -1, 1, -2, -4, -8, -16);
  EACH(l, MX_FAULT_DIVISOR_BLOCK, -1, 1);
  add(l, MX_FAULT_DIVISOR_ROW_XOR, 1);
  EACH(l, MX_FAULT_DIVISOR_FIRST_ROW, 2, 4, 8);
  EACH(l, MX_FAULT_DIVISOR_FIRST_BLOCK, 2, 4);
  add(l, MX_FAULT_DIVISOR_DOWN, 0);
  EACH(l, MX_FAULT_DIVISOR_BLOCK_XOR, 1, 2);
  EACH(l, MX_FAULT_DIVISOR_PLUS, 1, -1);
  rules(l, MX_FAULT_DIVISOR_RULE, spec);
  add(l, MX_FAULT_DIVISOR_ZERO, 0);
  static const int read[] = {MX_ELEM_E4M3, MX_ELEM_E5M2, MX_ELEM_COUNT + MX_SCALE_UE5M3, MX_ELEM_COUNT + MX_SCALE_E8M0, MX_ELEM_E4M3FNUZ};
  for (size_t i = 0; i < sizeof read / sizeof *read; i++)
    add_format(l, MX_FAULT_DIVISOR_AS, read[i]), add_format(l, MX_FAULT_DIVISOR_AS_NUMBER, read[i]);
  static const int plain[] = {MX_FAULT_DIVISOR_TO_ZERO,      MX_FAULT_DIVISOR_TO_PLUS_ZERO,
                              MX_FAULT_DIVISOR_FLUSH,        MX_FAULT_DIVISOR_HALF,
                              MX_FAULT_DIVISOR_BINADE,       MX_FAULT_DIVISOR_RCP_BF16,
                              MX_FAULT_DIVISOR_RCP_F16,      MX_FAULT_DIVISOR_BF16,
                              MX_FAULT_DIVISOR_UNROUNDED,    MX_FAULT_DIVISOR_UNROUNDED_TIMES,
                              MX_FAULT_DIVISOR_RCP_NAN,      MX_FAULT_DIVISOR_NO_TENSOR,
                              MX_FAULT_DIVISOR_TENSOR_TWICE, MX_FAULT_DIVISOR_UNROUNDED_RCP,
                              MX_FAULT_DIVISOR_BEFORE,       MX_FAULT_DIVISOR_ONE,
                              MX_FAULT_DIVISOR_INVERTED,     MX_FAULT_DIVISOR_TWICE};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) add(l, plain[i], 0);
  add(l, MX_FAULT_DIVISOR_TENSOR_INVERTED, 0)->rare = 1; /* where it makes all zeros or the largest, so does no tensor scale */
  const int of_powers = has_powers(spec);
  for (double n = 3; n <= 16 && !of_powers; n++) {
    add(l, MX_FAULT_DIVISOR_BITS, n);
    add(l, MX_FAULT_DIVISOR_BITS_NEAREST, n)->rare = n == BITS_OF_BF16 || n == BITS_OF_F16; /* whoever has such a number has the type */
  }
  for (double n = 2; n <= 12 && !of_powers; n++) add(l, MX_FAULT_DIVISOR_SCALE_BITS, n), add(l, MX_FAULT_DIVISOR_SCALE_BITS_NEAREST, n);
  if (!of_powers) EACH(l, MX_FAULT_DIVISOR_ESTIMATE, 8, 7, 12);
}

static void elements(list *l, const mx_spec *spec) {
  static const int plain[] = {MX_FAULT_ELEMENT_BF16,
                              MX_FAULT_ELEMENT_BF16_CUT,
                              MX_FAULT_ELEMENT_F16,
                              MX_FAULT_ELEMENT_F16_CUT,
                              MX_FAULT_ELEMENT_TRUNCATE,
                              MX_FAULT_ELEMENT_AWAY,
                              MX_FAULT_ELEMENT_TIES_AWAY,
                              MX_FAULT_ELEMENT_TIES_ZERO,
                              MX_FAULT_ELEMENT_TIES_ODD,
                              MX_FAULT_ELEMENT_TIES_UP,
                              MX_FAULT_ELEMENT_TIES_DOWN,
                              MX_FAULT_ELEMENT_WRAP,
                              MX_FAULT_CODE_INVERT,
                              MX_FAULT_CODE_ABS,
                              MX_FAULT_CODE_NO_NEGATIVE_ZERO,
                              MX_FAULT_CODE_NEGATIVE_ZERO,
                              MX_FAULT_CODE_SIGN_OF_PAIR,
                              MX_FAULT_CODE_SIGN_OF_LARGEST,
                              MX_FAULT_CODE_BY_LARGEST,
                              MX_FAULT_CODE_SWAP,
                              MX_FAULT_CODE_SMEARED,
                              MX_FAULT_ELEMENT_CARRY,
                              MX_FAULT_ELEMENT_SATURATED_CARRY,
                              MX_FAULT_ELEMENT_HALF,
                              MX_FAULT_ELEMENT_MODULO,
                              MX_FAULT_ELEMENT_FLUSH,
                              MX_FAULT_ELEMENT_FLUSH_ROUNDED,
                              MX_FAULT_ELEMENT_HIDDEN,
                              MX_FAULT_ELEMENT_SUBNORMAL_CUT,
                              MX_FAULT_ELEMENT_BINADE,
                              MX_FAULT_CODE_FLUSH};
  add(l, MX_FAULT_CLAMP_BEFORE, 0)->fit = FIT_CODES;
  if (!has_powers(spec)) add(l, MX_FAULT_CLAMP_BF16, 0), add(l, MX_FAULT_CLAMP_F16, 0); /* else a quotient is rounded as its number is */
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) add(l, plain[i], 0);
  if (mx_elem_format(spec->elem)->kind == MX_KIND_INT) add(l, MX_FAULT_CODE_LOWEST, 0)->common = 1; /* as casts to int8 do */
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (ways[i] != spec->elem) add_format(l, MX_FAULT_ELEMENT_FORMAT, ways[i]);
  for (int other = 0; other < MX_ELEM_NONE; other++)
    if (other != spec->elem && mx_elem_format(other)->bits == mx_elem_format(spec->elem)->bits) add_format(l, MX_FAULT_ELEMENT_AS, other);
  if (spec->elem == MX_ELEM_E5M2) add(l, MX_FAULT_ELEMENT_F16_THEN_CUT, 0)->common = 1; /* whose codes are the upper bytes of float16 */
  if (mx_elem_format(spec->elem)->inf_code != MX_NO_CODE) add(l, MX_FAULT_ELEMENT_CLIP, mx_format_max(mx_elem_format(spec->elem)));
  add(l, MX_FAULT_ELEMENT_TIMES, 0)->fit = FIT_CODES;
  add(l, MX_FAULT_ELEMENT_CLIP, 0)->fit = FIT_CODES;
  EACH(l, MX_FAULT_ELEMENT_STEPS, 1, 0, 2, 3, 4);
  for (double n = 0; n <= 8; n++) add(l, MX_FAULT_ELEMENT_GUARD, n);
  add(l, MX_FAULT_ELEMENT_SUBNORMAL_TIMES, 2);
  add(l, MX_FAULT_ELEMENT_SUBNORMAL_TIMES, 0.5)->rare = 1; /* of numbers that are cut, where there is one such number, that is the likelier */
  EACH(l, MX_FAULT_ELEMENT_SHIFT, 3, 2, 4, 5);
  EACH(l, MX_FAULT_CODE_PLUS, 1, -1, ldexp(1, mx_elem_format(spec->elem)->bits - 1));
  if (mx_elem_format(spec->elem)->kind == MX_KIND_INT)
    add(l, MX_FAULT_CODE_SIGN_MAGNITUDE, 0);
  else
    add(l, MX_FAULT_CODE_TWOS, 0);
  EACH(l, MX_FAULT_CODE_SIGN_OF, -1, 1);
  EACH(l, MX_FAULT_CODE_SIGN_ROLLED, -1, 1);
  add(l, MX_FAULT_CODE_SIGN_XOR, 0)->fit = FIT_PLACE;
  EACH(l, MX_FAULT_CODE_SIGN_BIT, 15, 16, 30, 23, 0);
  EACH(l, MX_FAULT_CODE_REVERSE, 4, 8, 16, 32);
  EACH(l, MX_FAULT_CODE_COLUMN, -1, 1, -2, 2);
  EACH(l, MX_FAULT_CODE_COLUMN_XOR, 2, 4, 8, 16, 32);
  static const int columns[] = {MX_FAULT_CODE_COLUMN, MX_FAULT_CODE_COLUMN_XOR, MX_FAULT_CODE_REVERSE};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) add(l, columns[i], 0)->fit = FIT_PLACE;
  EACH(l, MX_FAULT_CODE_VALUE, 0);
  add(l, MX_FAULT_CODE_VALUE, 0)->fit = FIT_PLACE;
  add(l, MX_FAULT_CODE_PLUS, 0)->fit = FIT_PLACE;
  add(l, MX_FAULT_CODE_BITS, 0)->fit = FIT_PLACE;
  option *table = add(l, MX_FAULT_CODE_TABLE, 0);
  table->fit = FIT_PLACE;
  table->placed = 1; /* in a part, codes may be rare that it does not change */
}

/* Elements that are read from another place than those which the scale is made of, as where a tile is not waited for. */
static void elsewhere(list *l, size_t rows, size_t cols) {
  for (size_t n = 1; n < cols && n <= 256; n *= n < 16 ? 16 : 2)
    add(l, MX_FAULT_CLAMP_COLUMN, -(double)n), add(l, MX_FAULT_CLAMP_COLUMN, (double)n);
  for (size_t n = 1; n < rows && n <= 64; n *= 2) add(l, MX_FAULT_CLAMP_ROW, -(double)n);
  add(l, MX_FAULT_CLAMP_ROW, 1);
}

/* Rows of scales that are padded to a multiple of a few where the reader does not expect it, or are not where it does. */
static void pitches(list *l, size_t across) {
  static const int ops[] = {MX_FAULT_LAYOUT_WRITTEN, MX_FAULT_LAYOUT_WRITTEN_ZERO, MX_FAULT_LAYOUT_READ, MX_FAULT_LAYOUT_READ_ZERO};
  size_t last = across;
  for (size_t of = 2; of <= 256; of *= 2) {
    const size_t pitch = (across + of - 1) / of * of;
    for (size_t i = 0; i < sizeof ops / sizeof *ops && pitch != last; i++) add(l, ops[i], (double)pitch);
    last = pitch;
  }
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) { /* of a buffer for blocks of twice or half the width; and off by one */
    if (across >= 2) add(l, ops[i], (double)(across / 2));
    add(l, ops[i], (double)across * 2);
    if (across >= 2) add(l, ops[i], (double)across - 1);
    add(l, ops[i], (double)across + 1);
  }
}

static void layouts(list *l, size_t block, size_t rows, size_t cols) {
  pitches(l, (cols + block - 1) / block);
  add(l, MX_FAULT_LAYOUT_SCALES_TRANSPOSED, 0);
  for (size_t n = 2; n <= 128 && n <= rows && n <= cols; n *= 2) add(l, MX_FAULT_LAYOUT_CODES_TRANSPOSED, (double)n);
  for (double n = 1; n <= 256; n *= 2) add(l, MX_FAULT_LAYOUT_ROW, -n), add(l, MX_FAULT_LAYOUT_ROW, n), add(l, MX_FAULT_LAYOUT_CODES_ROW, -n);
  EACH(l, MX_FAULT_LAYOUT_BLOCK, -1, 1);
  EACH(l, MX_FAULT_LAYOUT_ROW_XOR, 1, 2, 4, 8, 16, 32, 64);
  EACH(l, MX_FAULT_LAYOUT_CODES_ROW_XOR, 1, 2, 4, 8, 16, 32, 64);
  EACH(l, MX_FAULT_LAYOUT_BLOCK_XOR, 1, 2);
  add(l, MX_FAULT_LAYOUT_CODES_ZERO, 0);
  add(l, MX_FAULT_LAYOUT_ZERO, 0);
  for (int k = 1; k < MX_LAYOUT_COUNT; k++) {
    if (k == MX_LAYOUT_COLUMN_MAJOR) continue; /* scales transposed */
    add_format(l, MX_FAULT_LAYOUT_SWIZZLE, k);
    add_format(l, MX_FAULT_LAYOUT_SWIZZLE_TWICE, k);
  }
}

size_t mxi_fault_options(option out[MOST_OPTIONS], int first, int last, const mx_spec *spec, size_t rows, size_t cols) {
  list l = {out, 0, first, last};
  size_t block_rows, block_cols;
  mx_spec_block(spec, rows, cols, &block_rows, &block_cols);
  const size_t down = (rows + block_rows - 1) / block_rows, across = (cols + block_cols - 1) / block_cols;
  early(&l, !strcmp(mx_tensor_store_name(spec), "scale"), block_cols, rows, cols);
  maxima(&l, spec, block_rows * block_cols, across);
  maxima_elsewhere(&l, block_cols, block_rows * block_cols, cols);
  scales(&l, spec);
  divisors(&l, spec, block_rows * block_cols);
  elements(&l, spec);
  layouts(&l, block_cols, rows, cols);
  modulo(&l, MX_FAULT_AMAX_ROW_MODULO, MX_FAULT_AMAX_BLOCK_MODULO, down, across);
  modulo(&l, MX_FAULT_STORE_ROW_MODULO, MX_FAULT_STORE_BLOCK_MODULO, down, across);
  modulo(&l, MX_FAULT_DIVISOR_ROW_MODULO, MX_FAULT_DIVISOR_MODULO, down, across);
  elsewhere(&l, rows, cols);
  return l.n;
}

int mxi_option_is_plain(const option *o) {
  const int arg = mx_fault_row_at(o->fault.op)->arg;
  const int of_next = arg == MX_FAULT_ARG_COUNT && (o->fault.number == 1 || o->fault.number == -1);
  const int of_large = arg == MX_FAULT_ARG_RULE && mxi_fault_rule(o->fault.format)->rule == MXI_RULE_CAST; /* of those it is the rule floor */
  return o->fit == FIT_NOT && !o->placed && !o->rare && !of_large &&
         (arg == MX_FAULT_ARG_NONE || o->fault.op == MX_FAULT_ELEMENT_CLIP || arg == MX_FAULT_ARG_FORMAT || arg == MX_FAULT_ARG_RULE ||
          of_next);
}

int mxi_option_is_short_reciprocal(const option *o) { return o->fault.op == MX_FAULT_AMAX_TIMES && o->fit == FIT_NOT && !o->placed; }
