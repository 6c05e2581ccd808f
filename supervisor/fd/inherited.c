/*
 * fd/inherited.c - terminals, pipes and sockets that the program has from whoever started it:
 * at a restart it gets those of whoever starts it then.
 */
#include <errno.h>
#include <fcntl.h>

#include "supervisor/fd/kinds.h"

/* The two ends of a pipe are one file: they differ by how they are opened. */
static bool leads_to(const struct fd_source *s, const struct fd_stream *stream)
{
	int access = s->flags & O_ACCMODE;

	if (!stream->usable || s->st.st_dev != stream->st.st_dev ||
		s->st.st_ino != stream->st.st_ino || s->st.st_rdev != stream->st.st_rdev)
		return false;
	return !S_ISFIFO(s->st.st_mode) || access == stream->access || stream->access == O_RDWR;
}

/* Which standard stream @s is, or -1. Where one terminal is behind several, a descriptor's
 * own number decides, then the way it was opened. */
static int find_stream(const struct fd_dump *d, const struct fd_source *s)
{
	static const int order[][3] = {
		[O_RDONLY] = {0, 1, 2},
		[O_WRONLY] = {1, 2, 0},
		[O_RDWR] = {0, 1, 2},
	};
	int access = s->flags & O_ACCMODE;

	if (s->fd < 3 && leads_to(s, &d->streams[s->fd]))
		return s->fd;
	if (access > O_RDWR)
		return -1;
	for (int i = 0; i < 3; i++)
		if (leads_to(s, &d->streams[order[access][i]]))
			return order[access][i];
	return -1;
}

bool fd_inherited_match(const struct fd_dump *d, const struct fd_source *s)
{
	return find_stream(d, s) >= 0;
}

int fd_inherited_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	x->path = image_writer_string(d->job, s->link);
	x->args[0] = find_stream(d, s);
	return 0;
}

int fd_inherited_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	if (x->args[0] > 2)
		return err_set(e, 0,
			"the image is damaged: descriptor %d has no standard stream", c->fd);
	return 0;
}

int fd_inherited_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	static const char *const names[] = {"input", "output", "error output"};
	int fd;

	if (x->args[0] > 2)
		return err_set(e, 0, "the image is damaged: a standard stream has no number");
	fd = fcntl(r->streams[x->args[0]], F_DUPFD_CLOEXEC, r->base);
	if (fd < 0)
		return err_set(e, errno, "cannot use the standard %s", names[x->args[0]]);
	return fd;
}

void fd_inherited_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	static const char *const names[] = {"input", "output", "error output"};

	buf_printf(out, "standard %s (was %s)", x->args[0] < 3 ? names[x->args[0]] : "?",
		image_string(job, x->path));
}
