/*
 * set_file_aside.c - a name that is free.
 */
#include "supervisor/fd_kinds/set_file_aside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/notices.h"
#include "lib/util.h"
#include "supervisor/fd/rename_noreplace.h"

#define SUFFIX ".trecr-aside"

bool fd_is_aside(const char *name)
{
	return strstr(name, SUFFIX);
}

char *fd_aside_name(const char *path, unsigned number)
{
	return number ? xasprintf("%s" SUFFIX ".%u", path, number)
		      : xasprintf("%s" SUFFIX, path);
}

char *fd_move_aside(int in, const char *name, const char *path, struct err *e)
{
	for (unsigned n = 0;; n++) {
		cleanup_free char *aside = fd_aside_name(name, n);

		if (!fd_rename_noreplace(in, name, in, aside))
			return fd_aside_name(path, n);
		if (errno != EEXIST) {
			err_set(e, errno, "cannot move %s aside", path);
			return NULL;
		}
	}
}

void fd_tell_moved_aside(void (*notice)(const char *line), const char *path, const char *aside)
{
	notice_printf(notice, "%s was not there at the checkpoint; it is now %s", path, aside);
}
