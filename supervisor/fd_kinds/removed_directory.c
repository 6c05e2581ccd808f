/*
 * removed_directory.c - the row of such descriptors, and the objects behind them: saved with
 * those above them, made in a temporary directory, and removed again.
 */
#include "supervisor/fd_kinds/removed_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/fd/file_attributes.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/fd_kinds.h"

#define DELETED " (deleted)"

bool fd_is_removed(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && !st->st_nlink;
}

bool fd_removed_match(const struct fd_dump *d, const struct fd_source *s)
{
	return fd_is_removed(&s->st);
}

/* ---- saving ---- */

/* @link without " (deleted)", which /proc adds. */
static char *path_of(const char *link)
{
	char *path = xstrdup(link);
	size_t len = strlen(path), suffix = strlen(DELETED);

	if (len > suffix && !strcmp(path + len - suffix, DELETED))
		path[len - suffix] = 0;
	return path;
}

static uint32_t add_directory(struct fd_dump *d, int dir, const char *link, struct err *e);

/* Number of the object of what ".." leads to; 0: that has a name, or may not be looked at. */
static uint32_t add_parent(
	struct fd_dump *d, int dir, const struct stat *st, const char *path, struct err *e)
{
	cleanup_fd int above = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *link = xstrdup(path);
	char *slash = strrchr(link, '/');
	struct stat its;

	if (above < 0 || !slash || fstat(above, &its) || !fd_is_removed(&its) ||
		(its.st_ino == st->st_ino && its.st_dev == st->st_dev))
		return 0;
	*slash = 0;
	return add_directory(d, above, link, e);
}

/* Parents come first, so that they are made first. */
static uint32_t add_directory(struct fd_dump *d, int dir, const char *link, struct err *e)
{
	cleanup_free char *path = path_of(link);
	cleanup_free char *opened = xasprintf("/proc/self/fd/%d", dir);
	struct fd_object o = {.fd = -1};
	struct stat st;
	uint32_t number;

	if (fstat(dir, &st)) {
		err_set(e, errno, "cannot examine the removed directory %s", path);
		return 0;
	}
	number = fd_object_find(d, st.st_dev, st.st_ino);
	if (number)
		return number;
	o.o = (struct image_object){
		.kind = IMAGE_OBJECT_DIRECTORY,
		.dev = st.st_dev,
		.inode = st.st_ino,
		.mode = st.st_mode & 07777,
		.name = image_writer_string(d->job, path),
		.args = {add_parent(d, dir, &st, path, e),
			st.st_uid | (uint64_t)st.st_gid << 32},
	};
	o.text = xasprintf("the removed directory %s", path);
	o.link = xstrdup(link);
	number = fd_object_add(d, &o);
	fd_attributes_dump(d->job, number, opened);
	return number;
}

uint32_t fd_dump_removed(struct fd_dump *d, const char *path, const char *link, struct err *e)
{
	cleanup_fd int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0)
		return add_directory(d, dir, link, e);
	err_set(e, errno, "cannot examine the removed directory %s", link);
	return 0;
}

int fd_removed_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", s->dup);

	x->object = fd_dump_removed(d, path, s->link, e);
	if (!x->object)
		return -1;
	x->path = fd_object_at(d, x->object)->o.name;
	return 0;
}

/* ---- restart ---- */

int fd_removed_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return fd_object_info(c->job, x->object, IMAGE_OBJECT_DIRECTORY, e) ? 0 : -1;
}

/* Where one is for the moment. */
struct place {
	int in; /* the directory that it is in; -1: it is not there */
	char name[64];
};

