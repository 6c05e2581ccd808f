/*
 * shown_path.h - paths that /proc shows (links of descriptors, names of mappings), as we open
 * them.
 *
 * The kernel shows a path from the reader's root directory on, if the file is below that
 * (d_path(), fs/d_path.c). In another mount namespace it is not: there the path is shown from
 * the top of that namespace on. For us in a chroot it then begins with the directory that is
 * the root of the processes there.
 */
#ifndef LIB_SHOWN_PATH_H
#define LIB_SHOWN_PATH_H

#include <sys/types.h>

#include "lib/err.h"

/* From now on: the root directory of @task is ours, perhaps in another mount namespace. */
void shown_paths_of(pid_t task);

/* @path without what it begins with for that reason, in place. Returns @path. */
char *shown_path(char *path);

/* What the link leads to. The caller frees it; NULL on failure. */
char *read_shown_link(const char *link, struct err *e);

#endif
