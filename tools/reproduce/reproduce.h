/* Declares the sections of make reproduce-tensor, which computes the tensor tables of the FP4 papers again: one function a section. */
#ifndef REPRODUCE_H
#define REPRODUCE_H

#include <stddef.h>
#include <stdint.h>

#include "mxgold/ablate.h"

/* ---- Report ---- */

/** A heading and a paragraph, then a table of rows until the next section. */
void section(const char *title, const char *text);
/** A stated figure beside ours: agrees within the tolerance. format prints both. */
void figure(const char *what, double stated, double ours, double tolerance, const char *format);
/** The same for figures that samples move: ours is the mean of n seeds, spread their standard deviation. They agree where one more sample would lie. */
void sampled(const char *what, double stated, double ours, double spread, int n, double tolerance, const char *format);
/** A figure of the very sample that is stated, with the least, mean and most of other samples. stated 0: nothing is stated. */
void sample_figure(const char *what, double stated, double ours, double tolerance, double least, double mean, double most, const char *format);
/** Text that must be equal. */
void exactly(const char *what, const char *stated, const char *ours);
/** Ours alone: nothing is stated. */
void ours_alone(const char *what, double ours, const char *format);
/** A paragraph after a table. */
void remark(const char *text);
/** Print all to standard output. Returns 0, 1 if memory ran out. */
int report_print(void);

/* ---- The samples that stated figures are of ---- */

typedef struct draws draws;
/** numpy.random.default_rng(seed). The caller frees it. */
draws *draws_new(uint32_t seed);
/** What comes next of it: gaussian, laplace, student or rows. The caller frees it. */
float *draws_tensor(draws *d, size_t rows, size_t cols, const mx_data *data);

/* ---- Measuring ---- */

extern int repeats; /* of random configurations; 16 unless given */

/** A spec from keys, or "preset KEY=VALUE ..." where the first word has no '='. Ends the program on a mistake: the text is ours. */
mx_spec spec_of(const char *text);
/** SQNR of [rows][cols] of a generator under a spec, over seeds 0 to n_seeds - 1: mean and standard deviation. */
double mean_sqnr(double *spread, const char *data, size_t rows, size_t cols, const char *spec, int n_seeds);
/** SQNR of a tensor that is there. */
double sqnr_of(const float *x, size_t rows, size_t cols, const char *spec);
/** One row through a spec and back. */
void through(float *out, const float *x, size_t n, const char *spec);
/** Decode scale of the first block. */
double scale_of(const float *x, size_t n, const char *spec);
/** "[a b c]" in %g of each value. */
const char *list_text(char *room, size_t size, const float *x, size_t n, const char *format);

/* ---- Sections ---- */

void normalisers(void);
void scale_rounding(void);
void scale_rules(void);
void zero_scales(void);
void worked_examples(void);
void rotations(void);
void for_every_value(void);
void blocks_2d(void);
void formats(void);
void orders(void);
void few_bits(void);
void gain_and_bias(void);
void clamping(void);
void gradient_estimator(void);
void scale_formats(void);
void without_training(void);

#endif
