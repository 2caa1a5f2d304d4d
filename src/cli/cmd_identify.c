/* Runs mxgold identify: the spec that a black box follows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/out.h"
#include "cli/verify/expect.h"
#include "cli/verify/samples.h"
#include "cli/verify/verdict.h"

struct args {
  sample_options in;
  cli_u64 block, threads;
  cli_f32 seconds;
  int json, quick;
  const char *expect;
  cli_list allow;
};

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
     "what the kernel should do: tried first, and exit status 0 is for its bytes alone", NULL},
    {"allow", 0, CLI_LIST, offsetof(struct args, allow), "FAULT",
     "with --expect: a fault that the kernel is known to have, as for quantize --fault; twice for two", NULL},
    {"quick", 0, CLI_FLAG, offsetof(struct args, quick), NULL, "leave out the keys that the data cannot decide", NULL},
    {"seconds", 0, CLI_F32, offsetof(struct args, seconds), "S",
     "search for at most this many seconds of one thread's processor time; 10 by default", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

/* What an answer leaves unexplained; if it names a bug, what that bug leaves unexplained. */
static uint64_t wrong(const mx_identity *id) {
  if (id->bug.name) return 4 * id->bug.scales + id->bug.codes + id->bug.tensor_scales;
  return 4 * id->scales_differ + id->codes_differ + id->nan_codes_differ + id->values_differ + id->tensor_scales_differ;
}

/* Another packing is the answer only if it is exact or leaves far less unexplained: some order always leaves a little less than another. */
static int is_better(const mx_identity *other, const mx_identity *id) {
  if (other->exact || id->exact) return other->exact > id->exact; /* a spec is a better answer than a bug */
  return !wrong(other) ? wrong(id) != 0 : 4 * wrong(other) < wrong(id);
}

/* Beside the layouts of SPEC 5: block columns one after the other. */
enum { COLUMN_MAJOR = MX_LAYOUT_COUNT, LAYOUTS };

/* For scales that are stored in a kernel's layout but were read as rows: makes a copy of each sample with its scales in row order. 0 if the sizes do
 * not fit. */
static int straighten(mx_sample *to, void **memory, samples *s, int layout, size_t block) {
  for (size_t i = 0; i < s->n; i++) {
    const mx_sample *m = &s->at[i];
    const size_t kb = (m->cols + block - 1) / block;
    to[i] = *m;
    const size_t size = layout == COLUMN_MAJOR ? m->rows * kb : mx_layout_size((mx_layout)layout, m->rows, kb);
    if (m->scale_bytes != 1 || size != m->scale_rows * m->scale_cols) return 0;
    uint8_t *straight = memory[i] = malloc(m->rows * kb + 1);
    s->no_memory |= !straight;
    if (!straight) return 0;
    if (layout != COLUMN_MAJOR) mx_layout_unpack(straight, (mx_layout)layout, m->scales, m->rows, kb);
    for (size_t k = 0; layout == COLUMN_MAJOR && k < m->rows * kb; k++) straight[k] = ((const uint8_t *)m->scales)[k % kb * m->rows + k / kb];
    to[i].scales = straight;
    to[i].scale_rows = m->rows;
    to[i].scale_cols = kb;
  }
  return 1;
}

/* Another packing is tried only if codes are wrong everywhere: it cannot explain a few wrong ones. */
static int mostly_wrong(const mx_identity *id) {
  if (id->stochastic) return 0;
  return (id->codes_differ + id->values_differ) * 8 > id->n_codes + id->n_values || id->scales_differ * 8 > id->n_scales;
}

/* A bug that gives every byte. */
static int is_told(const mx_identity *id) { return id->bug.name && !(id->bug.codes || id->bug.scales || id->bug.tensor_scales); }
/* An answer that another packing would explain better: codes, or scales, that stand in another order. */
static int is_order(const mx_identity *id) { return is_told(id) && !strcmp(id->bug.name, "another order"); }

/* mx_identify() of one way to read the samples: that it has no answer may be an answer, that memory is short is none, and is remembered. */
static mx_status attempt(mx_identity *id, samples *s, const mx_sample *at, const mx_identify_options *o, mx_error *err) {
  const mx_status status = mx_identify(id, at, s->n, o, err);
  s->no_memory |= status == MX_ERR_NOMEM;
  return status;
}

