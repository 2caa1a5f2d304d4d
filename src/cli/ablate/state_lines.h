/* Declares the lines of a state file of ablate: the first says what it is, and every other one ends in a digest of what stands before it. */
#ifndef CLI_ABLATE_STATE_LINES_H
#define CLI_ABLATE_STATE_LINES_H

#include <stddef.h>

#include "mxgold/status.h"

/** Does the line end in the digest of what stands before it? It is taken off. */
int state_line_whole(char *line);
/** Add a digest and the end of the line to text of n characters, which has room for 40 more, and the line to the file: whole, or not at all. Several
 *  processes may do so at a time. */
mx_status state_line_add(const char *path, char *text, size_t n, mx_error *err);

#endif
