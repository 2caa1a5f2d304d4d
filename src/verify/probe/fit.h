/* Declares what the files that fit a model share. */
#ifndef MX_VERIFY_PROBE_FIT_H
#define MX_VERIFY_PROBE_FIT_H

#include "mxgold/isa.h"
#include "verify/probe/probe.h"

/* How many bits of a sum are tried at most, as formats/accumulation_keys.def allows them; those of a unit of which nothing was read (binary32's
 * and one more); and how many its sums carry beyond F. */
enum { PROBE_MOST_BITS = 40, PROBE_USUAL_BITS = 24, PROBE_CARRY_BITS = 7 };
/* c_drop is tried in single steps up to here. Beyond, only a C far below every sum is dropped, and a few numbers are enough. */
enum { PROBE_FINE_DROP = 60 };

/* A model without its types. */
typedef struct probe_guess {
  mx_accum x;
  int k; /* of an instruction; 0: all of K */
} probe_guess;

/* Batches with the results of the device. */
typedef struct probe_data {
  const mx_probe *batches;
  const void *const *d;
  size_t n;
  const mx_exec *exec;
  mma_kept **kept; /* [n], NULLs among them; or NULL */
  shortage *lack;  /* of the call: where memory runs out, it is noted there */
} probe_data;

/* --- score.c --- */
void mxi_probe_model(mx_mma_model *m, const mx_probe_spec *s, const probe_guess *g);
int mxi_probe_valid(const mx_probe_spec *s, const probe_guess *g);
int mxi_probe_differs(const mx_format *d, uint64_t x, uint64_t y, int exact);
/* Runs g on probes first .. first+n-1. Returns 0 if the model is not valid. */
int mxi_probe_run(uint8_t *d, const probe_list *l, size_t first, size_t n, const probe_guess *g);
/* Counts probes that g gets wrong; the count may stop once it is past bound. SIZE_MAX: the model is not valid. first_wrong may be NULL. exact: NaN
 * bits count. */
size_t mxi_probe_wrong(const probe_list *l, const probe_guess *g, size_t bound, int exact, size_t *first_wrong);
/* The same for every output of the tiles to be fitted, or of those kept. */
size_t mxi_probe_wrong_tiles(const probe_data *data, const probe_guess *g, int kept, size_t bound, int exact);

/* --- keys.c: the keys of accumulation_keys.def with the values worth trying --- */
enum { PROBE_MAX_VALUES = 700 };
typedef struct probe_key {
  const char *name;
  size_t offset; /* in probe_guess */
  int is_number;
} probe_key;
extern const probe_key mxi_probe_keys[];
extern const size_t mxi_probe_n_keys;
int *mxi_probe_field(probe_guess *g, size_t key);
int mxi_probe_field_value(const probe_guess *g, size_t key);
size_t mxi_probe_key_find(const char *name);
/* A field of floor, c_drop or out_bits that is not none, as a number, and back (MX_ACC_NUMBER_0 is 0). */
int mxi_probe_number(int value);
int mxi_probe_value(int number);
/* Values of a key under these types, ascending, "none" before numbers where it is 0; their count. */
size_t mxi_probe_values(int *values, size_t key, const mx_probe_spec *s);
/* Set a key, and the keys that depend on it so that the model is valid; 0 if it cannot be. */
int mxi_probe_set(probe_guess *g, size_t key, int value, const mx_probe_spec *s);
void mxi_probe_value_text(char *text, size_t size, size_t key, int value);

/* --- read.c --- */
typedef struct probe_readings {
  int F, F_c, F_by_c, F_alone, L; /* below 0: not read */
  int out_bits;                   /* as in mx_accum; 0: all, or not read */
  int alone_bits;                 /* the same of a product that is alone, where it has more itself; 0: nothing shows */
} probe_readings;
void mxi_probe_read(probe_readings *r, mx_probe_fit *out, const probe_list *l);

/* --- search.c --- */
typedef struct probe_found {
  probe_guess g;
  size_t wrong, tried;
} probe_found;
int mxi_probe_search(probe_found *out, const probe_list *l, const probe_readings *r, int threads);

/* --- class.c --- */
mx_status mxi_probe_class(mx_probe_fit *out, const probe_data *data, const probe_list *l, const probe_guess *g, int threads, mx_error *err);
void probe_names(mx_probe_fit *out, const probe_data *data, const probe_list *l, const probe_guess *g);
void mxi_probe_describe(char *text, size_t size, const mx_probe_spec *s, const uint8_t *a, const uint8_t *b, const uint8_t *c,
                        const uint8_t *sa, const uint8_t *sb);
int mxi_probe_products_of(const mx_probe_spec *s, const uint8_t *a, const uint8_t *b);

#endif
