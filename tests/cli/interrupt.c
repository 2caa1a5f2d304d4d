/* Sends a signal at a stated call when it is preloaded, so that no test has to meet the moment by the clock. INTERRUPT=FUNCTION:N:SIGNAL, within the
 * Nth call of pwrite or pread, behind the Nth rename or mmap of a file, or behind the Nth file that open makes, which then takes its time. With
 * SHRINK=PATH:BYTES a file is cut to that size instead; linkat is watched like rename; fsync, flock and an fcntl that asks for a descriptor's flags
 * before they do anything. With NO_NAMELESS set the file system has no files without names. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void at(const char *function, atomic_int *calls) {
  char name[16];
  int n, number;
  const char *wanted = getenv("INTERRUPT");
  if (!wanted || sscanf(wanted, "%15[a-z]:%d:%d", name, &n, &number) != 3 || strcmp(name, function) || atomic_fetch_add(calls, 1) + 1 != n)
    return;
  const char *shrink = getenv("SHRINK"), *colon = shrink ? strrchr(shrink, ':') : NULL;
  if (colon) {
    char path[4096];
    snprintf(path, sizeof path, "%.*s", (int)(colon - shrink), shrink);
    if (truncate(path, atol(colon + 1))) abort();
    return;
  }
  kill(getpid(), number);
  usleep(300000); /* whichever thread takes it has ended the process by then, unless this one keeps it from that */
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset) {
  static atomic_int calls;
  at("pwrite", &calls);
  return ((ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(fd, data, n, offset);
}

ssize_t pread(int fd, void *data, size_t n, off_t offset) {
  static atomic_int calls;
  at("pread", &calls);
  return ((ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(fd, data, n, offset);
}

void *mmap(void *where, size_t n, int protection, int flags, int fd, off_t offset) {
  static atomic_int calls;
  void *got = ((void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap"))(where, n, protection, flags, fd, offset);
  if (fd >= 0) at("mmap", &calls);
  return got;
}

int rename(const char *from, const char *to) {
  static atomic_int calls;
  const int rc = ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
  at("rename", &calls);
  return rc;
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  static atomic_int calls;
  const int rc = ((int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat"))(from_folder, from, to_folder, to, flags);
  at("linkat", &calls);
  return rc;
}

int flock(int fd, int operation) {
  static atomic_int calls;
  at("flock", &calls);
  return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(fd, operation);
}

static int watched_fcntl(const char *symbol, int fd, int command, void *value) {
  static atomic_int calls;
  if (command == F_GETFD) at("fcntl", &calls);
  return ((int (*)(int, int, void *))dlsym(RTLD_NEXT, symbol))(fd, command, value);
}

/* Either name, by the width of off_t that the caller was built for. */
int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void *value = va_arg(more, void *);
  va_end(more);
  return watched_fcntl("fcntl", fd, command, value);
}

int fcntl64(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void *value = va_arg(more, void *);
  va_end(more);
  return watched_fcntl("fcntl64", fd, command, value);
}

int fsync(int fd) {
  static atomic_int calls;
  at("fsync", &calls);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int open(const char *path, int flags, ...) {
  static atomic_int calls;
  va_list more;
  va_start(more, flags);
  const int nameless = (flags & O_TMPFILE) == O_TMPFILE, mode = flags & O_CREAT || nameless ? va_arg(more, int) : 0;
  va_end(more);
  if (nameless && getenv("NO_NAMELESS")) {
    errno = EOPNOTSUPP;
    return -1;
  }
  const int fd = ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
  if (flags & O_EXCL || nameless) at("open", &calls);
  return fd;
}
