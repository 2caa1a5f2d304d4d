/* Declares the table of temporary files that a signal must remove. Internal to src/io/. */
#ifndef MX_IO_BASE_CLEANUP_H
#define MX_IO_BASE_CLEANUP_H

/* Creates a file in the folder of target, so that it can later be given that name, which cannot cross file systems. It has the mode of the
 * old file if there is one. Returns -1 with errno on failure. If the file system supports files without names it is one, *temporary is NULL,
 * and nothing is left behind however the process ends. Otherwise it has a short name, registered without a moment in which a signal would
 * leave it behind; the caller frees *temporary; *slot is for mxi_io_drop_temporary(), and negative if all slots are taken (the file is then
 * not watched). A file that a killed process left for the same target is removed. */
int mxi_io_create_beside(const char *target, char **temporary, int *slot);
/* Gives the finished file its name, without a moment in which a signal would wrongly say that no file was changed. Under MXGOLD_SYNC it
 * first waits until the file is on the disk. It always closes fd. Returns -1 with errno on failure. */
int mxi_io_give_name(int fd, const char *temporary, const char *target);
/* For signal handlers: removes the temporary files, prints the three texts on standard error, and ends the process with status 2. */
_Noreturn void mxi_io_end(const char *before, const char *path, const char *behind);
/* Forgets the file, and removes it if temporary is not NULL. */
void mxi_io_drop_temporary(const char *temporary, int slot);

#endif
