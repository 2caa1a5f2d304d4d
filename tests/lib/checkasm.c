/* Compares each operation of the library on each ISA with its scalar code, bit for bit. */
#include "checkasm.h"
#include "checkasm_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "mxgold/codec.h"
#include "mxgold/isa.h"
#include "mxgold/layout.h"
#include "mxgold/quantize.h"

/* The value of MXGOLD_ISA_OFF when the program started. */
static char outside[128];
static __attribute__((constructor)) void look_outside(void) {
  const char *text = getenv("MXGOLD_ISA_OFF");
  if (text) snprintf(outside, sizeof outside, "%s", text);
}

static void switch_back(void) {
  if (*outside)
    setenv("MXGOLD_ISA_OFF", outside, 1);
  else
    unsetenv("MXGOLD_ISA_OFF");
}

/* Sets MXGOLD_ISA_OFF to the names of the ISAs in `off`, since the call has no argument for them. */
static void switch_off(uint32_t off) {
  char text[256];
  snprintf(text, sizeof text, "%s", outside);
  for (uint32_t bit = 1; bit & MX_ISA_ALL; bit <<= 1)
    if (off & bit) strcat(strcat(text, ","), mx_isa_name(bit));
  setenv("MXGOLD_ISA_OFF", text, 1);
}

static void plain_hadamard(float *t, unsigned size, const uint8_t *signs) {
  for (unsigned i = 0; i < size; i++)
    if (signs && signs[i % 128 / 8] >> (i % 8) & 1) t[i] = -t[i];
  for (unsigned stride = 1; stride < size; stride *= 2)
    for (unsigned i = 0; i < size; i++) {
      if (i & stride) continue;
      const float a = t[i], b = t[i + stride];
      t[i] = a + b;
      t[i + stride] = a - b;
    }
  for (unsigned i = 0; i < size; i++) t[i] = isnan(t[i]) ? NAN : t[i] * (float)(1 / sqrt((double)size));
}

static int hadamard(char *why, uint32_t off, size_t *values) {
  static const size_t own[] = {1, 2, 3, 15, 16, 17, 33, 100, 128, 129, 500, 1024, 1055};
  static float x[MOST + 8], want[2 * MOST + 1024];
  uint8_t signs[16];
  int bad = 0;
  switch_off(off);
  for (unsigned size = 2; size <= 1024; size *= 2)
    for (size_t k = 0; !bad && k < sizeof own / sizeof *own; k++)
      for (int kind = 0; !bad && kind < CHECKASM_KINDS; kind++) {
        const size_t n = own[k];
        float *from = x + k % 5;
        checkasm_fill(x, MOST + 8, kind);
        for (int i = 0; i < 16; i++) signs[i] = (uint8_t)checkasm_next();
        const int sign = kind % 2 ? MX_HAD_SIGN_FIXED : MX_HAD_SIGN_NONE;
        memset(want, 0, sizeof want);
        memcpy(want, from, n * sizeof *want);
        for (size_t i = 0; i < n; i += size) plain_hadamard(want + i, size, kind % 2 ? signs : NULL);
        guarded got = room(n * 4, 4 * (k % 3));
        float *to = (float *)(void *)got.at;
        if (kind == 2) memcpy(to, from, n * sizeof *to); /* in place */
        mx_hadamard(to, n, kind == 2 ? to : from, 1, n, n, size, sign, signs, 0);
        if (!intact(&got)) bad = failed(why, "size %u, %zu values: wrote past the end", size, n);
        for (size_t i = 0; !bad && i < n; i++)
          if (memcmp(to + i, want + i, 4))
            bad = failed(why, "size %u, %zu values: value %zu is %a, expected %a", size, n, i, (double)to[i], (double)want[i]);
        free(got.all);
        *values += n;
      }
  switch_back();
  return bad;
}

