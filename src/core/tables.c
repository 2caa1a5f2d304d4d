/* Values of codes, and chains, made at the first call. */
#include "core/tables.h"

#include <threads.h>

enum { CODES = 256 };

static struct tables {
  double scale[MX_SCALE_COUNT][CODES];
  float elem[MX_ELEM_COUNT][CODES];
  mx_chain_program chain[MX_CHAIN_COUNT];
  int bad_chain[MX_CHAIN_COUNT];
} tables;

static void make(void) {
  for (int k = 0; k < MX_SCALE_COUNT; k++)
    for (uint32_t c = 0; c < CODES; c++) tables.scale[k][c] = mx_decode(mx_scale_format(k), c);
  for (int k = 0; k < MX_ELEM_COUNT; k++)
    for (uint32_t c = 0; c < CODES; c++) tables.elem[k][c] = (float)mx_decode(mx_elem_format(k), c);
  for (int k = 0; k < MX_CHAIN_COUNT; k++) tables.bad_chain[k] = mx_chain_compile(&tables.chain[k], mx_chain_row(k)) != MX_OK;
}

static const struct tables *made(void) {
  static once_flag once = ONCE_FLAG_INIT;
  call_once(&once, make);
  return &tables;
}

const double *mx_scale_values(int scale) { return mx_scale_format(scale)->bits <= 8 ? made()->scale[scale] : NULL; }

const float *mx_elem_values(int elem) { return mx_elem_format(elem)->bits <= 8 ? made()->elem[elem] : NULL; }

const mx_chain_program *mx_chain_parsed(int chain) { return made()->bad_chain[chain] ? NULL : &made()->chain[chain]; }
