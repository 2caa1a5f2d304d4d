/* What diff and verify found, as files for others: JUnit XML, and HTML that needs nothing else. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli.h"
#include "mxgold/mxgold.h"

/** One check of a JUnit report. */
typedef struct junit_case {
  const char *name, *failure; /* failure NULL: passed */
} junit_case;
int report_junit(const char *path, const char *suite, const junit_case *cases, size_t n);
/** The whole of a difference as one HTML file: no script, no network. */
int report_html(const char *path, const char *a, const char *b, const mx_difference *d, const mx_spec *spec, const char *verdict);

#endif