static const mx_format *format_at(size_t i) {
  const mx_format *f = i < MX_ELEM_COUNT                    ? mx_elem_format((int)i)
                       : i - MX_ELEM_COUNT < MX_SCALE_COUNT ? mx_scale_format((int)(i - MX_ELEM_COUNT))
                                                            : NULL;
  return f && (f->bits > 16 || f->kind == MX_KIND_NONE) ? NULL : f;
}

static int encode_array(char *why, uint32_t off, size_t *values) {
  const mx_exec exec = {.isa_mask = off};
  float x[MOST];
  for (size_t i = 0; i < MX_ELEM_COUNT + MX_SCALE_COUNT; i++) {
    const mx_format *f = format_at(i);
    for (int round = MX_ROUND_RNE; f && round < MX_ROUND_SCAN_Y; round++) {
      const mx_encoding how = {.round = round, .overflow = round % 2 ? MX_OVERFLOW_IEEE : MX_OVERFLOW_SATURATE, .zero_sign = (int)(i % 4)};
      if (round == MX_ROUND_SR) continue;
      for (int kind = 0; kind < CHECKASM_KINDS; kind++) {
        const size_t n = lengths[(i + (size_t)round + 3 * (size_t)kind) % LENGTHS], wide = f->bits > 8, shift = n % 7 * (wide + 1);
        checkasm_fill(x, MOST, kind);
        for (size_t k = 0; kind == 4 && k < MOST; k += 3) { /* subnormals and their neighbours */
          const uint32_t bits = (checkasm_next() & 0x80FFFFFF) >> (checkasm_next() % 24 ? checkasm_next() % 24 : 0);
          memcpy(x + k, &bits, sizeof bits);
        }
        guarded got = room(n << wide, shift);
        if (mx_encode_array(got.at, x + n % 5, n, f, &how, &exec)) return failed(why, "%s: refused", f->name);
        if (!intact(&got)) return failed(why, "%s, %zu values: wrote past the end", f->name, n);
        for (size_t k = 0; k < n; k++) {
          const uint64_t code = wide ? (uint64_t)got.at[2 * k] | (uint64_t)got.at[2 * k + 1] << 8 : got.at[k];
          const uint64_t want = mx_encode(f, (double)x[n % 5 + k], &how, 0);
          if (code != want)
            return failed(why, "%s, round %d: %a is %llx, expected %llx", f->name, round, (double)x[n % 5 + k], (unsigned long long)code,
                          (unsigned long long)want);
        }
        free(got.all);
        *values += n;
      }
    }
  }
  return 0;
}

static int decode_array(char *why, uint32_t off, size_t *values) {
  const mx_exec exec = {.isa_mask = off};
  for (size_t i = 0; i < MX_ELEM_COUNT + MX_SCALE_COUNT; i++) {
    const mx_format *f = format_at(i);
    for (size_t k = 0; f && k < LENGTHS; k++) {
      const size_t n = lengths[k], wide = f->bits > 8;
      uint8_t codes[2 * MOST + 8], *at = codes + 2 * (k % 3);
      for (size_t j = 0; j < sizeof codes; j++) codes[j] = (uint8_t)checkasm_next();
      guarded got = room(n * 4, 4);
      if (mx_decode_array((float *)(void *)got.at, at, n, f, &exec)) return failed(why, "%s: refused", f->name);
      if (!intact(&got)) return failed(why, "%s, %zu codes: wrote past the end", f->name, n);
      for (size_t j = 0; j < n; j++) {
        const uint64_t code = (wide ? (uint64_t)at[2 * j] | (uint64_t)at[2 * j + 1] << 8 : at[j]) & ((UINT64_C(1) << f->bits) - 1);
        const float want = (float)mx_decode(f, code);
        float v;
        memcpy(&v, got.at + 4 * j, 4);
        if (memcmp(&v, &want, 4)) return failed(why, "%s: %llx is %a, expected %a", f->name, (unsigned long long)code, (double)v, (double)want);
      }
      free(got.all);
      *values += n;
    }
  }
  return 0;
}

