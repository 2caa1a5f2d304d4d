/* Makes deterministic operands of matrix products that show what a matrix unit does. */
#include "tiles.h"

#include <stdlib.h>
#include <string.h>

uint64_t tiles_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

static size_t below(uint64_t *state, size_t n) { return (size_t)(tiles_random(state) >> 33) % n; }

static uint64_t mask(int bits) { return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1; }

/* Returns the code that has these parts; the exponent is clamped to the finite range. */
static uint64_t compose(const mx_format *f, int negative, int exp, uint64_t fraction) {
  int field = exp + f->bias, top = (int)mask(f->exp_bits);
  if (f->inf_code != MX_NO_CODE) top--;
  field = field < 0 ? 0 : field > top ? top : field;
  uint64_t code = (uint64_t)field << f->man_bits | (fraction & mask(f->man_bits));
  if (code > f->max_code) code = f->max_code;
  return code | (negative && f->sign_bits ? UINT64_C(1) << (f->bits - 1) : 0);
}

static uint64_t special_code(const mx_format *f, uint64_t *state) {
  uint64_t sign = f->sign_bits ? (uint64_t)below(state, 2) << (f->bits - 1) : 0;
  switch (below(state, 4)) {
  case 0:
    return f->nan_first != MX_NO_CODE ? (f->kind == MX_KIND_FNUZ ? f->nan_first : f->nan_last | sign) : f->max_code;
  case 1:
    return f->inf_code != MX_NO_CODE ? f->inf_code | sign : f->max_code | sign;
  case 2:
    return f->kind == MX_KIND_FNUZ || f->kind == MX_KIND_EXP ? 0 : sign;
  default:
    return f->max_code | sign;
  }
}

/* Returns a fraction; half of them have few bits set, so that sums are cut near ties. */
static uint64_t fraction(const mx_format *f, uint64_t *state) {
  uint64_t r = tiles_random(state) >> 11;
  return below(state, 2) ? r : below(state, 2) ? (UINT64_C(1) << below(state, (size_t)f->man_bits + 1)) : r & r >> 7 & 3;
}

static uint64_t code_of(const mx_format *f, tiles_kind kind, int middle, uint64_t *state) {
  uint64_t r = tiles_random(state);
  int negative = (int)(r >> 63);
  if (f->kind == MX_KIND_INT || kind == TILES_BITS) return r >> 7 & mask(f->bits);
  switch (kind) {
  case TILES_WIDE:
    return compose(f, negative, (int)below(state, (size_t)1 << f->exp_bits) - f->bias, fraction(f, state));
  case TILES_EDGE:
    return compose(f, negative, middle - (int)below(state, 21), below(state, 3) ? 0 : below(state, 2) ? 1 : UINT64_MAX);
  case TILES_TINY:
    return compose(f, negative, below(state, 8) ? -f->bias : 1 - f->bias + (int)below(state, 4), below(state, 3) ? fraction(f, state) : 0);
  case TILES_SPECIAL:
    if (below(state, 8) == 0) return special_code(f, state);
    return compose(f, negative, middle + (int)below(state, 4), fraction(f, state));
  default:
    return compose(f, negative, middle + (int)below(state, 4), fraction(f, state));
  }
}

static void put(uint8_t *row, const mx_format *f, size_t k, uint64_t code) {
  if (f->bits <= 4) {
    row[k / 2] = (uint8_t)(k % 2 ? (row[k / 2] & 15) | code << 4 : (row[k / 2] & 0xF0) | code);
    return;
  }
  size_t size = mx_mma_bytes(f, 1);
  if (f->bits == 19) code = code << 13 | (code & 0x1FFF); /* the low bits, which must not matter, are noise */
  for (size_t i = 0; i < size; i++) row[k * size + i] = (uint8_t)(code >> 8 * i);
}

static uint64_t negated(const mx_format *f, uint64_t code) {
  if (f->kind == MX_KIND_INT) return (0 - code) & mask(f->bits);
  return f->kind == MX_KIND_FNUZ && !(code & mask(f->bits - 1)) ? code : code ^ UINT64_C(1) << (f->bits - 1);
}

/* Fills rows along K; CANCEL repeats the first half, negated if `flip`. */
static void *rows_of(const mx_format *f, tiles_kind kind, size_t rows, size_t K, int flip, uint64_t *state) {
  size_t bytes = mx_mma_bytes(f, K), half = K / 2;
  uint8_t *out = calloc(rows * bytes + 1, 1);
  uint64_t *codes = calloc(K + 1, sizeof *codes);
  if (!out || !codes) abort();
  for (size_t r = 0; r < rows; r++) {
    int middle = f->exp_bits >= 8 && below(state, 4) == 0 ? (int)below(state, 3) * 60 - 60 : 0;
    for (size_t k = 0; k < K; k++) {
      codes[k] = code_of(f, kind, middle, state);
      if (kind == TILES_CANCEL && k >= half && k - half < half && below(state, 8))
        codes[k] = flip ? negated(f, codes[k - half]) : codes[k - half];
      put(out + r * bytes, f, k, codes[k]);
    }
  }
  free(codes);
  return out;
}

/* Fills in the scales. Most are near 1, so that the blocks of a group meet; WIDE takes the whole range, SPECIAL adds NaN and zero. */
static void *scales_of(const mx_format *f, tiles_kind kind, size_t rows, size_t blocks, uint64_t *state) {
  uint8_t *out = calloc(rows * blocks + 1, 1);
  if (!out) abort();
  for (size_t i = 0; i < rows * blocks; i++) {
    uint64_t code;
    if (kind == TILES_BITS || (kind == TILES_WIDE && below(state, 4)))
      code = tiles_random(state) >> 9;
    else if (kind == TILES_SPECIAL && below(state, 16) == 0)
      code = special_code(f, state);
    else
      code = compose(f, 0, (int)below(state, kind == TILES_EDGE ? 25 : 5) - (kind == TILES_EDGE ? 12 : 2), tiles_random(state) >> 20);
    out[i] = (uint8_t)code;
  }
  return out;
}

void tiles_make(tiles *t, const mx_mma_model *m, tiles_kind kind, size_t T, size_t M, size_t N, size_t K, int with_c, uint64_t *state) {
  memset(t, 0, sizeof *t);
  t->a = rows_of(m->a, kind, T * M, K, 1, state);
  t->b = rows_of(m->b, kind, T * N, K, 0, state);
  if (with_c) t->c = rows_of(m->c, kind, T * M, N, 0, state);
  if (m->scale) {
    size_t blocks = (K + (size_t)m->block - 1) / (size_t)m->block;
    t->scale_a = scales_of(m->scale, kind, T * M, blocks, state);
    t->scale_b = scales_of(m->scale, kind, T * N, blocks, state);
  }
  t->d_bytes = T * M * N * mx_mma_bytes(m->d, 1);
  t->d = calloc(t->d_bytes + 1, 1);
  t->d_ref = calloc(t->d_bytes + 1, 1);
  if (!t->d || !t->d_ref) abort();
  t->args = (mx_mma_args){T, M, N, K, t->a, t->b, t->c, t->scale_a, t->scale_b};
}

void tiles_free(tiles *t) {
  void *all[] = {t->a, t->b, t->c, t->scale_a, t->scale_b, t->d, t->d_ref};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}
