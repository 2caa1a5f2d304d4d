/* commands.def as a table. */
#include <string.h>

#include "cli/base/cli.h"

const cli_entry cli_entries[] = {
#define COMMAND(name, summary, synopsis) {#name, summary, synopsis, &cmd_##name},
#include "commands.def"
#undef COMMAND
    {0}};

const cli_option cli_common_options[] = {
    {"verbose", 'v', CLI_FLAG, offsetof(cli_context, verbose), NULL, "say what is being done, with progress and rate", NULL},
    {"isa-off", 0, CLI_STRING, offsetof(cli_context, isa_off), "NAMES",
     "instruction sets not to be used: amx, avx512 (and with it amx), avx2 (and with it both), neon, all; no bit depends on them", NULL},
    {0},
};

const cli_entry *cli_find(const char *name) {
  for (const cli_entry *e = cli_entries; e->name; e++)
    if (!strcmp(e->name, name)) return e;
  return NULL;
}
