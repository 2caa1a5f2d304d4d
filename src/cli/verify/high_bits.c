/* Codes of 4 bits that are stored one a byte with something in the high half of the byte: read as codes of 8 bits they are of no kernel, and a search for one
 * would say so only after a long time. */
#include "high_bits.h"

#include <math.h>

#include "cli/base/cli.h"

/* How the codes go with the input: of those that are not 0 in either. */
typedef struct signs {
  uint64_t n, as_4, as_8;         /* bit 3, bit 7 is the sign of the input */
  uint64_t extended;              /* the high half repeats bit 3 */
  double x, low, xx, low_x, lows; /* of negative inputs: sums of |x|, of the low three bits, of their squares and product */
  uint64_t negative;
} signs;

static signs count(const mx_sample *m) {
  signs s = {0};
  for (size_t r = 0; r < m->rows; r++)
    for (size_t c = 0; c < m->cols; c++) {
      const uint8_t code = m->codes[r * m->cols + c];
      const double x = m->x[r * m->ld + c], low = code & 7;
      if (!isfinite(x) || x == 0 || !(code & 7)) continue;
      s.n++;
      s.as_4 += (code >> 3 & 1) == (x < 0);
      s.as_8 += code >> 7 == (x < 0);
      s.extended += code >> 4 == (code & 8 ? 15 : 0);
      if (x > 0) continue;
      s.negative++;
      s.x -= x;
      s.low += low;
      s.xx += x * x;
      s.lows += low * low;
      s.low_x -= low * x;
    }
  return s;
}

enum { ENOUGH = 64 };

/* Bit 3 is the sign of the input almost everywhere, which in a code of 8 bits is a matter of luck, and bit 7 is not. Or bit 7 only repeats it, with the low
 * bits growing with the magnitude of what is negative: in two's complement, whose codes of 8 bits may be as small as that, they fall. */
static int are_4_bits(const signs *s) {
  if (s->n < ENOUGH || 100 * s->as_4 < 99 * s->n) return 0;
  if (10 * s->as_8 < 9 * s->n) return 1;
  return s->extended == s->n && s->negative && s->low_x * (double)s->negative > s->low * s->x;
}

int high_bits_check(const mx_sample *m) {
  size_t first = 0;
  const size_t n = m->rows * m->cols;
  while (first < n && m->codes[first] < 16) first++;
  if (first == n || !m->x) return CLI_FINE;
  const signs s = count(m);
  if (!are_4_bits(&s)) return CLI_FINE;
  return cli_error(
      "codes: 0x%02X in row %zu, column %zu, expected a code of 4 bits, 0 to 15, one a byte: bit 3 of the bytes is the sign of the input",
      m->codes[first], first / m->cols, first % m->cols);
}
