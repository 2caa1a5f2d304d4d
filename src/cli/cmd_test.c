/* Runs mxgold test --plugin KERNEL.so: a kernel against a preset on every suite. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/out.h"
#include "cli/verify/misdeed.h"
#include "cli/verify/plugin.h"
#include "cli/verify/report.h"
#include "cli/spec/opts.h"
#include "cli/verify/verdict.h"

struct args {
  const char *plugin, *suite, *junit;
  spec_opts spec;
  cli_f32 seconds;
  cli_u64 memory, file, processor;
  int json;
};

static const char *suite_names(size_t index) { return mx_suite_name((int)index); }

static const cli_option options[] = {
    {"plugin", 0, CLI_STRING, offsetof(struct args, plugin), "KERNEL.so", "a shared object with mxgold_quantize (include/mxgold/plugin.h)",
     NULL},
    SPEC_OPTIONS(args, spec),
    {"suite", 0, CLI_STRING, offsetof(struct args, suite), "NAME", "test only this suite; all by default", suite_names},
    {"seconds", 0, CLI_F32, offsetof(struct args, seconds), "S", "time limit of one call; 10 by default", NULL},
    {"memory", 0, CLI_U64, offsetof(struct args, memory), "MIB", "limit on the kernel's data, 16384 by default; 0: none", NULL},
    {"file-size", 0, CLI_U64, offsetof(struct args, file), "MIB", "limit on each file that it writes, 1024 by default; 0: none", NULL},
    {"processor-time", 0, CLI_U64, offsetof(struct args, processor), "S",
     "limit on the processor time of each of its processes, 3600 by default; 0: none", NULL},
    {"junit", 0, CLI_STRING, offsetof(struct args, junit), "FILE", "JUnit XML for CI", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

typedef struct verdict {
  size_t tensors, wrong, declined, crashed, late;
  uint64_t codes, scales, codes_differ, scales_differ;
  int trouble;
  char load[300]; /* why it cannot be loaded */
  char crash[160], said[2048], pattern[MX_DIFF_WORDS];
} verdict;

/* What the kernel printed on standard error, each line once; its last line; and the last line of a call that it declined, which says why. */
typedef struct heard {
  char text[16384], last[512], why[512];
  size_t n;
} heard;

