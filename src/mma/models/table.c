/* Turns the tables of formats/ into arrays. */
#include "mma/models/table.h"

#include <string.h>

const mma_accum_row mxi_mma_accum_rows[] = {
#define MX_ACCUM(name, a, b, c, d, held, source, ...) {#name, MMA_T_##a, MMA_T_##b, MMA_T_##c, MMA_T_##d, held, source, {__VA_ARGS__}},
#include "formats/accumulation.def"
#undef MX_ACCUM
};
const size_t mxi_mma_accum_count = sizeof mxi_mma_accum_rows / sizeof *mxi_mma_accum_rows;

enum {
#define MX_ACCUM(name, ...) ROW_##name,
#include "formats/accumulation.def"
#undef MX_ACCUM
};

const mma_rules_row mxi_mma_rules_rows[] = {
#define MX_ACCUM(...)
#define MX_ACCUM_RULES(name, doc, keys, keys_f16) {#name, doc, keys, keys_f16},
#include "formats/accumulation.def"
#undef MX_ACCUM
#undef MX_ACCUM_RULES
};
const size_t mxi_mma_rules_count = sizeof mxi_mma_rules_rows / sizeof *mxi_mma_rules_rows;

enum {
#define MX_ARCH(id, name, device) ARCH_##id,
#include "formats/instructions.def"
};
enum {
#define MX_FORM(id, ...) FORM_##id,
#include "formats/instructions.def"
};

const char *const mxi_mma_arch_names[] = {
#define MX_ARCH(id, name, device) name,
#include "formats/instructions.def"
};
const size_t mxi_mma_arch_count = sizeof mxi_mma_arch_names / sizeof *mxi_mma_arch_names;

const mma_form_row mxi_mma_form_rows[] = {
#define MX_FORM(id, pattern, m_step, m_max, n_step, n_max) {pattern, m_step, m_max, n_step, n_max},
#include "formats/instructions.def"
};

#define AR(id) (UINT32_C(1) << ARCH_##id)
#define TY(id) (UINT64_C(1) << MMA_T_##id)
#define MX_SCALE_NONE (-1)
const mma_instruction_row mxi_mma_instruction_rows[] = {
#define MX_INSTRUCTION(archs, form, m, n, k, L, d, a, b, c, scale, block, blocks, accum, held)                                                 \
  {archs, FORM_##form, m, n, k, L, MMA_T_##d, a, b, MMA_T_##c, MX_SCALE_##scale, block, blocks, ROW_##accum, held},
#include "formats/instructions.def"
};
const size_t mxi_mma_instruction_count = sizeof mxi_mma_instruction_rows / sizeof *mxi_mma_instruction_rows;

const mx_format *mxi_mma_type(int type) { return type < MX_ELEM_COUNT ? mx_elem_format(type) : mx_operand_format(type - MX_ELEM_COUNT); }

int mxi_mma_type_find(const char *name) {
  for (int t = 0; t < MMA_T_COUNT; t++)
    if (!strcmp(mxi_mma_type(t)->name, name) && t != MX_ELEM_BFLOAT16) return t; /* the operand of that name has codes */
  return -1;
}

const mma_accum_row *mxi_mma_accum_find(const char *name) {
  for (size_t i = 0; i < mxi_mma_accum_count; i++)
    if (!strcmp(mxi_mma_accum_rows[i].name, name)) return &mxi_mma_accum_rows[i];
  return NULL;
}
