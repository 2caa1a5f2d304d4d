/* Declares a tensor run by blocks with faults in it, a stage at a time: for mx_quantize_faulty(), and for the search for faults. */
#ifndef MX_VERIFY_FAULT_RUN_H
#define MX_VERIFY_FAULT_RUN_H

#include "kernels/block/plan.h"
#include "kernels/block/select.h"
#include "mxgold/layout.h"
#include "mxgold/fault.h"

typedef struct fault_run {
  mx_spec spec; /* of the blocks: rotation, flush and nibbles are done elsewhere */
  mx_plan plan;
  const mx_fault *faults;
  size_t n_faults;
  size_t rows, cols, block_rows, block_cols, down, across;
  float *x;              /* [rows][cols] after input, input.dtype, flush and rotation */
  mx_block_stats *stats; /* of each block of x */
  uint8_t *subnormal;    /* each block: the spec's own scale is subnormal */
  uint8_t *four;         /* each block, with select=foursix: 1: the map to 4 has the smaller error, 2: the larger one; else 0 */
  uint32_t *plain;       /* each block: code that the spec gives x, without the faults of later stages */
  uint32_t *used;        /* each block: code that the elements are divided by */
  float amax;            /* of the tensor */
  struct {               /* room for what is moved: of each block twice, of each element, as codes and as scales */
    uint32_t *blocks;
    uint8_t *bytes, *elements;
  } room;
} fault_run;

/** Input to plain scales of x [rows][cols], row stride ld. The caller closes it in either case. MX_ERR_CONFLICT, MX_ERR_NOMEM, MX_ERR_DATA. */
mx_status mxi_fault_open(fault_run *r, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld, const mx_fault *faults,
                         size_t n, mx_error *err);
void mxi_fault_close(fault_run *r);
/** The same run with other faults of the stages from block amax on; those before must be the same. */
void mxi_fault_set(fault_run *r, const mx_fault *faults, size_t n);
/** The tensor's maximum becomes amax; plain scales follow. */
mx_status mxi_fault_set_amax(fault_run *r, float amax);

/** Codes of all scales: as they are used (r->used) and as they are stored. 0, or 1 for a value that the spec refuses. */
int mxi_fault_scales(fault_run *r, uint32_t *stored);
/** Codes of the elements of rows of blocks [first, end) into codes [rows][cols], under scales [down][across] (NULL: r->used). */
void mxi_fault_codes(const fault_run *r, uint8_t *codes, const uint32_t *scales, size_t first, size_t end);
/** Codes and scales that stand in another place. 0: the layout of a fault is not one of so many scales. */
int mxi_fault_layout(const fault_run *r, uint8_t *codes, uint32_t *stored);

/* region.c, formats.c. */
/** Is block (d, a) in the region? Of its elements too, where the region is one of elements. */
int mxi_fault_block_in(const fault_run *r, const mx_region *region, size_t d, size_t a);
/** Is element (row, col), which is x? */
int mxi_fault_element_in(const fault_run *r, const mx_region *region, size_t row, size_t col);
static inline int mxi_region_of_elements(const mx_region *r) {
  return r->of == MX_REGION_ELEMENTS || r->of == MX_REGION_NEGATIVE || r->of == MX_REGION_POSITIVE || r->of == MX_REGION_COLUMNS;
}

/** The f-th of the formats that a fault may name: elements, then scales. */
const mx_format *mxi_fault_format(int f);
/** x to format f, nearest even, saturating. */
double mxi_fault_to_format(int f, double x);

/* input.c: what happens to x before its blocks are seen. */
mx_status mxi_fault_input(fault_run *r, const float *src, size_t ld, mx_error *err);
/* amax.c: what stands for the maximum of a block; of the tensor. */
float mxi_fault_block_amax(const fault_run *r, const mx_fault *f, size_t d, size_t a, float before);
mx_status mxi_fault_tensor_amax(fault_run *r);
/* elements.c: the divisor with what comes after it. */
struct fault_block;
uint32_t mxi_fault_element(const fault_run *r, const struct fault_block *b, size_t row, size_t col);

#endif
