/*
 * fd/temporary_directories.h - what a restart makes for a moment: directories in which socket
 * files lie that nobody is to find, or that get another name in the end.
 *
 * They have one name (fd_restore_options), which the supervisor knows, too: a process that is
 * killed cannot clean up.
 */
#ifndef SUPERVISOR_FD_TEMPORARY_DIRECTORIES_H
#define SUPERVISOR_FD_TEMPORARY_DIRECTORIES_H

#include "ckpt/image_read.h"
#include "lib/err.h"
#include "ckpt/store.h"
#include "lib/err.h"
#include "supervisor/fd/fd_options.h"

/* Path of the one in the directory for what is temporary, or of the one beside @file. Made when
 * it is not there yet; the caller's to free. NULL on failure. */
char *fd_temporary_directory(const char *name, struct err *e);
char *fd_temporary_directory_beside(const char *file, const char *name, struct err *e);

/* A name for them; and when a restart has failed: remove what is left. */
void fd_name_temporary_directories(struct fd_restore_options *o);

void fd_remove_temporary_directories(
	const struct checkpoint *c, const struct fd_restore_options *o);

#endif
