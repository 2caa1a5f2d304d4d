/** Defines the status of a call and the one line that explains a failure.
 *
 *  Every function that can fail returns mx_status. Functions that meet files or text also take an mx_error, which may be NULL: on failure
 *  it holds one line that says what is wrong, where (file, byte, key) and what was expected. The library never prints and never exits. */
#ifndef MXGOLD_STATUS_H
#define MXGOLD_STATUS_H

#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "mxgold is for little-endian processors: words are stored as they lie in memory, and on this one every scale would be wrong"
#endif

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** What became of a call: MX_OK, or one of the errors of formats/status.def. */
typedef enum mx_status {
#define MX_STATUS(id, text) MX_##id,
#include "../../formats/status.def"
#undef MX_STATUS
  MX_STATUS_COUNT
} mx_status;

/** The status of a failed call with one line that explains it; zero at first. */
typedef struct mx_error {
  mx_status status;
  char text[480];
} mx_error;

/** The text of a status, never NULL; unknown values give "unknown status". Threads: reentrant. */
const char *mx_status_text(mx_status status);

/** Fill err (may be NULL) with a formatted line and return status, so that a call can end in `return mx_fail(...)`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
mx_status
mx_fail(mx_error *err, mx_status status, const char *format, ...);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
