/* Names of temporary files that a signal must remove. Internal to src/io/. */
#ifndef MX_IO_CLEANUP_H
#define MX_IO_CLEANUP_H

/* A new file beside target, which rename() can give its name: it cannot cross file systems. Its own name is short, whatever the target's is; its mode
 * is the old file's if there is one. It is registered with no gap in which a signal would leave it behind. -1 with errno. *temporary is the caller's
 * to free; *slot is for io_forget_temporary(), negative when all slots are taken (then the file is not watched). */
int io_create_beside(const char *target, char **temporary, int *slot);
void io_forget_temporary(int slot);
/* A temporary file has got its name: a signal may no longer say that nothing was changed. */
void io_finished(void);

#endif
