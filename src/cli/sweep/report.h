/* The report as a page. */
#ifndef CLI_SWEEP_REPORT_H
#define CLI_SWEEP_REPORT_H

#include "cli/base/out.h"
#include "mxgold/report.h"

/** Write the verdict, the differences with their intervals, the loss curves and the table to one .html file that needs nothing else. Returns CLI_FINE or
 *  CLI_TROUBLE, said. */
int report_page(const char *path, const mx_report *r, const out *table, const char *verdict);

#endif
