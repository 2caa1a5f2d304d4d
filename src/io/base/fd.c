/* Reads and writes file descriptors completely, and makes files without a name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/base/fd.h"

/* Linux transfers only about 2 GiB in one call; smaller pieces also let an interrupt in between. */
enum { MAX_PIECE = 1 << 28 };

static int write_all(int fd, const void *data, size_t n_bytes, const uint64_t *at, uint64_t *done) {
  const uint8_t *p = data;
  for (*done = 0; *done < n_bytes;) {
    size_t n = n_bytes - *done < MAX_PIECE ? n_bytes - *done : MAX_PIECE;
    ssize_t got = at ? pwrite(fd, p + *done, n, (off_t)(*at + *done)) : write(fd, p + *done, n);
    if (got < 0) {
      if (errno == EINTR) continue;
      return -1;
    }
    if (got == 0) {
      errno = ENOSPC;
      return -1;
    }
    *done += (size_t)got;
  }
  return 0;
}

int mxi_io_write_all(int fd, const void *data, size_t n_bytes, uint64_t *done) { return write_all(fd, data, n_bytes, NULL, done); }

int mxi_io_pwrite_all(int fd, const void *data, size_t n_bytes, uint64_t at, uint64_t *done) { return write_all(fd, data, n_bytes, &at, done); }

uint64_t mxi_io_pread_all(int fd, void *room, uint64_t n_bytes, uint64_t at) {
  uint8_t *p = room;
  uint64_t done = 0;
  errno = 0;
  while (done < n_bytes) {
    const ssize_t got = pread(fd, p + done, n_bytes - done < MAX_PIECE ? n_bytes - done : MAX_PIECE, (off_t)(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;
    if (got <= 0) break;
    done += (uint64_t)got;
  }
  return done;
}

int mxi_io_unnamed_file(void) {
  const char *dir = getenv("TMPDIR");
  if (!dir || !*dir) dir = "/tmp";
#ifdef O_TMPFILE
  int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
#endif
  /* Not every file system supports nameless files, so make one with a name and remove the name. */
  char name[4096];
  if (snprintf(name, sizeof name, "%s/mxgold.XXXXXX", dir) >= (int)sizeof name) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int named = mkostemp(name, O_CLOEXEC);
  if (named >= 0) unlink(name);
  return named;
}
