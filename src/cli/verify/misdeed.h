/* Declares the words for what a kernel under test does that is no answer: a crash, a hang, a write out of bounds. */
#ifndef CLI_VERIFY_MISDEED_H
#define CLI_VERIFY_MISDEED_H

#include "cli/verify/plugin.h"

/** "SIGSEGV at address ..." of a crash, "returned 3, no device" of a failure; said: the kernel's last line. As snprintf. */
int misdeed_crash(char *out, size_t size, const plugin_result *got, const char *said);
/** "Your kernel crashes on 64 x 256: ...", of anything but PLUGIN_OK, PLUGIN_DECLINED and trouble of ours; then out becomes empty. */
void misdeed_words(char *out, size_t size, const plugin_result *got, const char *said, size_t rows, size_t cols);
/** Say why the kernel at path cannot be loaded; CLI_TROUBLE. */
int misdeed_load(const char *path, const char *why);

#endif
