/*
 * fd_kinds/saved_directories_restore.h - at a restart: directories of which all files were saved (saved_directories_dump.h)
 * have no other files.
 */
#ifndef SUPERVISOR_FD_KINDS_SAVED_DIRECTORIES_RESTORE_H
#define SUPERVISOR_FD_KINDS_SAVED_DIRECTORIES_RESTORE_H

#include <stdbool.h>

#include "ckpt/image.h"
#include "lib/err.h"

struct image;

/* Whether @o is such a directory. */
bool fd_saved_is_set(const struct image_object *o);

/* Before files are put back: moves aside (set_file_aside.h) files and symbolic links that were made in those directories after
 * the checkpoint, but for the standard streams and what this process has opened with O_CLOEXEC; and makes the
 * directories that are missing. */
int fd_saved_clear_sets(
	const struct image *job, void (*notice)(const char *line), struct err *e);

#endif
