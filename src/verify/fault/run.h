/* Declares how a tensor is quantised with faults, block by block and a stage at a time; mx_quantize_faulty() and the search for faults use it. */
#ifndef MX_VERIFY_FAULT_RUN_H
#define MX_VERIFY_FAULT_RUN_H

#include "kernels/block/plan.h"
#include "kernels/block/select.h"
#include "mxgold/layout.h"
#include "mxgold/fault.h"

typedef struct fault_run {
  mx_spec spec; /* of the blocks, without the rotation, flush and nibble order, which are applied elsewhere */
  mx_plan plan;
  const mx_fault *faults;
  size_t n_faults;
  size_t rows, cols, block_rows, block_cols, down, across;
  size_t all_rows;       /* of x: a run of its first rows alone, with the tensor's numbers of all of them, has fewer `rows` */
  float *x;              /* [all_rows][cols] after input, input.dtype, flush and rotation */
  float *straight;       /* the same before the rotation; NULL if there is none */
  mx_block_stats *stats; /* of each block of x */
  uint8_t *subnormal;    /* each block: the spec's own scale is subnormal */
  uint8_t *four;         /* each block under select=foursix: 1 if the map to 4 has the smaller error, 2 if the larger one; else 0 */
  uint32_t *plain;       /* each block: code that the spec gives x, without the faults of later stages */
  uint32_t *used;        /* each block: code that the elements are divided by */
  float amax;            /* of the tensor */
  mx_plan *groups;       /* of each `group` rows, where a fault takes them for tensors of their own; NULL: it does nowhere */
  size_t group;
  const mx_fault *of_groups;
  double norm, target; /* of the plan without faults of the tensor scale, and its chain */
  const mx_chain_program *chain;
  struct { /* scratch memory for faults that move things: a word and two bytes a block, a byte an element */
    uint32_t *blocks;
    uint8_t *bytes, *elements;
  } room;
} fault_run;

/** The stage of a fault that is one. Runs ask it for each element. */
static inline int mxi_fault_stage(const mx_fault *f) {
  static const uint8_t of[MX_FAULT_COUNT] = {
#define MX_FAULT(id, stage, ...) [MX_FAULT_##id] = MX_STAGE_##stage,
#include "formats/faults.def"
#undef MX_FAULT
  };
  return of[f->op];
}

/** The maxima of a tensor's blocks as they lie, [down][across]; finite: of the finite numbers alone. */
typedef struct amax_grid {
  const mx_block_stats *stats;
  size_t down, across;
  int finite;
} amax_grid;
static inline float mxi_grid_amax(const amax_grid *g, size_t d, size_t a) {
  const mx_block_stats *s = &g->stats[d * g->across + a];
  return g->finite ? s->amax_finite : s->amax;
}
/** The largest of block rows d0 to d1 and block columns a0 to a1, both without the last, as far as the grid goes. */
float mxi_grid_largest(const amax_grid *g, size_t d0, size_t d1, size_t a0, size_t a1);

/** Run the stages from the input to the plain scales on x [rows][cols], row stride ld. The caller closes r also after an error. MX_ERR_CONFLICT,
 *  MX_ERR_NOMEM, MX_ERR_DATA. */
mx_status mxi_fault_open(fault_run *r, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld, const mx_fault *faults,
                         size_t n, mx_error *err);
/** The two halves of that: up to the tensor's numbers, which may already say that this is not the run; and the blocks. */
mx_status mxi_fault_begin(fault_run *r, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld, const mx_fault *faults,
                          size_t n, mx_error *err);
mx_status mxi_fault_blocks(fault_run *r, mx_error *err);
void mxi_fault_close(fault_run *r);
/** Change the faults of a run, but only those of the stages from block amax on. */
void mxi_fault_set(fault_run *r, const mx_fault *faults, size_t n);
/** Set the tensor's maximum to amax and make the plain scales again. */
mx_status mxi_fault_set_amax(fault_run *r, float amax);

/** Make the codes of all scales, as the elements use them (r->used) and as they are stored. Returns 1 if the spec refuses a value, else 0. */
int mxi_fault_scales(fault_run *r, uint32_t *stored);
/** The same of block rows [first, end) alone, whose scales do not depend on other rows unless a fault takes them from there. */
int mxi_fault_scales_of(fault_run *r, uint32_t *stored, size_t first, size_t end);
int mxi_fault_moves_rows(const fault_run *r);
/** Write the codes of the elements in block rows [first, end) to codes [rows][cols], under scales [down][across] (NULL: r->used). */
void mxi_fault_codes(const fault_run *r, uint8_t *codes, const uint32_t *scales, size_t first, size_t end);
/** Move codes and scales as the faults of the last stages do. Returns 0 if a fault's layout does not fit the number of scales. */
int mxi_fault_layout(const fault_run *r, uint8_t *codes, uint32_t *stored);
/** Is it a fault of the distance between rows of scales? */
int mxi_fault_is_pitch(int op);

