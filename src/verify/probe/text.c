/* Says in words what a unit gave for a tile, and what was expected. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verify/probe/fit.h"

int mxi_probe_products_of(const mx_probe_spec *s, const uint8_t *a, const uint8_t *b) {
  int n = 0;
  for (size_t k = 0; k < s->K; k++) n += mx_decode(s->a, mxi_probe_code(s->a, a, k)) != 0 && mx_decode(s->b, mxi_probe_code(s->b, b, k)) != 0;
  return n;
}

/* 1.5 * 2^-14, or the number itself where that is shorter. */
static size_t number(char *text, size_t size, double x) {
  int e;
  if (x == 0 || !isfinite(x) || (fabs(x) >= 1 && fabs(x) < 1024 && x == rint(x))) return (size_t)snprintf(text, size, "%g", x);
  const double m = frexp(x, &e) * 2;
  if (m == 1 || m == -1) return (size_t)snprintf(text, size, "%s2^%d", m < 0 ? "-" : "", e - 1);
  return (size_t)snprintf(text, size, "%.9g*2^%d", m, e - 1);
}

void mxi_probe_describe(char *text, size_t size, const mx_probe_spec *s, const uint8_t *a, const uint8_t *b, const uint8_t *c,
                        const uint8_t *sa, const uint8_t *sb) {
  size_t used = 0, shown = 0, n = 0;
  *text = 0;
#define ROOM (used < size ? size - used : 0), (used < size ? text + used : text)
  for (size_t k = 0; k < s->K; k++) {
    const double x = mx_decode(s->a, mxi_probe_code(s->a, a, k)), y = mx_decode(s->b, mxi_probe_code(s->b, b, k));
    if (x == 0 && y == 0) continue;
    n++;
    if (used + 120 > size) continue;
    shown++;
    used += (size_t)snprintf(text + used, size - used, "%sk%zu ", used ? ", " : "", k);
    used += number(text + used, size - used, x);
    used += (size_t)snprintf(text + used, size - used, " x ");
    used += number(text + used, size - used, y);
    if (s->scale) {
      const size_t block = k / (size_t)s->block;
      used += (size_t)snprintf(text + used, size - used, " (scales ");
      used += number(text + used, size - used, mx_decode(s->scale, sa[block]));
      used += (size_t)snprintf(text + used, size - used, ", ");
      used += number(text + used, size - used, mx_decode(s->scale, sb[block]));
      used += (size_t)snprintf(text + used, size - used, ")");
    }
  }
  if (shown < n) used += (size_t)snprintf(text + used, size - used, ", %zu more", n - shown);
  used += (size_t)snprintf(text + used, size - used, "%sC ", used ? "; " : "");
  number(text + used, size - used, mx_decode(s->c, mxi_probe_code(s->c, c, 0)));
#undef ROOM
}
