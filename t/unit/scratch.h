/*
 * scratch.h - a directory for a test's files, removed when the program ends.
 */
#ifndef T_UNIT_SCRATCH_H
#define T_UNIT_SCRATCH_H

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char scratch_path[64];
static int scratch_fd = -1;

static int scratch_unlink(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void scratch_remove(void)
{
	nftw(scratch_path, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* Make it; @scratch_path and @scratch_fd name it. */
static void scratch_make(void)
{
	strcpy(scratch_path, "/tmp/trecr-test-XXXXXX");
	if (!mkdtemp(scratch_path))
		abort();
	scratch_fd = open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	atexit(scratch_remove);
}

#endif
