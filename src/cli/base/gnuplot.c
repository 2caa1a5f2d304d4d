/* Runs gnuplot on a script and takes what it draws. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "gnuplot.h"

static int read_all(FILE *from, char **out, size_t *n) {
  size_t room = 1 << 16;
  *n = 0;
  char *data = malloc(room);
  for (size_t got; data && (got = fread(data + *n, 1, room - *n - 1, from)) > 0;) {
    *n += got;
    if (room - *n > 1) continue;
    char *more = realloc(data, room *= 2);
    if (!more) free(data);
    data = more;
  }
  if (data) data[*n] = 0;
  *out = data;
  return data != NULL;
}

/* gnuplot with the script on its standard input; *out: the reading end of its standard output. */
static int start(pid_t *child, FILE **out, int script) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return -1;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, script, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char name[] = "gnuplot", *const arguments[] = {name, NULL};
  const int bad = posix_spawnp(child, name, &files, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  *out = bad ? NULL : fdopen(ends[0], "rb");
  if (!*out) close(ends[0]);
  return bad;
}

int gnuplot_run(const char *script, size_t n_script, char **out, size_t *n) {
  *out = NULL;
  *n = 0;
  FILE *text = tmpfile(), *pipe;
  pid_t child;
  if (!text || fwrite(script, 1, n_script, text) != n_script || fflush(text)) {
    const int rc = cli_error("cannot write a temporary file: %s", strerror(errno));
    if (text) fclose(text);
    return rc;
  }
  rewind(text);
  const int missing = start(&child, &pipe, fileno(text));
  fclose(text);
  if (missing == ENOENT) return cli_error("charts need gnuplot, which is not installed");
  if (missing) return cli_error("gnuplot cannot be run: %s", strerror(missing));
  int status = -1;
  const int got = pipe && read_all(pipe, out, n);
  if (pipe) fclose(pipe);
  waitpid(child, &status, 0);
  if (got && status == 0 && *n) return CLI_FINE;
  free(*out);
  *out = NULL;
  return cli_error("gnuplot did not draw the chart");
}

int gnuplot_check(void) {
  static const char script[] = "set print '-'\nprint 1\n";
  char *said;
  size_t n;
  const int rc = gnuplot_run(script, sizeof script - 1, &said, &n);
  free(said);
  return rc;
}
