/* Declares a checkpoint: one file, or shards named by an index (MODEL.safetensors.index.json). */
#ifndef CLI_CHECKPOINT_CHECKPOINT_H
#define CLI_CHECKPOINT_CHECKPOINT_H

#include "cli/base/cli.h"
#include "mxgold/file.h"

typedef struct checkpoint {
  size_t n;
  char **names; /* as the index names the shards; n == 1 without index: the path */
  char **paths;
  int indexed;
  char *from; /* the index or the file: what was asked for, or what stands in the folder that was */
} checkpoint;

/** Paths of the shards, in the order of their names. A folder is its one index, or without an index its one .safetensors file. Nothing is opened but the index. Says what is wrong and returns CLI_TROUBLE. */
int checkpoint_open(checkpoint *out, const char *path);
void checkpoint_close(checkpoint *c);
/** Does the path name an index of shards? A folder? */
int checkpoint_is_index(const char *path);
int checkpoint_is_folder(const char *path);

#endif
