/* Declares how KEY=VALUE changes a configuration that has been read as JSON. */
#ifndef TRAIN_ASSIGN_H
#define TRAIN_ASSIGN_H

#include <jansson.h>

#include "mxgold/status.h"

/** Puts VALUE at KEY: "section.name", "quant.train.NAME" with the dots that NAME has, or a whole section. VALUE is JSON if it reads as JSON, where a
 *  number may begin with its point (.9), and otherwise a string; what begins as an object, a list or a quoted string must be one.
 *  MX_ERR_KEY, MX_ERR_FORMAT, MX_ERR_NOMEM. */
mx_status mxi_assign(json_t *root, const char *text, mx_error *err);

#endif
