/* Declares what every command sees: its options parsed into its own struct, and one way to fail.
 *
 * A command is one file cmd_NAME.c that defines `const cli_command cmd_NAME`, and one row in commands.def. Help, the man page, shell completion and
 * the parser all read the same tables. */
#ifndef CLI_BASE_CLI_H
#define CLI_BASE_CLI_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "mxgold/nearest.h"
#include "mxgold/status.h"

enum { CLI_FINE = 0, CLI_DIFFERS = 1, CLI_TROUBLE = 2, CLI_STOPPED = 3 };

typedef enum cli_kind {
  CLI_FLAG,    /* int: 1 when given */
  CLI_STRING,  /* const char *: NULL when not given */
  CLI_LIST,    /* cli_list: every value of an option that may be repeated */
  CLI_U64,     /* cli_u64 */
  CLI_I64,     /* cli_i64 */
  CLI_F32,     /* cli_f32 */
  CLI_F64,     /* cli_f64 */
  CLI_POS,     /* const char *: an argument without a dash; required */
  CLI_POS_OPT, /* const char *: the same, may be left out */
  CLI_POS_LIST /* cli_list: all that are left */
} cli_kind;

typedef struct cli_list {
  const char **items;
  size_t n;
} cli_list;
typedef struct cli_u64 {
  int given;
  uint64_t v;
} cli_u64;
typedef struct cli_i64 {
  int given;
  int64_t v;
} cli_i64;
typedef struct cli_f32 {
  int given;
  float v;
} cli_f32;
typedef struct cli_f64 {
  int given;
  double v;
} cli_f64;

/** A count of threads from an option, for the library, which holds it to what is sensible; 0 is all processors. */
static inline int cli_threads(const cli_u64 *n) { return n->v > INT_MAX ? INT_MAX : (int)n->v; }

/** The index-th word that an option takes, NULL past the end. */
typedef const char *cli_choices(size_t index);

/** One option or argument. A table of them ends with a row of zeros. */
typedef struct cli_option {
  const char *name; /* without dashes; for positions, what help calls it: "IN[:TENSOR]" */
  char letter;      /* 0 if there is no short form */
  cli_kind kind;
  size_t offset;        /* in the command's struct */
  const char *value;    /* what help calls the value; NULL for flags and positions */
  const char *help;     /* one line */
  cli_choices *choices; /* the words allowed, checked while parsing and offered on completion; NULL: anything */
} cli_option;

typedef struct cli_context {
  int verbose;         /* -v, on every command */
  const char *isa_off; /* --isa-off */
  int sync;            /* --sync */
} cli_context;

typedef struct cli_command {
  const cli_option *options;
  size_t n_args; /* size of the command's struct */
  int (*run)(const cli_context *ctx, void *args);
  const char *details; /* more for help and the man page, paragraphs of plain text; NULL if the summary says it all */
} cli_command;

/** A command with its row of commands.def. */
typedef struct cli_entry {
  const char *name, *summary, *synopsis;
  const cli_command *command;
} cli_entry;

/** The options that every command takes, as a table of cli_context. */
extern const cli_option cli_common_options[];

/** Say "mxgold: ..." in one line on standard error; returns CLI_TROUBLE. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** The same for what the library said. */
int cli_fail(const mx_error *err);
/** Say that nothing by that name is there, with the nearest names: "WHAT 'NAME' is unknown, nearest: a, b". */
int cli_unknown(const char *where, const char *what, const char *name, mx_name_at *at, const void *set);

#endif
