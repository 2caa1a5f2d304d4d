/* Declares the parts of the command ablate: which tensors, which specs, what was measured, how it is shown. */
#ifndef CLI_ABLATE_ABLATE_H
#define CLI_ABLATE_ABLATE_H

#include <math.h>

#include "cli/base/cli.h"
#include "mxgold/ablate.h"
#include "mxgold/file.h"
#include "cli/spec/name_filter.h"

struct out;

/* ---- Tensors ---- */

typedef struct ablate_tensor {
  char *name;
  size_t rows, cols;
  const mx_array *array; /* NULL: from a generator */
  mx_data data;
  uint64_t seed;
  int swept; /* came with others, from a pattern or a whole checkpoint: may be left out */
} ablate_tensor;

/* A tensor of a checkpoint that is not measured. */
typedef struct ablate_left_out {
  const mx_array *array;
  const char *why;
} ablate_left_out;

typedef struct ablate_tensors {
  ablate_tensor *at;
  size_t n;
  mx_file **files;
  size_t n_files;
  ablate_left_out *left_out;
  size_t n_left_out;
  name_filter names; /* of what comes with others; the caller makes it before adding */
} ablate_tensors;

/** From FILE, FILE:TENSOR, FILE:GLOB (* and ?), an index of shards, or gen:NAME[:PARAMETER]. FILE alone: every matrix of floats in it. What a pattern or a
 *  file has that is not measured is named in left_out. */
int ablate_tensors_add(ablate_tensors *t, const char *from, size_t rows, size_t cols, uint64_t seed);
void ablate_tensors_free(ablate_tensors *t);
/** One of each: what overlapping patterns name twice is one tensor. */
void ablate_tensors_unique(ablate_tensors *t);
/** The values, the caller frees them; NULL when memory runs out. */
mx_status ablate_load(float **x, const ablate_tensor *t, mx_error *err);
/** MX_ERR_DATA, said in *err, if a value is NaN or Inf. */
mx_status ablate_refuse_nan(const ablate_tensor *t, const float *x, mx_error *err);

/* ---- Specs ---- */

typedef struct ablate_spec {
  char *label; /* preset and the keys of --set: what stands in a report can be computed again */
  mx_spec spec;
  const mx_recipe *recipe; /* NULL: a preset. What operands have of their own is not in spec */
} ablate_spec;

/** The spec for a tensor: in a file of several each draws its random bits apart, those that quantize --all --fake draws for it. */
mx_spec ablate_spec_of(const ablate_spec *s, const ablate_tensor *t);

typedef struct ablate_specs {
  ablate_spec *at;
  size_t n;
  char *left_out; /* "LABEL: why", one a line: combinations whose keys exclude each other; NULL if none */
  uint64_t seed;  /* of --seed */
} ablate_specs;

/** Every preset of "a,b,c" with every combination of the --set values; with `six` recipes too. */
int ablate_specs_make(ablate_specs *out, const char *presets, const cli_list *sets, uint64_t seed, int six);
void ablate_specs_free(ablate_specs *s);
/** Does any spec draw random bits? */
int ablate_specs_draw(const ablate_specs *s);
/** --repeats where nothing is random: says so, CLI_TROUBLE. */
int ablate_refuse_repeats(void);
/** What besides tensors and specs the figures depend on: version, seed, repeats. For a reader the seed alone, where it is not 0. */
void ablate_say_origin(struct out *o, const ablate_specs *s, int repeats, int json);
/** Combinations whose keys exclude each other, where there are any. */
void ablate_say_left_out(struct out *o, const ablate_specs *s, int json);
/** Leave out what came with others and cannot be rotated as a spec asks. If nothing else is left all stay, so that measuring says why not. */
int ablate_tensors_fit(ablate_tensors *t, const ablate_specs *s);

/* ---- Measurements ---- */

/** Errors of at most so many parts of a tensor, which the bootstrap draws. */
enum { ABLATE_UNITS = 512 };

typedef struct ablate_row {
  size_t tensor, spec;
  mx_error_sums sums;
  uint64_t n_codes, zero, saturated;
  /* of random specs alone; bias_low is 0 where it is not told from none */
  double bias, bias_low, bias_high;
  double entropy, bits, scale_p05, scale_p50, scale_p95; /* quantiles of log2 scale */
  char scales[512];                                      /* histogram of scales: "LOG2:COUNT,LOG2:COUNT..."; "-" without */
  double tensor_factor;                                  /* what stored scales are multiplied by; of one draw */
  int repeats;
  size_t same_as;     /* 1 + the first spec that gives this tensor the very same values; 0: none before it */
  mx_interval behind; /* dB behind the tensor's best spec; -Inf to Inf where there are too few blocks to tell */
} ablate_row;

