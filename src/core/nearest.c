/* Matches a name that a user typed against a list of choices, and finds the three nearest names by edit distance if it is unknown. */
#include <stdio.h>
#include <string.h>

#include "mxgold/nearest.h"

enum { MAX_LEN = 63, MAX_NAMES = 3, CONTAINED = 2 };

static size_t fold(char out[MAX_LEN + 1], const char *s) {
  size_t n = 0;
  for (; s[n] && n < MAX_LEN; n++) {
    char c = s[n];
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    out[n] = c == '_' ? '-' : c;
  }
  out[n] = 0;
  return n;
}

static unsigned min2(unsigned a, unsigned b) { return a < b ? a : b; }

/* Optimal string alignment distance; only three rows of the usual table are kept. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb) {
  unsigned rows[3][MAX_LEN + 1];
  unsigned *before = rows[0], *prev = rows[1], *cur = rows[2];
  for (size_t j = 0; j <= nb; j++) prev[j] = (unsigned)j;
  for (size_t i = 1; i <= na; i++) {
    cur[0] = (unsigned)i;
    for (size_t j = 1; j <= nb; j++) {
      unsigned change = prev[j - 1] + (a[i - 1] != b[j - 1]);
      cur[j] = min2(change, min2(prev[j], cur[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) cur[j] = min2(cur[j], before[j - 2] + 1);
    }
    unsigned *oldest = before;
    before = prev;
    prev = cur;
    cur = oldest;
  }
  return prev[nb];
}

size_t mx_nearest(char *out, size_t n_out, const char *name, mx_name_at *at, const void *set) {
  struct {
    const char *name;
    unsigned d;
  } best[MAX_NAMES + 1];
  size_t n = 0;
  char want[MAX_LEN + 1], have[MAX_LEN + 1];
  size_t n_want = fold(want, name);
  const char *candidate;
  for (size_t i = 0; (candidate = at(set, i)); i++) {
    size_t n_have = fold(have, candidate);
    unsigned d = distance(want, n_want, have, n_have);
    if (n_want > 1 && strstr(have, want)) d = min2(d, CONTAINED);
    size_t k = n;
    for (; k > 0 && best[k - 1].d > d; k--) best[k] = best[k - 1];
    best[k].name = candidate;
    best[k].d = d;
    if (n < MAX_NAMES) n++;
  }
  size_t used = 0, written = 0;
  if (n_out) out[0] = 0;
  for (size_t k = 0; k < n && best[k].d <= best[0].d + 1; k++) {
    size_t len = strlen(best[k].name) + (written ? 2 : 0);
    if (used + len >= n_out) continue;
    used += (size_t)snprintf(out + used, n_out - used, "%s%s", written ? ", " : "", best[k].name);
    written++;
  }
  return written;
}

const char *mx_name_in_array(const void *set, size_t index) { return ((const char *const *)set)[index]; }

int mx_choice_find(const char *choices, const char *value) {
  const size_t n = strlen(value);
  for (int i = 0;; i++) {
    const size_t length = strcspn(choices, "|");
    if (n == length && !strncmp(choices, value, n)) return i;
    if (!choices[length]) return -1;
    choices += length + 1;
  }
}

size_t mx_choice_nearest(char *out, size_t n_out, const char *choices, const char *value) {
  enum { MOST = 31 };
  char text[512];
  const char *names[MOST + 1] = {NULL};
  snprintf(text, sizeof text, "%s", choices);
  char *at = text;
  for (int i = 0; i < MOST && at; i++) {
    names[i] = at;
    at = strchr(at, '|');
    if (at) *at++ = 0;
  }
  return mx_nearest(out, n_out, value, mx_name_in_array, names);
}
