/*
 * fd_kinds/saved_files_restore.h - at a restart: the files whose contents were saved are put back.
 */
#ifndef SUPERVISOR_FD_KINDS_SAVED_FILES_RESTORE_H
#define SUPERVISOR_FD_KINDS_SAVED_FILES_RESTORE_H

#include <stdbool.h>

#include "lib/err.h"
#include "supervisor/fd/fd_options.h"

struct image;

/* Whether the contents of @path are in the checkpoint, and a restart will put them there. */
bool fd_saved_in(const struct image *job, const char *path);

/* Whether a restart will put any file back. */
bool fd_saved_needed(const struct image *job);

/* Put back what has changed since, in the same file where that is there and may be written to. What it holds
 * now is kept beside it (set_file_aside.h), as is a file of a directory that is saved as a whole which was made
 * after the checkpoint. What trecr itself needs stays where it is. */
int fd_saved_put_back(const struct image *job, const struct fd_restore_options *options,
	void (*notice)(const char *line), struct err *e);

#endif
