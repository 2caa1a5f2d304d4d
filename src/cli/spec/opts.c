/* Makes a spec from the options that say it. */
#include "cli/spec/opts.h"

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
  if (o->preset && o->spec_file)
    return cli_error("--preset %s and --spec %s exclude each other: each is a whole spec; --set changes keys of either", o->preset,
                     o->spec_file);
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
  static const uint8_t none[sizeof out->had_signs];
  if (out->had_size && out->had_sign == MX_HAD_SIGN_FIXED && !memcmp(out->had_signs, none, sizeof none))
    return cli_error("had.sign=fixed without had.signs, expected %u digits 0 or 1, 1 negates", out->had_size);
  return CLI_FINE;
}

const char *spec_preset_label(const spec_opts *o, const mx_spec *spec) {
  mx_spec as_named;
  if (!o->preset || mx_preset_find(&as_named, o->preset, NULL)) return NULL;
  as_named.seed = spec->seed; /* these leave the rule what it is */
  as_named.nibble = spec->nibble;
  as_named.tensor_given = spec->tensor_given;
  as_named.tensor_given_value = spec->tensor_given_value;
  return mx_spec_equal(&as_named, spec) ? o->preset : NULL;
}
