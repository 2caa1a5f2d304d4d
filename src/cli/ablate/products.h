/* Declares --gemm and --six: what quantising its operands does to a product, measured and shown. */
#ifndef CLI_ABLATE_PRODUCTS_H
#define CLI_ABLATE_PRODUCTS_H

#include "ablate.h"
#include "mxgold/mma.h"

typedef struct ablate_products {
  const char *presets;
  const cli_list *set, *operands;
  uint64_t seed;
  const char *accum; /* the model's name */
  int model;
  mx_mma_model unit; /* MX_GEMM_FUSED */
  int six, repeats, n_threads, json, csv, refuse_nan;
  const char *state, *image, *html; /* NULL: none */
} ablate_products;

enum { ABLATE_OPERANDS = 6 };

/* An operand under its spec. bits and drawn are known of every one, the rest with --six alone. */
typedef struct ablate_operand {
  int drawn; /* does its spec draw random bits? */
  double bits;
  mx_error_sums sums;
  uint64_t n_codes, saturated;
  int repeats;
  double bias, bias_low, bias_high; /* as in ablate_row */
} ablate_operand;

/* What a spec does to the product, or to the three. */
typedef struct ablate_layer {
  mx_product_split product[MX_SIX_PRODUCTS];
  ablate_operand operand[ABLATE_OPERANDS];
} ablate_layer;

typedef struct ablate_layers {
  const ablate_products *how;
  const ablate_tensors *tensors;
  const ablate_specs *specs;
  int n_products, n_operands; /* 1 and 2, or 3 and 6 */
  char digest[3][33];         /* of the operands' values */
  uint64_t bad[3];            /* NaN and Inf in them */
  ablate_layer *at;           /* [specs] */
} ablate_layers;

/** Measure and report. tensors: X and W, or X, W and DY. */
int ablate_products_run(const ablate_tensors *t, const cli_context *ctx, const ablate_products *p);

/** The spec of each operand: the preset or recipe with --set, then what the recipe says of it, then what --operand does. Says what is wrong. */
int ablate_operand_specs(mx_spec *specs, int n, const ablate_products *p, const ablate_spec *base);
/** Rows and columns of operand i, the columns along its product's sums. */
void ablate_operand_shape(const ablate_layers *l, int i, size_t *rows, size_t *cols);
/** "Fprop Y = X W^T", or "X W^T" of --gemm. */
const char *ablate_product_name(const ablate_layers *l, int product);
/** Is there chance in both operands of a product? With one of them alone its bias repeats the error of the other, which no repeat changes. */
int ablate_product_drawn(const ablate_layer *a, int product);
/** The error that specs are ranked by: that of the worst product; NaN, where nothing is left, is the worst of all. */
double ablate_layer_error(const ablate_layers *l, size_t spec);
/** 1 + the first spec with the very same figures, 0 if there is none before it. */
size_t ablate_layer_same(const ablate_layers *l, size_t spec);
/** One sentence: which spec, how large its errors are, which is next. */
void ablate_layers_verdict(char *room, size_t size, const ablate_layers *l);

/** Figures of a product of a spec and of its two operands that were measured before, in a file of ablate --state. */
int ablate_product_find(ablate_layer *a, const ablate_layers *l, size_t spec, int product);
mx_status ablate_product_keep(const ablate_layers *l, size_t spec, int product, mx_error *err);

/** The tables. */
struct out *ablate_layers_document(const ablate_layers *l, int json);
int ablate_layers_image(const ablate_layers *l, const char *path);
int ablate_layers_html(const ablate_layers *l, const char *path);

#endif
