/* Matches the names of tensors with regular expressions. */
#include "cli/spec/name_filter.h"

#include "cli/base/cli.h"

static int compile(regex_t *to, const char *option, const char *text) {
  const int bad = text ? regcomp(to, text, REG_EXTENDED | REG_NOSUB) : 0;
  char why[100];
  if (!bad) return CLI_FINE;
  regerror(bad, to, why, sizeof why);
  return cli_error("--%s: '%.100s': %s, expected an extended regular expression", option, text, why);
}

int name_filter_make(name_filter *out, const char *include, const char *exclude) {
  *out = (name_filter){.include_text = include, .exclude_text = exclude};
  if (compile(&out->include, "include", include)) return CLI_TROUBLE;
  if (!compile(&out->exclude, "exclude", exclude)) return CLI_FINE;
  if (include) regfree(&out->include);
  return CLI_TROUBLE;
}

void name_filter_free(name_filter *f) {
  if (f->include_text) regfree(&f->include);
  if (f->exclude_text) regfree(&f->exclude);
  *f = (name_filter){0};
}

int name_included(const name_filter *f, const char *name) { return f->include_text && !regexec(&f->include, name, 0, NULL, 0); }

const char *name_left_out(const name_filter *f, const char *name) {
  if (f->include_text && !name_included(f, name)) return "not included";
  return f->exclude_text && !regexec(&f->exclude, name, 0, NULL, 0) ? "excluded" : NULL;
}
