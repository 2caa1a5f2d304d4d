/* Declares the watch over mapped files that may be cut short while they are read. Internal to src/io/. */
#ifndef MX_IO_BASE_WATCH_H
#define MX_IO_BASE_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "mxgold/status.h"

/* mxi_io_watch() is called after the file `path`, open as fd (or -1), has been mapped at base; the other function before that mapping is
 * removed. */
void mxi_io_watch(const char *path, const uint8_t *base, size_t n_bytes, int fd);
void mxi_io_unwatch(const uint8_t *base);
/* MX_ERR_IO if a file is or was shorter than its mapping, and the program has installed the guard. */
mx_status mxi_io_check_inputs(mx_error *err);

#endif
