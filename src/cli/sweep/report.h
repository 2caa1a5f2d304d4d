/* Declares the page of a report. */
#ifndef CLI_SWEEP_REPORT_H
#define CLI_SWEEP_REPORT_H

#include "cli/base/out.h"
#include "mxgold/report.h"

/** Write the verdict, the differences with their intervals, the loss curves and the table to one .html file that needs nothing else. Returns CLI_FINE or
 *  CLI_TROUBLE, said. */
int report_page(const char *path, const mx_report *r, const out *table, const char *verdict);

/** A picture of the verdict, the differences and the curves. What path ends in, .png or .svg, says what it is. CLI_FINE or CLI_TROUBLE, said. */
int report_image(const char *path, const mx_report *r, const char *verdict);
/** Could it be written? Says so if not: the name, the folder, gnuplot. */
int report_image_check(const char *path);

#endif
