/* Declares the rows of formats/accumulation.def and formats/instructions.def as arrays, and names of instructions. */
#ifndef MX_MMA_MODELS_TABLE_H
#define MX_MMA_MODELS_TABLE_H

#include "mxgold/mma.h"

/* The types that rows can name: element formats, then operand types. */
enum {
#define MX_FORMAT(id, ...) MMA_T_##id,
#include "formats/elements.def"
#include "formats/operands.def"
#undef MX_FORMAT
  MMA_T_COUNT
};

typedef struct mma_accum_row {
  const char *name;
  int a, b, c, d; /* MMA_T_* */
  const char *held, *source;
  mx_accum accum;
} mma_accum_row;

typedef struct mma_rules_row {
  const char *name, *doc, *keys, *keys_f16; /* keys_f16: if D is f16 */
} mma_rules_row;

typedef struct mma_form_row {
  const char *pattern;
  int m_step, m_max, n_step, n_max;
} mma_form_row;

typedef struct mma_instruction_row {
  uint32_t archs; /* bit i: mxi_mma_arch_names[i] */
  int form;
  int m, n, k, L;
  int d;
  uint64_t a, b; /* sets of MMA_T_* */
  int c;
  int scale; /* MX_SCALE_*, or -1 */
  int block, blocks;
  int accum; /* an index into mxi_mma_accum_rows */
  const char *held;
} mma_instruction_row;

extern const mma_accum_row mxi_mma_accum_rows[];
extern const size_t mxi_mma_accum_count;
extern const mma_rules_row mxi_mma_rules_rows[];
extern const size_t mxi_mma_rules_count;
extern const mma_form_row mxi_mma_form_rows[];
extern const mma_instruction_row mxi_mma_instruction_rows[];
extern const size_t mxi_mma_instruction_count;
extern const char *const mxi_mma_arch_names[];
extern const size_t mxi_mma_arch_count;

/* The format of an MMA_T_*; and the index of a name, or -1 if there is none. */
const mx_format *mxi_mma_type(int type);
int mxi_mma_type_find(const char *name);

const mma_accum_row *mxi_mma_accum_find(const char *name);

/* Apply "KEY=VALUE,..." to a model, and check that every parameter is in its range. */
mx_status mxi_mma_keys_apply(mx_mma_model *m, const char *text, mx_error *err);
mx_status mxi_mma_keys_check(const mx_mma_model *m, mx_error *err);

/* One instruction of a family: how a row's open choices are made. */
typedef struct mma_choice {
  int a, b, m, n;
} mma_choice;

/* Writes the name without its architecture. Returns 0 if it does not fit. */
int mxi_mma_name_write(char *name, size_t size, const mma_instruction_row *row, const mma_choice *choice);
/* Returns whether a name is one of the row's; *choice then says which. */
int mxi_mma_name_match(mma_choice *choice, const mma_instruction_row *row, const char *name);
/* Finds the index-th combination of types that the names of a row distinguish, in the order of the tables; 0 past the end. */
int mxi_mma_name_choice(mma_choice *choice, const mma_instruction_row *row, size_t index);
/* How many such combinations there are. */
size_t mxi_mma_name_choices(const mma_instruction_row *row);

#endif
