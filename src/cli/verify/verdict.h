/* Declares the words and the JSON for what identify found. */
#ifndef CLI_VERIFY_VERDICT_H
#define CLI_VERIFY_VERDICT_H

#include "mxgold/mxgold.h"

enum { VERDICT_OPTIONS = 128 };

/** Options of `mxgold quantize` that give the spec: --preset P --set K=V ... Strings are malloc'ed; returns how many. */
size_t verdict_options(char *out[VERDICT_OPTIONS], const mx_identity *id);
/** "confirmed", "fits" or "none". */
const char *verdict_grade(const mx_identity *id);
/** Is there a command that gives every byte again, or nearly? Not where a bug has no words that run, nor where more than one byte in 20 stays wrong. */
int verdict_reproduces(const mx_identity *id);
/** One or two sentences, at most size bytes. */
void verdict_sentence(char *out, size_t size, const mx_identity *id);
/** The mxgold gen command of the vectors that decide undecided keys: one line a suite, "mxgold gen SUITE ... -o FILE: key key", malloc'ed, returns
 *  how many. no_effect (size bytes) gets the keys that nothing decides. */
enum { VERDICT_SUITES = 8 };
size_t verdict_gen(char *lines[VERDICT_SUITES], char *no_effect, size_t size, const mx_identity *id);
/** The JSON object of `identify --json`, malloc'ed; nibble and layout may be NULL. */
char *verdict_json(const mx_identity *id, const char *nibble, const char *layout, int turned);

#endif
