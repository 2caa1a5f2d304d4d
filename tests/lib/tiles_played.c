/* Compiles the AMX kernel's own source over tiles in plain C, for hosts that have none. */
#include "tiles_played.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Replaces what src/gemm/codes/tiles_amx.h defines; this is its guard, so it is not read again. */
#define MX_GEMM_CODES_TILES_AMX_H

typedef struct tile_shapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} tile_shapes;

static _Thread_local struct {
  tile_shapes shapes;
  uint8_t tile[8][16][64];
} state;
static _Atomic size_t n_products;
static _Atomic int n_configured;

static void must(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "tiles_played: %s\n", what);
  abort();
}

static void configure(const tile_shapes *s) {
  static const uint8_t zeros[16];
  must(s->palette == 1 && !s->start_row && !memcmp(s->reserved, zeros, sizeof s->reserved), "a palette that is not 1");
  for (int t = 0; t < 16; t++) {
    must(s->rows[t] <= (t < 8 ? 16 : 0) && s->bytes[t] <= (t < 8 ? 64 : 0), "a shape that is too large");
    must(!s->rows[t] == !s->bytes[t], "rows without bytes, or bytes without rows");
  }
  if (!state.shapes.palette) n_configured++;
  memset(&state, 0, sizeof state);
  state.shapes = *s;
}

static void release(void) {
  if (state.shapes.palette) n_configured--;
  memset(&state, 0, sizeof state);
}

static void has_shape(int t) { must(state.shapes.palette == 1 && state.shapes.rows[t], "a tile without a shape"); }

static void zero(int t) {
  has_shape(t);
  memset(state.tile[t], 0, sizeof state.tile[t]);
}

static void load(int t, const void *from, size_t stride) {
  zero(t);
  for (size_t r = 0; r < state.shapes.rows[t]; r++) memcpy(state.tile[t][r], (const uint8_t *)from + r * stride, state.shapes.bytes[t]);
}

static void store(int t, void *to, size_t stride) {
  has_shape(t);
  for (size_t r = 0; r < state.shapes.rows[t]; r++) memcpy((uint8_t *)to + r * stride, state.tile[t][r], state.shapes.bytes[t]);
}

static void dot(int c, int a, int b) {
  const tile_shapes *s = &state.shapes;
  has_shape(c), has_shape(a), has_shape(b);
  must(s->bytes[a] % 4 == 0 && s->bytes[b] % 4 == 0 && s->bytes[c] == s->bytes[b] && s->rows[c] == s->rows[a] && s->rows[b] == s->bytes[a] / 4,
       "shapes that do not match");
  n_products++;
  for (size_t m = 0; m < s->rows[c]; m++)
    for (size_t n = 0; n < s->bytes[c] / 4u; n++) {
      uint32_t sum;
      memcpy(&sum, &state.tile[c][m][4 * n], 4);
      for (size_t k = 0; k < s->bytes[a]; k++) sum += (uint32_t)((int8_t)state.tile[a][m][k] * (int8_t)state.tile[b][k / 4][4 * n + k % 4]);
      memcpy(&state.tile[c][m][4 * n], &sum, 4);
    }
}

#define TILE_CONFIGURE(shapes) configure(shapes)
#define TILE_RELEASE() release()
#define TILE_ZERO(t) zero(t)
#define TILE_LOAD(t, from, stride) load(t, from, stride)
#define TILE_STORE(t, to, stride) store(t, to, stride)
#define TILE_DOT(c, a, b) dot(c, a, b)

typedef struct lanes {
  float x[16];
} lanes;

static lanes lanes_load(const float *p) {
  lanes v;
  memcpy(&v, p, sizeof v);
  return v;
}
static void lanes_store(float *p, lanes v) { memcpy(p, &v, sizeof v); }
static lanes lanes_add_term(lanes acc, const int32_t *dots, float sa, lanes sb) {
  for (int i = 0; i < 16; i++) acc.x[i] = fmaf((float)dots[i], sa * sb.x[i], acc.x[i]);
  return acc;
}

#define mxi_gemm_codes_amx tiles_played_column
#include "gemm/codes/codes_amx.c"

size_t tiles_played_products(void) { return n_products; }
int tiles_played_configured(void) { return n_configured; }
