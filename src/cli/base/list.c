/* Refuses lists in which a name is left out: nobody would see such a slip in the output. */
#include "list.h"

#include <string.h>

#include "cli.h"

int list_check(const char *option, const char *text, const char *list, const char *expected) {
  const size_t n = strlen(list);
  if (n && list[0] != ',' && list[n - 1] != ',' && !strstr(list, ",,")) return CLI_FINE;
  return cli_error("%s: '%.80s' has an empty place, expected %s", option, text, expected);
}