/* Lengths around every step of the byte kernels, and some that are much longer. */
static const size_t byte_lengths[] = {1, 2, 255, 256, 257, 288, 300, 303, 319, 320, 336, 351, 383, 384, 447, 448, 511, 512, 640, 1000, 4097};
enum { BYTE_LENGTHS = sizeof byte_lengths / sizeof *byte_lengths, MOST_BYTES = 4200 };

/* Returns the place of code i of n, by SPEC section 7. */
static size_t nibble_place(int *high, size_t i, size_t n, int nibble, size_t block) {
  if (nibble != MX_NIBBLE_HALF_BLOCK) {
    *high = (i % 2 != 0) == (nibble == MX_NIBBLE_LOW_FIRST);
    return i / 2;
  }
  const size_t first = i / block * block, here = n - first < block ? n - first : block, half = (here + 1) / 2;
  *high = i - first >= half;
  return first / 2 + (i - first) % half;
}

static int pack_4_bits(char *why, uint32_t off, size_t *values) {
  static const size_t blocks[] = {2, 16, 32, 48, 64, 128};
  static uint8_t codes[MOST_BYTES], want[MOST_BYTES];
  int bad = 0;
  switch_off(off);
  for (int nibble = MX_NIBBLE_LOW_FIRST; nibble <= MX_NIBBLE_HALF_BLOCK; nibble++)
    for (size_t l = 0; l < BYTE_LENGTHS; l++)
      for (size_t b = 0; b < sizeof blocks / sizeof *blocks && !bad; b++) {
        const size_t n = byte_lengths[l], bytes = (n + 1) / 2;
        uint8_t *from = codes + l % 7;
        for (size_t i = 0; i < MOST_BYTES; i++) codes[i] = (uint8_t)checkasm_next(); /* the upper four bits must not matter */
        memset(want, 0, sizeof want);
        int high;
        for (size_t i = 0; i < n; i++) {
          const size_t at = nibble_place(&high, i, n, nibble, blocks[b]);
          want[at] = (uint8_t)(want[at] | (from[i] & 15) << (high ? 4 : 0));
        }
        guarded packed = room(bytes, b), back = room(n, l % 5);
        mx_pack4(packed.at, from, n, nibble, blocks[b]);
        mx_unpack4(back.at, packed.at, n, nibble, blocks[b]);
        if (!intact(&packed) || !intact(&back)) bad = failed(why, "%zu codes: wrote past the end", n);
        for (size_t i = 0; i < bytes && !bad; i++)
          if (packed.at[i] != want[i]) bad = failed(why, "%zu codes, order %d, blocks of %zu: byte %zu", n, nibble, blocks[b], i);
        for (size_t i = 0; i < n && !bad; i++)
          if (back.at[i] != (from[i] & 15)) bad = failed(why, "%zu codes back, order %d, blocks of %zu: code %zu", n, nibble, blocks[b], i);
        free(packed.all);
        free(back.all);
        *values += 2 * n;
      }
  switch_back();
  return bad;
}

static int pack_6_bits(char *why, uint32_t off, size_t *values) {
  static uint8_t codes[MOST_BYTES], want[MOST_BYTES];
  int bad = 0;
  switch_off(off);
  for (size_t n = 1; n < MOST_BYTES - 8 && !bad; n += n < 600 ? 1 : 97) {
    const size_t bytes = (6 * n + 7) / 8;
    uint8_t *from = codes + n % 7;
    for (size_t i = 0; i < MOST_BYTES; i++) codes[i] = (uint8_t)checkasm_next();
    memset(want, 0, sizeof want);
    for (size_t bit = 0; bit < 6 * n; bit++) want[bit / 8] = (uint8_t)(want[bit / 8] | (from[bit / 6] >> bit % 6 & 1) << bit % 8);
    guarded packed = room(bytes, n % 3), back = room(n, n % 5);
    mx_pack6(packed.at, from, n);
    mx_unpack6(back.at, packed.at, n);
    if (!intact(&packed) || !intact(&back)) bad = failed(why, "%zu codes: wrote past the end", n);
    for (size_t i = 0; i < bytes && !bad; i++)
      if (packed.at[i] != want[i]) bad = failed(why, "%zu codes: byte %zu is %02x, expected %02x", n, i, packed.at[i], want[i]);
    for (size_t i = 0; i < n && !bad; i++)
      if (back.at[i] != (from[i] & 63)) bad = failed(why, "%zu codes back: code %zu is %02x, expected %02x", n, i, back.at[i], from[i] & 63);
    free(packed.all);
    free(back.all);
    *values += 2 * n;
  }
  switch_back();
  return bad;
}

