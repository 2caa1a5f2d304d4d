/* Runs mxgold identify: the spec that a black box follows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/out.h"
#include "cli/verify/beside.h"
#include "cli/verify/confirm.h"
#include "cli/verify/expect.h"
#include "cli/verify/find.h"
#include "cli/verify/kernel.h"
#include "cli/verify/rival.h"
#include "cli/verify/samples.h"
#include "cli/verify/verdict.h"

struct args {
  sample_options in;
  cli_u64 block, threads;
  cli_f32 seconds;
  int json, quick;
  const char *expect, *confirm, *plugin, *preset;
  cli_list allow;
};

static const char *preset_names(size_t index) { return index < mx_preset_count() ? mx_preset_at(index)->name : NULL; }

static const cli_option options[] = {
    {"input", 0, CLI_STRING, offsetof(struct args, in.input), "X", "what the kernel was given: .npy or FILE.safetensors:TENSOR", NULL},
    {"codes", 0, CLI_STRING, offsetof(struct args, in.codes), "C", "its codes, one per byte, or two 4-bit codes per byte", NULL},
    {"scales", 0, CLI_STRING, offsetof(struct args, in.scales), "S", "its scales, as stored", NULL},
    {"tensor-scale", 0, CLI_F32, offsetof(struct args, in.tensor_scale), "V",
     "its tensor scale, in whatever convention; nan and inf are allowed", NULL},
    {"output", 0, CLI_STRING, offsetof(struct args, in.output), "OUT.safetensors",
     "codes, scales, tensor_scale (and input) in one file; SUITE.codes and so on are suites of one kernel", NULL},
    {"dequantized", 0, CLI_STRING, offsetof(struct args, in.dequantized), "Y", "its values, if there is nothing else", NULL},
    {"packed", 0, CLI_FLAG, offsetof(struct args, in.packed), NULL, "codes are two per byte, whatever the shapes say", NULL},
    {"transpose", 0, CLI_FLAG, offsetof(struct args, in.transpose), NULL, "the kernel quantised the transpose of the input", NULL},
    {"block", 0, CLI_U64, offsetof(struct args, block), "N", "columns of a block; found from the shapes by default", NULL},
    {"expect", 0, CLI_STRING, offsetof(struct args, expect), "PRESET",
     "what the kernel should do: tried first, and exit status 0 is for its bytes alone", preset_names},
    {"allow", 0, CLI_LIST, offsetof(struct args, allow), "FAULT",
     "with --expect: a fault that the kernel is known to have, as for quantize --fault; twice for two", NULL},
    {"confirm", 0, CLI_STRING, offsetof(struct args, confirm), "OTHER.safetensors",
     "another launch of the kernel, on another input (tensors as of --output): the answer must give its bytes too", NULL},
    {"plugin", 0, CLI_STRING, offsetof(struct args, plugin), "KERNEL.so",
     "run this kernel (include/mxgold/plugin.h) on inputs that tell, and hold the answer to fresh ones", NULL},
    {"preset", 0, CLI_STRING, offsetof(struct args, preset), "PRESET",
     "with --plugin: the spec that the kernel is asked for; that of --expect by default, else ocp-mxfp4", preset_names},
    {"quick", 0, CLI_FLAG, offsetof(struct args, quick), NULL, "leave out the keys that the data cannot decide", NULL},
    {"seconds", 0, CLI_F32, offsetof(struct args, seconds), "S",
     "search for at most this many seconds of one thread's processor time; 10 by default", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

/* What the kernel should do: a preset, and faults that it may have. */
typedef struct expectation {
  const char *preset;
  mx_spec spec;
  mx_fault faults[MX_FAULTS];
  size_t n_faults;
  int met; /* 1: the kernel gives its bytes */
} expectation;

/* An answer from end to end. */
typedef struct answer {
  mx_identity id;
  reading how;
  held held;
  expectation e;
  const char *plugin;
  size_t declined; /* tensors, of those that the plugin was given */
} answer;