static void pass_on(heard *h, char *said, int declined) {
  char *rest = NULL;
  *h->last = 0;
  for (char *line = strtok_r(said, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    char whole[4100];
    const size_t n = (size_t)snprintf(whole, sizeof whole, "\n%s\n", line);
    snprintf(h->last, sizeof h->last, "%s", line);
    if (declined) snprintf(h->why, sizeof h->why, "%s", line);
    if (declined || strstr(h->text, whole) || h->n + n >= sizeof h->text) continue;
    const size_t at = h->n ? h->n - 1 : 0; /* one line feed between two lines */
    memcpy(h->text + at, whole, n + 1);
    h->n = at + n;
    fprintf(stderr, "%s\n", line);
  }
}

/* Findings that need no comparison: a crash, a hang, a write out of bounds. */
static void misdeed(verdict *v, const plugin_result *got, const char *last, size_t rows, size_t cols) {
  if ((got->end == PLUGIN_SIGNAL || got->end == PLUGIN_FAILED) && !*v->crash) misdeed_crash(v->crash, sizeof v->crash, got, last);
  if (!*v->said) misdeed_words(v->said, sizeof v->said, got, last, rows, cols);
}

static int unwritten(const mx_tensor *t) {
  const size_t n = t->scale_rows * t->scale_cols * t->scale_bytes;
  for (size_t i = 0; i < n; i++)
    if (t->scales[i] != PLUGIN_POISON) return 0;
  return n > 1;
}

/* What the kernel does instead, from the first tensor that is wrong and large enough to tell. */
static void explain(verdict *v, const mx_tensor *t, const mx_spec *spec, const float *x, size_t ld) {
  if (!*v->said && unwritten(t))
    snprintf(v->said, sizeof v->said, "Your kernel writes no scales: each still has the 0x%X that was there before.", PLUGIN_POISON);
  if (*v->said || mx_elem_format(spec->elem)->bits > 8 || t->rows * t->cols < 1024) return;
  uint32_t *wide = malloc((t->rows * t->cols + 1) * sizeof *wide);
  uint8_t *codes = malloc(t->rows * t->cols + 1);
  if (wide && codes) {
    mx_unpack_codes(wide, t, spec);
    for (size_t i = 0; i < t->rows * t->cols; i++) codes[i] = (uint8_t)wide[i];
    const mx_sample s = {.rows = t->rows,
                         .cols = t->cols,
                         .ld = ld,
                         .x = x,
                         .codes = codes,
                         .scales = t->scales,
                         .scale_rows = t->scale_rows,
                         .scale_cols = t->scale_cols,
                         .scale_bytes = t->scale_bytes,
                         .has_tensor_scale = t->has_tensor_scale,
                         .tensor_scale = t->tensor_scale};
    mx_identity id;
    if (!mx_identify(&id, &s, 1, &(mx_identify_options){.no_undecided = 1}, NULL) && verdict_sentence(v->said, sizeof v->said, &id))
      *v->said = 0;
  }
  free(wide);
  free(codes);
}

static plugin_limits limits_of(const struct args *a) {
  return (plugin_limits){.seconds = a->seconds.given ? a->seconds.v : PLUGIN_SECONDS,
                         .memory = (a->memory.given ? a->memory.v : PLUGIN_MEMORY) << 20,
                         .file = (a->file.given ? a->file.v : PLUGIN_FILE) << 20,
                         .processor_seconds = a->processor.given ? a->processor.v : PLUGIN_PROCESSOR};
}

/* Codes between the last column and the end of its block; under a NaN scale no code counts. */
static int padding_differs(const mx_tensor *want, const mx_tensor *got, const mx_spec *spec) {
  const mx_format *scale = mx_scale_format(spec->scale);
  if (mx_elem_format(spec->elem)->bits > 8) return 0;
  for (size_t r = 0; r < want->rows; r++) {
    const size_t line = want->scale_rows == want->rows ? r : r * want->scale_rows / want->rows;
    if (want->scale_cols && isnan(mx_decode(scale, mx_scale_code_at(want, line * want->scale_cols + want->scale_cols - 1)))) continue;
    for (size_t c = want->cols; c < want->cols_padded; c++)
      if (mx_code_at(want, spec, r, c) != mx_code_at(got, spec, r, c)) return 1;
  }
  return 0;
}

static void one_tensor(verdict *v, const struct args *a, const mx_spec *spec, const mx_cases *c, size_t i, mx_difference *d, heard *h) {
  const float *x = c->x + i * c->rows * c->ld;
  mx_tensor want;
  const plugin_limits limits = limits_of(a);
  const char *label = spec_preset_label(&a->spec, spec);
  const mx_diff_options words = {.name_a = label ? label : "the spec", .name_b = "your kernel"};
  if (mx_tensor_alloc(&want, c->rows, c->cols, spec)) return;
  if (!mx_quantize(&want, x, c->rows, c->cols, c->ld, spec, NULL, NULL)) {
    plugin_result got = plugin_run(a->plugin, x, c->rows, c->cols, c->ld, spec, &limits);
    pass_on(h, got.said, got.end == PLUGIN_DECLINED);
    v->tensors++;
    v->declined += got.end == PLUGIN_DECLINED;
    v->crashed += got.end == PLUGIN_SIGNAL || got.end == PLUGIN_FAILED || got.end == PLUGIN_EXIT || got.end == PLUGIN_OUTSIDE;
    misdeed(v, &got, h->last, c->rows, c->cols);
    v->late += got.end == PLUGIN_LATE;
    if (got.end == PLUGIN_LOAD) snprintf(v->load, sizeof v->load, "%s", got.why);
    v->trouble |= got.end == PLUGIN_LOAD || got.end == PLUGIN_TROUBLE;
    if (got.end == PLUGIN_OK && !mx_diff(d, &want, &got.tensor, spec, c->ld == c->cols ? x : NULL, c->ld, NULL, NULL, &words, NULL)) {
      v->codes += d->n_codes;
      v->scales += d->n_scales;
      v->codes_differ += d->codes;
      v->scales_differ += d->scales;
      const int padding = d->equal && padding_differs(&want, &got.tensor, spec);
      v->wrong += !d->equal || padding;
      if (padding && !*v->said)
        snprintf(v->said, sizeof v->said,
                 "Your kernel writes codes into the padding behind the last column of %zu x %zu; expected those of +0.", c->rows, c->cols);
      if (!d->equal && d->n_patterns && !*v->pattern) snprintf(v->pattern, sizeof v->pattern, "%s", d->patterns[0]);
      if (!d->equal) explain(v, &got.tensor, spec, x, c->ld);
    }
    if (got.end == PLUGIN_OK) mx_tensor_free(&got.tensor);
  }
  mx_tensor_free(&want);
}

static void row(out *o, const char *name, const verdict *v) {
  out_row(o);
  out_text(o, "suite", name);
  out_u64(o, "tensors", v->tensors);
  out_u64(o, "wrong", v->wrong);
  out_u64(o, "codes", v->codes);
  out_u64(o, "codes differ", v->codes_differ);
  out_u64(o, "scales differ", v->scales_differ);
  out_u64(o, "crashed", v->crashed);
  out_u64(o, "late", v->late);
  out_u64(o, "declined", v->declined);
}

/* After the verdict, names the tensors that the kernel declined although it took others, and the suites of which it took none. */
static void say_declined(char *said, size_t size, const verdict *v, size_t tensors, size_t declined) {
  size_t n = strlen(said), suites = 0;
  if (!declined || declined == tensors || n >= size) return;
  n += (size_t)snprintf(said + n, size - n, "%sNot tested: your kernel declined %zu of %zu tensors", n ? " " : "", declined, tensors);
  for (int s = 0; s < MX_SUITE_COUNT && n < size; s++)
    if (v[s].tensors && v[s].tensors == v[s].declined)
      n += (size_t)snprintf(said + n, size - n, "%s%s", suites++ ? ", " : ", all of ", mx_suite_name(s));
  if (n < size) snprintf(said + n, size - n, ".");
}

static int bad(const verdict *v) { return v->wrong || v->crashed || v->late; }

enum { TEST_SCHEMA = 2 };

static int tested(void *args) {
  const struct args *a = args;
  mx_spec spec;
  report_fresh(a->junit);
  if (!a->plugin) return cli_error("test: expected --plugin KERNEL.so");
  if (a->seconds.given && !(a->seconds.v > 0)) return cli_error("test: --seconds: expected more than 0");
  if (spec_from_options(&spec, &a->spec)) return CLI_TROUBLE;
  mx_difference *d = malloc(sizeof *d);
  verdict *v = calloc(MX_SUITE_COUNT, sizeof *v);
  heard *h = calloc(1, sizeof *h);
  junit_case cases[MX_SUITE_COUNT];
  char failure[MX_SUITE_COUNT][400], said[2048] = "", pattern[MX_DIFF_WORDS] = "";
  size_t n = 0, tensors = 0, declined = 0;
  int rc = d && v && h ? CLI_FINE : cli_error("out of memory"), differs = 0;
  out *o = out_new();
  out_identifiers(o, NULL);
  if (a->json) out_u64(o, "schema_version", TEST_SCHEMA);
  out_text(o, "plugin", a->plugin);
  out_table(o, "suites");
  for (int s = 0; s < MX_SUITE_COUNT && !rc; s++) {
    mx_cases c;
    if (a->suite && s != mx_suite_find(a->suite)) continue;
    if (mx_generate(&c, s, &spec, s == MX_SUITE_BOUNDARY ? 96 : 0, s == MX_SUITE_BOUNDARY ? 256 : 0, a->spec.seed.v, NULL)) continue;
    for (size_t i = 0; i < c.n && !v[s].trouble && v[s].late < 3; i++) one_tensor(&v[s], a, &spec, &c, i, d, h);
    mx_cases_free(&c);
    if (v[s].trouble) rc = misdeed_load(a->plugin, v[s].load);
    row(o, mx_suite_name(s), &v[s]);
    snprintf(failure[n], sizeof failure[n], "%zu of %zu tensors wrong, %zu crashed%s%s, %zu late", v[s].wrong, v[s].tensors, v[s].crashed,
             *v[s].crash ? ": " : "", v[s].crash, v[s].late);
    cases[n] = (junit_case){mx_suite_name(s), bad(&v[s]) ? failure[n] : NULL, v[s].tensors == v[s].declined};
    tensors += v[s].tensors;
    declined += v[s].declined;
    n++;
    differs |= bad(&v[s]);
    if (!*said) memcpy(said, v[s].said, sizeof said);
    if (!*pattern) memcpy(pattern, v[s].pattern, sizeof pattern);
  }
  out_end(o);
  if (*pattern) out_text(o, "pattern", pattern);
  if (v) say_declined(said, sizeof said, v, tensors, declined);
  if (*said) out_text(o, "verdict", said);
  if (!rc)
    rc = out_print(o, a->json);
  else
    out_free(o);
  if (!rc && a->junit) rc = report_junit(a->junit, a->plugin, cases, n);
  const char *why = h ? h->why : "";
  if (!rc && tensors == declined)
    rc = cli_error("%s: nothing was tested: the kernel declined all %zu tensors%s%s", a->plugin, tensors, *why ? ": " : "", why);
  else if (*why)
    fprintf(stderr, "%s\n", why);
  free(h);
  free(d);
  free(v);
  return rc ? rc : differs ? CLI_DIFFERS : CLI_FINE;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  return a->plugin ? plugin_supervise(a->plugin, tested, args) : tested(args);
}

const cli_command cmd_test = {
    options, sizeof(struct args), run,
    "Each call runs in a child process with a time limit and with guard pages after its buffers: a crash, a write out of "
    "bounds or a hang is a finding. "
    "examples/kernel_plugin.c is a kernel to start from.\nExit status 0 if every byte is right, 1 if not, 2 if the "
    "kernel declined every tensor, so that nothing was tested. If it declined some tensors, the verdict says in which suites."};
