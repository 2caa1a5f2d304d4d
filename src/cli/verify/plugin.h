/* Declares how a kernel under test is run in a child process. */
#ifndef CLI_VERIFY_PLUGIN_H
#define CLI_VERIFY_PLUGIN_H

#include "mxgold/mxgold.h"

enum { PLUGIN_POISON = 0xA5 }; /* bytes of scales before the kernel writes them */
/* What a kernel may take unless options say otherwise: seconds of a call, MiB of data and of a file, seconds of the processor. */
enum { PLUGIN_SECONDS = 10, PLUGIN_MEMORY = 16384, PLUGIN_FILE = 1024, PLUGIN_PROCESSOR = 3600 };

typedef enum plugin_end {
  PLUGIN_OK,
  PLUGIN_DECLINED,
  PLUGIN_FAILED, /* it returned neither 0 nor MXGOLD_DECLINED */
  PLUGIN_SIGNAL,
  PLUGIN_EXIT,    /* it ended its own process */
  PLUGIN_OUTSIDE, /* it wrote before or behind a buffer of its own */
  PLUGIN_LATE,
  PLUGIN_LOAD,
  PLUGIN_TROUBLE
} plugin_end;

typedef struct plugin_result {
  plugin_end end;
  int signal;       /* PLUGIN_SIGNAL; SIGXCPU of PLUGIN_LATE if the time of the processor ran out */
  int returned;     /* PLUGIN_FAILED */
  char where[120];  /* of a crash, to follow the signal's name: " at address 0x..., 4 bytes behind the end of codes", or nothing */
  const char *what; /* PLUGIN_OUTSIDE: the buffer */
  char why[300];    /* PLUGIN_LOAD: what the loader says */
  char said[4096];  /* what the kernel wrote to standard error, the first of it */
  mx_tensor tensor; /* PLUGIN_OK: the caller frees it */
} plugin_result;

/** What the child and whatever it starts may take. 0: as much as this process. */
typedef struct plugin_limits {
  double seconds;             /* of wall time */
  uint64_t memory, file;      /* bytes: of data (RLIMIT_DATA), of a file that it writes */
  uint64_t processor_seconds; /* of one process */
} plugin_limits;

/** Run the kernel on one matrix. */
plugin_result plugin_run(const char *path, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                         const plugin_limits *limits);

/** Run work(self) in a process of its own and return what it returns: a kernel that kills or stops its parent does not take away
 *  who tells of it, and ends what is left. */
int plugin_supervise(const char *path, int (*work)(void *self), void *self);

#endif
