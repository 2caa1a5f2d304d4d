/* Declares a check of what a config.json says that its "quant" came to. */
#ifndef TRAIN_RESOLVED_H
#define TRAIN_RESOLVED_H

#include <jansson.h>

#include "train/run/config.h"

/** Is that what it comes to here? Keys that `stated` lacks, of a file that an earlier version wrote, are not looked at. MX_ERR_CONFLICT names the first that
 *  differs: someone has changed it, or a preset or recipe means another thing today. */
mx_status mxi_resolved_check(const mxi_config *c, const json_t *stated, const char *path, mx_error *err);

#endif
