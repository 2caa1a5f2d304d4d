/* Writes the completion for bash from the same tables as help. The words are written out, so completing starts no program. */
#include <string.h>

#include "cli/commands.h"
#include "help.h"
#include "cli/spec/key_choices.h"
#include "mxgold/spec.h"
#include "cli/base/opts.h"

static void put_words(FILE *out, cli_choices *choices) {
  const char *word;
  for (size_t i = 0; (word = choices(i)); i++) fprintf(out, "%s%s", i ? " " : "", word);
}

/* A spec's keys, each with the = that bash takes for a word of its own. */
static void put_keys(FILE *out) {
  const char *key;
  for (size_t i = 0; (key = mx_key_name(i)); i++) fprintf(out, "%s%s=", i ? " " : "", key);
}

static void put_key_values(FILE *out) {
  const char *key;
  for (size_t i = 0; (key = mx_key_name(i)); i++) {
    const char *word = key_choice(key, 0);
    if (!word) continue;
    fprintf(out, "    %s) words=\"", key);
    for (size_t c = 0; (word = key_choice(key, c)); c++) fprintf(out, "%s%s", c ? " " : "", word);
    fputs("\" ;;\n", out);
  }
}

/* compgen -W "WORDS" unless there is nothing to say; then bash's default, file names, steps in. */
static void put_values(FILE *out, const cli_entry *e, const cli_option *o) {
  if (o->kind == CLI_FLAG || opts_is_position(o)) return;
  fprintf(out, "    :%s:--%s", e->name, o->name);
  if (o->letter) fprintf(out, "|:%s:-%c", e->name, o->letter);
  fputs(") words=\"", out);
  if (o->choices) put_words(out, o->choices);
  if (o->value && !strncmp(o->value, "KEY=", 4)) put_keys(out);
  fputs("\" ;;\n", out);
}

static void put_options(FILE *out, const cli_entry *e) {
  fprintf(out, "    %s) words=\"", e->name);
  const cli_option *tables[] = {e->command->options, cli_common_options};
  for (int t = 0; t < 2; t++)
    for (const cli_option *o = tables[t]; o->name; o++)
      if (!opts_is_position(o)) fprintf(out, "--%s ", o->name);
  fputs("--help\" ;;\n", out);
}

static void put_positions(FILE *out, const cli_entry *e) {
  for (const cli_option *o = e->command->options; o->name; o++)
    if (opts_is_position(o) && o->choices) {
      fprintf(out, "    %s) words=\"", e->name);
      put_words(out, o->choices);
      fputs("\" ;;\n", out);
      return;
    }
}

void help_bash_completion(FILE *out) {
  fputs("# bash completion for mxgold, made by `mxgold help --bash-completion`\n_mxgold() {\n"
        "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=\n"
        "  COMPREPLY=()\n  if [ \"$COMP_CWORD\" = 1 ]; then\n    words=\"",
        out);
  for (const cli_entry *e = cli_entries; e->name; e++) fprintf(out, "%s ", e->name);
  fputs("--version --help\"\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n    return\n  fi\n"
        "  local key=\n"
        "  if [ \"$cur\" = = ]; then key=$prev cur=; elif [ \"$prev\" = = ]; then key=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
        "  case ${key:+value}:$command:$prev in\n    value:*) case $key in\n",
        out);
  put_key_values(out);
  fputs("      esac ;;\n", out);
  for (const cli_entry *e = cli_entries; e->name; e++)
    for (const cli_option *o = e->command->options; o->name; o++) put_values(out, e, o);
  fputs("    *)\n    case $cur in\n    -*) case $command in\n", out);
  for (const cli_entry *e = cli_entries; e->name; e++) put_options(out, e);
  fputs("      esac ;;\n    *) case $command in\n", out);
  for (const cli_entry *e = cli_entries; e->name; e++) put_positions(out, e);
  fputs("      esac ;;\n    esac ;;\n  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "  case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac\n}\ncomplete -o default -F _mxgold mxgold\n",
        out);
}