static mx_status try_layouts(mx_identity *best, const char **name, samples *s, const mx_identify_options *o) {
  static const size_t blocks[] = {32, 16};
  for (int l = 1; l < LAYOUTS; l++)
    for (size_t b = 0; b < 2; b++) {
      mx_sample *straight = calloc(s->n, sizeof *straight);
      void **memory = calloc(s->n, sizeof *memory);
      mx_identity id;
      s->no_memory |= !straight || !memory;
      if (straight && memory && straighten(straight, memory, s, l, blocks[b]) && !attempt(&id, s, straight, o, NULL) &&
          (!best->n_codes || is_better(&id, best))) {
        *best = id;
        *name = l == COLUMN_MAJOR ? "column-major" : mx_layout_name((mx_layout)l);
      }
      for (size_t i = 0; memory && i < s->n; i++) free(memory[i]);
      free(memory);
      free(straight);
      if (best->n_codes && best->exact) return MX_OK;
    }
  return best->n_codes ? MX_OK : MX_ERR_SHAPE;
}

static const struct {
  int scale;
  const char *name;
} values_of_codes[] = {{MX_SCALE_E8M0, "values of e8m0"}, {MX_SCALE_E4M3, "values of e4m3"}, {MX_SCALE_UE5M3, "values of ue5m3"}};

/* What scales that are stored as numbers give if they are those of codes. */
typedef struct reading {
  mx_identity id;
  int any;   /* some format has all of them */
  size_t of; /* the one that leaves least: into values_of_codes */
} reading;

/* Scales that are stored as numbers may stand for codes of a scale format: then every byte is found soon. 1 if they do; else the numbers stay, and
 * near is the format that comes nearest. */
static int scale_values(mx_identity *id, reading *near, const char **name, samples *s, const mx_identify_options *o) {
  mx_sample *as_they_are = s->n && s->at[0].scales ? malloc(s->n * sizeof *s->at) : NULL;
  s->no_memory |= s->n && s->at[0].scales && !as_they_are;
  mx_identify_options quick = *o;
  int found = 0;
  *near = (reading){.any = 0};
  quick.seconds = (o->seconds > 0 ? o->seconds : 10) / 4;
  if (as_they_are) memcpy(as_they_are, s->at, s->n * sizeof *s->at);
  for (size_t i = 0; as_they_are && i < sizeof values_of_codes / sizeof values_of_codes[0] && !found; i++) {
    const int given = samples_encode_scales(s, values_of_codes[i].scale) && !attempt(id, s, s->at, &quick, NULL);
    found = given && id->exact;
    if (given && (!near->any || wrong(id) < wrong(&near->id))) *near = (reading){*id, 1, i};
    if (!found) memcpy(s->at, as_they_are, s->n * sizeof *s->at);
  }
  free(as_they_are);
  if (found) *name = values_of_codes[near->of].name;
  return found;
}

/* Columns of a block of an answer, 0: it has no such number. */
static size_t block_of(const mx_identity *id) { return id->spec.block_cols > 0 ? (size_t)id->spec.block_cols : id->spec.block_cols ? 0 : 32; }

/* Shares of the time limit that the file as it lies gets: half where scales that were read as values have come near already, for their answer may be the
 * better one and has had its time; more where the order of nibbles is stated, since then fewer orders are left to try; most where codes leave other
 * orders and layouts, which show soon; the whole where nothing else can be tried. Any more, and a wrong packing would eat the time of the right one. */
static const double SHARE_BESIDE_VALUES = 0.5, SHARE_OF_STATED = 0.7, SHARE_OF_CODES = 0.85;

/* The time limit where none is given, in seconds, and what part of it one other packing gets: a right one shows within that. */
enum { SECONDS = 10, PACKING_PART = 20 };

/* The file is tried as it lies, with the order of nibbles that numbers and codes suggest; else in another order; with the scales in another layout;
 * transposed. */
