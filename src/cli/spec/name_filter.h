/* Declares --include and --exclude, which choose tensors of a checkpoint by name. */
#ifndef CLI_SPEC_NAME_FILTER_H
#define CLI_SPEC_NAME_FILTER_H

#include <regex.h>

typedef struct name_filter {
  const char *include_text, *exclude_text; /* NULL: none */
  regex_t include, exclude;
} name_filter;

/** From extended regular expressions, NULL for none. Says what is wrong and returns CLI_TROUBLE; then there is nothing to free. */
int name_filter_make(name_filter *out, const char *include, const char *exclude);
void name_filter_free(name_filter *f);
/** Does --include name it? 0 without one. */
int name_included(const name_filter *f, const char *name);
/** Why the filter leaves a tensor out: "not included", "excluded"; NULL if it does not. */
const char *name_left_out(const name_filter *f, const char *name);

#endif