static int layouts(char *why, uint32_t off, size_t *values) {
  static const size_t shapes[][2] = {{1, 1},    {8, 32},   {9, 33},   {31, 16},  {32, 8},   {33, 24},   {128, 4},  {128, 16},
                                     {128, 20}, {130, 48}, {256, 16}, {257, 40}, {384, 15}, {300, 129}, {512, 17}, {16, 160}};
  int bad = 0;
  switch_off(off);
  for (int layout = 0; layout < MX_LAYOUT_COUNT; layout++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes && !bad; s++) {
      const size_t rows = shapes[s][0], kb = shapes[s][1], size = mx_layout_size((mx_layout)layout, rows, kb);
      guarded from = room(rows * kb, s % 5), moved = room(size, s % 3), back = room(rows * kb, s % 7);
      uint8_t *want = malloc(size);
      for (size_t i = 0; i < rows * kb; i++) from.at[i] = (uint8_t)checkasm_next();
      memset(want, 0x5A, size);
      for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < kb; k++) want[mx_layout_index((mx_layout)layout, rows, kb, r, k)] = from.at[r * kb + k];
      mx_layout_pack(moved.at, (mx_layout)layout, from.at, rows, kb, 0x5A);
      mx_layout_unpack(back.at, (mx_layout)layout, moved.at, rows, kb);
      if (!intact(&moved) || !intact(&back))
        bad = failed(why, "%s, %zu x %zu: wrote past the end", mx_layout_name((mx_layout)layout), rows, kb);
      if (!bad && memcmp(moved.at, want, size)) bad = failed(why, "%s, %zu x %zu", mx_layout_name((mx_layout)layout), rows, kb);
      if (!bad && memcmp(back.at, from.at, rows * kb)) bad = failed(why, "%s, %zu x %zu, back", mx_layout_name((mx_layout)layout), rows, kb);
      free(from.all), free(moved.all), free(back.all), free(want);
      *values += 2 * rows * kb;
    }
  switch_back();
  return bad;
}

/* Compares two rows of codes by each kernel of differ.h, over whole arrays. Some pairs of 4-bit codes are in the sets, so that some calls stop at one. */
enum { DIFFER_MOST = 1024, DIFFER_SETS = 5 };
typedef struct differ_out {
  guarded pairs, sums, cols[2];
} differ_out;

static differ_out differ_room(size_t n, size_t shift) {
  differ_out o = {room(2 * n, shift), room(n, shift % 5), {room(n, shift % 7), room(n, 3)}};
  memset(o.pairs.at, 0, o.pairs.n);
  memset(o.sums.at, 0, n);
  for (size_t i = 0; i < n; i++) o.cols[0].at[i] = (uint8_t)i, o.cols[1].at[i] = (uint8_t)(250 + i);
  return o;
}

static void differ_free(differ_out *o) {
  free(o->pairs.all);
  free(o->sums.all);
  free(o->cols[0].all);
  free(o->cols[1].all);
}

static int by_value(const void *a, const void *b) { return memcmp(a, b, 2); }

