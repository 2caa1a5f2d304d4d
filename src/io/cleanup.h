/* Names of temporary files that a signal must remove. Internal to src/io/. */
#ifndef MX_IO_CLEANUP_H
#define MX_IO_CLEANUP_H

/* Create path (O_EXCL) and register it, with no gap in which a signal would leave it behind; -1 with errno. *slot is for
 * io_forget_temporary(), negative when all slots are taken (then the file is not watched). */
int io_create_temporary(const char *path, int *slot);
void io_forget_temporary(int slot);

#endif
