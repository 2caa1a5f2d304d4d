/* Keeps two processes of one machine from doing the same runs of one folder: each call has a file in DIR/lock that says which share it does. A file whose process
 * is gone is removed by the next call. Files of other machines are left alone, since nothing here can tell whether their processes live. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "mxgold/file.h"
#include "sweep/internal.h"

struct mx_sweep_lock {
  char path[4224];
};

/* Who does which share. A process is known by its number and by when it started, since numbers are given again; a machine by its boot, since names are shared. */
typedef struct holder {
  char host[64], boot[64];
  long pid;
  unsigned long long start; /* clock ticks since the boot */
  size_t shard, shards;     /* 0/1: all runs */
} holder;

/* When a process started; 0 if there is none, or only what is left of it until its parent has heard of its end. */
static unsigned long long start_of(long pid) {
  char path[64], text[1024], state;
  unsigned long long start;
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  const size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = 0;
  const char *after = strrchr(text, ')'); /* the program's name may hold anything */
  const char *fields = " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
  if (!after || sscanf(after + 1, fields, &state, &start) != 2) return 0;
  return state == 'Z' || state == 'X' ? 0 : start;
}

static void read_boot(char boot[64]) {
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (!f || fscanf(f, "%63s", boot) != 1) strcpy(boot, "unknown");
  if (f) fclose(f);
}

static holder own(const mx_sweep_options *how) {
  holder h = {.host = "host", .pid = (long)getpid(), .shard = how->shards ? how->shard : 0, .shards = how->shards ? how->shards : 1};
  gethostname(h.host, sizeof h.host - 1);
  read_boot(h.boot);
  h.start = start_of(h.pid);
  return h;
}

static int read_holder(holder *h, const char *path) {
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  const int n = fscanf(f, "%63s %63s %ld %llu %zu %zu", h->host, h->boot, &h->pid, &h->start, &h->shard, &h->shards);
  fclose(f);
  return n == 6 && h->shards;
}

static size_t common_divisor(size_t a, size_t b) {
  while (b) {
    const size_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Shares i/n and j/m have a run in common where i and j agree up to the common divisor of n and m. */
static int overlap(const holder *a, const holder *b) {
  const size_t d = common_divisor(a->shards, b->shards);
  return a->shard % d == b->shard % d;
}

/* Looks through the folder: what was left behind goes, what is held stops us. */
static mx_status look(const char *folder, const holder *me, const char *dir, mx_error *err) {
  DIR *files = opendir(folder);
  if (!files) return mx_fail(err, MX_ERR_IO, "%s: %s", folder, strerror(errno));
  mx_status status = MX_OK;
  for (struct dirent *e; !status && (e = readdir(files));) {
    char path[4352];
    holder h;
    if (!strchr(e->d_name, '@')) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (!read_holder(&h, path) || strcmp(h.boot, me->boot)) continue;
    if (start_of(h.pid) != h.start)
      unlink(path);
    else if (overlap(&h, me) && h.shards == 1)
      status = mx_fail(err, MX_ERR_CONFLICT, "%s: process %ld does these runs already", dir, h.pid);
    else if (overlap(&h, me))
      status = mx_fail(err, MX_ERR_CONFLICT, "%s: process %ld does runs of these already, with shard %zu/%zu", dir, h.pid, h.shard, h.shards);
  }
  closedir(files);
  return status;
}

static mx_status write_holder(const char *path, const holder *h, mx_error *err) {
  mx_text file;
  const mx_status status = mx_text_begin(&file, path, err);
  if (status) return status;
  fprintf(file.to, "%s %s %ld %llu %zu %zu\n", h->host, h->boot, h->pid, h->start, h->shard, h->shards);
  return mx_text_end(&file, err);
}

mx_status mx_sweep_lock_take(mx_sweep_lock **out, const mx_sweep_options *options, mx_error *err) {
  if (!out || !options || !options->dir) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  *out = NULL;
  char folder[4096], path[4200];
  mx_status status = mxi_make_folder(options->dir, "", err);
  if (!status) status = mxi_make_folder(options->dir, "lock", err);
  if (status) return status;
  const holder me = own(options);
  snprintf(folder, sizeof folder, "%s/lock", options->dir);
  snprintf(path, sizeof path, "%s/one", folder);
  const int one =
      open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666); /* one process at a time looks and writes; where files cannot be locked, two may */
  if (one >= 0) flock(one, LOCK_EX);
  mx_sweep_lock *lock = malloc(sizeof *lock);
  if (!lock) status = mx_fail(err, MX_ERR_NOMEM, "out of memory");
  if (!status) status = look(folder, &me, options->dir, err);
  if (!status) {
    snprintf(lock->path, sizeof lock->path, "%s/%s@%ld.%zu-%zu", folder, me.host, me.pid, me.shard, me.shards);
    status = write_holder(lock->path, &me, err);
  }
  if (one >= 0) close(one);
  if (status)
    free(lock);
  else
    *out = lock;
  return status;
}

void mx_sweep_lock_free(mx_sweep_lock *lock) {
  if (!lock) return;
  unlink(lock->path);
  free(lock);
}
