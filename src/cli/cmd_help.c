/* Runs mxgold help: help on a command, the man page, shell completion. */
#include "cli/commands.h"
#include "help.h"

struct args {
  const char *command;
  int man, markdown, bash;
};

static const char *commands(size_t index) { return cli_entries[index].name; }

static const cli_option options[] = {
    {"COMMAND", 0, CLI_POS_OPT, offsetof(struct args, command), NULL, "the command to explain; without it every command gets one line",
     commands},
    {"man", 0, CLI_FLAG, offsetof(struct args, man), NULL, "print the man page (troff)", NULL},
    {"markdown", 0, CLI_FLAG, offsetof(struct args, markdown), NULL, "print the same in Markdown, as in docs/reference/CLI.md", NULL},
    {"bash-completion", 0, CLI_FLAG, offsetof(struct args, bash), NULL, "print a completion script for bash", NULL},
    {0},
};

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  if (a->man)
    help_man(stdout);
  else if (a->markdown)
    help_markdown(stdout);
  else if (a->bash)
    help_bash_completion(stdout);
  else if (a->command)
    help_command(stdout, cli_find(a->command));
  else
    help_overview(stdout);
  return CLI_FINE;
}

const cli_command cmd_help = {options, sizeof(struct args), run, NULL};
