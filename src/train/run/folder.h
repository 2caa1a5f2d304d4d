/* Declares a run's folder, which one run at a time writes. */
#ifndef TRAIN_FOLDER_H
#define TRAIN_FOLDER_H

#include "mxgold/status.h"

typedef struct mxi_folder {
  char *config, *metrics, *digests, *model, *state; /* paths of its files */
  int held;                                         /* 1: `lock` is open */
  int lock;                                         /* the folder itself, locked as long as this is open */
} mxi_folder;

/** Makes the folder if it is not there. MX_ERR_CONFLICT if another run, of this process or another, writes in it; MX_ERR_IO, MX_ERR_NOMEM. */
mx_status mxi_folder_open(mxi_folder *out, const char *dir, mx_error *err);
void mxi_folder_close(mxi_folder *f);
/** Is there such a file? */
int mxi_folder_has(const char *path);

#endif
