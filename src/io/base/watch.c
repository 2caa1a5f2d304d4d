/* Ends the process cleanly when a mapped file is cut short while it is read.
 *
 * As in cleanup.c the state is in static storage, so that a handler reads nothing that could be freed meanwhile. Beside what cleanup.c does,
 * the handler calls only fstat(), write(), unlink() and _exit(). */
#include "io/base/watch.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "io/base/cleanup.h"
#include "mxgold/file.h"

/* Files beyond this number are mapped but not watched: a SIGBUS for them ends the process as it would without a guard. */
enum { N_WATCHED = 1024, FREE = 0, TAKEN, READY };

static struct {
  atomic_int state;
  const uint8_t *base;
  size_t n_bytes;
  int fd;
  char path[256]; /* its first characters */
} files[N_WATCHED];

static atomic_int guarded, shrunk; /* shrunk: 1 while its path is being written down, then 2 */
static char shrunk_path[sizeof files[0].path];

static int is_short(int i) {
  struct stat st;
  return files[i].fd >= 0 && !fstat(files[i].fd, &st) && (uint64_t)st.st_size < files[i].n_bytes;
}

static void note(const char *path) {
  int was = 0;
  if (!atomic_compare_exchange_strong(&shrunk, &was, 1)) return;
  memcpy(shrunk_path, path, sizeof shrunk_path);
  atomic_store(&shrunk, 2);
}

void mxi_io_watch(const char *path, const uint8_t *base, size_t n_bytes, int fd) {
  for (int i = 0; i < N_WATCHED; i++) {
    int was = FREE;
    if (!atomic_compare_exchange_strong(&files[i].state, &was, TAKEN)) continue;
    files[i].base = base;
    files[i].n_bytes = n_bytes;
    files[i].fd = fd;
    strncpy(files[i].path, path, sizeof files[i].path - 1);
    atomic_store(&files[i].state, READY);
    return;
  }
}

void mxi_io_unwatch(const uint8_t *base) {
  for (int i = 0; i < N_WATCHED; i++) {
    if (atomic_load(&files[i].state) != READY || files[i].base != base) continue;
    if (atomic_load(&guarded) && is_short(i)) note(files[i].path);
    atomic_store(&files[i].state, FREE);
    return;
  }
}

const char *mx_file_shrunk(void) {
  for (int i = 0; i < N_WATCHED && atomic_load(&guarded) && !atomic_load(&shrunk); i++)
    if (atomic_load(&files[i].state) == READY && is_short(i)) note(files[i].path);
  return atomic_load(&shrunk) == 2 ? shrunk_path : NULL;
}

mx_status mxi_io_check_inputs(mx_error *err) {
  const char *path = mx_file_shrunk();
  return path ? mx_fail(err, MX_ERR_IO, "%s shrank while being read", path) : MX_OK;
}

/* An address in a watched mapping means that the file has become shorter or cannot be read. For any other address the signal does what it
 * would have done without this handler. */
static void on_bus_error(int sig, siginfo_t *info, void *context) {
  (void)context;
  const uint8_t *at = info->si_addr;
  for (int i = 0; i < N_WATCHED; i++)
    if (atomic_load(&files[i].state) == READY && at >= files[i].base && (size_t)(at - files[i].base) < files[i].n_bytes)
      mxi_io_end("mxgold: ", files[i].path, is_short(i) ? " shrank while being read\n" : " cannot be read: I/O error\n");
  signal(sig, SIG_DFL);
}

void mx_file_install_guard(void) {
  struct sigaction act = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
  sigemptyset(&act.sa_mask);
  sigaction(SIGBUS, &act, NULL);
  atomic_store(&guarded, 1);
}
