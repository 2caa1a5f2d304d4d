/* Says what a kernel under test does that is no answer. */
#include "cli/verify/misdeed.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/cli.h"

static const char *signal_name(int number) {
  static const struct {
    int number;
    const char *name;
  } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},
               {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},
               {SIGABRT, "SIGABRT"}, {SIGKILL, "SIGKILL"},
               {SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"},
               {SIGSYS, "SIGSYS"},   {SIGXFSZ, "SIGXFSZ, the limit on a file's size (--file-size) was reached"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].number == number) return names[i].name;
  return "another signal";
}

int misdeed_crash(char *out, size_t size, const plugin_result *got, const char *said) {
  if (got->end == PLUGIN_SIGNAL) return snprintf(out, size, "%s%s", signal_name(got->signal), got->where);
  return snprintf(out, size, "returned %d%s%.120s", got->returned, *said ? ", " : "", said);
}

void misdeed_words(char *out, size_t size, const plugin_result *got, const char *said, size_t rows, size_t cols) {
  *out = 0;
  if (got->end == PLUGIN_SIGNAL)
    snprintf(out, size, "Your kernel crashes on %zu x %zu: %s%s.", rows, cols, signal_name(got->signal), got->where);
  else if (got->end == PLUGIN_FAILED)
    snprintf(out, size, "Your kernel fails on %zu x %zu: it returned %d%s%s.", rows, cols, got->returned, *said ? " and said: " : "", said);
  else if (got->end == PLUGIN_LATE)
    snprintf(out, size, "Your kernel does not return in time on %zu x %zu%s.", rows, cols,
             got->signal == SIGXCPU ? ": SIGXCPU, the limit on processor time (--processor-time) was reached" : "");
  else if (got->end == PLUGIN_OUTSIDE)
    snprintf(out, size, "Your kernel writes before or behind %s.", got->what);
  else if (got->end == PLUGIN_EXIT)
    snprintf(out, size, "Your kernel ends its own process.");
}

/* The loader begins with the path, as a rule. Without a slash it looks in the system's folders alone. */
int misdeed_load(const char *path, const char *why) {
  const size_t n = strlen(path);
  if (!strncmp(why, path, n) && why[n] == ':') why += n + 1 + (why[n + 1] == ' ');
  const int bare = !strchr(path, '/');
  return cli_error("%s: cannot be loaded%s%s%s%s, expected a shared object that defines mxgold_quantize", path, *why ? ": " : "", why,
                   bare ? "; for a file of this folder, --plugin ./" : "", bare ? path : "");
}
