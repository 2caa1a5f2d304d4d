/* Declares the lines of a state of ablate: of one file, or of a folder in which each process has a journal of its own. A file's first line says what it is, and every
 * other one ends in a digest of what stands before it. */
#ifndef CLI_ABLATE_STATE_LINES_H
#define CLI_ABLATE_STATE_LINES_H

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>

#include "mxgold/status.h"

/** All lines of a state, of one file behind the other. */
typedef struct state_reader {
  const char *path;
  DIR *folder; /* NULL: one file */
  FILE *f;
  char *line;
  size_t room;
} state_reader;
void state_open(state_reader *r, const char *path);
/** The next line, to be changed at will until the next call; NULL behind the last. */
char *state_next(state_reader *r);
void state_close(state_reader *r);

/** Does the line end in the digest of what stands before it? It is taken off. */
int state_line_whole(char *line);
/** Add a digest and the end of the line to text of n characters, which has room for 40 more, and the line to the file, or to this process's journal in the
 *  folder: whole, or not at all. Several processes may do so at a time. */
mx_status state_line_add(const char *path, char *text, size_t n, mx_error *err);

#endif