/** A spec over all tensors. Means are weighted by values; `bits` is what all tensors take together divided by their values. The mean of `behind`
 *  leaves out tensors on which the best spec has no error and this one has. */
typedef struct ablate_summary {
  size_t best_for, equal_for, front_for, n_sqnr; /* n_sqnr: tensors in mean_sqnr, those with a finite SQNR under every spec */
  double bits, mean_behind, worst_behind, mean_sqnr;
  mx_interval behind; /* mean_behind with its interval, of the tensors that have one: their errors are independent; -Inf to Inf if none has */
} ablate_summary;

typedef struct ablate_result {
  const ablate_tensors *tensors;
  const ablate_specs *specs;
  ablate_row *rows;        /* [tensors][specs] */
  ablate_summary *summary; /* [specs] */
  size_t *order;           /* of the tensors, worst first */
  double *units;           /* [tensors][specs][ABLATE_UNITS]: errors of the parts of each tensor, ablate_units_of() of them */
  unsigned char *front;    /* [tensors + 1][specs]: on the Pareto front, of the tensor and (last) of the means? */
  char (*digest)[33];      /* mx_digest of each tensor's values as binary32 */
  int repeats;             /* asked for; 0: 8 */
  size_t found;            /* pairs that the state had */
} ablate_result;

static inline const ablate_row *ablate_row_at(const ablate_result *r, size_t tensor, size_t spec) {
  return &r->rows[tensor * r->specs->n + spec];
}
typedef struct ablate_sweep_options {
  int repeats, n_threads, refuse_nan;
  const char *state; /* NULL: none */
  int only_measure;  /* into the state: intervals, means and order of the result are not made */
} ablate_sweep_options;
/** Measure every tensor under every spec: pairs of them on all processors, each pair on one. Free *out also after a failure. */
int ablate_sweep(ablate_result *out, const cli_context *ctx, const ablate_tensors *tensors, const ablate_specs *specs,
                 const ablate_sweep_options *o);
void ablate_result_free(ablate_result *r);
/** The error that specs are ranked by: a spoiled value counts as lost. */
static inline double ablate_error(const ablate_row *r) { return (r->sums.ee + r->sums.lost) / r->repeats; }
/** Is there nothing that a figure could be of: NaN and Inf alone? No spec is best for such a tensor, and no mean holds it. */
static inline int ablate_is_void(const ablate_row *r) { return !r->sums.n && !(r->sums.lost > 0); }
/** Index of the spec with the least error for a tensor. */
size_t ablate_best(const ablate_result *r, size_t tensor);
/** Within how many bits a value two specs count as equal: a tensor's one scale makes 4.50016 of 4.5. */
#define ABLATE_SAME_BITS 0.01
/** Find the specs that give a tensor the same values to the bit, and set same_as of its rows. x: the values of the tensor.
 *  What is compared is the first repeat; rows whose sums differ are not quantised again. */
mx_status ablate_find_same(const ablate_result *r, size_t tensor, const float *x, int n_threads, mx_error *err);
/** Do two specs give a tensor the very same values? Every tensor? */
int ablate_same_values(const ablate_result *r, size_t tensor, size_t a, size_t b);
int ablate_same_everywhere(const ablate_result *r, size_t a, size_t b);
/** Of the specs that give every tensor the values of this one, the one that stands for all of them: of the fewest bits, else the first. */
size_t ablate_shown_as(const ablate_result *r, size_t spec);
/** "same values as NAME" in room, or "". */
const char *ablate_same_text(char *room, size_t size, const ablate_result *r, const ablate_row *row);
/** How many parts of a tensor have their errors in units. */
size_t ablate_units_of(const ablate_tensor *t);
/** By how many dB is b worse than a, two rows of one tensor? +-Inf if only one of them has an error. */
double ablate_difference(const ablate_row *a, const ablate_row *b);
/** Of pairs of specs, by how many dB the second is worse than the first for a tensor, with the interval of that difference: of the parts of these two
 *  alone. -Inf to Inf where there are too few parts to tell. */
mx_status ablate_between(mx_interval *out, const ablate_result *r, size_t tensor, const mx_column_pair *pairs, size_t n_pairs);
/** The same of the means over all tensors that have an interval, weighted by values: their errors are independent. NaN, -Inf to Inf if none has. */
mx_status ablate_between_all(mx_interval *out, const ablate_result *r, const mx_column_pair *pairs, size_t n_pairs);
/** Finds which specs are on the Pareto front of a tensor, whose rows and units are given: those that no other spec dominates. A spec with the
 *  same bits dominates if its error is smaller by more than the interval of the difference of the two; a spec with fewer bits dominates unless its
 *  error is larger by more than that interval. Bits within ABLATE_SAME_BITS are the same; without an interval (few blocks) every difference counts.
 *  Which other specs are measured does not change whether one dominates another. */
