/* Reads and writes the lines of a state of ablate: of one file, which processes lock to add to it, or of a folder with a journal for each process, since files
 * on network file systems cannot always be locked. */
#include "state_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ablate.h"

static const char magic[] = "mxgold ablate state\n"; /* the first line */

int ablate_state_folder(const char *path) {
  struct stat is;
  if (!mkdir(path, 0777)) return CLI_FINE;
  const int why = errno;
  if (why == EEXIST && !stat(path, &is) && S_ISDIR(is.st_mode)) return CLI_FINE;
  return why == EEXIST ? cli_error("%s: is a file, expected a folder, in which each process keeps a journal of its own", path)
                       : cli_error("%s: cannot make a folder: %s", path, strerror(why));
}

/* ---- reading ---- */

void state_open(state_reader *r, const char *path) {
  *r = (state_reader){.path = path, .folder = opendir(path)};
  if (!r->folder) r->f = fopen(path, "r");
}

/* The next journal of the folder; NULL behind the last. */
static FILE *next_journal(state_reader *r) {
  for (struct dirent *e; r->folder && (e = readdir(r->folder));) {
    char path[4352];
    const size_t n = strlen(e->d_name);
    if (n < 6 || strcmp(e->d_name + n - 6, ".state")) continue;
    snprintf(path, sizeof path, "%s/%s", r->path, e->d_name);
    FILE *f = fopen(path, "r");
    if (f) return f;
  }
  return NULL;
}

char *state_next(state_reader *r) {
  while (r->f || (r->f = next_journal(r))) {
    if (getline(&r->line, &r->room, r->f) > 0) return r->line;
    fclose(r->f);
    r->f = NULL;
  }
  return NULL;
}

void state_close(state_reader *r) {
  if (r->f) fclose(r->f);
  if (r->folder) closedir(r->folder);
  free(r->line);
}

int ablate_state_check(const char *path) {
  struct stat is;
  if (!path || (!stat(path, &is) && S_ISDIR(is.st_mode))) return CLI_FINE; /* what is no journal in it is not read */
  FILE *f = fopen(path, "r");
  if (!f) return errno == ENOENT ? CLI_FINE : cli_error("%s: cannot read: %s", path, strerror(errno));
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

/* ---- writing ---- */

/* This process's journal in a folder; NULL if there can be none. A process of an earlier time may have had its number. */
static const char *own_journal(const char *folder) {
  static char path[4352];
  if (*path) return path;
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  for (unsigned again = 0; again < 1000; again++) {
    snprintf(path, sizeof path, "%s/%s.%ld.%u.state", folder, host, (long)getpid(), again);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      close(fd);
      return path;
    }
    if (errno != EEXIST) break;
  }
  *path = 0;
  return NULL;
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
  return MX_OK;
}

mx_status state_line_add(const char *path, char *text, size_t n, mx_error *err) {
  char digest[33];
  mx_digest(digest, text, n);
  n += (size_t)sprintf(text + n, " %s\n", digest);
  struct stat is;
  const char *file = !stat(path, &is) && S_ISDIR(is.st_mode) ? own_journal(path) : path;
  if (!file) return mx_fail(err, MX_ERR_IO, "%s: cannot make a journal: %s", path, strerror(errno));
  const mx_status status = append(file, text, n, err);
  if (!status) mx_file_note_written(path);
  return status;
}
