/*
 * fd_kinds/saved_directories_restore.h - at a restart: directories of which all files were saved (saved_directories_dump.h)
 * have no other files.
 */
#ifndef SUPERVISOR_FD_KINDS_SAVED_DIRECTORIES_RESTORE_H
#define SUPERVISOR_FD_KINDS_SAVED_DIRECTORIES_RESTORE_H

#include <stdbool.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "supervisor/fd/fd_options.h"

struct image;

/* Whether @o is such a directory. */
bool fd_saved_is_set(const struct image_object *o);

/* Before files are put back: moves aside (set_file_aside.h) files, symbolic links and directories that were made in those
 * directories after the checkpoint; and makes the directories that are missing. Left alone are the standard streams, what
 * this process has opened with O_CLOEXEC, its working directory, the ways to what the supervisor is going to write (@options), and
 * what is in there. Directories of which it is not certain that nobody uses them stay, too; later files in them do not. */
int fd_saved_clear_sets(const struct image *job, const struct fd_restore_options *options,
	void (*notice)(const char *line), struct err *e);

/* Whether a directory is at @path, where a file or nothing was at the checkpoint, that is not to be moved aside: for such
 * a reason, or as not all in it can be looked at. */
bool fd_saved_directory_stays(const struct fd_restore_options *options, const char *path);

#endif
