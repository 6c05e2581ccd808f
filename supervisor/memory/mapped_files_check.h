/*
 * memory/mapped_files_check.h - before anything is made: are the files that the program has mapped
 * as at the checkpoint?
 */
#ifndef SUPERVISOR_MEMORY_MAPPED_FILES_CHECK_H
#define SUPERVISOR_MEMORY_MAPPED_FILES_CHECK_H

#include "ckpt/store.h"
#include "lib/err.h"

/*
 * Privately mapped files must be the same, as the image does not hold what it had of them;
 * shared files no shorter, and of a changed file there is a @notice (one line without
 * newline), as the program will see it as it is now.
 */
int mapped_files_check(
	const struct checkpoint *c, void (*notice)(const char *line), struct err *e);

#endif