/** Is it a fault by which the transposed matrix is quantised? mx_quantize_faulty() alone runs those. */
int mxi_fault_is_down(const mx_fault *f);

/** Is block (d, a) in the region? A region of elements holds every block. */
int mxi_region_has_block(const fault_run *r, const mx_region *region, size_t d, size_t a);
/** Is element (row, col) in the region? */
int mxi_region_has_element(const fault_run *r, const mx_region *region, size_t row, size_t col);
/** The same of where a fault acts: in both of its regions. */
int mxi_fault_block_in(const fault_run *r, const mx_fault *f, size_t d, size_t a);
int mxi_fault_element_in(const fault_run *r, const mx_fault *f, size_t row, size_t col);
int mxi_fault_is_everywhere(const mx_fault *f);
/** Is a region of that kind a set or an interval of numbers, not a word alone? */
int mxi_region_has_numbers(int of);
static inline int mxi_region_of_elements(const mx_region *r) {
  return r->of == MX_REGION_ELEMENTS || r->of == MX_REGION_NEGATIVE || r->of == MX_REGION_POSITIVE || r->of == MX_REGION_COLUMNS ||
         r->of == MX_REGION_MEMORY;
}
/** Are elements of one block inside it and others outside? */
int mxi_fault_of_elements(const mx_fault *f);

/** The row, block or column that a fault which takes from another place takes from: so many away, or that whose number is its own xor so many, or its own
 *  modulo so many, or the first of so many; its own beyond the ends. */
static inline size_t mxi_fault_other(const mx_fault *f, size_t at, size_t n) {
  const size_t by = (size_t)(ptrdiff_t)f->number; /* a negative number wraps to one beyond the end */
  size_t to = at;
  switch (f->op) {
  case MX_FAULT_STORE_ROW_XOR:
  case MX_FAULT_STORE_BLOCK_XOR:
  case MX_FAULT_DIVISOR_ROW_XOR:
  case MX_FAULT_DIVISOR_BLOCK_XOR:
  case MX_FAULT_CODE_COLUMN_XOR:
  case MX_FAULT_CODE_SIGN_XOR:
  case MX_FAULT_LAYOUT_ROW_XOR:
  case MX_FAULT_LAYOUT_CODES_ROW_XOR:
  case MX_FAULT_LAYOUT_BLOCK_XOR:
    to = at ^ by;
    break;
  case MX_FAULT_AMAX_FIRST_ROW:
  case MX_FAULT_AMAX_FIRST_BLOCK:
  case MX_FAULT_STORE_FIRST_ROW:
  case MX_FAULT_STORE_FIRST_BLOCK:
  case MX_FAULT_DIVISOR_FIRST_ROW:
  case MX_FAULT_DIVISOR_FIRST_BLOCK:
    if (f->number >= 1) to = at - at % by;
    break;
  case MX_FAULT_AMAX_ROW_MODULO:
  case MX_FAULT_AMAX_BLOCK_MODULO:
  case MX_FAULT_STORE_ROW_MODULO:
  case MX_FAULT_STORE_BLOCK_MODULO:
  case MX_FAULT_DIVISOR_ROW_MODULO:
  case MX_FAULT_DIVISOR_MODULO:
    if (f->number >= 1) to = at % by;
    break;
  default:
    to = at + by;
  }
  return to < n ? to : at;
}

/** The f-th of the formats that a fault may name: elements, then scales. */
const mx_format *mxi_fault_format(int f);
/** x rounded to format f: to nearest even, saturating. */
double mxi_fault_to_format(int f, double x);

/* Make r->x from the input: the faults and steps before blocks are formed. */
mx_status mxi_fault_input(fault_run *r, const float *src, size_t ld, mx_error *err);
/* The code that the low bits of an integer are. The code of the scale of the block's own maximum times the argument. */
uint32_t mxi_fault_code_of(const mx_format *f, double code);
/* amax.c: the code of the scale of a block of the other direction, k-th row after row of so many rows and columns of them; of one with a NaN or an Inf
 * `otherwise`. */
