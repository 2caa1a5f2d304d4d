/* Runs mxgold ablate IN[:TENSOR]... --presets a,b,c: what a format, a rounding or a rotation does to tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate.h"
#include "charts.h"
#include "cli/base/files.h"
#include "cli/base/out.h"
#include "cli/base/ranks.h"
#include "cli/base/shape.h"
#include "products.h"
#include "cli/spec/opts.h"

struct args {
  cli_list in, set, operands;
  const char *presets, *shape, *html, *chart, *state, *shard, *model, *include, *exclude;
  cli_u64 seed, repeats, threads;
  int json, csv, gemm, six, refuse_nan;
};

static const cli_option options[] = {
    {"IN[:TENSOR]", 0, CLI_POS_LIST, offsetof(struct args, in), NULL,
     "a .npy file, tensors of a .safetensors file, an index or a folder of one (* and ? match), or gen:gaussian, uniform, laplace, student:NU "
     "(3), rows:S (2.5), outliers:SHARE:FACTOR (0.01:20); defaults in brackets",
     NULL},
    {"presets", 'p', CLI_STRING, offsetof(struct args, presets), "NAME[,NAME]...",
     "presets to compare; ocp-mxfp4 by default; with --six also recipes: recipe-nvfp4, ...", NULL},
    {"set", 0, CLI_LIST, offsetof(struct args, set), "KEY=V[,V]...", "values of a key; every combination is measured; may be repeated", NULL},
    {"include", 0, CLI_STRING, offsetof(struct args, include), "REGEX",
     "for whole files and patterns: only tensors of floats whose name matches, of any dimensions", NULL},
    {"exclude", 0, CLI_STRING, offsetof(struct args, exclude), "REGEX", "for whole files and patterns: leave out tensors whose name matches",
     NULL},
    {"shape", 0, CLI_STRING, offsetof(struct args, shape), "RxC", "shape of generated tensors; 256x1024 by default", NULL},
    {"seed", 0, CLI_U64, offsetof(struct args, seed), "N",
     "seed of generators, stochastic rounding and fresh signs; the operands of a product draw different numbers", NULL},
    {"repeats", 0, CLI_U64, offsetof(struct args, repeats), "N", "repeats for random specs; 8 by default", NULL},
    {"gemm", 0, CLI_FLAG, offsetof(struct args, gemm), NULL, "the inputs are X and W: the product X W^T, and where its error comes from", NULL},
    {"six", 0, CLI_FLAG, offsetof(struct args, six), NULL, "the inputs are X, W and DY: the six quantisations of a linear layer", NULL},
    {"operand", 0, CLI_LIST, offsetof(struct args, operands), "Qn:KEY=VALUE[,...]",
     "keys of one operand (Q1, Q2; with --six Q1 to Q6); may be repeated", NULL},
    {"accum", 0, CLI_STRING, offsetof(struct args, model), "MODEL",
     "--gemm, --six: how products are summed, as for gemm --accum, matrix units included; f32_block by default; or dequantized: values in "
     "binary64",
     NULL},
    {"accumulate", 0, CLI_STRING, offsetof(struct args, model), "MODEL", "the same as --accum", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {"csv", 0, CLI_FLAG, offsetof(struct args, csv), NULL,
     "print the measurements alone as CSV: a line of names, then a line for each row, with the fields of the JSON", NULL},
    {"png", 0, CLI_STRING, offsetof(struct args, chart), "CHART.png|.svg",
     "draw all charts in one picture: SQNR against bits, and of the most damaged tensor scales, error against magnitude, Hadamard, maps of the "
     "error; with --gemm and --six errors and gains of the products",
     NULL},
    {"html", 0, CLI_STRING, offsetof(struct args, html), "REPORT.html", "write one page with tables and charts that needs no network", NULL},
    {"state", 0, CLI_STRING, offsetof(struct args, state), "FILE",
     "keep results in FILE, or in a folder, and do not measure again what is already there", NULL},
    {"shard", 0, CLI_STRING, offsetof(struct args, shard), "I/N",
     "measure the I-th of N shares of the tensors, I from 0, into the folder --state, where each process has a journal of its own, and report "
     "nothing; the same command without --shard reports",
     NULL},
    {"refuse-nan", 0, CLI_FLAG, offsetof(struct args, refuse_nan), NULL,
     "refuse tensors with NaN or Inf; by default they are counted and left out", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {0},
};

enum { MAX_EXTENT = 1 << 20, MAX_SHARDS = 1 << 16 };

/* Which share of the tensors is this call's. */
typedef struct ablate_part {
  size_t shard, shards; /* 0 of 0: no share was asked for */
  int rank, ranks;
} ablate_part;

