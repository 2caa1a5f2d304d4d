/* Names of temporary files that a signal must remove. Internal to src/io/. */
#ifndef MX_IO_CLEANUP_H
#define MX_IO_CLEANUP_H

/* A new file beside target, which rename() can give its name: it cannot cross file systems. Its own name is short, whatever the target's is; its mode
 * is the old file's if there is one. It is registered with no gap in which a signal would leave it behind. -1 with errno. *temporary is the caller's
 * to free; *slot is for mxi_io_drop_temporary(), negative when all slots are taken (then the file is not watched). */
int mxi_io_create_beside(const char *target, char **temporary, int *slot);
/* rename() of a finished file, with no gap in which a signal would say that nothing was changed. -1 with errno. */
int mxi_io_give_name(const char *temporary, const char *target);
/* For handlers of signals: take away the temporary files, say these three on standard error, and end the process with status 2. */
_Noreturn void mxi_io_end(const char *before, const char *path, const char *behind);
/* Forget the file; take it away if temporary is not NULL. */
void mxi_io_drop_temporary(const char *temporary, int slot);

#endif
