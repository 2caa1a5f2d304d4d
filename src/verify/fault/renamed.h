/* Declares codes that are written as others: with their bits in another order, or by a table. */
#ifndef MX_VERIFY_FAULT_RENAMED_H
#define MX_VERIFY_FAULT_RENAMED_H

#include "verify/fault/run.h"

enum { MXI_TABLE = 16 }; /* codes of a table: those of 4 bits */

/** Reads the digits of a fault of the code. NULL, or what is wrong with the text. */
const char *mxi_renamed_read(mx_fault *f, const char *text);
/** Can codes of the format be renamed so? MX_ERR_ARG, MX_ERR_CONFLICT: not, and why says why. */
mx_status mxi_renamed_check(const char **why, const mx_fault *f, const mx_format *e);
/** The code that the fault writes for a code. */
uint32_t mxi_renamed(const mx_fault *f, uint32_t code);

#endif
