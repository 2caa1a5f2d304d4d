/* Offers the instructions of gfx950/host.h, and the native kernels on the host runtime, as a library to tools/check-gfx950.py. */
#include "hip_backend/run/device_api.h"
#include "hip_backend/gfx950/native.h"

static const gfx950_rules *rules() {
  static const gfx950_rules r = gfx950_rules_default();
  return &r;
}
static gfx950_env env(uint32_t mode) {
  gfx950_env e = {};
  e.mode = mode;
  e.rules = rules();
  return e;
}

extern "C" {
const void *machine_rules() { return rules(); }
/* The name of row i, and in numbers the words of x, the words of the result, and whether the destination is kept. 0: there is no such row. */
const char *machine_row(int i, int *numbers) {
  if (i < 0 || i >= GFX950_COUNT) return nullptr;
  numbers[0] = gfx950_rows[i].words_x, numbers[1] = gfx950_rows[i].words_out, numbers[2] = gfx950_rows[i].has_old;
  return gfx950_rows[i].name;
}
void machine_convert(int row, uint32_t mode, int select, uint32_t *out, const uint32_t *x, uint32_t scale, uint32_t seed, int from) {
  const gfx950_env e = env(mode);
  gfx950_convert(&e, &gfx950_rows[row], select, out, x, scale, seed, from);
}
/* a, b [64][8], c, d [64][16], scales [64] */
void machine_product(uint32_t mode, uint32_t m, uint32_t cbsz, uint32_t blgp, uint32_t select, const uint32_t *a, const uint32_t *b,
                     const uint32_t *c, const uint32_t *scale_a, const uint32_t *scale_b, uint32_t *d) {
  static gfx950_mfma_in in[64];
  static gfx950_mfma_out out[64];
  for (int lane = 0; lane < 64; lane++) {
    gfx950_mfma_in &w = in[lane];
    for (int i = 0; i < 8; i++) w.a[i] = a[lane * 8 + i], w.b[i] = b[lane * 8 + i];
    for (int i = 0; i < 16; i++) w.c[i] = c[lane * 16 + i];
    w.scale_a = scale_a[lane], w.scale_b = scale_b[lane], w.m = m, w.cbsz = cbsz, w.blgp = blgp, w.select = select, w.env = env(mode);
  }
  gfx950_mfma(in, out);
  for (int lane = 0; lane < 64; lane++)
    for (int i = 0; i < 16; i++) d[lane * 16 + i] = out[lane].d[i];
}
}
