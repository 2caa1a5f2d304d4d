/* Declares batches of probe tiles as files. */
#ifndef CLI_VERIFY_PROBE_IO_H
#define CLI_VERIFY_PROBE_IO_H

#include "mxgold/probe.h"

mx_status probe_write(const char *path, const mx_probe *p, mx_error *err);
/** Read a batch; every extent is checked against what the file says of itself. The caller frees it with mx_probe_free(). */
mx_status probe_read_file(mx_probe *out, const char *path, mx_error *err);
/** Read what a device gave: tensor d (or the only one) [T][M][N] in words of d's width. malloc'ed; the caller frees it. */
mx_status probe_read_d(void **out, const char *path, const mx_probe *p, mx_error *err);

#endif
