/*
 * fd/shared_window.h - memory that ranks of MPI share in a window (shared/shared_window.h). Each rank has a supervisor
 * and an image of its own: of the file, an image has the pages that belong to its rank, so that each page is saved
 * once. At a restart all ranks open one file again, by a name that only they know, and each fills in what it has.
 */
#ifndef SUPERVISOR_FD_SHARED_WINDOW_H
#define SUPERVISOR_FD_SHARED_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ckpt/image_read.h"
#include "lib/err.h"

/* Whether @name, as /proc shows it or an image has it, is that of such a file. */
bool fd_window_is(const char *name);

/* Which bytes of the file [*from, *to) are rank @rank's to save, where process @pid has its beginning mapped at
 * @address: all of them, if @rank is negative, or if the window has been freed. 0, or -1 with @e filled. */
int fd_window_part(
	pid_t pid, uint64_t address, int rank, uint64_t *from, uint64_t *to, struct err *e);

/* What is made from now on, in this process and its children, is shared with the ranks that say the same @restart, a
 * word of letters and digits. NULL: with nobody. */
void fd_window_share(const char *restart);

/* The file that the object called @name was, of any size, perhaps filled by other ranks already, which may have given
 * it to @owner: a descriptor, or -1 with @e filled, also where the file is anybody else's. */
int fd_window_open(const char *name, uid_t owner, struct err *e);

/* Whether fd_window_open() makes it. */
bool fd_window_is_shared(const char *name);

/* All ranks have opened the files of image @job, or have given up: remove their names. */
void fd_window_remove_names(const struct image *job);

#endif
