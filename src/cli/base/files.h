/* Declares checks of file names, and files that are written whole or not at all. */
#ifndef CLI_BASE_FILES_H
#define CLI_BASE_FILES_H

#include <stddef.h>

/** Write beside the name, then rename. */
int file_write_whole(const char *path, const char *data, size_t n);
/** Can a file of this name be made? Says so if not; leaves nothing, and what stands there stays. */
int file_check(const char *path);
/** Does the name end with `end`? */
int file_ends_with(const char *path, const char *end);

#endif
