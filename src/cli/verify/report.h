/* Declares the reports that diff and verify write for others: JUnit XML, and HTML that needs no other file. */
#ifndef CLI_VERIFY_REPORT_H
#define CLI_VERIFY_REPORT_H

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"

/** One check of a JUnit report. */
typedef struct junit_case {
  const char *name, *failure; /* failure NULL: passed */
  int skipped;                /* not passed either: nothing was run */
} junit_case;
/** Take an older report away: without a new one, none is there. path may be NULL. */
void report_fresh(const char *path);
int report_junit(const char *path, const char *suite, const junit_case *cases, size_t n);
/** The block of an example: its elements along the row, and what both make of them. n = 0: no input. */
enum { REPORT_BLOCK = 64 };
typedef struct report_block {
  size_t n;
  float x[REPORT_BLOCK];
  uint32_t code_a[REPORT_BLOCK], code_b[REPORT_BLOCK];
  double scale_a, scale_b; /* what multiplies the value of a code: scale and tensor scale */
} report_block;
/** The whole of a difference as one HTML file: no script, no network. blocks: of the first, the worst and the smallest example. */
int report_html(const char *path, const char *a, const char *b, const mx_difference *d, const mx_spec *spec, const char *verdict,
                const mx_tensor *shape, const report_block blocks[3]);

#endif
