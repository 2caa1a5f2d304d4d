/* Mapped files that may be cut short while they are looked at. Internal to src/io/. */
#ifndef MX_IO_WATCH_H
#define MX_IO_WATCH_H

#include "io.h"

/* A file has been mapped; is about to be unmapped. */
void mxi_io_watch(const mx_file *f);
void mxi_io_unwatch(const mx_file *f);
/* MX_ERR_IO if a file is or was shorter than its mapping, and the program has installed the guard. */
mx_status mxi_io_check_inputs(mx_error *err);

#endif
