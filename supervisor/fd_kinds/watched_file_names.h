/*
 * fd_kinds/watched_file_names.h - the names of files that are watched, without CAP_DAC_READ_SEARCH.
 *
 * Directories are listed for the numbers of the files: directories that the process works in,
 * has open, or was started with (arguments, environment) first, and what is in them, level by
 * level, and at last all that is mounted of the file system. That takes a second for a million
 * of files, and ends after a few; what has been found is looked at first the next time.
 */
#ifndef SUPERVISOR_FD_KINDS_WATCHED_FILE_NAMES_H
#define SUPERVISOR_FD_KINDS_WATCHED_FILE_NAMES_H

#include "supervisor/fd_kinds/watch_handle.h"

/* Of @count files, find the ones without a path. */
void watch_paths_search(const struct watch_handle *h, size_t count, pid_t task,
	const char *mountinfo, char **paths);

#endif
