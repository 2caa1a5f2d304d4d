/* Removing temporary files when a signal ends the process.
 *
 * The one piece of process-wide state in the library, because signal handlers are: a fixed table of paths in static storage, so that the handler
 * reads nothing that could be freed under it. It calls unlink(), write() and _exit() alone, all async-signal-safe. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "mxgold/file.h"

enum { N_SLOTS = 8, FREE = 0, TAKEN = 1, READY = 2 };

static struct {
  atomic_int state;
  char path[4096];
} slots[N_SLOTS];

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};

static atomic_int finished; /* has a file got its name? */

void io_finished(void) { atomic_store(&finished, 1); }

static void say(const char *line) {
  size_t n = 0;
  while (line[n]) n++; /* strlen() is async-signal-safe since 2016 alone */
  const ssize_t said = write(STDERR_FILENO, line, n);
  (void)said; /* there is nobody left to tell */
}

static void remove_and_exit(int sig) {
  for (int i = 0; i < N_SLOTS; i++)
    if (atomic_load(&slots[i].state) == READY) unlink(slots[i].path);
  static const char *const names[] = {"mxgold: interrupted by SIGINT", "mxgold: interrupted by SIGTERM", "mxgold: interrupted by SIGHUP"};
  say(names[sig == SIGINT ? 0 : sig == SIGTERM ? 1 : 2]);
  say(atomic_load(&finished) ? ", the files that were finished stay\n" : ", no file was changed\n");
  _exit(2);
}

void mx_writer_install_signal_cleanup(void) {
  struct sigaction act = {.sa_handler = remove_and_exit};
  sigemptyset(&act.sa_mask);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
    struct sigaction old;
    /* nohup(1) and shells' background jobs ignore some of these on purpose. */
    if (!sigaction(watched[i], NULL, &old) && old.sa_handler != SIG_IGN) sigaction(watched[i], &act, NULL);
  }
}

static int take_slot(const char *path) {
  for (int i = 0; i < N_SLOTS; i++) {
    int was = FREE;
    if (!atomic_compare_exchange_strong(&slots[i].state, &was, TAKEN)) continue;
    if (snprintf(slots[i].path, sizeof slots[i].path, "%s", path) < (int)sizeof slots[i].path) return i;
    atomic_store(&slots[i].state, FREE);
    break;
  }
  return -1;
}

/* Create path (O_EXCL) and register it, with no gap in which a signal would leave it behind. */
static int create_temporary(const char *path, int *slot) {
  sigset_t block, old;
  sigemptyset(&block);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) sigaddset(&block, watched[i]);
  *slot = take_slot(path);
  pthread_sigmask(SIG_BLOCK, &block, &old);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666), why = errno;
  if (*slot >= 0) atomic_store(&slots[*slot].state, fd >= 0 ? READY : FREE);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (fd < 0) *slot = -1;
  errno = why;
  return fd;
}

int io_create_beside(const char *target, char **temporary, int *slot) {
  struct stat st;
  const int exists = !stat(target, &st);
  *temporary = NULL;
  *slot = -1;
  if (exists && S_ISDIR(st.st_mode)) {
    errno = EISDIR;
    return -1;
  }
  const char *slash = strrchr(target, '/');
  const int n_dir = slash ? (int)(slash - target + 1) : 0;
  for (int k = 0; k < 1000; k++) {
    if (asprintf(temporary, "%.*s.mxgold.%ld.%d.tmp", n_dir, target, (long)getpid(), k) < 0) {
      *temporary = NULL;
      errno = ENOMEM;
      return -1;
    }
    const int fd = create_temporary(*temporary, slot);
    if (fd >= 0) {
      if (exists && fchmod(fd, st.st_mode & 0777)) errno = 0; /* the old file's mode if we may; ours if not */
      return fd;
    }
    free(*temporary);
    *temporary = NULL;
    if (errno != EEXIST) break;
  }
  return -1;
}

void io_forget_temporary(int slot) {
  if (slot >= 0) atomic_store(&slots[slot].state, FREE);
}
