/* Declares which keys of a configuration nothing looks at. */
#ifndef TRAIN_IDLE_H
#define TRAIN_IDLE_H

#include "train/run/config.h"

/** Names the keys, separated by blanks, that are not at their defaults and that such a run does not read: those of another model, task, optimiser or
 *  schedule, or of a switch that is off. Returns how many; out has room for `size` characters. */
size_t mxi_config_idle(char *out, size_t size, const mxi_config *c);

#endif
