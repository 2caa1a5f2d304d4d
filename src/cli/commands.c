/* Makes commands.def an array. */
#include <string.h>

#include "cli/commands.h"

const cli_entry cli_entries[] = {
#define COMMAND(name, summary, synopsis) {#name, summary, synopsis, &cmd_##name},
#include "commands.def"
#undef COMMAND
    {0}};

const cli_entry *cli_find(const char *name) {
  for (const cli_entry *e = cli_entries; e->name; e++)
    if (!strcmp(e->name, name)) return e;
  return NULL;
}
