/* Prints help on the terminal. */
#include <string.h>

#include "cli/commands.h"
#include "help.h"
#include "mxgold/version.h"
#include "cli/base/opts.h"

const char help_stopped[] =
    "Every output is written under another name, or under none, and gets its own name when it is whole: a run that is stopped leaves the\n"
    "old file or the new one, and never half of one.\n"
    "SIGINT, SIGTERM and SIGHUP end a command with one line that says whether a file was changed, and nothing else stays behind; train and\n"
    "sweep first write checkpoints, from which they can be resumed.\n"
    "SIGKILL (kill -9) cannot be caught. On ext4, xfs, btrfs and tmpfs it leaves nothing behind either, except in the moment in which an\n"
    "old file is replaced. In that moment, and on file systems without unnamed files (NFS, for instance), it leaves a file\n"
    ".mxgold.HASH.K.tmp in the folder of the output. The next run that writes the same output there removes it; it may also be deleted by\n"
    "hand when no mxgold is writing there.\n"
    "Records that grow while a run goes on (journals of sweep, --state of ablate, metrics of train) may end in a line that was cut off; the\n"
    "run that goes on from them takes no notice of it.\n"
    "With --sync, or MXGOLD_SYNC=1 in the environment, outputs are whole after a power cut too.\n";

void help_overview(FILE *out) {
  fprintf(out, "mxgold %s: the exact bytes of microscaling formats\n\n", MX_VERSION);
  for (const cli_entry *e = cli_entries; e->name; e++) fprintf(out, "  mxgold %-12s %s\n", e->name, e->summary);
  fputs("\nmxgold help COMMAND says more. IN is a .npy or .safetensors file, FILE.safetensors:TENSOR, or - for standard input; -o - writes to\n"
        "standard output. Exit status: 0 fine, 1 differs, 2 trouble.\n",
        out);
}

/* "-o, --output FILE", and how wide it came out. */
static int left_side(char *out, size_t n, const cli_option *o) {
  if (opts_is_position(o)) return snprintf(out, n, "  %s", o->name);
  char letter[8] = "    ";
  if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
  return snprintf(out, n, "  %s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
}

static void print_choices(FILE *out, const cli_option *o, int indent) {
  enum { WIDTH = 100 };
  int at = 0;
  const char *word;
  for (size_t i = 0; (word = o->choices(i)); i++) {
    int n = (int)strlen(word) + 1;
    if (at && at + n > WIDTH) at = 0;
    if (!at) at = fprintf(out, "%s%*s", i ? "\n" : "", indent, "") - (i ? 1 : 0);
    at += fprintf(out, " %s", word);
  }
  fputc('\n', out);
}

static void print_table(FILE *out, const cli_option *table) {
  enum { COLUMN = 30 };
  for (const cli_option *o = table; o->name; o++) {
    char left[128];
    int n = left_side(left, sizeof left, o);
    if (n < COLUMN)
      fprintf(out, "%-*s %s\n", COLUMN, left, o->help);
    else
      fprintf(out, "%s\n%*s %s\n", left, COLUMN, "", o->help);
    if (opts_lists_choices(o)) print_choices(out, o, COLUMN);
  }
}

void help_command(FILE *out, const cli_entry *e) {
  fprintf(out, "mxgold %s %s\n\n%s\n\n", e->name, e->synopsis, e->summary);
  print_table(out, e->command->options);
  print_table(out, cli_common_options);
  if (e->command->details) fprintf(out, "\n%s\n", e->command->details);
}
