/* Writes codes as others. */
#include "verify/fault/renamed.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";
enum { LEAST_BITS = 2, MOST_BITS = 8 }; /* of an element */

static int is_list(const mx_fault *f) {
  const int table = f->op == MX_FAULT_CODE_TABLE;
  const double n = f->number;
  int ok = table ? n == MXI_TABLE : n >= LEAST_BITS && n <= MOST_BITS && n == (int)n;
  for (int k = 0; ok && k < (int)n; k++) ok = f->list[k] < n;
  return ok;
}

const char *mxi_renamed_read(mx_fault *f, const char *text) {
  size_t n = 0;
  memset(f->list, 0, sizeof f->list);
  for (const char *at; n < MX_FAULT_LIST && text[n] && (at = strchr(digits, text[n])); n++) f->list[n] = (uint16_t)(at - digits);
  f->number = (double)n;
  if (!text[n] && is_list(f)) return NULL;
  return f->op == MX_FAULT_CODE_TABLE ? "expected 16 digits of 0 to f, the codes that are written for 0 to f"
                                      : "expected for each bit from the lowest on the bit of the right code, as 1203";
}

mx_status mxi_renamed_check(const char **why, const mx_fault *f, const mx_format *e) {
  const int table = f->op == MX_FAULT_CODE_TABLE, fits = table ? e->bits == 4 : e->bits == f->number;
  *why = !is_list(f) ? "its list holds no digits" : table ? "for codes of 4 bits alone" : "expected a digit for each bit of a code";
  return !is_list(f) ? MX_ERR_ARG : fits ? MX_OK : MX_ERR_CONFLICT;
}

uint32_t mxi_renamed(const mx_fault *f, uint32_t code) {
  uint32_t out = 0;
  if (f->op == MX_FAULT_CODE_TABLE) return f->list[code % MXI_TABLE];
  for (int k = 0; k < f->number; k++) out |= (code >> f->list[k] & 1) << k;
  return out;
}
