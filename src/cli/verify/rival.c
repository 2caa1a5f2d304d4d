/* Says what else would explain the bytes that identify was given, and looks for a suite that tells. */
#include "cli/verify/rival.h"

#include <stdio.h>
#include <string.h>

/* A kernel that explains the bytes: a spec with faults. */
typedef struct kernel {
  mx_spec spec;
  const mx_fault *faults;
  size_t n;
} kernel;

/* The tensor of a suite: rows enough for regions of rows. */
enum { ROWS = 128, COLS = 512 };
static const int suites[] = {MX_SUITE_RANDOM, MX_SUITE_BOUNDARY, MX_SUITE_TIES, MX_SUITE_SPECIAL};

/* Not MX_OK where the kernel refuses the data or memory ran out. */
static mx_status run(mx_tensor *t, const float *x, const mx_cases *c, const kernel *k) {
  *t = (mx_tensor){0};
  const mx_status s = mx_tensor_alloc(t, c->rows, c->cols, &k->spec);
  if (s) return s;
  if (!k->n) return mx_quantize(t, x, c->rows, c->cols, c->ld, &k->spec, NULL, NULL);
  return mx_quantize_faulty(t, x, c->rows, c->cols, c->ld, &k->spec, k->faults, k->n, NULL);
}

static mx_status differ(int *told, const mx_cases *c, const kernel *a, const kernel *b) {
  mx_status s = MX_OK;
  *told = 0;
  for (size_t i = 0; i < c->n && !*told && !s; i++) {
    mx_tensor one, other;
    const float *x = c->x + i * c->rows * c->ld;
    const mx_status ran = run(&one, x, c, a), ran_other = run(&other, x, c, b);
    if (ran == MX_ERR_NOMEM || ran_other == MX_ERR_NOMEM) s = MX_ERR_NOMEM;
    *told = !ran && !ran_other && one.code_stride == other.code_stride && one.scale_cols == other.scale_cols &&
            one.scale_rows == other.scale_rows &&
            (memcmp(one.codes, other.codes, one.rows * one.code_stride) ||
             memcmp(one.scales, other.scales, one.scale_rows * one.scale_cols * one.scale_bytes));
    mx_tensor_free(&one);
    mx_tensor_free(&other);
  }
  return s;
}

static mx_status find_suite(rival *out, const char *preset, const kernel *a, const kernel *b) {
  mx_status status = MX_OK;
  for (size_t s = 0; s < sizeof suites / sizeof *suites && !*out->gen && !status; s++) {
    int told;
    const int fixed = suites[s] == MX_SUITE_SPECIAL;
    mx_cases c;
    char shape[32] = "";
    const mx_status made = mx_generate(&c, suites[s], &a->spec, fixed ? 0 : ROWS, fixed ? 0 : COLS, 1, NULL);
    if (made == MX_ERR_NOMEM) status = made;
    if (made) continue;
    if (!fixed) snprintf(shape, sizeof shape, " --shape %dx%d", ROWS, COLS);
    status = differ(&told, &c, a, b);
    if (told)
      snprintf(out->gen, sizeof out->gen, "mxgold gen %s --preset %s%s -o %s.safetensors", mx_suite_name(suites[s]), preset, shape,
               mx_suite_name(suites[s]));
    mx_cases_free(&c);
  }
  return status;
}

mx_status rival_of(rival *out, const mx_identity *id) {
  const mx_bug *b = &id->bug;
  *out = (rival){.preset = NULL};
  if (id->grade != MX_GRADE_FITS || !b->n_faults) return MX_OK;
  kernel answer = {b->spec, b->fault, b->n_faults}, other = {.faults = b->rival, .n = b->n_rival};
  if (id->exact) { /* the answer is a spec, and the faults are the other explanation */
    other = answer;
    answer = (kernel){.spec = id->spec};
    out->preset = b->preset;
  } else if (b->n_rival && !mx_preset_find(&other.spec, b->rival_preset, NULL)) {
    other.spec.block_rows = b->spec.block_rows;
    other.spec.block_cols = b->spec.block_cols;
    out->preset = b->rival_preset;
  }
  out->spec = other.spec;
  for (size_t i = 0; out->preset && i < other.n; i++) {
    const size_t at = strlen(out->fault), w = strlen(out->words);
    snprintf(out->fault + at, sizeof out->fault - at, "%s", i ? "; " : "");
    mx_fault_print(out->fault + strlen(out->fault), sizeof out->fault - strlen(out->fault), &other.faults[i]);
    snprintf(out->words + w, sizeof out->words - w, "%s", i ? "; and it " : "");
    mx_fault_words(out->words + strlen(out->words), sizeof out->words - strlen(out->words), &other.faults[i]);
  }
  return out->preset ? find_suite(out, b->preset, &answer, &other) : MX_OK;
}
