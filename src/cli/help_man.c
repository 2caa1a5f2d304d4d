/* Writes the man page from the same tables as help. */
#include "cli/commands.h"
#include "help.h"
#include "mxgold/version.h"
#include "cli/base/opts.h"

/* troff reads a backslash, and a dot or quote that begins a line, as its own; a dash is a hyphen unless escaped. */
static void put(FILE *out, const char *s) {
  int at_start = 1;
  for (; *s; s++) {
    if (at_start && (*s == '.' || *s == '\'')) fputs("\\&", out);
    if (*s == '\\')
      fputs("\\e", out);
    else if (*s == '-')
      fputs("\\-", out);
    else
      fputc(*s, out);
    at_start = *s == '\n';
  }
}

static void put_bold(FILE *out, const char *prefix, const char *s) {
  fputs("\\fB", out);
  put(out, prefix);
  put(out, s);
  fputs("\\fR", out);
}

static void put_table(FILE *out, const cli_option *table) {
  for (const cli_option *o = table; o->name; o++) {
    fputs(".TP\n", out);
    if (opts_is_position(o)) {
      fputs("\\fI", out);
      put(out, o->name);
      fputs("\\fR", out);
    } else {
      char letter[2] = {o->letter, 0};
      if (o->letter) {
        put_bold(out, "-", letter);
        fputs(", ", out);
      }
      put_bold(out, "--", o->name);
      if (o->value) {
        fputs(" \\fI", out);
        put(out, o->value);
        fputs("\\fR", out);
      }
    }
    fputc('\n', out);
    put(out, o->help);
    if (opts_lists_choices(o)) {
      fputs(". One of:", out);
      const char *word;
      for (size_t i = 0; (word = o->choices(i)); i++) {
        fputc(' ', out);
        put(out, word);
      }
    }
    fputc('\n', out);
  }
}

void help_man(FILE *out) {
  fprintf(out, ".TH MXGOLD 1 \"\" \"mxgold %s\" \"User Commands\"\n", MX_VERSION);
  fputs(".SH NAME\nmxgold \\- the exact bytes of microscaling formats\n.SH SYNOPSIS\n", out);
  for (const cli_entry *e = cli_entries; e->name; e++) {
    put_bold(out, "mxgold ", e->name);
    fputc(' ', out);
    put(out, e->synopsis);
    fputs(e[1].name ? "\n.br\n" : "\n", out);
  }
  fputs(".SH DESCRIPTION\nA bit-exact reference simulator of microscaling number formats: one tensor goes in, the bytes that a correct kernel "
        "must\n"
        "produce come out. Input is a .npy or .safetensors file, FILE.safetensors:TENSOR, or \\- for standard input.\n.SH COMMANDS\n",
        out);
  for (const cli_entry *e = cli_entries; e->name; e++) {
    fputs(".SS \"", out);
    put(out, e->name);
    fputs("\"\n", out);
    put(out, e->summary);
    fputc('\n', out);
    put_table(out, e->command->options);
    if (e->command->details) {
      fputs(".PP\n", out);
      put(out, e->command->details);
      fputc('\n', out);
    }
  }
  fputs(".SH OPTIONS OF EVERY COMMAND\n", out);
  put_table(out, cli_common_options);
  fputs(".SH EXIT STATUS\n0 fine, 1 differs, 2 trouble, with one line on standard error that says what, where and what was expected; 3 stopped "
        "before the end, "
        "with a checkpoint (train and sweep).\n.SH WHEN A RUN IS STOPPED\n",
        out);
  put(out, help_stopped);
}
