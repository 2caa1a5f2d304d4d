/* Declares what the files of checkasm share: outputs with guards on both sides, and the operations on tensors. */
#ifndef TESTS_CHECKASM_PARTS_H
#define TESTS_CHECKASM_PARTS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"
#include "mxgold/quantize.h"

/* The bytes of a guard, the values of the longest row, and the room for the line that says what is wrong. */
enum { GUARD = 64, MOST = 1100, WHY = 512 };

/* The next 32 bits of the generator that all inputs come from. */
uint32_t checkasm_next(void);

typedef struct guarded {
  uint8_t *all, *at;
  size_t n;
} guarded;

static inline guarded room(size_t n, size_t shift) {
  guarded g = {malloc(n + 2 * GUARD + 64), NULL, n};
  if (!g.all) exit(2);
  memset(g.all, 0xA5, n + 2 * GUARD + 64);
  g.at = g.all + GUARD + shift;
  return g;
}

static inline int intact(const guarded *g) {
  for (size_t i = 1; i <= GUARD; i++)
    if (g->at[-(ptrdiff_t)i] != 0xA5 || g->at[g->n + i - 1] != 0xA5) return 0;
  return 1;
}

static inline __attribute__((format(printf, 2, 3))) int failed(char *why, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, WHY, format, args);
  va_end(args);
  return 1;
}

static const mx_exec scalar = {.isa_mask = MX_ISA_ALL};

static const size_t lengths[] = {1, 15, 16, 17, 31, 32, 33, 63, 65, 127, 129, 255, 256, 257, 511, 512, 513, 544, 1023, 1056};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Runs an operation with the ISAs in `off` switched off. Returns 0, or 1 with a line in `why`; adds the number of values compared to *values. */
typedef int operation(char *why, uint32_t off, size_t *values);
operation checkasm_quantize, checkasm_sixteen_bits, checkasm_stochastic, checkasm_both_directions, checkasm_dequantize, checkasm_tensor_amax;

#endif
