/* Prints an error of a command as one line on standard error. */
#include <stdarg.h>
#include <stdio.h>

#include "cli.h"
#include "progress.h"

static int say(const char *text) {
  progress_clear();
  fprintf(stderr, "mxgold: %s\n", text);
  return CLI_TROUBLE;
}

int cli_fail(const mx_error *err) { return say(err->text); }

int cli_error(const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  mx_error err;
  mx_fail(&err, MX_ERR_ARG, "%s", text); /* keeps it one line, whatever the arguments hold */
  return cli_fail(&err);
}

int cli_unknown(const char *where, const char *what, const char *name, mx_name_at *at, const void *set) {
  char near[160];
  const char *colon = where ? ": " : "";
  if (!where) where = "";
  if (!mx_nearest(near, sizeof near, name, at, set)) return cli_error("%s%s%s '%s' is unknown", where, colon, what, name);
  return cli_error("%s%s%s '%s' is unknown, nearest: %s", where, colon, what, name, near);
}
