/* Running gnuplot, and files that come whole or not at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ablate_charts.h"
#include "ablate_files.h"

int file_write_whole(const char *path, const char *data, size_t n) {
  char *part;
  if (asprintf(&part, "%s.XXXXXX", path) < 0) return cli_error("out of memory");
  const int fd = mkstemp(part);
  FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
  int bad = !f || fwrite(data, 1, n, f) != n;
  int why = errno;
  if (f && fclose(f) && !bad) {
    bad = 1;
    why = errno;
  }
  const mode_t mask = umask(0);
  umask(mask);
  if (!bad && (chmod(part, 0666 & ~mask) || rename(part, path))) {
    bad = 1;
    why = errno;
  }
  if (bad && fd >= 0) unlink(part);
  free(part);
  return bad ? cli_error("%s: cannot write: %s", path, strerror(why)) : CLI_FINE;
}

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

int gnuplot_run(const char *script, size_t n_script, char **out, size_t *n) {
  char path[] = "/tmp/mxgold-chart-XXXXXX", command[80];
  *out = NULL;
  *n = 0;
  const int fd = mkstemp(path);
  FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
  const int bad = !f || fwrite(script, 1, n_script, f) != n_script;
  if ((f && fclose(f)) || bad) {
    if (fd >= 0) unlink(path);
    return cli_error("%s: cannot write: %s", path, strerror(errno));
  }
  snprintf(command, sizeof command, "exec gnuplot %s 2>/dev/null", path);
  FILE *pipe = popen(command, "r");
  const int got = pipe && read_all(pipe, out, n);
  const int status = pipe ? pclose(pipe) : -1;
  unlink(path);
  if (got && status == 0 && *n) return CLI_FINE;
  free(*out);
  *out = NULL;
  return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? cli_error("charts need gnuplot, which is not installed")
                                                         : cli_error("gnuplot did not draw the chart");
}

static int ends_with(const char *s, const char *end) {
  const size_t n = strlen(s), m = strlen(end);
  return n > m && !strcmp(s + n - m, end);
}

int ablate_chart(const ablate_result *r, const char *path) {
  const int svg = ends_with(path, ".svg");
  if (!svg && !ends_with(path, ".png")) return cli_error("--png: '%s', expected a name that ends in .png or .svg", path);
  char *script = NULL, *image = NULL;
  size_t n, n_image;
  FILE *f = open_memstream(&script, &n);
  if (!f) return cli_error("out of memory");
  fputs(svg ? "set terminal svg size 1000,640 font 'sans,13' background rgb 'white'\n" : "set terminal pngcairo size 1000,640 font 'sans,11'\n",
        f);
  chart_sqnr(f, r);
  if (fclose(f)) return cli_error("out of memory");
  int rc = gnuplot_run(script, n, &image, &n_image);
  if (!rc) rc = file_write_whole(path, image, n_image);
  free(script);
  free(image);
  return rc;
}
