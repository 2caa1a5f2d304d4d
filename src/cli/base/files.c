/* Writes files whole or not at all, and checks their names. */
#include "files.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/base/cli.h"
#include "mxgold/file.h"

int file_write_whole(const char *path, const char *data, size_t n) {
  mx_text t;
  mx_error err;
  if (mx_text_begin(&t, path, &err)) return cli_error("%s", err.text);
  fwrite(data, 1, n, t.to);
  return mx_text_end(&t, &err) ? cli_error("%s", err.text) : CLI_FINE;
}

int file_check(const char *path) {
  struct stat is;
  mx_text t;
  mx_error err;
  if (!stat(path, &is) && S_ISDIR(is.st_mode)) return cli_error("%s: is a folder, expected the name of a file", path);
  if (!stat(path, &is) && !S_ISREG(is.st_mode)) return CLI_FINE; /* a pipe is opened once */
  if (mx_text_begin(&t, path, &err)) return cli_error("%s", err.text);
  mx_text_drop(&t);
  return CLI_FINE;
}

int file_ends_with(const char *path, const char *end) {
  const size_t n = strlen(path), m = strlen(end);
  return n >= m && !strcmp(path + n - m, end);
}
