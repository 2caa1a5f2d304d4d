/* A checkpoint: one file, or shards named by an index (MODEL.safetensors.index.json). */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "cli.h"
#include "mxgold/file.h"

typedef struct checkpoint {
  size_t n;
  char **names; /* as the index names the shards; n == 1 without index: the path */
  char **paths;
  int indexed;
} checkpoint;

/** Paths of the shards, in the order of their names. Nothing is opened but the index. Says what is wrong and returns CLI_TROUBLE. */
int checkpoint_open(checkpoint *out, const char *path);
void checkpoint_close(checkpoint *c);
/** Does the path name an index of shards? */
int checkpoint_is_index(const char *path);

#endif
