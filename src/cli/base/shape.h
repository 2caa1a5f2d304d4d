/* Shapes as a user types them. */
#ifndef CLI_SHAPE_H
#define CLI_SHAPE_H

#include <stdint.h>

/** Read "RxC", or one to max extents joined by x, each a decimal from 1 on. Returns how many there are, 0 if the text is anything else. */
int shape_parse(uint64_t *shape, int max, const char *text);

#endif