/* Compares the first `done` bytes that a kernel wrote; the order of pairs is free. */
static int differ_same(differ_out *a, differ_out *b, size_t done, unsigned unit) {
  qsort(a->pairs.at, done, 2, by_value);
  qsort(b->pairs.at, done, 2, by_value);
  return !memcmp(a->pairs.at, b->pairs.at, 2 * done) && !memcmp(a->sums.at, b->sums.at, done / unit) &&
         !memcmp(a->cols[0].at, b->cols[0].at, a->cols[0].n) && !memcmp(a->cols[1].at, b->cols[1].at, a->cols[1].n) && intact(&a->pairs) &&
         intact(&a->sums) && intact(&a->cols[0]) && intact(&a->cols[1]);
}

/* Counts pairs of codes by a kernel, in all of its eight sums, and one by one. */
static int differ_tallies(char *why, const mx_differ_kernels *k, size_t *values) {
  static uint8_t x[MX_DIFFER_TALLY + 8], y[MX_DIFFER_TALLY + 8];
  static uint64_t got[256][8], want[256];
  for (int round = 0; round < 60; round++) {
    const size_t shift = checkasm_next() % 8, most = 1 + checkasm_next() % 16;
    uint16_t asked[16];
    for (size_t a = 0; a < 16; a++)
      asked[a] = (uint16_t)(round % 3 == 0 ? 0xFFFF : round % 3 == 1 ? checkasm_next() : checkasm_next() & checkasm_next() & checkasm_next());
    for (size_t i = 0; i < sizeof x; i++)
      x[i] = (uint8_t)checkasm_next(), y[i] = checkasm_next() % most ? (uint8_t)checkasm_next() : (uint8_t)(x[i] ^ 0x11);
    memset(want, 0, sizeof want);
    for (size_t i = 0; i < 256; i++)
      for (size_t l = 0; l < 8; l++) want[i] += got[i][l] = i * l; /* the kernel must add to what is there */
    for (size_t i = 0; i < MX_DIFFER_TALLY; i++)
      for (unsigned h = 0; h < 8; h += 4) {
        const unsigned a = x[shift + i] >> h & 15, b = y[i] >> h & 15;
        want[16 * a + b] += asked[a] >> b & 1;
      }
    k->tally(got, x + shift, y, MX_DIFFER_TALLY, asked);
    for (size_t i = 0; i < 256; i++) {
      uint64_t sum = 0;
      for (size_t l = 0; l < 8; l++) sum += got[i][l];
      if (sum != want[i])
        return failed(why, "pair %X %X counted %llu times, expected %llu", (unsigned)(i >> 4), (unsigned)(i & 15), (unsigned long long)sum,
                      (unsigned long long)want[i]);
    }
    *values += 2 * MX_DIFFER_TALLY;
  }
  return 0;
}

