/* Removes temporary files when a signal ends the process.
 *
 * Its state is process-wide because signal handlers are: a fixed table of paths in static storage, so that the handler reads nothing that
 * could be freed meanwhile. The handler calls only async-signal-safe functions: fstat(), unlink(), poll(), write() and _exit(). It may run
 * on another thread than the one that writes. */
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
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "io/base/cleanup.h"
#include "mxgold/file.h"

/* TAKEN: the file is being made by a thread that blocks the signals; READY: it exists and waits for its name; GOING: it is being removed. */
enum { N_SLOTS = 8, FREE = 0, TAKEN, READY, GOING };

static struct {
  atomic_int state;
  char path[4096];
} slots[N_SLOTS];

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};

static atomic_int finished; /* 1: some file has got its name */
static atomic_int ending;   /* 1: a signal has arrived */
static atomic_int kept;     /* 1: the path below is being written; 2: it is there */
static char results[4096];  /* the file that keeps the results so far */
static atomic_int naming;   /* 1 + the descriptor of a nameless file that is getting its name right now; 0: none */

static void say(const char *line) {
  size_t n = 0;
  while (line[n]) n++; /* strlen() has been async-signal-safe only since 2016 */
  const ssize_t said = write(STDERR_FILENO, line, n);
  (void)said; /* a failure cannot be reported any more */
}

/* Removes the temporary files. 0 if another thread is doing so. */
static int remove_all(void) {
  struct stat st;
  const int fd = atomic_load(&naming) - 1;
  if (atomic_exchange(&ending, 1)) return 0;
  if (fd >= 0 && !fstat(fd, &st) && st.st_nlink) atomic_store(&finished, 1);
  for (int i = 0; i < N_SLOTS; i++) {
    int state;
    for (int n = 0; (state = atomic_load(&slots[i].state)) == TAKEN && n < 1000; n++) poll(NULL, 0, 1);
    if (state == GOING) unlink(slots[i].path);
    if (state == READY && unlink(slots[i].path) && errno == ENOENT) atomic_store(&finished, 1); /* it has got its name in the meantime */
  }
  return 1;
}

static void remove_and_exit(int sig) {
  if (!remove_all()) return;
  static const char *const names[] = {"mxgold: interrupted by SIGINT", "mxgold: interrupted by SIGTERM", "mxgold: interrupted by SIGHUP"};
  say(names[sig == SIGINT ? 0 : sig == SIGTERM ? 1 : 2]);
  if (atomic_load(&kept) == 2) {
    say(", the results so far are in ");
    say(results);
    say("\n");
  } else
    say(atomic_load(&finished) ? ", the files that were finished stay\n" : ", no file was changed\n");
  _exit(2);
}

void mxi_io_end(const char *before, const char *path, const char *behind) {
  while (!remove_all()) poll(NULL, 0, 1000); /* the other thread ends the process */
  say(before);
  say(path);
  say(behind);
  _exit(2);
}

void mx_file_note_written(const char *path) {
  int none = 0;
  atomic_store(&finished, 1);
  if (!path || strlen(path) >= sizeof results || !atomic_compare_exchange_strong(&kept, &none, 1)) return;
  memcpy(results, path, strlen(path) + 1);
  atomic_store(&kept, 2);
}

