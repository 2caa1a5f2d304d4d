/* Declares options that are lists of names with commas between. */
#ifndef CLI_BASE_LIST_H
#define CLI_BASE_LIST_H

/** Is there a name before, between and behind the commas of list, at least one in all? If not says so of text, which ends in it, with what was expected, and
 *  returns CLI_TROUBLE. */
int list_check(const char *option, const char *text, const char *list, const char *expected);

#endif
