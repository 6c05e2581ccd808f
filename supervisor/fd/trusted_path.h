/*
 * fd/trusted_path.h - open files by the names that an image has.
 *
 * Such a name led over no symbolic link when the checkpoint was made, as the kernel told it, except for those of
 * sockets, which are as the program had them: these are checked at a checkpoint. A link that is there at the restart
 * may be an attempt to lead root, which opens files for programs of other users, to a file of root's.
 */
#ifndef SUPERVISOR_FD_TRUSTED_PATH_H
#define SUPERVISOR_FD_TRUSTED_PATH_H

#include <stdbool.h>

#include "lib/err.h"

/* open(2) of an existing file, but that root follows symbolic links of root's only. -1 and errno
 * (ELOOP: another's link). */
int fd_open_trusted(const char *path, int flags);

/* The same of the directory @path, as seen from the directory @in. */
int fd_open_trusted_in(int in, const char *path);

/* Fails when fd_open_trusted() would for a link of another user's, which @e names; @flags: with O_NOFOLLOW
 * @path may be a link itself. What else is wrong with @path, opening it tells. */
int fd_check_trusted(const char *path, int flags, struct err *e);

/* Whether nobody but us and root can put a link on the way to the directory @path, or anything into the place of
 * our files in it. */
bool fd_path_is_ours(const char *path);

#endif