static verdict_more more_of(const answer *w) {
  return (verdict_more){.nibble = reading_nibble(&w->how),
                        .layout = w->how.layout,
                        .turned = w->how.turned,
                        .row_scales = w->how.row_scales,
                        .held = &w->held,
                        .expected = w->e.preset ? &w->e.met : NULL,
                        .plugin = w->plugin};
}

static int print_text(const answer *w) {
  const mx_identity *id = &w->id;
  const verdict_more more = more_of(w);
  char text[4096], sentence[4096], *lines[VERDICT_SUITES], none[2048];
  mx_spec_print(text, sizeof text, &id->spec, 0);
  rival other;
  if (verdict_with(sentence, sizeof sentence, id, &more) || rival_of(&other, id)) return cli_error("out of memory");
  const size_t n_lines = verdict_gen(lines, none, sizeof none, id);
  if (n_lines == SIZE_MAX) return cli_error("out of memory");
  out *o = out_new();
  const int reproduces = verdict_reproduces(id) && !verdict_is_withdrawn(&more) && !w->how.row_scales;
  if (w->plugin) out_text(o, "plugin", w->plugin);
  out_answer(o, "exact", id->exact);
  out_text(o, "grade", verdict_grade(id));
  if (w->e.preset) out_answer(o, "expected", w->e.met);
  out_text(o, "preset", id->preset ? id->preset : "none");
  out_text(o, "spec", reproduces ? text : "none");
  out_u64(o, "codes that differ", id->codes_differ + id->values_differ);
  if (id->zero_signs_differ) out_u64(o, "of them signs of zero", id->zero_signs_differ);
  out_u64(o, "scales that differ", id->scales_differ);
  if (id->nan_codes_differ) out_u64(o, "codes under a NaN scale that differ", id->nan_codes_differ);
  if (id->tensor_scales_differ) out_u64(o, "tensor scales that differ", id->tensor_scales_differ);
  if (more.nibble) out_text(o, "nibble", more.nibble);
  if (more.layout) out_text(o, "scale layout", more.layout);
  if (more.turned) out_text(o, "input", "transposed");
  if (w->how.row_scales) out_text(o, "tensor scales", "one for each row");
  if (w->held.on) out_text(o, w->held.holds ? "holds on" : "does not hold on", w->held.on);
  char list[2048] = "";
  size_t n = 0;
  for (size_t i = 0; mx_key_name(i); i++)
    if (id->undecided >> i & 1 && n < sizeof list) n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? " " : "", mx_key_name(i));
  out_text(o, "not decided by these data", n ? list : "none");
  for (size_t i = 0; i < n_lines; i++) {
    out_text(o, i ? "and by" : "decided by", lines[i]);
    free(lines[i]);
  }
  if (*none) out_text(o, "no effect beside the rest", none);
  for (size_t i = 0; i < id->n_also; i++) {
    char faults[VERDICT_FAULTS];
    verdict_faults(faults, id->also[i].fault, id->also[i].n_faults);
    out_text(o, i ? "or" : "not ruled out", faults);
  }
  char command[4200];
  verdict_options_line(text, sizeof text, id);
  snprintf(command, sizeof command, "mxgold quantize IN -o OUT.safetensors%s%s%s", *text ? " " : "", text, more.turned ? " --transpose" : "");
  out_text(o, "reproduce", reproduces ? command : "none");
  if (id->bug.name) out_text(o, "bug", id->bug.name);
  for (size_t i = 0; i < id->bug.n_faults; i++) {
    char fault[MX_FAULT_TEXT];
    mx_fault_print(fault, sizeof fault, &id->bug.fault[i]);
    out_text(o, i ? "and fault" : "fault", fault);
  }
  if (other.preset) out_text(o, "not told from preset", other.preset);
  if (other.preset) out_text(o, "with fault", other.fault);
  if (*other.gen) out_text(o, "told by", other.gen);
  out_text(o, "verdict", sentence);
  return out_print(o, 0);
}

