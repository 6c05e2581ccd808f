/*
 * rename_noreplace.c - renameat2(2), or what is as atomic in claiming the name.
 */
#include "supervisor/fd/rename_noreplace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The name is claimed by an empty directory, which rename(2) replaces, but none in which something is
 * by then. */
static int rename_directory(int in, const char *from, int there, const char *to)
{
	int code;

	if (mkdirat(there, to, 0700))
		return -1;
	if (!renameat(in, from, there, to))
		return 0;
	code = errno;
	(void)unlinkat(there, to, AT_REMOVEDIR); /* ours, of a moment ago */
	errno = code;
	return -1;
}

/* The name is claimed by an empty file. */
static int rename_over_empty(int in, const char *from, int there, const char *to)
{
	int fd = openat(there, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), code;

	if (fd < 0)
		return -1;
	(void)close(fd);
	if (!renameat(in, from, there, to))
		return 0;
	code = errno;
	(void)unlinkat(there, to, 0); /* ours, of a moment ago */
	errno = code;
	return -1;
}

int fd_rename_noreplace(int in, const char *from, int there, const char *to)
{
	struct stat st;

	if (!syscall(SYS_renameat2, in, from, there, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return -1;
	if (fstatat(in, from, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
	if (S_ISDIR(st.st_mode))
		return rename_directory(in, from, there, to);
	if (!linkat(in, from, there, to, 0))
		return unlinkat(in, from, 0);
	/* What there is no hard link for: on this file system, for this user
	 * (fs.protected_hardlinks), or for a file that has too many. */
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
		return -1;
	return rename_over_empty(in, from, there, to);
}
