/* Declares what a run keeps on disk: parameters, the state that a resume needs, metrics and digests. */
#ifndef TRAIN_FILES_H
#define TRAIN_FILES_H

#include <stdio.h>

#include "train/run/config.h"
#include "train/run/diverge.h"

/** Parameters of the model, or with gradients its gradients, under their names. */
mx_status mxi_write_parameters(const char *path, const mxi_model *m, int gradients, mx_error *err);
/** Parameters from such a file: every name with its shape, no other. */
mx_status mxi_read_parameters(const char *path, mxi_model *m, mx_error *err);
/* A matrix of float32 that the state keeps beside parameters and moments. */
typedef struct mxi_kept {
  char name[2 * MXI_NAME];
  size_t rows, cols;
  const float *values;
} mxi_kept;

/* What the state says of the run that wrote it, as digests: of its data, of the parameters that it began with, of the lines of digests.txt. */
typedef struct mxi_origin {
  char data[33], begun[33], lines[33]; /* read of a state that does not say it: "" */
} mxi_origin;

/** Writes and reads the state after `step` steps; kept [n_kept] is included (mxi_metrics_state()). late: the text of mxi_threshold_print(); the
 *  caller frees what was read. A state whose bytes are not those that were written is refused with MX_ERR_FORMAT. */
mx_status mxi_write_state(const char *path, const mxi_model *m, const mxi_optim *o, const mxi_divergence *d, uint64_t step, const char *late,
                          const mxi_origin *origin, const mxi_kept *kept, size_t n_kept, mx_error *err);
mx_status mxi_read_state(const char *path, mxi_model *m, mxi_optim *o, mxi_divergence *d, uint64_t *step, char **late, mxi_origin *origin,
                         mx_error *err);

/* A file of lines that grows by a step: "{"step": N, ..." or "N ...". */
typedef struct mxi_lines {
  FILE *to;
  const char *path;
  char chain[33]; /* of the lines that went through mxi_lines_put(): the digest of the chain before a line and the line, "" at first */
} mxi_lines;
/** Adds a line to the file and to the chain. */
void mxi_lines_put(mxi_lines *l, const char *line);
/** Opens it for appending. resume: lines of steps from `step` on, which the run wrote after its last checkpoint, are cut off, and MX_ERR_FORMAT if
 *  those of the steps before are not there; otherwise the file begins anew. */
mx_status mxi_lines_open(mxi_lines *l, const char *path, int resume, uint64_t step, mx_error *err);
mx_status mxi_lines_close(mxi_lines *l, mx_error *err);
/** Reads loss and evaluations from the last whole line of a run's metrics; what the line lacks stays as it is. For a run that is resumed after
 *  its last step. MX_ERR_IO. */
mx_status mxi_last_metrics(mx_train_result *result, const char *path, mx_error *err);
/** The number that a line begins with, after whatever is not a digit; UINT64_MAX without one. */
uint64_t mxi_line_step(const char *line);

/** All bytes of a file, *n of them; *out is the caller's to free, and NULL on failure. MX_ERR_IO, MX_ERR_NOMEM. */
mx_status mxi_read_bytes(uint8_t **out, size_t *n, const char *path, mx_error *err);
/** Write a member of a JSON object, with `before` (", " or "") in front of it; null for a value that is not finite, since JSON has no such numbers. */
void mxi_json_number(FILE *to, const char *before, const char *name, double value);

#endif
