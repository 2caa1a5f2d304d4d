/* Finds the first step in which the digests of two runs differ. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/run/files.h"

static FILE *open_digests(const char *dir, mx_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s/digests.txt", dir);
  FILE *f = fopen(path, "r");
  if (!f) mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  return f;
}

mx_status mx_train_compare(uint64_t *step, char *name, const char *dir_a, const char *dir_b, mx_error *err) {
  FILE *a = open_digests(dir_a, err), *b = a ? open_digests(dir_b, err) : NULL;
  char line_a[256], line_b[256];
  mx_status status = b ? MX_OK : MX_ERR_IO;
  *step = UINT64_MAX;
  *name = 0;
  while (!status) {
    const int more_a = fgets(line_a, sizeof line_a, a) != NULL, more_b = fgets(line_b, sizeof line_b, b) != NULL;
    if (!more_a || !more_b) break; /* the steps that both have are the same */
    if (!strcmp(line_a, line_b)) continue;
    char what[96] = "", other[96] = "";
    if (sscanf(line_a, "%*s %95s", what) != 1 || (*step = mxi_line_step(line_a)) == UINT64_MAX)
      status = mx_fail(err, MX_ERR_FORMAT, "%s: no digest in '%.40s'", dir_a, line_a);
    else if (sscanf(line_b, "%*s %95s", other) == 1 && !strcmp(what, "parameters") != !strcmp(other, "parameters"))
      status = mx_fail(err, MX_ERR_CONFLICT, "%s has a digest of each tensor and %s has not: both are to be run with --digests all, or neither",
                       strcmp(what, "parameters") ? dir_a : dir_b, strcmp(what, "parameters") ? dir_b : dir_a);
    if (strcmp(what, "parameters")) snprintf(name, 96, "%s", what);
    break;
  }
  if (a) fclose(a);
  if (b) fclose(b);
  return status;
}