/* Models without parameters by their name, others as a matrix unit. */
static int accumulation(ablate_products *p, const char *name) {
  mx_error err;
  p->model = MX_GEMM_F32_BLOCK;
  p->accum = "f32_block";
  if (!name) return CLI_FINE;
  p->accum = name;
  p->model = strcmp(name, "dequantized") ? mx_gemm_model_find(name) : MX_PRODUCT_DEQUANTIZED;
  if (!strcmp(name, "dequantized") || (p->model >= 0 && p->model != MX_GEMM_FUSED)) return CLI_FINE;
  p->model = MX_GEMM_FUSED;
  return mx_mma_model_find(&p->unit, name, &err) ? cli_fail(&err) : CLI_FINE;
}

static int parse_shape(size_t *rows, size_t *cols, const char *text) {
  uint64_t shape[2] = {256, 1024};
  if (text && (shape_parse(shape, 2, text) != 2 || shape[0] > MAX_EXTENT || shape[1] > MAX_EXTENT))
    return cli_error("--shape: '%.40s', expected RxC, each 1 to %d", text, MAX_EXTENT);
  *rows = shape[0];
  *cols = shape[1];
  return CLI_FINE;
}

/* The table comes first: what was measured is not lost with a chart that fails. */
static int report(const struct args *a, const ablate_result *r) {
  out *o = ablate_document(r, a->json || a->csv);
  const int rc = a->csv ? out_print_csv(o, "measurements") : out_print(o, a->json);
  if (rc || (!a->chart && !a->html)) return rc;
  fflush(stdout);
  ablate_detail d;
  int bad = ablate_detail_make(&d, r, r->order[0], cli_threads(&a->threads));
  if (!bad && a->chart) bad = ablate_image(r, &d, a->chart);
  if (!bad && a->html) bad = ablate_html(r, &d, a->html);
  ablate_detail_free(&d);
  return bad;
}

/* What can be known to fail is said before hours of measuring. */
static int check_outputs(const struct args *a) {
  if (ablate_state_check(a->state) || (a->chart && ablate_image_check(a->chart)) || (a->html && file_check(a->html))) return CLI_TROUBLE;
  return a->chart || a->html ? gnuplot_check() : CLI_FINE;
}

static int sweep(const struct args *a, const cli_context *ctx, const ablate_part *p, const ablate_tensors *tensors, const ablate_specs *specs) {
  ablate_result result;
  const ablate_sweep_options o = {(int)a->repeats.v, cli_threads(&a->threads), a->refuse_nan, a->state, 0};
  if (check_outputs(a)) return CLI_TROUBLE;
  if (p->shards) return ablate_shard(ctx, tensors, specs, &o, p->shard, p->shards, a->json);
  if (p->ranks > 1) {
    const int rc = ablate_by_ranks(ctx, tensors, specs, &o, p->rank, p->ranks);
    if (rc || p->rank) return rc;
  }
  int rc = ablate_sweep(&result, ctx, tensors, specs, &o);
  if (!rc) rc = report(a, &result);
  ablate_result_free(&result);
  return rc;
}

static int with_tensors(const struct args *a, const cli_context *ctx, const ablate_part *part, ablate_tensors *tensors) {
  ablate_products p = {.presets = a->presets,
                       .set = &a->set,
                       .operands = &a->operands,
                       .seed = a->seed.v,
                       .repeats = (int)a->repeats.v,
                       .n_threads = cli_threads(&a->threads),
                       .six = a->six,
                       .json = a->json,
                       .csv = a->csv,
                       .state = a->state,
                       .image = a->chart,
                       .html = a->html,
                       .refuse_nan = a->refuse_nan};
  if (accumulation(&p, a->model)) return CLI_TROUBLE;
  if (a->gemm || a->six) return ablate_products_run(tensors, ctx, &p);
  ablate_tensors_unique(tensors);
  ablate_specs specs;
  if (ablate_specs_make(&specs, a->presets, &a->set, a->seed.v, 0)) return CLI_TROUBLE;
  int rc = a->repeats.given && !ablate_specs_draw(&specs) ? ablate_refuse_repeats() : ablate_tensors_fit(tensors, &specs);
  if (!rc) rc = sweep(a, ctx, part, tensors, &specs);
  ablate_specs_free(&specs);
  return rc;
}

static int read_shard(ablate_part *p, const struct args *a) {
  char rest;
  if (!a->shard) return CLI_FINE;
  if (sscanf(a->shard, "%zu/%zu%c", &p->shard, &p->shards, &rest) != 2 || p->shard >= p->shards || p->shards > MAX_SHARDS)
    return cli_error("ablate: --shard %s: expected I/N, I from 0 to N - 1, N at most %d", a->shard, MAX_SHARDS);
  if (!a->state) return cli_error("ablate: --shard measures into a folder that the shares have in common, expected --state DIR");
  if (a->csv || a->html || a->chart) return cli_error("ablate: --shard reports nothing: --csv, --html and --png go with the call without it");
  return CLI_FINE;
}

