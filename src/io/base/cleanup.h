/* Declares the table of temporary files that a signal must remove. Internal to src/io/. */
#ifndef MX_IO_BASE_CLEANUP_H
#define MX_IO_BASE_CLEANUP_H

/* A new file beside target, which can be given its name: that cannot cross file systems. Its mode is the old file's if there is one. -1 with errno.
 * Where the file system has files without names it is one, *temporary is NULL, and whatever ends the process nothing is left behind. Else it has a short
 * name, registered with no gap in which a signal would leave it; *temporary is the caller's to free; *slot is for mxi_io_drop_temporary(), negative
 * when all slots are taken (then the file is not watched). What a process of the same target left that was killed is taken away. */
int mxi_io_create_beside(const char *target, char **temporary, int *slot);
/* Give the finished file its name, with no gap in which a signal would say that nothing was changed; under MXGOLD_SYNC when it is on the disk. Closes fd
 * always. -1 with errno. */
int mxi_io_give_name(int fd, const char *temporary, const char *target);
/* For handlers of signals: take away the temporary files, say these three on standard error, and end the process with status 2. */
_Noreturn void mxi_io_end(const char *before, const char *path, const char *behind);
/* Forget the file; take it away if temporary is not NULL. */
void mxi_io_drop_temporary(const char *temporary, int slot);

#endif