static int differ(char *why, uint32_t off, size_t *values) {
  const mx_differ_kernels *k = mxi_kernels_for(off)->differ, *plain = &mxi_differ_scalar;
  static uint8_t x[DIFFER_MOST + 8], y[DIFFER_MOST + 8], sets[DIFFER_SETS * MX_DIFFER_SET];
  static uint16_t set[DIFFER_MOST / 8];
  int bad = 0;
  for (int round = 0; round < 600 && !bad; round++) {
    const size_t n = 64 * (1 + checkasm_next() % (DIFFER_MOST / 64)), shift = checkasm_next() % 8;
    const unsigned unit = round & 1 ? 8 : 16, alike = checkasm_next() % 5;
    memset(sets, 0, sizeof sets);
    for (uint32_t i = checkasm_next() % 9; i > 0; i--)
      sets[checkasm_next() % sizeof sets] |= (uint8_t)(1u << checkasm_next() % 8); /* about one pair in a hundred */
    for (size_t i = 0; i < sizeof x; i++) {
      x[i] = (uint8_t)checkasm_next();
      y[i] = alike == 4                           ? (uint8_t)checkasm_next()
             : checkasm_next() % (1u + 8 * alike) ? x[i]
                                                  : (uint8_t)(x[i] ^ (checkasm_next() % 3 ? 0x11 : checkasm_next()));
    }
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) set[i] = (uint16_t)(checkasm_next() % DIFFER_SETS);
    const unsigned least = checkasm_next() % 66;
    if (k->crowd(x + shift, y, n, least) != plain->crowd(x + shift, y, n, least)) bad = failed(why, "crowd of %zu bytes", n);
    if (k->members(x + shift, y, n - shift % 3 * unit, sets, set, unit) != plain->members(x + shift, y, n - shift % 3 * unit, sets, set, unit))
      bad = failed(why, "members of %zu bytes, units of %u", n, unit);
    differ_out got = differ_room(n, shift), want = differ_room(n, 0);
    k->zip(got.pairs.at, x + shift, y, n);
    plain->zip(want.pairs.at, x + shift, y, n);
    k->eights(got.sums.at, got.cols[0].at, x + shift, y, n, unit);
    plain->eights(want.sums.at, want.cols[0].at, x + shift, y, n, unit);
    if (!differ_same(&got, &want, n, unit)) bad = failed(why, "%zu codes of 8 bits, units of %u", n, unit);
    differ_free(&got);
    differ_free(&want);
    for (size_t from = 0; from < n && !bad; from += 64) { /* up to the first pair that stops it, then on from the byte behind it */
      got = differ_room(n - from, shift), want = differ_room(n - from, 0);
      const uint16_t *s = set + from / unit;
      const size_t done = k->fours(got.sums.at, got.cols[0].at, got.cols[1].at, x + shift + from, y + from, n - from, sets, s, unit),
                   most = plain->fours(want.sums.at, want.cols[0].at, want.cols[1].at, x + shift + from, y + from, n - from, sets, s, unit);
      differ_free(&want);
      want = differ_room(n - from, 0);
      if (done > most || most - done >= MX_DIFFER_STEP || done % 16)
        bad = failed(why, "%zu bytes of 4-bit codes: stopped at %zu, expected about %zu", n - from, done, most);
      plain->fours(want.sums.at, want.cols[0].at, want.cols[1].at, x + shift + from, y + from, done / unit * unit, sets, s, unit);
      if (!bad && !differ_same(&got, &want, done, unit)) bad = failed(why, "%zu bytes of 4-bit codes, units of %u", done, unit);
      differ_free(&got);
      differ_free(&want);
      from += done / 64 * 64;
      *values += 2 * done;
    }
    *values += n;
  }
  return bad ? bad : differ_tallies(why, k, values);
}

static const struct {
  const char *name;
  operation *run;
} operations[] = {{"quantize", checkasm_quantize},
                  {"quantize, stochastic", checkasm_stochastic},
                  {"quantize, 16-bit input", checkasm_sixteen_bits},
                  {"quantize both ways", checkasm_both_directions},
                  {"dequantize", checkasm_dequantize},
                  {"tensor amax", checkasm_tensor_amax},
                  {"hadamard", hadamard},
                  {"encode_array", encode_array},
                  {"decode_array", decode_array},
                  {"pack 4 bits", pack_4_bits},
                  {"pack 6 bits", pack_6_bits},
                  {"layouts", layouts},
                  {"diff", differ}};

int checkasm(uint32_t isa) {
  int differ = 0;
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    char why[WHY] = "";
    size_t values = 0;
    if (!(mx_isa_host() & isa))
      printf("kernels: %s, %s: not run: this host lacks %s\n", operations[i].name, mx_isa_name(isa), mx_isa_name(isa));
    else if (!(mx_isa_usable(0) & isa))
      printf("kernels: %s, %s: not run: switched off by MXGOLD_ISA_OFF\n", operations[i].name, mx_isa_name(isa));
    else if (operations[i].run(why, mx_isa_only(isa), &values)) {
      printf("kernels: %s, %s: %s\n", operations[i].name, mx_isa_name(isa), why);
      differ++;
    } else
      printf("kernels: %s, %s: %zu values equal the scalar code\n", operations[i].name, mx_isa_name(isa), values);
    fflush(stdout);
  }
  return differ;
}
