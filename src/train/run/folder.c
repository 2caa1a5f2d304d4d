/* Makes a run's folder and keeps other runs out of it. */
#include "train/run/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char *joined(const char *dir, const char *name) {
  char *path;
  return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

int mxi_folder_has(const char *path) {
  struct stat s;
  return !stat(path, &s);
}

/* The lock is on the folder itself and ends with the process, however that ends: no file is left behind that could keep a resume out. File systems
 * that cannot lock a folder let every run in. */
static mx_status hold(mxi_folder *f, const char *dir, mx_error *err) {
  f->lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f->lock < 0) return mx_fail(err, MX_ERR_IO, "%s: %s", dir, strerror(errno));
  f->held = 1;
  if (flock(f->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: another run is writing there, expected a folder of its own for each", dir);
  return MX_OK;
}

mx_status mxi_folder_open(mxi_folder *f, const char *dir, mx_error *err) {
  *f = (mxi_folder){.held = 0};
  if (mkdir(dir, 0777) && errno != EEXIST) return mx_fail(err, MX_ERR_IO, "%s: %s", dir, strerror(errno));
  f->config = joined(dir, "config.json");
  f->metrics = joined(dir, "metrics.jsonl");
  f->digests = joined(dir, "digests.txt");
  f->model = joined(dir, "model.safetensors");
  f->state = joined(dir, "state.safetensors");
  if (!f->config || !f->metrics || !f->digests || !f->model || !f->state) return mx_fail(err, MX_ERR_NOMEM, "out of memory");
  return hold(f, dir, err);
}

void mxi_folder_close(mxi_folder *f) {
  if (f->held) close(f->lock);
  free(f->config), free(f->metrics), free(f->digests), free(f->model), free(f->state);
  *f = (mxi_folder){.held = 0};
}
