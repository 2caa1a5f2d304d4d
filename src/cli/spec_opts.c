/* From options to a spec. */
#include "spec_opts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *spec_preset_names(size_t index) {
  const mx_preset *p = mx_preset_at(index);
  return p ? p->name : NULL;
}

enum { MAX_SPEC_FILE = 1 << 20 };

static int read_spec(mx_spec *spec, const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return cli_error("%s: cannot be opened, expected a spec in JSON", path);
  char *text = malloc(MAX_SPEC_FILE);
  const size_t n = text ? fread(text, 1, MAX_SPEC_FILE, f) : 0;
  const int bad = ferror(f) || !text;
  fclose(f);
  mx_error err;
  int rc = CLI_FINE;
  if (bad || n == MAX_SPEC_FILE)
    rc = cli_error("%s: cannot be read, expected a spec in JSON of less than 1 MiB", path);
  else if (mx_spec_parse_json(spec, text, n, &err))
    rc = cli_error("%s: %s", path, err.text);
  free(text);
  return rc;
}

int spec_from_options(mx_spec *out, const spec_opts *o) {
  mx_error err;
  memset(out, 0, sizeof *out);
  if (o->preset && mx_preset_find(out, o->preset, &err)) return cli_fail(&err);
  if (o->spec_file && read_spec(out, o->spec_file)) return CLI_TROUBLE;
  /* All at once, so that an order among them does not matter. */
  char text[4096] = "";
  size_t n = 0;
  for (size_t i = 0; i < o->set.n && n < sizeof text; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%s ", o->set.items[i]);
  if (n >= sizeof text) return cli_error("--set: expected less than %zu characters in all", sizeof text);
  if (mx_spec_parse(out, text, &err)) return cli_error("--set: %s", err.text);
  if (o->seed.given) out->seed = o->seed.v;
  if (mx_spec_check(out, &err)) return cli_fail(&err);
  return CLI_FINE;
}
