/* Declares whole reads and writes of file descriptors, and files without a name. Internal to src/io/. */
#ifndef MX_IO_BASE_FD_H
#define MX_IO_BASE_FD_H

#include <stddef.h>
#include <stdint.h>

/* Write all of it, through EINTR and short writes; -1 with errno on failure, *done bytes written either way. */
int mxi_io_write_all(int fd, const void *data, size_t n_bytes, uint64_t *done);
int mxi_io_pwrite_all(int fd, const void *data, size_t n_bytes, uint64_t at, uint64_t *done);
/* Read n_bytes from `at` on, through EINTR. Returns how many there were: fewer with errno 0 where the file ends, else with why. */
uint64_t mxi_io_pread_all(int fd, void *room, uint64_t n_bytes, uint64_t at);
/* A file without a name, in $TMPDIR or /tmp; -1 with errno. */
int mxi_io_unnamed_file(void);

#endif
