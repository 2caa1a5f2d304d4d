/* Chooses the patterns to report: those that chance does not explain, each once. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "verify/diff/diff.h"

/* About how many questions are asked of one comparison: the more there are, the less often chance may answer each. */
enum { TRIED = 100 };

int mxi_diff_telling(double p, double n) { return p < 1 && n > 0 && n * log(p) < log(DIFF_BY_CHANCE / TRIED); }

void mxi_diff_say(diff_job *j, const char *format, ...) {
  mx_difference *d = j->out;
  char text[sizeof d->patterns[0]] = "";
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (int i = 0; i < d->n_patterns; i++)
    if (!strcmp(d->patterns[i], text)) return;
  if (d->n_patterns < MX_DIFF_PATTERNS) memcpy(d->patterns[d->n_patterns++], text, sizeof text);
}
