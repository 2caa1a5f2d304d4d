/* Removing temporary files when a signal ends the process.
 *
 * The one piece of process-wide state in the library, because signal handlers are: a fixed table of paths in static storage, so that the handler
 * reads nothing that could be freed under it. It calls unlink(), poll(), write() and _exit() alone, all async-signal-safe. It may run on another thread than the one that writes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* TAKEN: the file is being made, by a thread that blocks the signals; READY: it is there, until it gets its name; GOING: it is being taken away. */
enum { N_SLOTS = 8, FREE = 0, TAKEN, READY, GOING };

static struct {
  atomic_int state;
  char path[4096];
} slots[N_SLOTS];

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};

static atomic_int finished; /* has a file got its name? */
static atomic_int ending;   /* has a signal come? */

static void say(const char *line) {
  size_t n = 0;
  while (line[n]) n++; /* strlen() is async-signal-safe since 2016 alone */
  const ssize_t said = write(STDERR_FILENO, line, n);
  (void)said; /* there is nobody left to tell */
}

/* Take away the temporary files. 0 if another thread is at it. */
static int remove_all(void) {
  if (atomic_exchange(&ending, 1)) return 0;
  for (int i = 0; i < N_SLOTS; i++) {
    int state;
    for (int n = 0; (state = atomic_load(&slots[i].state)) == TAKEN && n < 1000; n++) poll(NULL, 0, 1);
    if (state == GOING) unlink(slots[i].path);
    if (state == READY && unlink(slots[i].path) && errno == ENOENT) atomic_store(&finished, 1); /* it has just got its name */
  }
  return 1;
}

static void remove_and_exit(int sig) {
  if (!remove_all()) return;
  static const char *const names[] = {"mxgold: interrupted by SIGINT", "mxgold: interrupted by SIGTERM", "mxgold: interrupted by SIGHUP"};
  say(names[sig == SIGINT ? 0 : sig == SIGTERM ? 1 : 2]);
  say(atomic_load(&finished) ? ", the files that were finished stay\n" : ", no file was changed\n");
  _exit(2);
}

void mxi_io_end(const char *before, const char *path, const char *behind) {
  while (!remove_all()) poll(NULL, 0, 1000); /* the other one ends the process */
  say(before);
  say(path);
  say(behind);
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

/* A thread that goes on while the handler takes the files away would make another, or tell of one that it misses. */
static void wait_if_ending(void) {
  while (atomic_load(&ending)) pause();
}

/* Create path (O_EXCL) and register it, with no gap in which a signal would leave it behind. */
static int create_temporary(const char *path, int *slot) {
  sigset_t block, old;
  sigemptyset(&block);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) sigaddset(&block, watched[i]);
  pthread_sigmask(SIG_BLOCK, &block, &old);
  *slot = take_slot(path);
  if (atomic_load(&ending)) { /* the handler may have passed the slot, or waits for it */
    if (*slot >= 0) atomic_store(&slots[*slot].state, FREE);
    wait_if_ending();
  }
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666), why = errno;
  if (*slot >= 0) atomic_store(&slots[*slot].state, fd >= 0 ? READY : FREE);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  wait_if_ending();
  if (fd < 0) *slot = -1;
  errno = why;
  return fd;
}

int mxi_io_create_beside(const char *target, char **temporary, int *slot) {
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

int mxi_io_give_name(const char *temporary, const char *target) {
  wait_if_ending();
  const int failed = rename(temporary, target), why = errno;
  if (failed)
    wait_if_ending(); /* the handler has taken the file away */
  else
    atomic_store(&finished, 1);
  errno = why;
  return failed;
}

void mxi_io_drop_temporary(const char *temporary, int slot) {
  if (slot >= 0) atomic_store(&slots[slot].state, GOING);
  if (temporary) unlink(temporary);
  if (slot >= 0) atomic_store(&slots[slot].state, FREE);
}
