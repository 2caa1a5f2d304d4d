/* Declares the parser of options by table. */
#ifndef CLI_BASE_OPTS_H
#define CLI_BASE_OPTS_H

#include "cli.h"

/** Parse the arguments of a command (argv[0] is the first after its name) into *common and args (zeroed by the caller). Every form is
 *  understood: --name value, --name=value, -o value, -ovalue; -- ends the options. Sets *help on --help or -h and stops there.
 *  Returns CLI_FINE, or CLI_TROUBLE after saying why. Lists are freed by opts_free(). */
int opts_parse(const cli_entry *entry, int argc, char **argv, cli_context *common, void *args, int *help);
void opts_free(const cli_option *table, void *args);

/** True for positions, which have no dashes. */
int opts_is_position(const cli_option *o);
/** True when an option takes certain words, and few enough to list them in help. Presets are many and have a command that lists them. */
int opts_lists_choices(const cli_option *o);

#endif
