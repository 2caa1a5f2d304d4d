/* Declares the words and the JSON for what identify found. */
#ifndef CLI_VERIFY_VERDICT_H
#define CLI_VERIFY_VERDICT_H

#include "cli/verify/confirm.h"
#include "mxgold/mxgold.h"

enum { VERDICT_OPTIONS = 128 };
typedef struct verdict_option {
  char text[MX_FAULT_TEXT];
} verdict_option;

/** Options of `mxgold quantize` that give the spec: --preset P --set K=V ... Returns how many. */
size_t verdict_options(verdict_option out[VERDICT_OPTIONS], const mx_identity *id);
/** The same in one line, each that a shell would split in quotes. */
void verdict_options_line(char *out, size_t size, const mx_identity *id);
/** "FAULT; FAULT". */
enum { VERDICT_FAULTS = MX_FAULTS * (MX_FAULT_TEXT + 2) };
void verdict_faults(char out[VERDICT_FAULTS], const mx_fault *faults, size_t n);
/** "confirmed", "fits" or "none". */
const char *verdict_grade(const mx_identity *id);
/** Is there a command that gives every byte again, or nearly? Not where a bug has no words that run, nor where more than one byte in 20 stays wrong. */
int verdict_reproduces(const mx_identity *id);
/** One or two sentences, at most size bytes. Returns MX_OK or MX_ERR_NOMEM. */
mx_status verdict_sentence(char *out, size_t size, const mx_identity *id);
/** The mxgold gen command of the vectors that decide undecided keys: one line a suite, "mxgold gen SUITE ... -o FILE: key key", malloc'ed, returns
 *  how many, or SIZE_MAX if memory ran out. no_effect (size bytes) gets the keys that nothing decides. */
enum { VERDICT_SUITES = 8 };
size_t verdict_gen(char *lines[VERDICT_SUITES], char *no_effect, size_t size, const mx_identity *id);
/** What is said beside an identity; the zero struct: nothing. */
typedef struct verdict_more {
  const char *nibble, *layout; /* how codes and scales were packed; NULL where it does not matter */
  int turned;                  /* the input was transposed */
  int row_scales;              /* each row has a tensor scale, which no command of mxgold gives */
  const held *held;            /* what became of the answer on another launch, or NULL */
  const int *expected;         /* whether the kernel gives the bytes that were expected; NULL: nothing was */
  const char *plugin;          /* the kernel that was run, or NULL */
} verdict_more;
/** Did another launch speak against what was found, so that there is no answer? */
int verdict_is_withdrawn(const verdict_more *more);
/** verdict_sentence() with what another launch says of it. */
mx_status verdict_with(char *out, size_t size, const mx_identity *id, const verdict_more *more);
/** The JSON object of `identify --json`, malloc'ed; NULL if memory ran out. */
char *verdict_json(const mx_identity *id, const verdict_more *more);

#endif
