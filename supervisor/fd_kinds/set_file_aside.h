/*
 * fd_kinds/set_file_aside.h - at a restart, a file that is in the way of a saved one, or that the program did not
 * have, is not removed: it is kept beside it as FILE.trecr-aside (.1, .2, ...).
 */
#ifndef SUPERVISOR_FD_KINDS_SET_FILE_ASIDE_H
#define SUPERVISOR_FD_KINDS_SET_FILE_ASIDE_H

#include <stdbool.h>

#include "lib/err.h"

bool fd_is_aside(const char *name);

/* The name for the file @path where there are @number such files already. The caller's to free. */
char *fd_aside_name(const char *path, unsigned number);

/* Renames the file @name in the directory @in; @path is its whole path. Returns its new path, the caller's
 * to free, or NULL with @e filled. */
char *fd_move_aside(int in, const char *name, const char *path, struct err *e);

/* Tells the user that the file @path, which was made after the checkpoint, is @aside now. */
void fd_tell_moved_aside(void (*notice)(const char *line), const char *path, const char *aside);

#endif
