/* Declares how gnuplot is run. */
#ifndef CLI_BASE_GNUPLOT_H
#define CLI_BASE_GNUPLOT_H

#include <stddef.h>

/** Standard output of gnuplot on a script; the caller frees *out. */
int gnuplot_run(const char *script, size_t n_script, char **out, size_t *n);
/** Is it there? Says so if not. */
int gnuplot_check(void);

#endif
