/*
 * memory/mapped_files_check.h - before anything is made: are the files that the program has mapped
 * those of the checkpoint?
 */
#ifndef SUPERVISOR_MEMORY_MAPPED_FILES_CHECK_H
#define SUPERVISOR_MEMORY_MAPPED_FILES_CHECK_H

#include "ckpt/store.h"
#include "lib/err.h"

/*
 * Privately mapped ones must be the same, as the image does not hold what it had of them;
 * shared ones no shorter, and of one that has changed there is a @notice (one line without
 * newline), as the program will see it as it is now.
 */
int mapped_files_check(
	const struct checkpoint *c, void (*notice)(const char *line), struct err *e);

#endif