mx_status ablate_find_front(const ablate_result *r, size_t tensor);
/** The same of the means over all tensors, whose summaries are there. */
mx_status ablate_find_front_of_all(const ablate_result *r);
static inline int ablate_on_front(const ablate_result *r, size_t tensor, size_t spec) { return r->front[tensor * r->specs->n + spec]; }
static inline int ablate_on_front_of_all(const ablate_result *r, size_t spec) { return ablate_on_front(r, r->tensors->n, spec); }
/** One sentence: which spec has the least error, and whether the next is told from it. */
void ablate_verdict(char *room, size_t size, const ablate_result *r);
/** "0.44 (0.37..0.51) ~": the tables' cell. */
void ablate_behind_text(char *room, size_t size, const ablate_row *r);
/** A bias as text: "0.0452 (0.0449..0.0456)", or "< 0.0069" where it is not told from none. */
void ablate_bias_text(char *room, size_t size, double bias, double low, double high);
/** The same for a machine: bias, bias_low, bias_high and bias_below. NaN where there is none; with `told` 0 every one. */
void ablate_say_bias(struct out *o, int told, double bias, double low, double high);
/** Is nothing left of the tensor: every value NaN, Inf or spoiled? Then figures of what is left are of nothing. */
static inline int ablate_is_lost(const ablate_row *r) { return !r->sums.n; }
/** A figure of what is left: NaN if nothing is. */
static inline double ablate_left(const ablate_row *r, double figure) { return r->sums.n ? figure : (double)NAN; }
/** Does the interval leave 0 out? A tensor that is lost, where the best spec has less error, needs no interval. */
static inline int ablate_matters(const ablate_row *r) {
  return r->behind.low > 0 || r->behind.high < 0 || (ablate_is_lost(r) && r->behind.at > 0);
}

/** What was measured of tensors that are done, kept in a file so that a run that was stopped goes on, or in a folder where each process has a file of its own. */
typedef struct ablate_state {
  const char *path; /* NULL: none */
  char key[33];
} ablate_state;
/** Is the file a state, or is there none yet? Says so and returns CLI_TROUBLE if not: what is not a state is not written to. */
int ablate_state_check(const char *path);
/** Make the folder of a state of several processes. Says so and returns CLI_TROUBLE if a file is there. */
int ablate_state_folder(const char *path);
/** Pairs of one tensor: have [specs]; units [specs][ABLATE_UNITS], the first n_units of each. */
typedef struct ablate_pairs {
  uint8_t *have;
  double *units;
  size_t n_units;
} ablate_pairs;
/** Take what the file has of a tensor under exactly these specs: rows, less the intervals, and have and units of pairs. */
void ablate_state_find(ablate_state *s, ablate_row *rows, const ablate_pairs *pairs, const ablate_tensor *t, const char *digest,
                       const ablate_specs *specs, int repeats);
/** Add a pair, in one write. */
mx_status ablate_state_add(const ablate_state *s, const ablate_row *row, const double *units, size_t n_units, mx_error *err);

/* ---- Shares ---- */

/** Measure the shard-th of so many shares of the tensors into the folder o->state, and print what was done. Shares of all calls hold every tensor once, and about as
 *  many values each. */
int ablate_shard(const cli_context *ctx, const ablate_tensors *tensors, const ablate_specs *specs, const ablate_sweep_options *o, size_t shard,
                 size_t shards, int json);
/** The same share for each rank of an MPI job, and nothing printed; when it returns all shares are there. A rank that fails ends the job. */
int ablate_by_ranks(const cli_context *ctx, const ablate_tensors *tensors, const ablate_specs *specs, const ablate_sweep_options *o, int rank,
                    int ranks);

/* ---- Reports ---- */

/** The tables, for a reader or for a machine. */
struct out *ablate_document(const ablate_result *r, int json);
/** Charts: of all tensors, and of one tensor in detail (charts.h). The name of a picture says what it is: .png or .svg. */
typedef struct ablate_detail ablate_detail;
int ablate_image_check(const char *path);
int ablate_image(const ablate_result *r, const ablate_detail *d, const char *path);
int ablate_html(const ablate_result *r, const ablate_detail *d, const char *path);

#endif
