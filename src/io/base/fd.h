/* Declares complete reads and writes of file descriptors, and files without a name. Internal to src/io/. */
#ifndef MX_IO_BASE_FD_H
#define MX_IO_BASE_FD_H

#include <stddef.h>
#include <stdint.h>

/* Writes everything, despite EINTR and short writes; -1 with errno on failure. *done is how many bytes were written in either case. */
int mxi_io_write_all(int fd, const void *data, size_t n_bytes, uint64_t *done);
int mxi_io_pwrite_all(int fd, const void *data, size_t n_bytes, uint64_t at, uint64_t *done);
/* Reads n_bytes from `at` on, despite EINTR. Returns how many it read: if fewer, errno is 0 at the end of the file, or else says why. */
uint64_t mxi_io_pread_all(int fd, void *room, uint64_t n_bytes, uint64_t at);
/* Opens a file without a name in $TMPDIR or /tmp; -1 with errno on failure. */
int mxi_io_unnamed_file(void);

#endif
