/* Reports in one line what is wrong with a file: its name, the byte, and what was expected there. */
#include <stdarg.h>
#include <stdio.h>

#include "io.h"

mx_status mxi_io_malformed(const mx_file *f, mx_error *err, uint64_t byte, const char *format, ...) {
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return mx_fail(err, MX_ERR_FORMAT, "%s: byte %llu: %s", f->path, (unsigned long long)byte, what);
}
