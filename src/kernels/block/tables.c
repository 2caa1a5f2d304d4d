/* Makes tables of the values of codes, and parses chains, when they are first needed, so that a program that quantises one small tensor pays
 * only for the formats that it uses. */
#include "kernels/block/tables.h"

#include <pthread.h>

enum { CODES = 256 };

static double scale_values[MX_SCALE_COUNT][CODES];
static float elem_values[MX_ELEM_COUNT][CODES];
static mx_chain_program chains[MX_CHAIN_COUNT];
static int chain_bad[MX_CHAIN_COUNT];

static void make_scale(int k) {
  for (uint32_t c = 0; c < CODES; c++) scale_values[k][c] = mx_decode(mx_scale_format(k), c);
}

static void make_elem(int k) {
  for (uint32_t c = 0; c < CODES; c++) elem_values[k][c] = (float)mx_decode(mx_elem_format(k), c);
}

static void make_chain(int k) { chain_bad[k] = mxi_chain_compile(&chains[k], mx_chain_row(k)) != MX_OK; }

/* pthread_once() takes functions without arguments, so each row has one of its own. call_once() would do the same, but no checker of races
 * knows it. */
typedef struct row {
  pthread_once_t once;
  void (*make)(void);
} row;

#define MX_FORMAT(id, ...)                                                                                                                     \
  static void make_scale_##id(void) { make_scale(MX_SCALE_##id); }
#include "formats/scales.def"
#undef MX_FORMAT
#define MX_FORMAT(id, ...)                                                                                                                     \
  static void make_elem_##id(void) { make_elem(MX_ELEM_##id); }
#include "formats/elements.def"
#undef MX_FORMAT
#define MX_CHAIN(id, ...)                                                                                                                      \
  static void make_chain_##id(void) { make_chain(MX_CHAIN_##id); }
#include "formats/chains.def"
#undef MX_CHAIN

#define MX_FORMAT(id, ...) {PTHREAD_ONCE_INIT, make_scale_##id},
static row scale_rows[] = {
#include "formats/scales.def"
};
#undef MX_FORMAT
#define MX_FORMAT(id, ...) {PTHREAD_ONCE_INIT, make_elem_##id},
static row elem_rows[] = {
#include "formats/elements.def"
};
#undef MX_FORMAT
#define MX_CHAIN(id, ...) {PTHREAD_ONCE_INIT, make_chain_##id},
static row chain_rows[] = {
#include "formats/chains.def"
};
#undef MX_CHAIN

static void made(row *r) { pthread_once(&r->once, r->make); }

const double *mxi_scale_values(int scale) {
  if (mx_scale_format(scale)->bits > 8) return NULL;
  made(&scale_rows[scale]);
  return scale_values[scale];
}

const float *mxi_elem_values(int elem) {
  if (mx_elem_format(elem)->bits > 8) return NULL;
  made(&elem_rows[elem]);
  return elem_values[elem];
}

const mx_chain_program *mxi_chain_parsed(int chain) {
  made(&chain_rows[chain]);
  return chain_bad[chain] ? NULL : &chains[chain];
}
