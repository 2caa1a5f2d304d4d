/* Writes and reads names of instructions by the patterns of MX_FORM. */
#include "mma/models/table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* A type as AMD's instruction names spell it. */
static const char *amd_name(int type) {
  switch (type) {
#define MX_AMD_NAME(id, name)                                                                                                                  \
  case MMA_T_##id:                                                                                                                             \
    return name;
#include "formats/instructions.def"
  default:
    return mxi_mma_type(type)->name;
  }
}

static int has_field(const char *pattern, const char *lower, const char *upper) { return strstr(pattern, lower) || strstr(pattern, upper); }

/* What a field stands for, as text. */
static void field_text(char text[32], const char *field, size_t length, const mma_instruction_row *row, const mma_choice *choice) {
  const struct {
    const char *name;
    int number;
  } numbers[] = {{"m", choice->m}, {"n", choice->n}, {"k", row->k}, {"block", row->block}, {"blocks", row->blocks}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (strlen(numbers[i].name) == length && !memcmp(numbers[i].name, field, length)) {
      snprintf(text, 32, "%d", numbers[i].number);
      return;
    }
  const int types[] = {row->d, choice->a, choice->b, row->c};
  const char *letters = "dabc";
  const char *at = strchr(letters, tolower((unsigned char)*field));
  if (*field == 's') {
    const char *name = mx_scale_format(row->scale)->name;
    snprintf(text, 32, "%s%s", *name == 'u' ? "" : "u", name);
  } else {
    int type = types[at - letters];
    snprintf(text, 32, "%s", isupper((unsigned char)*field) ? amd_name(type) : mxi_mma_type(type)->name);
  }
}

int mxi_mma_name_write(char *name, size_t size, const mma_instruction_row *row, const mma_choice *choice) {
  size_t used = 0;
  for (const char *p = mxi_mma_form_rows[row->form].pattern; *p;) {
    char text[32] = {*p, 0};
    if (*p == '{') {
      const char *end = strchr(p, '}');
      field_text(text, p + 1, (size_t)(end - p - 1), row, choice);
      p = end;
    }
    p++;
    size_t n = strlen(text);
    if (used + n >= size) return 0;
    memcpy(name + used, text, n);
    used += n;
  }
  if (used >= size) return 0;
  name[used] = 0;
  return 1;
}

/* Whether a pattern names b; without it both operands have the same type. */
static int has_b(const mma_instruction_row *row) { return has_field(mxi_mma_form_rows[row->form].pattern, "{b}", "{B}"); }

size_t mxi_mma_name_choices(const mma_instruction_row *row) {
  const size_t a = (size_t)__builtin_popcountll(row->a), b = (size_t)__builtin_popcountll(row->b);
  return has_b(row) ? a * b : (size_t)__builtin_popcountll(row->a & row->b);
}

int mxi_mma_name_choice(mma_choice *choice, const mma_instruction_row *row, size_t index) {
  const int free_b = has_b(row);
  for (int a = 0; a < MMA_T_COUNT; a++)
    for (int b = 0; b < MMA_T_COUNT; b++) {
      if (!(row->a >> a & 1) || !(row->b >> b & 1) || (!free_b && a != b)) continue;
      if (index-- == 0) {
        *choice = (mma_choice){a, b, row->m, row->n};
        return 1;
      }
    }
  return 0;
}

/* The number read from the name if the form leaves it open and allows it, otherwise the row's own. */
static int open_number(int read, int own, int step, int max) { return step && read > 0 && read <= max && read % step == 0 ? read : own; }

int mxi_mma_name_match(mma_choice *choice, const mma_instruction_row *row, const char *name) {
  const mma_form_row *form = &mxi_mma_form_rows[row->form];
  const char *shape = strstr(name, "_m");
  int m = 0, n = 0;
  if (shape) sscanf(shape, "_m%4dn%4d", &m, &n);
  for (size_t i = 0; mxi_mma_name_choice(choice, row, i); i++) {
    char text[96];
    choice->m = open_number(m, row->m, form->m_step, form->m_max);
    choice->n = open_number(n, row->n, form->n_step, form->n_max);
    if (mxi_mma_name_write(text, sizeof text, row, choice) && !strcmp(text, name)) return 1;
  }
  return 0;
}
