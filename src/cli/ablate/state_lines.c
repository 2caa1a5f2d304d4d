/* Reads and writes the lines of a state file of ablate: the first says what it is, and every other one ends in a digest of what stands before it. */
#include "state_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ablate.h"

static const char magic[] = "mxgold ablate state\n"; /* the first line */

int ablate_state_check(const char *path) {
  FILE *f = path ? fopen(path, "r") : NULL;
  if (!f) return !path || errno == ENOENT ? CLI_FINE : cli_error("%s: cannot read: %s", path, strerror(errno));
  char line[sizeof magic] = "";
  const size_t n = fread(line, 1, sizeof magic - 1, f);
  fclose(f);
  return !n || !strcmp(line, magic) ? CLI_FINE : cli_error("%s: is not a state of ablate, expected one or a name that is free", path);
}

int state_line_whole(char *line) {
  char digest[33], *end = strrchr(line, ' ');
  if (!end || end[strcspn(end, "\n")] != '\n') return 0;
  end[strcspn(end, "\n")] = 0;
  mx_digest(digest, line, (size_t)(end - line));
  if (strcmp(end + 1, digest)) return 0;
  *end = 0;
  return 1;
}

/* A whole piece of text behind what is there, or nothing. */
static mx_status append(const char *path, const char *text, size_t n, mx_error *err) {
  FILE *f = fopen(path, "a+");
  if (!f) return mx_fail(err, MX_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
  flock(fileno(f), LOCK_EX); /* another run may share the state; where files cannot be locked, lines that it cuts are measured again */
  fseek(f, 0, SEEK_END);
  const long before = ftell(f);
  if (!before) fputs(magic, f);
  if (before && !fseek(f, -1, SEEK_END) && getc(f) != '\n') putc('\n', f); /* a run was stopped within a line */
  fseek(f, 0, SEEK_END);
  fwrite(text, 1, n, f);
  const int bad = fflush(f) || ferror(f), why = errno;
  if (bad && before > 0 && ftruncate(fileno(f), before)) clearerr(f); /* the lines that are whole are read all the same */
  struct stat is;
  if (bad && before <= 0 && !fstat(fileno(f), &is) && S_ISREG(is.st_mode)) unlink(path);
  const int late = fclose(f);
  if (bad || late) return mx_fail(err, MX_ERR_IO, "%s: cannot write: %s", path, strerror(bad ? why : errno));
  mx_file_note_written();
  return MX_OK;
}

mx_status state_line_add(const char *path, char *text, size_t n, mx_error *err) {
  char digest[33];
  mx_digest(digest, text, n);
  n += (size_t)sprintf(text + n, " %s\n", digest);
  return append(path, text, n, err);
}