static int read_expectation(expectation *e, const struct args *a) {
  mx_error err = {0};
  *e = (expectation){.preset = a->expect};
  if (a->allow.n && !a->expect) return cli_error("identify: --allow needs --expect");
  if (a->allow.n > MX_FAULTS) return cli_error("identify: %zu times --allow, expected at most %d", a->allow.n, MX_FAULTS);
  if (a->expect && a->in.dequantized) return cli_error("identify: --expect needs codes and scales, not --dequantized");
  if (a->expect && mx_preset_find(&e->spec, a->expect, &err)) return cli_fail(&err);
  for (size_t i = 0; i < a->allow.n; i++)
    if (mx_fault_parse(&e->faults[e->n_faults++], a->allow.items[i], &err)) return cli_fail(&err);
  return CLI_FINE;
}

/* Has the input no finite number other than zero? Then a comparison says next to nothing. */
static int is_blank(const samples *s) {
  for (size_t i = 0; i < s->n; i++)
    for (size_t k = 0; k < s->at[i].rows * s->at[i].cols; k++) {
      const float x = s->at[i].x[k / s->at[i].cols * s->at[i].ld + k % s->at[i].cols];
      if (x != 0 && isfinite(x)) return 0;
    }
  return 1;
}

/* The answer without a search, if the bytes are those of the preset, or of the preset with the faults that are allowed. */
static int try_expectation(answer *w, samples *s, int threads) {
  expectation *e = &w->e;
  mx_identity *id = &w->id;
  size_t block = 0;
  const int order = samples_likely_nibble(s, &block);
  unexpected plain, faulty = {0};
  if (s->turned || s->row_scales) return CLI_FINE; /* of another input than was given */
  if (order > 0 && order != s->nibble && !samples_repack(s, order, block ? block : 32)) return CLI_FINE;
  w->how = (reading){.nibble = order, .nibble_block = block ? block : 32, .scale_values = -1, .layout = s->layout};
  int rc = expect_count(&plain, s, &e->spec, NULL, 0, threads);
  if (!rc && !is_expected(&plain) && e->n_faults) rc = expect_count(&faulty, s, &e->spec, e->faults, e->n_faults, threads);
  if (rc) return rc == CLI_DIFFERS ? CLI_FINE : rc;
  const int right = is_expected(&plain);
  if (!right && !(e->n_faults && is_expected(&faulty))) return CLI_FINE;
  e->met = 1;
  *id = (mx_identity){.spec = e->spec,
                      .exact = right,
                      .n_codes = plain.n_codes,
                      .n_scales = plain.n_scales,
                      .complete = 1,
                      .blank = is_blank(s),
                      .grade = MX_GRADE_CONFIRMED,
                      .codes_differ = plain.codes,
                      .scales_differ = plain.scales,
                      .tensor_scales_differ = plain.tensor_scales};
  *(right ? &id->preset : &id->nearest) = e->preset;
  if (order > 0) id->spec.nibble = order;
  if (right) return CLI_FINE;
  mx_bug *b = &id->bug;
  *b = (mx_bug){.name = mx_fault_row_at(e->faults[0].op)->name,
                .preset = e->preset,
                .spec = e->spec,
                .preset_codes = plain.codes,
                .preset_scales = plain.scales,
                .preset_tensor = plain.tensor_scales,
                .n_faults = e->n_faults,
                .confirmed = 1};
  memcpy(b->fault, e->faults, sizeof b->fault);
  for (size_t i = 0, at = 0; i < e->n_faults && at < sizeof b->text; i++) {
    if (i) at += (size_t)snprintf(b->text + at, sizeof b->text - at, "; and it ");
    if (at < sizeof b->text) at += mx_fault_words(b->text + at, sizeof b->text - at, &e->faults[i]);
  }
  return CLI_FINE;
}

static int is_answered(const mx_identity *id) {
  return id->exact || (id->bug.name && !(id->bug.codes || id->bug.scales || id->bug.tensor_scales));
}

