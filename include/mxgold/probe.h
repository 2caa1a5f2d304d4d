/** Finds the model of a matrix unit from its bits: probe tiles go out, and a named model of mma.h comes back.
 *
 *  mx_probe_make() makes tiles for given types. A device runs them (mx_mma() can stand in for one). mx_probe_fit_run() takes tiles and results,
 *  reads the parameters, searches those that cannot be read, and reports what fits, what rules out every other value, and what stays open. If
 *  several models remain, mx_probe_fit.next is a second batch of tiles on which they differ.
 *  Source: docs/notes/PROBE.md; the order of summation is read as FPRev does (arXiv 2411.00442).   Oracle: tests/test_probe.c, make probe-all. */
#ifndef MXGOLD_PROBE_H
#define MXGOLD_PROBE_H

#include "mma.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** The types and shapes that a device takes and gives. */
typedef struct mx_probe_spec {
  const mx_format *a, *b, *c, *d; /* as in mx_mma_model */
  const mx_format *scale;         /* NULL: none */
  int block;                      /* elements along K that share a scale */
  size_t M, N, K;                 /* of a tile */
  uint64_t seed;
} mx_probe_spec;

enum { MX_PROBE_LABELS = 4 };

/** A batch of tiles. Probes are the diagonals of the first T_fit tiles: probe p is row p % S of tile p / S, in a, b and c, with S the smaller
 *  of M and N. Off the diagonal, rows of different probes are mixed. The last T - T_fit tiles are not used until a model is found. */
typedef struct mx_probe {
  mx_probe_spec spec;
  size_t T, T_fit;
  size_t n;                                  /* probes */
  uint8_t *a, *b, *c, *scale_a, *scale_b;    /* operands of mx_mma */
  size_t a_bytes, b_bytes, c_bytes, s_bytes; /* of a row of a, a row of b, one value of c, a row of scales */
  int32_t (*labels)[MX_PROBE_LABELS];        /* family, then what it says (docs/notes/PROBE.md) */
} mx_probe;

/** Make a batch. MX_ERR_ARG (types that no device has, K outside 2..4096, M or N outside 1..256); MX_ERR_NOMEM. On error out is {0}. */
mx_status mx_probe_make(mx_probe *out, const mx_probe_spec *spec, mx_error *err);
/** Allocate a zeroed batch of T tiles, T_fit of them with probes, for readers of files. */
mx_status mx_probe_alloc(mx_probe *out, const mx_probe_spec *spec, size_t T, size_t T_fit, mx_error *err);
/** Free a batch and make it {0}. */
void mx_probe_free(mx_probe *p);
/** The tiles as operands of mx_mma(). */
mx_mma_args mx_probe_args(const mx_probe *p);
/** Name of the family of a label and what it is for; NULL past the end. */
const char *mx_probe_family(int family, const char **doc);

/** A value of a key other than the one that was found. */
typedef struct mx_probe_alternative {
  const char *key;
  char value[24];
  size_t wrong;   /* probes that contradict it */
  size_t first;   /* the first of these, counted over all batches */
  int open;       /* no probe contradicts it, but some input would tell it apart: see mx_probe_fit.next */
  int same;       /* no input that was tried tells it apart */
  char text[160]; /* the first in words: inputs, what the device gave and what the value would give */
} mx_probe_alternative;

/** One output that the model gets wrong. */
typedef struct mx_probe_counter_example {
  size_t batch, tile, row, column;
  size_t n_products;         /* that are not zero */
  uint64_t c, expected, got; /* expected: from the model; got: from the device */
  char text[512];            /* the output in full */
} mx_probe_counter_example;

enum { MX_PROBE_READINGS = 32, MX_PROBE_NAMES = 64, MX_PROBE_ALTERNATIVES = 1200 };

/** A parameter that was read from the outputs, with what shows it. */
typedef struct mx_probe_reading {
  const char *what;
  char value[40], evidence[200];
} mx_probe_reading;

/** What was found. */
typedef struct mx_probe_fit {
  int fits;                       /* every output of every tile is explained, the tiles kept apart included */
  int is_tree;                    /* a tree of additions, not a model of mma.h: see tree */
  mx_mma_model model;             /* the one that fits, else the nearest */
  char text[512];                 /* the same as text for mx_mma_model_find(), with types and k of the instruction */
  char *tree;                     /* "((0+1)+(2+3))+c", NULL if none was read */
  const char *tree_rule;          /* how its nodes add */
  const char *tree_name;          /* "sequential", "pairwise", ...; NULL: none of these */
  int nan_open;                   /* NaN payloads follow no rule of nan=: any NaN was accepted for any other */
  char nan_seen[64];              /* NaN bits that the device gave */
  char names[MX_PROBE_NAMES][96]; /* rows of the tables that give the same bits on all tiles */
  size_t n_names, n_names_all;
  mx_probe_reading readings[MX_PROBE_READINGS];
  size_t n_readings;
  mx_probe_alternative *alternatives;
  size_t n_alternatives;
  size_t n_probes, n_outputs, wrong_probes, wrong_outputs; /* of the tiles that were fitted */
  size_t n_kept, wrong_kept;                               /* outputs of the tiles that were kept apart */
  size_t n_tried, n_told;                                  /* models that were tried; inputs on which the remaining ones were compared */
  mx_probe_counter_example counter;
  mx_probe next; /* inputs on which the remaining models differ; T = 0: none was found */
} mx_probe_fit;

/** Find the model.
 *  batches, d   n_batches tiles and results: d[i] is [T][M][N] raw bits of the spec's d. One spec for all.
 *  exec         threads; NULL: {0}.
 *  Returns MX_OK, also when no model fits (out->fits says); MX_ERR_ARG (NULL, specs that differ); MX_ERR_NOMEM. On error out is {0}.
 *  Threads: reentrant; the same answer for any number of threads. */
mx_status mx_probe_fit_run(mx_probe_fit *out, const mx_probe *batches, const void *const *d, size_t n_batches, const mx_exec *exec,
                           mx_error *err);
/** Free what was found and make it {0}. */
void mx_probe_fit_free(mx_probe_fit *fit);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
