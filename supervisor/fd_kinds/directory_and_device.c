/*
 * fd_kinds/directory_and_device.c - what is opened again by its name and has nothing to check but its type:
 * directories, devices without state, and O_PATH descriptors of anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/sysmacros.h>

#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd_kinds/removed_directory.h"

bool fd_directory_match(const struct fd_dump *d, const struct fd_source *s)
{
	return S_ISDIR(s->st.st_mode) && s->named;
}

int fd_directory_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	x->path = image_writer_string(d->job, s->link);
	return 0;
}

static int check_type(const struct fd_check *c, const struct image_description *x, mode_t type,
	const char *what, struct stat *st, struct err *e)
{
	const char *path = image_string(c->job, x->path);
	cleanup_free char *as = xasprintf("descriptor %d", c->fd);

	if (fd_check_trusted(path, x->flags, e))
		return -1;
	if (x->flags & O_NOFOLLOW ? lstat(path, st) : stat(path, st))
		return fd_cannot_open(path, as, errno, e);
	if ((st->st_mode & S_IFMT) != type)
		return err_set(e, 0, "cannot open %s (descriptor %d): it is no longer %s", path,
			c->fd, what);
	return 0;
}

int fd_directory_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	struct stat st;

	if (check_type(c, x, S_IFDIR, "a directory", &st, e))
		return -1;
	return fd_check_access(c, image_string(c->job, x->path), x->flags, e);
}

int fd_directory_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	int fd = fd_open_again(r, image_string(r->job, x->path), x, e);

	return fd_at_position(r, fd, x, e);
}

void fd_directory_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "directory %s", image_string(job, x->path));
	if (x->position)
		buf_printf(out, ", read in part");
}

/* ---- devices ---- */

/* Devices that have no state, so that one node is as good as another. */
static const struct {
	unsigned major, minor;
	const char *path;
} stateless[] = {
	{1, 3, "/dev/null"},
	{1, 5, "/dev/zero"},
	{1, 7, "/dev/full"},
	{1, 8, "/dev/random"},
	{1, 9, "/dev/urandom"},
};

/* Its usual name; NULL: it is none of them. */
static const char *stateless_path(const struct stat *st)
{
	if (!S_ISCHR(st->st_mode))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(stateless); i++)
		if (st->st_rdev == makedev(stateless[i].major, stateless[i].minor))
			return stateless[i].path;
	return NULL;
}

bool fd_device_match(const struct fd_dump *d, const struct fd_source *s)
{
	return stateless_path(&s->st);
}

int fd_device_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	x->path = image_writer_string(d->job, s->named ? s->link : stateless_path(&s->st));
	x->args[0] = s->st.st_rdev;
	return 0;
}

int fd_device_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const char *path = image_string(c->job, x->path);
	struct stat st;

	if (check_type(c, x, S_IFCHR, "a device", &st, e))
		return -1;
	if (st.st_rdev != x->args[0])
		return err_set(e, 0,
			"cannot open %s (descriptor %d): it is not the same device as at the "
			"checkpoint",
			path, c->fd);
	return fd_check_access(c, path, x->flags, e);
}

int fd_device_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	return fd_open_again(r, image_string(r->job, x->path), x, e);
}

void fd_device_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "device %s", image_string(job, x->path));
}

/* ---- O_PATH ---- */

bool fd_path_match(const struct fd_dump *d, const struct fd_source *s)
{
	return s->flags & O_PATH && !fd_ended_file_match(d, s) && !fd_process_file_match(d, s);
}

/* A process's path would be another's, or nobody's. */
static bool is_of_process(const char *path)
{
	unsigned pid;

	return sscanf(path, "/proc/%u", &pid) == 1;
}

int fd_path_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	if (fd_is_removed(&s->st))
		return fd_removed_dump(d, s, x, e);
	if (!s->named && fd_refuse_detached(s, e))
		return -1;
	if (!s->named)
		return err_set(
			e, 0, "a path (O_PATH) that no longer names its file is not supported");
	if (is_of_process(s->link))
		return err_set(
			e, 0, "paths in /proc that belong to a process are not supported yet");
	x->path = image_writer_string(d->job, s->link);
	x->args[0] = s->st.st_mode & S_IFMT;
	return 0;
}

int fd_path_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	struct stat st;

	if (x->object)
		return fd_removed_check(c, x, e);
	return check_type(c, x, x->args[0], "what it was", &st, e);
}

int fd_path_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	if (x->object)
		return fd_removed_restore(r, x, e);
	return fd_open_again(r, image_string(r->job, x->path), x, e);
}

void fd_path_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "path %s (O_PATH)", image_string(job, x->path));
}
