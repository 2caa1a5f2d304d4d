/* Lists models and looks them up by name. */
#include "mma/models/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/nearest.h"

/* --- making models from rows --- */

static void from_accum(mx_mma_model *out, const mma_accum_row *row) {
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "%s", row->name);
  out->accum_name = row->name;
  out->held = row->held;
  out->source = row->source;
  out->accum = row->accum;
  out->a = mxi_mma_type(row->a);
  out->b = mxi_mma_type(row->b);
  out->c = mxi_mma_type(row->c);
  out->d = mxi_mma_type(row->d);
  /* Without an instruction a group counts as one, unless the order of k needs two groups. */
  out->k = row->accum.order == MX_ACC_ORDER_PAIRS ? 2 * row->accum.L : row->accum.L;
}

static void from_instruction(mx_mma_model *out, size_t arch, const mma_instruction_row *row, const mma_choice *choice) {
  const mma_accum_row *accum = &mxi_mma_accum_rows[row->accum];
  char name[96] = "";
  mxi_mma_name_write(name, sizeof name, row, choice);
  from_accum(out, accum);
  snprintf(out->name, sizeof out->name, "%s/%.80s", mxi_mma_arch_names[arch], name);
  if (*row->held) out->held = row->held;
  out->accum.L = row->L;
  out->a = mxi_mma_type(choice->a);
  out->b = mxi_mma_type(choice->b);
  out->c = mxi_mma_type(row->c);
  out->d = mxi_mma_type(row->d);
  out->scale = row->scale < 0 ? NULL : mx_scale_format(row->scale);
  out->block = row->block;
  out->m = choice->m;
  out->n = choice->n;
  out->k = row->k;
  out->whole_k = 1;
}

/* --- the listing --- */

/* Walks over all instruction names up to the index-th. Returns how many there are up to there. */
static size_t walk(mx_mma_model *out, size_t index) {
  size_t n = 0;
  for (size_t arch = 0; arch < mxi_mma_arch_count; arch++)
    for (size_t r = 0; r < mxi_mma_instruction_count; r++) {
      const mma_instruction_row *row = &mxi_mma_instruction_rows[r];
      mma_choice choice;
      if (!(row->archs >> arch & 1)) continue;
      const size_t here = mxi_mma_name_choices(row);
      if (index - n < here && mxi_mma_name_choice(&choice, row, index - n)) {
        from_instruction(out, arch, row, &choice);
        return index + 1;
      }
      n += here;
    }
  return n;
}

size_t mx_mma_model_count(void) { return mxi_mma_accum_count + walk(NULL, SIZE_MAX); }

mx_status mx_mma_model_at(mx_mma_model *out, size_t index) {
  if (!out || (index >= mxi_mma_accum_count && index >= mx_mma_model_count())) return MX_ERR_ARG; /* counting walks every instruction */
  if (index < mxi_mma_accum_count)
    from_accum(out, &mxi_mma_accum_rows[index]);
  else
    walk(out, index - mxi_mma_accum_count);
  return MX_OK;
}

/* --- names --- */

static int find_instruction(mx_mma_model *out, const char *name) {
  const char *slash = strchr(name, '/');
  for (size_t arch = 0; arch < mxi_mma_arch_count; arch++) {
    size_t length = strlen(mxi_mma_arch_names[arch]);
    if (length != (size_t)(slash - name) || memcmp(name, mxi_mma_arch_names[arch], length)) continue;
    for (size_t r = 0; r < mxi_mma_instruction_count; r++) {
      const mma_instruction_row *row = &mxi_mma_instruction_rows[r];
      mma_choice choice;
      if (!(row->archs >> arch & 1) || !mxi_mma_name_match(&choice, row, slash + 1)) continue;
      from_instruction(out, arch, row, &choice);
      return 1;
    }
  }
  return 0;
}

/* All names of the tables, for mx_nearest(), which keeps pointers to them. */
typedef struct names {
  size_t n;
  char (*text)[sizeof((mx_mma_model *)0)->name];
} names;

static const char *name_at(const void *set, size_t index) {
  const names *all = set;
  return index < all->n ? all->text[index] : NULL;
}

static mx_status no_such_model(const char *name, mx_error *err) {
  mx_mma_model row;
  names all = {mx_mma_model_count(), NULL};
  char near[256] = "";
  all.text = calloc(all.n, sizeof *all.text);
  for (size_t i = 0; all.text && i < all.n; i++) {
    mx_mma_model_at(&row, i);
    memcpy(all.text[i], row.name, sizeof row.name);
  }
  if (all.text) mx_nearest(near, sizeof near, name, name_at, &all);
  free(all.text);
  return mx_fail(err, MX_ERR_KEY, "model '%s' is unknown%s%s", name, *near ? ", nearest: " : "", near);
}

mx_status mx_mma_model_find(mx_mma_model *out, const char *text, mx_error *err) {
  if (!out || !text) return mx_fail(err, MX_ERR_ARG, "model: no name");
  mx_mma_model m;
  const char *colon = strchr(text, ':');
  size_t length = colon ? (size_t)(colon - text) : strlen(text);
  char name[sizeof m.name];
  if (length >= sizeof name)
    return mx_fail(err, MX_ERR_KEY, "model: the name has %zu characters, expected at most %zu", length, sizeof name - 1);
  memcpy(name, text, length);
  name[length] = 0;

  const mma_accum_row *row = mxi_mma_accum_find(name);
  if (row)
    from_accum(&m, row);
  else if (!strchr(name, '/') || !find_instruction(&m, name))
    return no_such_model(name, err);

  if (colon) {
    mx_status status = mxi_mma_keys_apply(&m, colon + 1, err);
    if (status) return status;
    m.held = "nothing: a row with keys of its own";
    snprintf(m.name, sizeof m.name, "%s", text);
  }
  mx_status status = mx_mma_model_check(&m, err);
  if (!status) *out = m;
  return status;
}
