/* Holds the texts of statuses, and formats one-line errors. */
#include <stdarg.h>
#include <stdio.h>

#include "mxgold/status.h"

static const char *const texts[] = {
#define MX_STATUS(id, text) text,
#include "formats/status.def"
#undef MX_STATUS
};

const char *mx_status_text(mx_status status) {
  if ((unsigned)status >= MX_STATUS_COUNT) return "unknown status";
  return texts[status];
}

/* Names of files and tensors end up in messages. Whatever they hold, the message stays one line and sends no control codes to a terminal. */
static void keep_one_line(char *s) {
  for (; *s; s++)
    if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
}

mx_status mx_fail(mx_error *err, mx_status status, const char *format, ...) {
  if (!err) return status;
  err->status = status;
  va_list args;
  va_start(args, format);
  if (vsnprintf(err->text, sizeof err->text, format, args) < 0) snprintf(err->text, sizeof err->text, "%s", mx_status_text(status));
  va_end(args);
  keep_one_line(err->text);
  return status;
}