static int check_ranks(const ablate_part *p, const struct args *a) {
  if (p->ranks < 2) return CLI_FINE;
  if (a->gemm || a->six) return cli_error("ablate: --gemm and --six are of one layer, which ranks cannot share");
  if (a->shard) return cli_error("ablate: --shard and mpirun both share the tensors out, expected one of the two");
  return a->state ? CLI_FINE : cli_error("ablate: ranks measure into a folder that they have in common, expected --state DIR");
}

/* By the ranks of an MPI job, or alone. */
static int by_ranks(const struct args *a, const cli_context *ctx, ablate_part *p, ablate_tensors *tensors) {
  p->ranks = ranks_begin(&p->rank);
  int rc = check_ranks(p, a);
  if (!rc) rc = with_tensors(a, ctx, p, tensors);
  if (rc) ranks_give_up(rc); /* of ranks that wait */
  ranks_end();
  return rc;
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  size_t rows = 0, cols = 0;
  ablate_part p = {0};
  if (a->gemm && a->six) return cli_error("ablate: --gemm and --six exclude each other");
  if (!a->in.n) return cli_error("ablate: no input, expected IN[:TENSOR]... or gen:NAME");
  const int product = a->gemm || a->six;
  if (a->operands.n && !product) return cli_error("ablate: --operand goes with --gemm or --six");
  if ((a->include || a->exclude) && product) return cli_error("ablate: --include and --exclude do not go with --gemm or --six");
  if (a->shard && product) return cli_error("ablate: --shard shares tensors out: it does not go with --gemm or --six");
  if (read_shard(&p, a)) return CLI_TROUBLE;
  if (a->model && !product) return cli_error("ablate: --accum goes with --gemm or --six");
  if (a->json && a->csv) return cli_error("ablate: --json and --csv exclude each other");
  if (a->repeats.v > 1000000 || (a->repeats.given && !a->repeats.v))
    return cli_error("--repeats: %llu, expected 1 to 1000000", (unsigned long long)a->repeats.v);
  if (parse_shape(&rows, &cols, a->shape)) return CLI_TROUBLE;
  int generated = 0;
  for (size_t i = 0; i < a->in.n; i++) generated |= !strncmp(a->in.items[i], "gen:", 4);
  if (a->shape && !generated) return cli_error("ablate: --shape is of generated tensors, and there is none");
  ablate_tensors tensors = {0};
  if (name_filter_make(&tensors.names, a->include, a->exclude)) return CLI_TROUBLE;
  int rc = CLI_FINE;
  for (size_t i = 0; i < a->in.n && !rc; i++) /* operands of one product are drawn apart */
    rc = ablate_tensors_add(&tensors, a->in.items[i], rows, cols, a->seed.v + (product ? (uint64_t)i << 40 : 0));
  if (!rc && !tensors.n) rc = cli_error("ablate: --include and --exclude leave no tensor of floats");
  if (!rc) rc = by_ranks(a, ctx, &p, &tensors);
  ablate_tensors_free(&tensors);
  return rc;
}

const cli_command cmd_ablate = {
    options, sizeof(struct args), run,
    "SQNR and the other figures compare the tensor with what quantising and dequantising make of it, with rotations "
    "undone. `behind` is how many dB a\n"
    "row is worse than the best of its tensor, with the 95 % interval of a bootstrap over blocks; a difference "
    "whose interval contains 0 is marked ~, and so is one over few blocks (fewer than 1280 values), which has no interval.\n"
    "A value that became NaN or Inf counts there as lost, with its own size as the error. * marks the Pareto front: "
    "no other row of the tensor has a smaller error with as few bits, or the same error with fewer. Bits within 0.01 are the same, and so are "
    "errors where the interval of the difference of these two rows holds 0; other rows do not change how two compare.\n"
    "A tensor of more than two dimensions is read as rows of its last one: a convolution's [out][in][3][3] is out * in * 3 rows of 3, whose "
    "blocks are "
    "mostly "
    "fill, as bits and note show.\n"
    "In a whole file or a pattern, tensors that cannot be measured are left out and named: not floats, empty, not a matrix (whole file), a "
    "result in an .mxv (whole file), "
    "columns that "
    "had.size does not divide, or left out by --include and --exclude. A tensor that several patterns name is measured once.\n"
    "Tensors are sorted by damage: the lowest SQNR of the first preset comes first. All figures are the same to "
    "the bit for any number of threads."};
