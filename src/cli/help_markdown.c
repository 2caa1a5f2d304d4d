/* Writes the command line as a page of Markdown, from the same tables as help and the man page. */
#include "cli/commands.h"
#include "help.h"
#include "mxgold/version.h"
#include "cli/base/opts.h"

/* What Markdown would read as its own, in a table as well; a line of its own stays one. */
static void put(FILE *out, const char *s) {
  for (; *s; s++) {
    if (*s == '|' || *s == '*' || *s == '<' || *s == '`') fputc('\\', out);
    fputc(*s, out);
  }
}

/* Between backquotes: only a bar is another thing there, in tables. */
static void put_code(FILE *out, const char *s, const char *bar) {
  for (; *s; s++) {
    if (*s == '|')
      fputs(bar, out);
    else
      fputc(*s, out);
  }
}

static void put_table(FILE *out, const cli_option *table) {
  for (const cli_option *o = table; o->name; o++) {
    fputs("| `", out);
    if (o->letter) fprintf(out, "-%c, ", o->letter);
    if (!opts_is_position(o)) fputs("--", out);
    put_code(out, o->name, "\\|");
    if (!opts_is_position(o) && o->value) {
      fputc(' ', out);
      put_code(out, o->value, "\\|");
    }
    fputs("` | ", out);
    put(out, o->help);
    if (opts_lists_choices(o)) {
      fputs(". One of:", out);
      const char *word;
      for (size_t i = 0; (word = o->choices(i)); i++) {
        fputs(" `", out);
        put_code(out, word, "\\|");
        fputc('`', out);
      }
    }
    fputs(" |\n", out);
  }
}

void help_markdown(FILE *out) {
  fprintf(out,
          "# The command line of mxgold %s\n\nWritten by `make docs` from the tables that the program reads its options from; `mxgold help` "
          "prints the same.\nAn input is a .npy or .safetensors file, `FILE.safetensors:TENSOR`, or `-` for standard input; `-o -` writes to "
          "standard output.\nExit status: 0 fine; 1 differs; 2 trouble, with one line on standard error that says what, where and what was "
          "expected; 3 stopped before the end, with a checkpoint (train and sweep).\n\n",
          MX_VERSION);
  for (const cli_entry *e = cli_entries; e->name; e++) {
    fprintf(out, "- [%s](#mxgold-%s): ", e->name, e->name);
    put(out, e->summary);
    fputc('\n', out);
  }
  for (const cli_entry *e = cli_entries; e->name; e++) {
    fprintf(out, "\n## mxgold %s\n\n    mxgold %s ", e->name, e->name);
    fputs(e->synopsis, out);
    fputs("\n\n", out);
    put(out, e->summary);
    fputs("\n\n| option | meaning |\n|---|---|\n", out);
    put_table(out, e->command->options);
    if (e->command->details) {
      fputc('\n', out);
      put(out, e->command->details);
      fputc('\n', out);
    }
  }
  fputs("\n## Options of every command\n\n| option | meaning |\n|---|---|\n", out);
  put_table(out, cli_common_options);
  fputs("\n## When a run is stopped\n\n", out);
  put(out, help_stopped);
}
