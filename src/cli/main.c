/* Runs mxgold COMMAND ...: it finds the command, parses its options and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "help.h"
#include "mxgold/file.h"
#include "mxgold/isa.h"
#include "mxgold/version.h"
#include "cli/base/opts.h"
#include "cli/base/spin.h"

static const char *command_at(const void *entries, size_t index) { return ((const cli_entry *)entries)[index].name; }

/* Started with a standard stream closed, the first file opened would take its number, and messages would go into that file. */
static void hold_standard_streams(void) {
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) _exit(CLI_TROUBLE);
}

/* The library looks at MXGOLD_ISA_OFF whenever it chooses kernels: an option of every command goes by the same way. */
static int switch_isa_off(const char *option) {
  const char *names = option ? option : getenv("MXGOLD_ISA_OFF"), *bad;
  uint32_t off;
  if (!mx_isa_parse(&off, names, &bad))
    return cli_error("%s%s: unknown instruction set '%.*s', expected amx, avx2, avx512, neon or all",
                     option ? "--isa-off " : "MXGOLD_ISA_OFF=", names, (int)strcspn(bad, ","), bad);
  return option && setenv("MXGOLD_ISA_OFF", option, 1) ? cli_error("out of memory") : 0;
}

static int run(const cli_entry *entry, int argc, char **argv) {
  cli_context common = {0};
  int help = 0;
  void *args = calloc(1, entry->command->n_args ? entry->command->n_args : 1);
  if (!args) return cli_error("out of memory");
  int rc = opts_parse(entry, argc, argv, &common, args, &help);
  if (!rc) rc = switch_isa_off(common.isa_off);
  if (!rc && common.sync && setenv("MXGOLD_SYNC", "1", 1)) rc = cli_error("out of memory");
  if (!rc && help)
    help_command(stdout, entry);
  else if (!rc)
    rc = entry->command->run(&common, args);
  opts_free(entry->command->options, args);
  free(args);
  return rc;
}

/* If a mapped input was cut short while it was read, the missing part was read as zeros. */
static int check_inputs(int rc) {
  const char *path = rc == CLI_TROUBLE ? NULL : mx_file_shrunk();
  return path ? cli_error("%s shrank while being read", path) : rc;
}

/* The exit status is the program's own. What a library ends by itself, as libgomp does where memory is short, is trouble and no answer: it exits with 1. */
static int finished;
static void only_own_status(void) {
  if (!finished) _exit(CLI_TROUBLE);
}

/* Output may still stand in a buffer; only here does one learn whether it could be written. */
static int finish(int rc) {
  finished = 1;
  if (fflush(stdout) || ferror(stdout)) {
    if (rc == CLI_TROUBLE) return rc; /* one line has been said */
    return cli_error("standard output: cannot write: %s", strerror(errno));
  }
  return rc;
}

int main(int argc, char **argv) {
  atexit(only_own_status);
  if (argc > 1 && !strcmp(argv[1], "train")) cli_spin_briefly(argv);
  mx_writer_install_signal_cleanup(); /* first of all, so that a signal that comes early is answered in one line too */
  hold_standard_streams();
  /* A closed pipe and a file-size limit come back as errors of write(): one line, exit 2. */
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGCHLD, SIG_DFL); /* if the parent ignored SIGCHLD, no child could be waited for */
  mx_file_install_guard();
  if (argc < 2) return cli_error("no command, expected mxgold COMMAND ...; mxgold help lists them");
  const char *name = argv[1];
  if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
    printf("mxgold %s\n", MX_VERSION);
    return finish(CLI_FINE);
  }
  if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
  const cli_entry *entry = cli_find(name);
  if (!entry) return cli_unknown(NULL, "command", name, command_at, cli_entries);
  return finish(check_inputs(run(entry, argc - 2, argv + 2)));
}
