/* Computes f32_block on packed e2m1 codes with AMX. One tile product gives the dots of a block for sixteen rows and sixteen columns in exact
 * integers; tiles are as wide as a block, so that a product ends where the block does. AVX-512 scales and adds the dots in the order of the
 * definition. */
#include <string.h>

#include "gemm/codes/codes.h"
#include "gemm/codes/tiles_amx.h"

enum {
  L = MXG_LANES,
  WIDEST = 8 /* words in a row of a tile */,
  IN_CACHE = 16 << 10 /* bytes of B that are used for all panels of A in turn */
};
/* Products run this many blocks ahead of the additions, which would otherwise wait for them; their dots take RING places. */
enum { AHEAD = 2, RING = 4 };
/* The tiles. A product takes 52 cycles, during which others are started. The last two are for the words of a long block beyond multiples of
 * WIDEST. */
enum { C0, C1, C2, C3, A0, A1, B0, B1, SUMS = 4, A_REST = C2, B_REST = C3 };

static void set_shape(tile_shapes *s, int tile, size_t rows, size_t bytes) {
  s->rows[tile] = (uint8_t)rows;
  s->bytes[tile] = (uint16_t)bytes;
}

static tile_shapes shapes_of(size_t groups) {
  tile_shapes s = {.palette = 1};
  const size_t words = groups < WIDEST ? groups : WIDEST, rest = groups > WIDEST ? groups % WIDEST : 0;
  for (int t = C0; t < C0 + SUMS; t++) set_shape(&s, t, L, 64);
  for (int t = 0; t < 2; t++) {
    set_shape(&s, A0 + t, L, 8 * words);
    set_shape(&s, B0 + t, 2 * words, 64);
  }
  if (rest) {
    set_shape(&s, A_REST, L, 8 * rest);
    set_shape(&s, B_REST, 2 * rest, 64);
  }
  return s;
}

static inline __attribute__((always_inline)) void add_block(lanes acc[L], const int32_t *dots, const mxg_packed *a, const mxg_packed *b,
                                                            size_t k) {
  const lanes sb = lanes_load(b->s + k * L);
#pragma GCC unroll 16
  for (size_t r = 0; r < L; r++) acc[r] = lanes_add_term(acc[r], dots + r * L, a->s[k * L + r], sb);
}

/* Starts the dots of block k, which is one tile wide; i says which tiles. */
#define PRODUCT(k, i)                                                                                                                          \
  do {                                                                                                                                         \
    TILE_ZERO(C0 + (i) % SUMS);                                                                                                                \
    TILE_LOAD(A0 + (i) % 2, a->words + (k)*size, size * 4 / L);                                                                                \
    TILE_LOAD(B0 + (i) % 2, b->words + (k)*size, 64);                                                                                          \
    TILE_DOT(C0 + (i) % SUMS, A0 + (i) % 2, B0 + (i) % 2);                                                                                     \
    TILE_STORE(C0 + (i) % SUMS, dots[(i) % RING], 64);                                                                                         \
  } while (0)

#define STEP(i)                                                                                                                                \
  if (k + AHEAD < end) PRODUCT(k + AHEAD, (i) + AHEAD);                                                                                        \
  add_block(acc, dots[i], a, b, k);                                                                                                            \
  if (++k == end) break

/* Adds blocks [first, end) to the sums at out. */
static void blocks(float *out, const mxg_packed *a, const mxg_packed *b, size_t first, size_t end) {
  _Alignas(64) int32_t dots[RING][L * L];
  const size_t size = a->groups * 2 * L; /* words in a block, for a panel of A as for one of B */
  lanes acc[L];
#pragma GCC unroll 16
  for (size_t r = 0; r < L; r++) acc[r] = lanes_load(out + r * L);
  PRODUCT(first, 0);
  if (first + 1 < end) PRODUCT(first + 1, 1);
  for (size_t k = first;;) {
    STEP(0);
    STEP(1);
    STEP(2);
    STEP(3);
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < L; r++) lanes_store(out + r * L, acc[r]);
}

/* Handles blocks with more words than a tile has, one at a time. */
static void long_blocks(float *out, const mxg_packed *a, const mxg_packed *b, size_t first, size_t end) {
  _Alignas(64) int32_t dots[L * L];
  const size_t groups = a->groups, size = groups * 2 * L, whole = groups / WIDEST * WIDEST;
  lanes acc[L];
#pragma GCC unroll 16
  for (size_t r = 0; r < L; r++) acc[r] = lanes_load(out + r * L);
  for (size_t k = first; k < end; k++) {
    const uint32_t *x = a->words + k * size, *y = b->words + k * size;
    TILE_ZERO(C0);
    for (size_t g = 0; g < whole; g += WIDEST) {
      TILE_LOAD(A0, x + g * 2, groups * 8);
      TILE_LOAD(B0, y + g * 2 * L, 64);
      TILE_DOT(C0, A0, B0);
    }
    if (whole < groups) {
      TILE_LOAD(A_REST, x + whole * 2, groups * 8);
      TILE_LOAD(B_REST, y + whole * 2 * L, 64);
      TILE_DOT(C0, A_REST, B_REST);
    }
    TILE_STORE(C0, dots, 64);
    add_block(acc, dots, a, b, k);
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < L; r++) lanes_store(out + r * L, acc[r]);
}

/* Takes a piece of B's blocks at a time for all panels of A, so that the piece stays in the first-level cache. */
void mxi_gemm_codes_amx(float (*acc)[L * L], const mxg_packed *const *a, size_t n, const mxg_packed *b) {
  const size_t block_bytes = b->groups * 8 * L, piece = IN_CACHE / block_bytes > 4 ? IN_CACHE / block_bytes : 4;
  const tile_shapes shapes = shapes_of(b->groups);
  memset(acc, 0, n * sizeof *acc);
  TILE_CONFIGURE(&shapes);
  for (size_t first = 0; first < b->kb; first += piece) {
    const size_t end = first + piece < b->kb ? first + piece : b->kb;
    for (size_t p = 0; p < n; p++)
      if (b->groups > WIDEST)
        long_blocks(acc[p], a[p], b, first, end);
      else
        blocks(acc[p], a[p], b, first, end);
  }
  TILE_RELEASE();
}
