/* Declares the watch over mapped files that may be cut short while they are read. Internal to src/io/. */
#ifndef MX_IO_BASE_WATCH_H
#define MX_IO_BASE_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "mxgold/status.h"

/* The file `path`, open as fd (-1: not), has been mapped at base; what is mapped there is about to be unmapped. */
void mxi_io_watch(const char *path, const uint8_t *base, size_t n_bytes, int fd);
void mxi_io_unwatch(const uint8_t *base);
/* MX_ERR_IO if a file is or was shorter than its mapping, and the program has installed the guard. */
mx_status mxi_io_check_inputs(mx_error *err);

#endif