static int find(mx_identity *id, samples *s, const mx_identify_options *first, const char **nibble, const char **layout) {
  static const char *const names[] = {"low_first", "high_first", "half_block"};
  mx_error err = {0};
  const float all = first->seconds > 0 ? (float)first->seconds : SECONDS;
  size_t block = (size_t)first->block_cols;
  int best = samples_likely_nibble(s, &block);
  if (best > 0 && !samples_repack(s, best, block ? block : 32)) best = s->nibble;
  reading near;
  const int values = scale_values(id, &near, layout, s, first);
  mx_identify_options most = *first, shorter = *first, *o = &shorter; /* a right packing shows soon */
  most.seconds = (double)all * (near.any ? SHARE_BESIDE_VALUES : s->nibble >= 0 ? SHARE_OF_STATED : s->at[0].codes ? SHARE_OF_CODES : 1);
  shorter.seconds = (double)all / PACKING_PART;
  mx_status status = values ? MX_OK : attempt(id, s, s->at, &most, &err);
  if (!values && near.any && (status || (!id->exact && wrong(&near.id) <= wrong(id))) &&
      samples_encode_scales(s, values_of_codes[near.of].scale))
    *id = near.id, *layout = values_of_codes[near.of].name, status = MX_OK;
  if (best == MX_NIBBLE_HALF_BLOCK && !status && id->exact && block_of(id) != block) { /* halves of something else: no key says that */
    best = MX_NIBBLE_LOW_FIRST;
    status = samples_repack(s, best, 32) ? attempt(id, s, s->at, &most, &err) : MX_ERR_NOMEM;
  }
  const int order = !status && is_order(id), told = !status && is_told(id) && !(order && id->codes_differ), tried = best;
  if (!first->block_cols && tried != MX_NIBBLE_HALF_BLOCK) block = !status && block_of(id) > 1 ? block_of(id) : 32;
  for (int k = 0; !status && !id->exact && (!told || s->nibble >= 0) && mostly_wrong(id) && best >= 0 && k < MX_NIBBLE_COUNT; k++) {
    mx_identity other;
    if (k == tried) continue;
    if (!samples_repack(s, k, block)) break;
    if (!attempt(&other, s, s->at, o, NULL) && is_better(&other, id) &&
        (k != MX_NIBBLE_HALF_BLOCK || !other.exact || block_of(&other) == block))
      *id = other, best = k;
  }
  if (best >= 0 && s->nibble != best) samples_repack(s, best, block); /* what is tried next is tried in the best order */
  if ((status || (!id->exact && (order ? id->scales_differ != 0 : !told) && mostly_wrong(id))) && s->at[0].codes) {
    mx_identity other = {0};
    if (!status) other = *id;
    if (!try_layouts(&other, layout, s, o)) *id = other, status = MX_OK;
  }
  if (!status && !id->exact && !told && mostly_wrong(id) && samples_turn(s)) {
    mx_identity other;
    if (!attempt(&other, s, s->at, o, NULL) && is_better(&other, id)) {
      *id = other, s->turned = 1;
      if (id->exact) { /* the rule is right, what it reads is not */
        id->bug = (mx_bug){.name = "transposed", .text = "quantises the transpose of the input", .preset = id->preset, .spec = id->spec};
      }
    }
  }
  if (s->no_memory) return cli_error("out of memory");
  if (!*layout) *layout = s->layout;
  if (best >= 0) *nibble = names[best];
  if (best > 0) id->spec.nibble = best;
  return status ? cli_fail(&err) : CLI_FINE;
}

static int print_text(const mx_identity *id, const char *nibble, const char *layout, int turned) {
  out *o = out_new();
  char text[4096], sentence[2048];
  mx_spec_print(text, sizeof text, &id->spec, 0);
  verdict_sentence(sentence, sizeof sentence, id);
  out_answer(o, "exact", id->exact);
  out_text(o, "grade", verdict_grade(id));
  out_text(o, "preset", id->preset ? id->preset : "none");
  out_text(o, "spec", verdict_reproduces(id) ? text : "none");
  out_u64(o, "codes that differ", id->codes_differ + id->values_differ);
  if (id->zero_signs_differ) out_u64(o, "of them signs of zero", id->zero_signs_differ);
  out_u64(o, "scales that differ", id->scales_differ);
  if (id->nan_codes_differ) out_u64(o, "codes under a NaN scale that differ", id->nan_codes_differ);
  if (id->tensor_scales_differ) out_u64(o, "tensor scales that differ", id->tensor_scales_differ);
  if (nibble) out_text(o, "nibble", nibble);
  if (layout) out_text(o, "scale layout", layout);
  if (turned) out_text(o, "input", "transposed");
  char list[2048] = "";
  size_t n = 0;
  for (size_t i = 0; mx_key_name(i); i++)
    if (id->undecided >> i & 1 && n < sizeof list) n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? " " : "", mx_key_name(i));
  out_text(o, "not decided by these data", n ? list : "none");
  char *lines[VERDICT_SUITES], none[2048];
  const size_t n_lines = verdict_gen(lines, none, sizeof none, id);
  for (size_t i = 0; i < n_lines; i++) {
    out_text(o, i ? "and by" : "decided by", lines[i]);
    free(lines[i]);
  }
  if (*none) out_text(o, "no effect beside the rest", none);
  char *options_[VERDICT_OPTIONS];
  const size_t n_options = verdict_options(options_, id);
  n = 0;
  *text = 0;
  for (size_t i = 0; i < n_options; i++) {
    const char *quote = strpbrk(options_[i], " <") ? "'" : "";
    if (n < sizeof text) n += (size_t)snprintf(text + n, sizeof text - n, " %s%s%s", quote, options_[i], quote);
    free(options_[i]);
  }
  char command[4200];
  snprintf(command, sizeof command, "mxgold quantize IN -o OUT.safetensors%s%s", text, turned ? " --transpose" : "");
  out_text(o, "reproduce", verdict_reproduces(id) ? command : "none");
  if (id->bug.name) out_text(o, "bug", id->bug.name);
  for (size_t i = 0; i < id->bug.n_faults; i++) {
    char fault[MX_FAULT_TEXT];
    mx_fault_print(fault, sizeof fault, &id->bug.fault[i]);
    out_text(o, i ? "and fault" : "fault", fault);
  }
  out_text(o, "verdict", sentence);
  return out_print(o, 0);
}

