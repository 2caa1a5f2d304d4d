/* Writes texts completely or not at all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/base/cleanup.h"
#include "io/base/watch.h"
#include "mxgold/file.h"

static mx_status failed(const mx_text *t, mx_error *err, const char *what) {
  return mx_fail(err, MX_ERR_IO, "%s: %s: %s", t->path, what, strerror(errno));
}

mx_status mx_text_begin(mx_text *t, const char *path, mx_error *err) {
  struct stat st;
  *t = (mx_text){.path = strcmp(path, "-") ? path : "standard output", .slot = -1};
  int fd;
  if (!strcmp(path, "-"))
    fd = dup(STDOUT_FILENO);
  else if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
    return (t->to = fopen(path, "w")) ? MX_OK : failed(t, err, "cannot open"); /* a pipe or a device is written to directly */
  else
    t->beside = (fd = mxi_io_create_beside(path, &t->temporary, &t->slot)) >= 0;
  if (fd < 0) return failed(t, err, "cannot create");
  if ((t->to = fdopen(fd, "w"))) return MX_OK;
  close(fd);
  const mx_status s = failed(t, err, "cannot create");
  mx_text_drop(t);
  return s;
}

void mx_text_drop(mx_text *t) {
  if (t->to) fclose(t->to);
  mxi_io_drop_temporary(t->temporary, t->slot);
  free(t->temporary);
  *t = (mx_text){.slot = -1};
}

mx_status mx_text_end(mx_text *t, mx_error *err) {
  mx_status s = MX_OK;
  if (fflush(t->to) || ferror(t->to)) s = failed(t, err, "cannot write");
  const int fd = !s && t->beside ? dup(fileno(t->to)) : -1;
  if (!s && t->beside && fd < 0) s = failed(t, err, "cannot write");
  if (fclose(t->to) && !s) s = failed(t, err, "cannot write");
  t->to = NULL;
  if (!s) s = mxi_io_check_inputs(err);
  if (s && fd >= 0) close(fd);
  if (!s && t->beside) {
    if (mxi_io_give_name(fd, t->temporary, t->path))
      s = failed(t, err, "cannot give the finished file its name");
    else {
      free(t->temporary);
      t->temporary = NULL;
    }
  }
  mx_text_drop(t);
  return s;
}
