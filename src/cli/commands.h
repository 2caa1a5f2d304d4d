/* Declares the table of commands: the rows of commands.def, each with the command that its file defines. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/base/cli.h"

#define COMMAND(name, summary, synopsis) extern const cli_command cmd_##name;
#include "cli/commands.def"
#undef COMMAND

/** Every command in the order of commands.def; ends with a row of zeros. */
extern const cli_entry cli_entries[];
const cli_entry *cli_find(const char *name);

#endif
