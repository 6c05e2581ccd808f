/*
 * fd/open_again.c - at a restart: whether a file can be opened, and one open file, at a
 * number that is in nobody's way.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/fd/descriptor_range.h"
#include "supervisor/fd/fd.h"
#include "supervisor/fd/reopen_despite_mode.h"

/* Whether a directory on the way to @path, or to what it is a link to, is in the way, and not the file's own
 * mode. */
static bool is_out_of_reach(const char *path)
{
	struct stat st;

	return stat(path, &st) && errno == EACCES;
}

static const char *describe_reach(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? "its directory" : "the directory that it is a link into";
}

int fd_cannot_open(const char *path, const char *as, int code, struct err *e)
{
	if (code != EACCES)
		return err_set(e, code, "cannot open %s (%s)", path, as);
	if (is_out_of_reach(path))
		return err_set(e, 0,
			"cannot open %s (%s): user %u may not enter %s; allow it (chmod, "
			"setfacl)",
			path, as, geteuid(), describe_reach(path));
	return err_set(e, 0,
		"cannot open %s (%s): user %u may not, by its mode; allow it (chmod, setfacl)",
		path, as, geteuid());
}

/* What is open for reading only can be asked for by R_OK, and so on (O_ACCMODE). A file of ours
 * is let in whatever its mode (reopen_despite_mode.h). Standard streams are often opened by
 * another user. */
int fd_check_access(const struct fd_check *c, const char *path, int flags, struct err *e)
{
	static const int wanted[] = {R_OK, W_OK, R_OK | W_OK, 0};
	cleanup_free char *as = xasprintf("descriptor %d", c->fd);
	struct stat st;

	if (!faccessat(AT_FDCWD, path, wanted[flags & O_ACCMODE], AT_EACCESS))
		return 0;
	if (errno == EACCES && !stat(path, &st) && fd_reopens(&st))
		return 0;
	if (errno == EACCES && !is_out_of_reach(path) && c->options->alive && c->fd >= 0 &&
		c->fd <= STDERR_FILENO)
		return err_set(e, errno,
			"user %u may not open %s (descriptor %d), which somebody else has "
			"opened for the program: allow it beforehand (chmod, setfacl)",
			geteuid(), path, c->fd);
	return fd_cannot_open(path, as, errno, e);
}

int fd_lift(struct fd_restore *r, int fd, struct err *e)
{
	int lifted = descriptor_range_dup(r, fd, F_DUPFD_CLOEXEC), code = errno;

	close(fd);
	return lifted >= 0 ? lifted : descriptor_range_none(r, code, e);
}

int fd_lift_into(struct fd_restore *r, uint32_t index, int fd, struct err *e)
{
	int number = index == FD_NO_DESCRIPTION ? -1 : r->number[index], placed;

	if (number >= 0 && number == fd)
		return fd;
	if (number < 0 || fcntl(number, F_GETFD) >= 0)
		return fd_lift(r, fd, e);
	placed = dup3(fd, number, O_CLOEXEC);
	/* EBADF: the limit does not allow that number. */
	if (placed < 0)
		return fd_lift(r, fd, e);
	close(fd);
	return placed;
}

/* Flags to open with: what acted at the first opening only is left out, and O_ASYNC, which
 * open(2) ignores. */
static int open_flags(const struct image_description *x)
{
	int once = O_CREAT | O_EXCL | O_TRUNC | O_ASYNC | (O_TMPFILE & ~O_DIRECTORY);

	return (x->flags & ~once) | O_NOCTTY | O_CLOEXEC;
}

int fd_open_again(struct fd_restore *r, const char *path, const struct image_description *x,
	struct err *e)
{
	int fd = fd_reopen(path, open_flags(x));

	if (fd < 0)
		return err_set(e, errno, "cannot open %s", path);
	return fd_lift(r, fd, e);
}

int fd_open_object(
	struct fd_restore *r, int object, const struct image_description *x, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", object);
	/* The path is a link; O_TMPFILE includes O_DIRECTORY; and a pipe takes O_DIRECT only
	 * from F_SETFL, as all others do, too. */
	int fd = fd_reopen(path, open_flags(x) & ~(O_NOFOLLOW | O_DIRECTORY | O_DIRECT));

	if (fd < 0)
		return err_set(e, errno, "cannot open %s again", image_string(r->job, x->path));
	return fd_lift(r, fd, e);
}

int fd_at_position(
	const struct fd_restore *r, int fd, const struct image_description *x, struct err *e)
{
	if (fd < 0 || lseek(fd, x->position, SEEK_SET) >= 0)
		return fd;
	err_set(e, errno, "cannot set the position in %s", image_string(r->job, x->path));
	close(fd);
	return -1;
}