/* By a name that nobody else has; -1 and errno. */
static int make_in(struct fd_restore *r, int in, uint32_t number, struct place *p)
{
	int fd;

	snprintf(p->name, sizeof(p->name), "%s-%u", r->options->temporary_name, number);
	if (mkdirat(in, p->name, 0700))
		return -1;
	p->in = in;
	fd = openat(in, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd;
}

/* In the directory where it was if that can be, else in the one for what is temporary: @in is
 * that directory, for the caller to close. */
static int make_top(
	struct fd_restore *r, uint32_t number, struct place *p, int *in, struct err *e)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	const char *name = image_string(r->job, r->objects[number - 1].name);
	cleanup_free char *above = xstrdup(name);
	char *slash = strrchr(above, '/');
	int fd = -1;

	if (slash) {
		slash[slash == above] = 0;
		*in = fd_open_trusted(above, flags);
		fd = *in < 0 ? -1 : make_in(r, *in, number, p);
	}
	if (fd < 0 && p->in < 0) {
		if (*in >= 0)
			close(*in);
		*in = open(temporary_directory(), flags);
		fd = *in < 0 ? -1 : make_in(r, *in, number, p);
	}
	return fd < 0 ? err_set(e, errno, "cannot create the removed directory %s", name) : fd;
}

static int make_removed(
	struct fd_restore *r, uint32_t number, struct place *places, int *in, struct err *e)
{
	const struct image_object *o = &r->objects[number - 1];
	struct place *p = &places[number - 1];
	int fd;

	if (o->args[0] >= number ||
		(o->args[0] && r->objects[o->args[0] - 1].kind != IMAGE_OBJECT_DIRECTORY))
		return err_set(e, 0, "the image is damaged: a removed directory");
	if (!o->args[0]) {
		fd = make_top(r, number, p, in, e);
	} else {
		fd = make_in(r, r->made[o->args[0] - 1].fd, number, p);
		if (fd < 0)
			err_set(e, errno, "cannot create the removed directory %s",
				image_string(r->job, o->name));
	}
	fd = fd < 0 ? -1 : fd_lift(r, fd, e);
	r->made[number - 1].fd = fd;
	return fd < 0 ? -1 : 0;
}

static int make_all(struct fd_restore *r, struct place *places, int *in, struct err *e)
{
	for (uint32_t n = 1; n <= r->object_count; n++)
		if (r->objects[n - 1].kind == IMAGE_OBJECT_DIRECTORY &&
			make_removed(r, n, places, &in[n - 1], e))
			return -1;
	return 0;
}

/* Directories that are in others first. */
static int remove_all(struct fd_restore *r, const struct place *places, struct err *e)
{
	int failed = 0;

	for (uint32_t n = r->object_count; n; n--) {
		const struct place *p = &places[n - 1];

		if (p->in >= 0 && unlinkat(p->in, p->name, AT_REMOVEDIR) && !failed)
			failed = err_set(e, errno, "cannot remove directory %s again",
				image_string(r->job, r->objects[n - 1].name));
	}
	return failed;
}

int fd_removed_make(struct fd_restore *r, struct err *e)
{
	cleanup_free struct place *places = xcalloc(r->object_count, sizeof(*places));
	cleanup_free int *in = xcalloc(r->object_count, sizeof(*in));
	int failed;

	for (size_t i = 0; i < r->object_count; i++)
		in[i] = places[i].in = -1;
	failed = make_all(r, places, in, e);
	failed |= remove_all(r, places, failed ? NULL : e);
	for (size_t i = 0; i < r->object_count; i++)
		if (in[i] >= 0)
			close(in[i]);
	return failed ? -1 : 0;
}

int fd_removed_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	int fd;

	if (!fd_object_info(r->job, x->object, IMAGE_OBJECT_DIRECTORY, e))
		return -1;
	fd = fd_open_object(r, r->made[x->object - 1].fd, x, e);
	return x->flags & O_PATH ? fd : fd_at_position(r, fd, x, e);
}

void fd_removed_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "removed directory %s", image_string(job, x->path));
}

int fd_restore_directory(const struct fd_restore *r, uint32_t object, struct err *e)
{
	if (!object || object > r->object_count ||
		r->objects[object - 1].kind != IMAGE_OBJECT_DIRECTORY)
		return err_set(e, 0, "the image is damaged: there is no directory %u", object);
	return fchdir(r->made[object - 1].fd)
		       ? err_set(e, errno, "cannot enter the working directory")
		       : 0;
}
