/* Declares the texts that are made from the tables: help, the man page, completion. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "cli/base/cli.h"

/** What a run that is stopped leaves behind, for the man page and the page in Markdown. */
extern const char help_stopped[];

void help_overview(FILE *out);
void help_command(FILE *out, const cli_entry *entry);
/** The man page, troff. */
void help_man(FILE *out);
/** The same as Markdown. */
void help_markdown(FILE *out);
/** A completion script for bash. */
void help_bash_completion(FILE *out);

#endif
