/*
 * trust.c - owner and mode of a file, and of the directory that it lies in.
 */
#include "ckpt/trust.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_trust(int fd, const char *path, bool sticky_is_enough, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(e, errno, "cannot examine %s", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(e, 0, "refusing %s: it belongs to user %u", path, st.st_uid);
	if (sticky_is_enough && (st.st_mode & S_ISVTX))
		return 0;
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, 0, "refusing %s: others may write to it (mode %04o)", path,
			st.st_mode & 07777);
	return 0;
}

int trust_check(int fd, const char *path, struct err *e)
{
	return check_trust(fd, path, false, e);
}

int trust_check_parent(int fd, const char *path, struct err *e)
{
	return check_trust(fd, path, true, e);
}