static mx_identify_options search_options(const struct args *a) {
  return (mx_identify_options){.block_cols = a->block.given ? (int)a->block.v : 0,
                               .n_threads = cli_threads(&a->threads),
                               .seconds = a->seconds.v,
                               .no_undecided = a->quick};
}

/* Compares with what was expected first, which takes no search; what is found instead is described relative to it. */
static int find(answer *w, samples *s, const mx_identify_options *o) {
  const expectation *e = &w->e;
  int rc = e->preset ? try_expectation(w, s, o->n_threads) : CLI_FINE;
  if (rc || e->met) return rc;
  rc = find_answer(&w->id, &w->how, s, o);
  if (!rc) rc = answer_with_given_scale(&w->id, s, o->n_threads);
  if (!rc && e->preset && !reading_is_odd(&w->how)) rc = answer_beside(&w->id, s, &e->spec, e->preset, o->n_threads);
  return rc;
}

/* Identifies a kernel whose output lies in files. */
static int from_files(answer *w, const struct args *a) {
  samples s, other = {0};
  const mx_identify_options o = search_options(a);
  int rc = samples_open(&s, &a->in);
  if (!rc && a->confirm) {
    sample_options in = a->in;
    in.input = in.codes = in.scales = in.dequantized = NULL;
    in.output = a->confirm;
    in.values = a->in.dequantized != NULL;
    in.second = 1;
    rc = samples_open(&other, &in);
    if (!rc) rc = confirm_allows(&s, &other, a->confirm);
  }
  if (!rc) rc = find(w, &s, &o);
  if (!rc && a->confirm) rc = confirm_answer(&w->id, &w->held, &other, &w->how, a->confirm, o.n_threads);
  if (a->confirm) samples_close(&other);
  samples_close(&s);
  return rc;
}

/* Answers from ordinary numbers, and from special ones too if a spec gives those as well; a fault must hold for both. all: ordinary numbers come
 * first. */
static int find_of_plugin(answer *w, samples *all, size_t n_ordinary, const mx_identify_options *o) {
  const size_t n = all->n;
  all->n = n_ordinary;
  int rc = find(w, all, o);
  all->n = n;
  if (rc || n == n_ordinary || !is_answered(&w->id)) return rc;
  if (!w->id.exact) {
    unexpected u = {0};
    const mx_bug *b = &w->id.bug;
    if (b->n_faults) rc = expect_count(&u, all, &b->spec, b->fault, b->n_faults, o->n_threads);
    w->held.ordinary = !b->n_faults || rc == CLI_DIFFERS || !is_expected(&u);
    return rc == CLI_TROUBLE ? rc : CLI_FINE;
  }
  answer with = *w;
  with.e.met = 0;
  rc = find(&with, all, o);
  if (rc) return rc;
  if (with.id.exact)
    *w = with;
  else
    w->held.ordinary = 1;
  return CLI_FINE;
}

/* Identifies a kernel that can be run: on inputs that tell rules apart, and confirms the answer on others. */
static int from_plugin(answer *w, const struct args *a) {
  const plugin_limits limits = {.seconds = PLUGIN_SECONDS,
                                .memory = (uint64_t)PLUGIN_MEMORY << 20,
                                .file = (uint64_t)PLUGIN_FILE << 20,
                                .processor_seconds = PLUGIN_PROCESSOR};
  const mx_identify_options o = search_options(a);
  const char *preset = a->preset ? a->preset : a->expect ? a->expect : "ocp-mxfp4";
  samples s = {.nibble = -1}, other = {.nibble = -1};
  mx_spec spec;
  mx_error err;
  if (mx_preset_find(&spec, preset, &err)) return cli_fail(&err);
  if (mx_elem_format(spec.elem)->bits > 8)
    return cli_error("identify: --plugin: elements of %s, expected at most 8 bits", mx_elem_format(spec.elem)->name);
  int rc = kernel_samples(&s, &w->declined, a->plugin, &spec, KERNEL_ORDINARY, &limits);
  const size_t n_ordinary = s.n;
  if (!rc && !n_ordinary) rc = cli_error("%s: nothing was identified: the kernel declined all %zu tensors", a->plugin, w->declined);
  if (!rc) rc = kernel_samples(&s, &w->declined, a->plugin, &spec, KERNEL_SPECIAL, &limits);
  if (!rc) rc = kernel_samples(&other, &w->declined, a->plugin, &spec, KERNEL_FRESH, &limits);
  if (!rc && !other.n) rc = cli_error("%s: the kernel declined all fresh tensors", a->plugin);
  if (!rc) rc = find_of_plugin(w, &s, n_ordinary, &o);
  if (!rc && !w->e.preset && !reading_is_odd(&w->how)) rc = answer_beside(&w->id, &s, &spec, preset, o.n_threads);
  const int ordinary = w->held.ordinary;
  if (!rc) rc = confirm_answer(&w->id, &w->held, &other, &w->how, "fresh inputs", o.n_threads);
  w->held.ordinary = ordinary;
  if (!rc && ordinary && w->id.exact && w->id.grade == MX_GRADE_CONFIRMED) w->id.grade = MX_GRADE_FITS; /* not of all numbers */
  if (ordinary) w->e.met = 0;
  samples_close(&other);
  samples_close(&s);
  return rc;
}

