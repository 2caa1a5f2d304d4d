/* Gives the names that a known bug can have. */
#include "verify/bugs/names.h"

#include "mxgold/identify.h"

const char *const mxi_bug_names[BUG_COUNT] = {
#define X(id, name) name,
    MXI_BUGS(X)
#undef X
};

/* Names of rows of formats/faults.def: mx_fault_op begins with none. */
static const char *fault_name(size_t i) { return i + 1 < MX_FAULT_COUNT ? mx_fault_row_at((int)i + 1)->name : NULL; }
static const char *own_name(size_t i) { return i < BUG_COUNT ? mxi_bug_names[i] : NULL; }
/* Of rules that are right and read something else. */
static const char *reading_name(size_t i) {
  static const char *const names[] = {MX_BUG_TRANSPOSED, MX_BUG_ROW_TENSORS, MX_BUG_RACE};
  return i < sizeof names / sizeof *names ? names[i] : NULL;
}

const char *mx_bug_name_at(size_t i) {
  static const char *(*const tables[])(size_t) = {own_name, mxi_twist_name, mxi_input_name, fault_name, reading_name};
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
    size_t n = 0;
    if (tables[t](i)) return tables[t](i);
    while (tables[t](n)) n++;
    i -= n;
  }
  return NULL;
}
