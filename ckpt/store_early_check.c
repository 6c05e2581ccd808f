/*
 * store_early_check.c - tries in the directory, or the nearest one above that exists, what a
 * checkpoint will do there.
 */
#include "ckpt/store_early_check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "ckpt/store_dir.h"
#include "ckpt/trust.h"
#include "lib/util.h"

static int check_writable(int fd, const char *dir, struct err *e)
{
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		return err_set(e, errno, "cannot write into %s", dir);
	return 0;
}

/* `latest` is one: vfat and some network file systems have none. */
static int check_links(int fd, const char *dir, struct err *e)
{
	cleanup_free char *name = xasprintf(".trecr-%d", getpid());

	if (symlinkat(STORE_LATEST, fd, name))
		return errno == EEXIST || errno == ENOSPC || errno == EDQUOT
			       ? 0
			       : err_set(e, errno, "cannot create a symbolic link in %s", dir);
	return unlinkat(fd, name, 0) ? err_set(e, errno, "cannot remove %s/%s", dir, name) : 0;
}

/* Directories of the kernel's own (/proc, /sys) let root write, and nobody make any, or nothing
 * in it. */
static int check_makes_directories(int fd, const char *dir, struct err *e)
{
	cleanup_free char *name = xasprintf(".trecr-%d", getpid());
	cleanup_fd int made = -1;
	int failed;

	if (mkdirat(fd, name, 0700))
		return errno == EEXIST || errno == ENOSPC || errno == EDQUOT
			       ? 0
			       : err_set(e, errno, "cannot create a directory in %s", dir);
	made = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	failed = made < 0 ? err_set(e, errno, "cannot open a directory made in %s", dir)
			  : check_links(made, dir, e);
	if (unlinkat(fd, name, AT_REMOVEDIR) && !failed)
		return err_set(e, errno, "cannot remove %s/%s", dir, name);
	return failed;
}

static enum store_early_check look_at_room(int fd, const char *dir, struct err *e)
{
	struct statvfs fs;

	/* Some file systems have no fixed size, or number of files, and say 0 of 0. */
	if (fstatvfs(fd, &fs) ||
		((fs.f_bavail || !fs.f_blocks) && (fs.f_favail || !fs.f_files)))
		return STORE_EARLY_GOOD;
	err_set(e, ENOSPC, "cannot write into %s", dir);
	return STORE_EARLY_DOUBTFUL;
}

/* A directory that is to be made: in which that exists? */
static enum store_early_check look_above(const char *dir, struct err *e)
{
	cleanup_free char *parent = xstrdup(dir);
	cleanup_fd int fd = -1;
	char *slash;

	while ((slash = strrchr(parent, '/')) && slash > parent && !slash[1])
		*slash = 0;
	if (!slash)
		return STORE_EARLY_GOOD; /* no absolute path: not ours to know */
	slash[slash == parent] = 0;
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		err_set(e, errno, "cannot create %s, as %s cannot be opened", dir, parent);
		return errno == ENOENT ? STORE_EARLY_DOUBTFUL : STORE_EARLY_BAD;
	}
	if (check_writable(fd, parent, e) || check_makes_directories(fd, parent, e))
		return STORE_EARLY_BAD;
	return look_at_room(fd, parent, e);
}

enum store_early_check store_early_check(const char *dir, struct err *e)
{
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return look_above(dir, e);
	if (fd < 0) {
		err_set(e, errno, "cannot open %s", dir);
		return STORE_EARLY_BAD;
	}
	if (trust_check_parent(fd, dir, e) || check_writable(fd, dir, e) ||
		check_links(fd, dir, e))
		return STORE_EARLY_BAD;
	return look_at_room(fd, dir, e);
}