void mx_writer_install_signal_cleanup(void) {
  struct sigaction act = {.sa_handler = remove_and_exit};
  sigemptyset(&act.sa_mask);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
    struct sigaction old;
    /* nohup(1) and shells with background jobs ignore some of these signals on purpose. */
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

/* A thread that went on while the handler removes the files would make another one, or report that one is missing. */
static void wait_if_ending(void) {
  while (atomic_load(&ending)) pause();
}

static int is_name_of(const char *path, int fd) {
  struct stat by_name, by_fd;
  return !fstat(fd, &by_fd) && !lstat(path, &by_name) && by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

/* Gives a nameless file this name, or creates a file with it if there is none (fd < 0). */
static int make(const char *path, int fd) {
  char self[40];
  if (fd < 0) return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? -1 : fd;
}

/* Creates path, which must not exist, and registers it, without a moment in which a signal would leave it behind. A lock on it lasts as long
 * as its owner lives. */
static int make_temporary(const char *path, int nameless, int *slot) {
  sigset_t block, old;
  sigemptyset(&block);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) sigaddset(&block, watched[i]);
  pthread_sigmask(SIG_BLOCK, &block, &old);
  *slot = take_slot(path);
  if (atomic_load(&ending)) { /* the handler may already be past this slot, or may be waiting for it */
    if (*slot >= 0) atomic_store(&slots[*slot].state, FREE);
    wait_if_ending();
  }
  if (nameless >= 0) flock(nameless, LOCK_EX | LOCK_NB);
  int fd = make(path, nameless), why = errno;
  /* Another process that found the file before it was locked may have thought that its owner is dead, and may have reused the name. */
  const int taken = fd >= 0 && ((nameless < 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) || !is_name_of(path, fd));
  if (taken) {
    why = EEXIST;
    if (nameless < 0) close(fd);
    fd = -1;
  }
  if (*slot >= 0) atomic_store(&slots[*slot].state, fd >= 0 ? READY : FREE);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  wait_if_ending();
  if (fd < 0) *slot = -1;
  errno = why;
  return fd;
}

/* Removes a file that a killed process left behind, which is one whose lock nobody holds. 0 if the file stays. */
static int remove_dead(const char *path) {
  struct stat st;
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const int gone = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && !flock(fd, LOCK_EX | LOCK_NB) && is_name_of(path, fd) && !unlink(path);
  if (fd >= 0) close(fd);
  return gone;
}

static int length_of_folder(const char *target) {
  const char *slash = strrchr(target, '/');
  return slash ? (int)(slash - target + 1) : 0;
}

/* The k-th temporary name of a target. It depends only on the target, so that the next run finds what this one may leave. */
static char *name_beside(const char *target, int k) {
  char *name;
  const int n = length_of_folder(target);
  const unsigned long long hash = XXH3_64bits(target + n, strlen(target + n));
  return asprintf(&name, "%.*s.mxgold.%016llx.%d.tmp", n, target, hash, k) < 0 ? NULL : name;
}

static int open_folder(const char *target, int flags) {
  const int n = length_of_folder(target);
  char *folder = n ? strndup(target, (size_t)n) : strdup(".");
  const int fd = folder ? open(folder, flags | O_CLOEXEC, 0666) : -1;
  free(folder);
  return fd;
}

/* Creates a named file, or gives a name to a nameless one. */
static int make_beside(const char *target, int nameless, char **temporary, int *slot) {
  for (int k = 0; k < 1000; k++) {
    if (!(*temporary = name_beside(target, k))) {
      errno = ENOMEM;
      return -1;
    }
    for (int again = 0; again < 2; again++) {
      const int fd = make_temporary(*temporary, nameless, slot);
      if (fd >= 0) return fd;
      if (errno != EEXIST) break;
      const int gone = remove_dead(*temporary);
      errno = EEXIST;
      if (!gone) break;
    }
    const int why = errno;
    free(*temporary);
    *temporary = NULL;
    errno = why;
    if (errno != EEXIST) break;
  }
  return -1;
}

/* Creates a nameless file, unless there is no /proc, through which it gets its name later. */
static int nameless_beside(const char *target) {
#ifdef O_TMPFILE
  char self[40];
  const int fd = open_folder(target, O_TMPFILE | O_RDWR);
  if (fd < 0) return -1;
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  if (!access(self, F_OK)) return fd;
  close(fd);
#endif
  return -1;
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
  char *first = name_beside(target, 0);
  if (first) remove_dead(first);
  free(first);
  int fd = nameless_beside(target);
  if (fd < 0) fd = make_beside(target, -1, temporary, slot);
  if (fd >= 0 && exists && fchmod(fd, st.st_mode & 0777)) errno = 0; /* the mode of the old file if we may set it, otherwise ours */
  return fd;
}

static int wants_sync(void) {
  const char *text = getenv("MXGOLD_SYNC");
  return text && *text && strcmp(text, "0");
}

static int rename_to(const char *temporary, const char *target) {
  const int failed = rename(temporary, target), why = errno;
  if (failed)
    wait_if_ending(); /* the handler has removed the file */
  else
    atomic_store(&finished, 1);
  errno = why;
  return failed;
}

/* If the target does not exist, the file gets its name directly, and nothing is ever left behind. A link cannot replace a file, so otherwise
 * the file gets a temporary name first. */
static int name_nameless(int fd, const char *target) {
  char *temporary;
  int slot;
  atomic_store(&naming, fd + 1);
  const int named = make(target, fd) >= 0, no = errno;
  if (named) atomic_store(&finished, 1);
  atomic_store(&naming, 0);
  wait_if_ending();
  if (named) return 0;
  errno = no;
  if (errno != EEXIST || make_beside(target, fd, &temporary, &slot) < 0) return -1;
  const int failed = rename_to(temporary, target), why = errno;
  mxi_io_drop_temporary(failed ? temporary : NULL, slot);
  free(temporary);
  errno = why;
  return failed;
}

/* A file system that cannot sync a folder returns EINVAL, and has nothing to sync. */
static int sync_folder(const char *target) {
  const int fd = open_folder(target, O_RDONLY | O_DIRECTORY);
  const int failed = fd < 0 || (fsync(fd) && errno != EINVAL), why = errno;
  if (fd >= 0) close(fd);
  errno = why;
  return failed ? -1 : 0;
}

int mxi_io_give_name(int fd, const char *temporary, const char *target) {
  const int sync = wants_sync();
  wait_if_ending();
  int failed = sync && fsync(fd);
  if (!failed && !temporary) failed = name_nameless(fd, target);
  const int why = errno, shut = close(fd); /* network file systems report a full disk here */
  if (failed) errno = why;
  if (!failed && shut) failed = -1;
  if (!failed && temporary) failed = rename_to(temporary, target);
  return failed ? -1 : sync ? sync_folder(target) : 0;
}

void mxi_io_drop_temporary(const char *temporary, int slot) {
  if (slot >= 0) atomic_store(&slots[slot].state, GOING);
  if (temporary) unlink(temporary);
  if (slot >= 0) atomic_store(&slots[slot].state, FREE);
}