uint32_t mxi_fault_code_down(const fault_run *r, size_t down, size_t across, uint32_t otherwise);
uint32_t mxi_fault_code_of_amax(const fault_run *r, const mx_fault *f, size_t d, size_t a, uint32_t otherwise);
/* rounding.c: the code that a fault makes of the scale of a block whose maximum is that of st. */
uint32_t mxi_fault_scale_rounded(const fault_run *r, const mx_fault *f, size_t d, size_t a, const mx_block_stats *st, int map_to_4,
                                 uint32_t code);
/* amax.c: is the first of a block's largest elements negative? */
int mxi_fault_largest_is_negative(const fault_run *r, size_t d, size_t a);
/* amax.c: what the rule sees of a block after the faults of its maximum; `changed` if there are any. */
mx_block_stats mxi_fault_stats(const fault_run *r, size_t d, size_t a, int *changed);
/* The scale of block k as its rule has it before it is rounded, in binary32. 0: it rounds no number. */
int mxi_fault_unrounded_scale(mx_block_scale *out, const fault_run *r, size_t k);
/* Rules by which kernels make a power of two of a block's maximum, scale.rule with scale.round. NULL beyond the last. */
typedef struct fault_rule {
  const char *name;
  int rule, round;
} fault_rule;
const fault_rule *mxi_fault_rule(int k);
/* No key has these: the exponent of the maximum, one more from one and a half of its power of two on; and its log2 cast to an integer. */
enum { MXI_RULE_HALF_UP = -1, MXI_RULE_CAST = -2 };
/* The code by the rule that the fault names, of a block k with that maximum. */
uint32_t mxi_fault_code_by_rule(const fault_run *r, const mx_fault *f, const mx_block_stats *st, size_t k, uint32_t otherwise);
/* The code of a scale that is made with another largest element. 1: the spec refuses the block. */
int mxi_fault_scale_of_largest(uint32_t *code, const mx_plan *plan, const mx_block_stats *st, float largest, uint64_t index);
/* What a block is computed with. */
const mx_plan *mxi_fault_plan(const fault_run *r, size_t d, size_t a);
/* The largest magnitude of rows [first, end), as the spec counts it. */
mx_status mxi_fault_rows_amax(float *out, const fault_run *r, size_t first, size_t end);
/* Gives a plan the numbers of a tensor with that maximum. */
void mxi_fault_set_tensor(mx_plan *plan, const fault_run *r, float amax);
/* The maximum that group g of rows is computed with, from that of the group before it, under a fault of the tensor scale. */
mx_status mxi_fault_group_amax(float *out, const fault_run *r, const mx_fault *f, size_t g, float before);
static inline int mxi_fault_is_running(int op) { return op == MX_FAULT_TENSOR_SCALE_RUNNING || op == MX_FAULT_TENSOR_SCALE_BEFORE; }
static inline int mxi_fault_is_grouping(int op) {
  return op == MX_FAULT_TENSOR_SCALE_ROWS || op == MX_FAULT_TENSOR_SCALE_LAST || mxi_fault_is_running(op);
}
/* Does the fault of the input make a row from others, or from numbers of the whole tensor? */
static inline int mxi_fault_reads_other_rows(int op) {
  return op == MX_FAULT_INPUT_SCALED_FORMAT || op == MX_FAULT_INPUT_OVER_COLUMN || op == MX_FAULT_INPUT_OVER_ROOT ||
         op == MX_FAULT_INPUT_TRANSPOSED || op == MX_FAULT_INPUT_PITCH || op == MX_FAULT_INPUT_COLUMN;
}
/* Makes the plans of the groups of rows that a fault of the tensor scale takes for tensors. */
mx_status mxi_fault_set_groups(fault_run *r);
/* A maximum that a fault made: between 0 and the largest binary32. */
float mxi_fault_as_amax(float x);
/* The number that the fault puts in the place of a block's maximum `before`; and of the tensor's, in r->amax; src, row
 * stride ld, is the input as it was given. */
float mxi_fault_block_amax(const fault_run *r, const mx_fault *f, size_t d, size_t a, float before);
mx_status mxi_fault_tensor_amax(fault_run *r, const float *src, size_t ld);
/* Does the fault of the tensor scale change what is stored as well? */
int mxi_fault_stores_tensor(int op);
/** Is it another one that is stored alone, while what is computed with is right? */
int mxi_fault_stores_tensor_alone(int op);
/* The plan of a kernel whose arithmetic has the tensor scale of fault f; what it stores is that of p. */
void mxi_fault_give_tensor(mx_plan *out, const mx_plan *p, const mx_fault *f);
/* The code of one element: its division, rounding and what follows, with the faults of those stages. */
struct fault_block;
uint32_t mxi_fault_element(const fault_run *r, const struct fault_block *b, size_t row, size_t col);

#endif
