/* Measured rows in a file, so that a run that was stopped goes on. One line a row:
 * KEY tensor's row of the run, spec, then the numbers and a digest of all before it; a tensor counts when each of its specs is there. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ablate.h"
#include "mxgold/version.h"

static const char magic[] = "mxgold ablate state\n"; /* the first line */

int ablate_state_check(const char *path) {
  FILE *f = path ? fopen(path, "r") : NULL;
  if (!f) return !path || errno == ENOENT ? CLI_FINE : cli_error("%s: cannot read: %s", path, strerror(errno));
  char line[sizeof magic] = "";
  const size_t n = fread(line, 1, sizeof magic - 1, f);
  fclose(f);
  return !n || !strcmp(line, magic) ? CLI_FINE : cli_error("%s: is no state of ablate, expected one or a name that is free", path);
}

/* Everything that the numbers depend on. */
static int make_key(ablate_state *s, const ablate_tensor *t, const char *digest, const ablate_specs *specs, int repeats) {
  char *text = NULL;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  if (!f) return 0;
  fprintf(f, "%s 7 %s %zu %zu %d\n", MX_VERSION, /* 7: of what the lines hold; raised when a field is added or means something else */
          digest, t->rows, t->cols, repeats);
  for (size_t i = 0; i < specs->n; i++) {
    char keys[4096];
    const mx_spec own = ablate_spec_of(&specs->at[i], t);
    mx_spec_print(keys, sizeof keys, &own, 1);
    fprintf(f, "%s\n", keys);
  }
  if (fclose(f)) return 0;
  mx_digest(s->key, text, n);
  free(text);
  return 1;
}

/* MX_FIELDS: what a line holds, in order. */
#define INTEGERS(F) F(sums.n) F(sums.n_nan) F(sums.n_inf) F(sums.n_spoiled) F(sums.n_underflow) F(n_codes) F(zero) F(saturated)
#define REALS(F)                                                                                                                               \
  F(sums.xx)                                                                                                                                   \
  F(sums.yy)                                                                                                                                   \
  F(sums.xy)                                                                                                                                   \
  F(sums.ee)                                                                                                                                   \
  F(sums.lost)                                                                                                                                 \
  F(sums.max_error)                                                                                                                            \
  F(sums.max_relative)                                                                                                                         \
  F(entropy) F(bits) F(bias) F(scale_p05) F(scale_p50) F(scale_p95) F(tensor_factor) F(behind.at) F(behind.low) F(behind.high)

static int parse(ablate_row *r, const char *at) {
  char *end;
#define F(field)                                                                                                                               \
  r->field = strtoull(at, &end, 10);                                                                                                           \
  if (end == at) return 0;                                                                                                                     \
  at = end;
  INTEGERS(F)
#undef F
#define F(field)                                                                                                                               \
  r->field = strtod(at, &end);                                                                                                                 \
  if (end == at) return 0;                                                                                                                     \
  at = end;
  REALS(F)
#undef F
  r->repeats = (int)strtol(at, &end, 10);
  return end != at && sscanf(end, " %511s", r->scales) == 1;
}

enum { LINE = 2048 };

/* Does the line end in the digest of what stands before it? It is taken off. */
static int whole(char *line) {
  char digest[33], *end = strrchr(line, ' ');
  if (!end || end[strcspn(end, "\n")] != '\n') return 0;
  end[strcspn(end, "\n")] = 0;
  mx_digest(digest, line, (size_t)(end - line));
  if (strcmp(end + 1, digest)) return 0;
  *end = 0;
  return 1;
}

int ablate_state_find(ablate_state *s, ablate_row *rows, const ablate_tensor *t, const char *digest, const ablate_specs *specs, int repeats) {
  if (!s->path || !make_key(s, t, digest, specs, repeats)) return 0;
  FILE *f = fopen(s->path, "r");
  if (!f) return 0;
  char line[LINE], *seen = calloc(specs->n, 1);
  size_t found = 0;
  while (seen && fgets(line, sizeof line, f)) {
    size_t spec;
    int used;
    char key[33];
    ablate_row row = {0};
    if (!whole(line)) continue; /* cut, or no longer what was written */
    if (sscanf(line, "%32s %zu %n", key, &spec, &used) != 2 || strcmp(key, s->key) || spec >= specs->n || !parse(&row, line + used)) continue;
    row.tensor = rows[spec].tensor;
    row.spec = spec;
    rows[spec] = row;
    found += !seen[spec];
    seen[spec] = 1;
  }
  fclose(f);
  free(seen);
  return found == specs->n;
}

mx_status ablate_state_add(const ablate_state *s, const ablate_row *rows, size_t n, mx_error *err) {
  if (!s->path) return MX_OK;
  FILE *f = fopen(s->path, "a+");
  if (!f) return mx_fail(err, MX_ERR_IO, "%s: cannot write: %s", s->path, strerror(errno));
  flock(fileno(f), LOCK_EX); /* another run may share the state; where files cannot be locked, lines that it cuts are measured again */
  fseek(f, 0, SEEK_END);
  const long before = ftell(f);
  if (!before) fputs(magic, f);
  if (before && !fseek(f, -1, SEEK_END) && getc(f) != '\n') putc('\n', f); /* a run was stopped within a line */
  fseek(f, 0, SEEK_END);
  for (size_t i = 0; i < n; i++) {
    char line[LINE], digest[33];
    size_t at = (size_t)snprintf(line, sizeof line, "%s %zu", s->key, i); /* all fields together stay far below LINE */
#define F(field) at += (size_t)snprintf(line + at, sizeof line - at, " %" PRIu64, rows[i].field);
    INTEGERS(F)
#undef F
#define F(field) at += (size_t)snprintf(line + at, sizeof line - at, " %a", rows[i].field);
    REALS(F)
#undef F
    at += (size_t)snprintf(line + at, sizeof line - at, " %d %s", rows[i].repeats, rows[i].scales);
    mx_digest(digest, line, at);
    fprintf(f, "%s %s\n", line, digest);
  }
  const int bad = fflush(f) || ferror(f), why = errno;
  if (bad && before > 0 && ftruncate(fileno(f), before)) clearerr(f); /* the lines that are whole are read all the same */
  struct stat is;
  if (bad && before <= 0 && !fstat(fileno(f), &is) && S_ISREG(is.st_mode)) unlink(s->path);
  const int late = fclose(f);
  return bad || late ? mx_fail(err, MX_ERR_IO, "%s: cannot write: %s", s->path, strerror(bad ? why : errno)) : MX_OK;
}