static int check(const struct args *a) {
  const sample_options *in = &a->in;
  if (a->block.given && (a->block.v < 1 || a->block.v > 65536)) return cli_error("identify: --block: expected 1 to 65536");
  if (a->seconds.given && !(a->seconds.v > 0)) return cli_error("identify: --seconds: expected more than 0");
  if (a->preset && !a->plugin) return cli_error("identify: --preset needs --plugin; what the kernel should do goes to --expect");
  if (a->plugin && (in->input || in->codes || in->scales || in->output || in->dequantized || a->confirm || in->transpose || in->packed))
    return cli_error("identify: --plugin runs the kernel itself, and excludes files of what it gave");
  return CLI_FINE;
}

static int identified(void *args) {
  const struct args *a = args;
  answer w = {.plugin = a->plugin};
  int rc = read_expectation(&w.e, a);
  if (!rc) rc = a->plugin ? from_plugin(&w, a) : from_files(&w, a);
  if (rc) return rc;
  const mx_identity *id = &w.id;
  const int withdrawn = w.held.on && !w.held.holds;
  if (w.e.preset && withdrawn) w.e.met = 0;
  if (w.e.preset && !w.e.met) /* in another packing or layout it may be what was expected */
    w.e.met = id->exact && id->grade != MX_GRADE_NONE && !reading_is_odd(&w.how) && id->preset && !strcmp(id->preset, w.e.preset);
  if (a->json) {
    const verdict_more more = more_of(&w);
    char *text = verdict_json(id, &more);
    if (!text) return cli_error("out of memory");
    puts(text);
    free(text);
  } else
    rc = print_text(&w);
  if (rc) return rc;
  if (w.e.preset) return w.e.met ? CLI_FINE : CLI_DIFFERS;
  return id->exact && id->grade == MX_GRADE_CONFIRMED && !reading_is_odd(&w.how) ? CLI_FINE : CLI_DIFFERS;
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  const int refused = check(a);
  if (refused) return refused;
  return a->plugin ? plugin_supervise(a->plugin, identified, args) : identified(args);
}

const cli_command cmd_identify = {
    options, sizeof(struct args), run,
    "Element and scale format, block shape, rules, rounding, special values, tensor scale and its convention are found; the result is run "
    "again over "
    "all of the data and counted. Keys that these data cannot decide are listed: suites of mxgold gen decide them.\n"
    "Codes inside a block whose scale is NaN do not count. Exit status 0 if every byte is explained by a spec that is confirmed, 1 if not: "
    "one that only fits these data, a fault, an input that was transposed, nothing known.\n"
    "With --expect, exit status 0 if the bytes are those of PRESET, whatever other presets give them too, or of PRESET with the faults of "
    "--allow. With --confirm the answer is run on another launch as well: with no wrong byte there it is confirmed, with one it is none."};