/* What the kernel should do: a preset, and faults that it may have. */
typedef struct expectation {
  const char *preset;
  mx_spec spec;
  mx_fault faults[MX_FAULTS];
  size_t n_faults;
  int met; /* 1: the kernel gives its bytes */
} expectation;

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

/* The answer without a search: the bytes are those of the preset, or of it with the faults that are allowed. */
static int try_expectation(mx_identity *id, expectation *e, samples *s, int threads, const char **nibble) {
  static const char *const names[] = {"low_first", "high_first", "half_block"};
  size_t block = 0;
  const int order = samples_likely_nibble(s, &block);
  unexpected plain, faulty = {0};
  if (order > 0 && order != s->nibble && !samples_repack(s, order, block ? block : 32)) return CLI_FINE;
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
                      .grade = MX_GRADE_CONFIRMED,
                      .codes_differ = plain.codes,
                      .scales_differ = plain.scales,
                      .tensor_scales_differ = plain.tensor_scales};
  *(right ? &id->preset : &id->nearest) = e->preset;
  if (order >= 0) *nibble = names[order];
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

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  samples s;
  mx_identity id;
  const char *nibble = NULL, *layout = NULL;
  expectation e;
  const int refused = read_expectation(&e, a);
  if (refused) return refused;
  int rc = samples_open(&s, &a->in);
  const mx_identify_options o = {.block_cols = a->block.given ? (int)a->block.v : 0,
                                 .n_threads = cli_threads(&a->threads),
                                 .seconds = a->seconds.v,
                                 .no_undecided = a->quick};
  if (!rc && a->block.given && (a->block.v < 1 || a->block.v > 65536)) rc = cli_error("identify: --block: expected 1 to 65536");
  if (!rc && a->seconds.given && !(a->seconds.v > 0)) rc = cli_error("identify: --seconds: expected more than 0");
  if (!rc && e.preset) rc = try_expectation(&id, &e, &s, o.n_threads, &nibble);
  if (!rc && !e.met) rc = find(&id, &s, &o, &nibble, &layout);
  if (!rc && a->json) {
    char *text = verdict_json(&id, nibble, layout, s.turned);
    if (text)
      puts(text);
    else
      rc = cli_error("out of memory");
    free(text);
  } else if (!rc)
    rc = print_text(&id, nibble, layout, s.turned);
  samples_close(&s);
  if (rc) return rc;
  if (e.preset && !e.met) /* in another packing or layout it may be what was expected */
    e.met = id.exact && id.grade == MX_GRADE_CONFIRMED && !s.turned && id.preset && !strcmp(id.preset, e.preset);
  if (e.preset) return e.met ? CLI_FINE : CLI_DIFFERS;
  return id.exact && id.grade == MX_GRADE_CONFIRMED && !s.turned ? CLI_FINE : CLI_DIFFERS;
}

const cli_command cmd_identify = {
    options, sizeof(struct args), run,
    "Element and scale format, block shape, rules, rounding, special values, tensor scale and its convention are found; the result is run "
    "again over "
    "all of the data and counted. Keys that these data cannot decide are listed: suites of mxgold gen decide them.\n"
    "Codes inside a block whose scale is NaN do not count. Exit status 0 if every byte is explained by a spec that is confirmed, 1 if not: "
    "one that only fits these data, a fault, an input that was transposed, nothing known.\n"
    "With --expect, exit status 0 if the bytes are those of PRESET, whatever other presets give them too, or of PRESET with the faults of "
    "--allow."};
