/* Files that come whole or not at all, and what gnuplot draws. */
#ifndef CLI_ABLATE_FILES_H
#define CLI_ABLATE_FILES_H

#include <stddef.h>

/** Write beside the name, then rename. */
int file_write_whole(const char *path, const char *data, size_t n);
/** Standard output of gnuplot on a script; the caller frees *out. */
int gnuplot_run(const char *script, size_t n_script, char **out, size_t *n);

#endif
