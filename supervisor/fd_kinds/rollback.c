/*
 * rollback.c - the tail is copied and on the disk before the file is cut.
 */
#include "supervisor/fd_kinds/rollback.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "supervisor/fd/trusted_path.h"

#define PIECE_SIZE (256u * 1024)

static int open_tail(const char *path, const struct stat *st, char **tail, struct err *e)
{
	size_t above = strrchr(path, '/') + 1 - path;
	cleanup_free char *directory = xasprintf("%.*s", (int)above, path);
	cleanup_fd int in = fd_open_trusted(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (in < 0)
		return err_set(e, errno, "cannot open %s", directory);
	for (unsigned n = 0;; n++) {
		char *name = n ? xasprintf("%s.trecr-tail.%u", path, n)
			       : xasprintf("%s.trecr-tail", path);
		int fd =
			openat(in, name + above, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (fd >= 0) {
			*tail = name;
			/* Only root could give it away; ours alone does no harm. */
			(void)!fchown(fd, st->st_uid, st->st_gid);
			(void)fchmod(fd, st->st_mode & 0777);
			return fd;
		}
		if (errno != EEXIST)
			err_set(e, errno, "cannot create %s", name);
		free(name);
		if (errno != EEXIST)
			return -1;
	}
}

static int copy_range(int from_fd, int to_fd, uint64_t at, uint64_t end, const char *path,
	const char *tail, struct err *e)
{
	cleanup_free char *data = xmalloc(PIECE_SIZE);

	for (size_t n; at < end; at += n) {
		n = end - at < PIECE_SIZE ? end - at : PIECE_SIZE;
		if (pread_all(from_fd, data, n, at, path, e) ||
			write_all(to_fd, data, n, tail, e))
			return -1;
	}
	return 0;
}

/* All from @from on, also what is written meanwhile. */
static int copy_tail(
	int file, int out, uint64_t from, const char *path, const char *tail, struct err *e)
{
	struct stat st;

	for (;; from = st.st_size) {
		if (fstat(file, &st))
			return err_set(e, errno, "cannot examine %s", path);
		if ((uint64_t)st.st_size <= from)
			return 0;
		if (copy_range(file, out, from, st.st_size, path, tail, e))
			return -1;
		if (fsync(out))
			return err_set(e, errno, "cannot sync %s", tail);
	}
}

int fd_rollback(int checked, const char *path, uint64_t from, char **tail, struct err *e)
{
	cleanup_free char *link = xasprintf("/proc/self/fd/%d", checked);
	cleanup_fd int file = open(link, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), out = -1;
	struct stat st;

	if (file < 0 || fstat(file, &st))
		return err_set(e, errno, "cannot open %s to move its end aside", path);
	if (!strchr(path, '/'))
		return err_set(e, 0, "the path %s is not absolute", path);
	out = open_tail(path, &st, tail, e);
	if (out < 0 || sync_directory_of(path, e) || copy_tail(file, out, from, path, *tail, e))
		return -1;
	if (ftruncate(file, from))
		return err_set(e, errno, "cannot truncate %s", path);
	return 0;
}
