/*
 * fd_kinds/inherited_stream.c - terminals, pipes and sockets that the program has from its launcher:
 * at a restart it gets the streams of trecr-restart.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "supervisor/fd/descriptor_range.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd_kinds/inherited_stream.h"
#include "supervisor/fd_kinds/pty_state.h"

uint64_t fd_terminal_of(int fd)
{
	uint64_t device;

	return isatty(fd) && !pty_device(fd, &device) ? device : 0;
}

static bool is_dev_tty(const struct fd_source *s)
{
	return S_ISCHR(s->st.st_mode) && s->st.st_rdev == makedev(5, 0);
}

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

/* Which of them the terminal that @s has opened as /dev/tty is behind, 3 for the supervisor's
 * controlling terminal elsewhere, or -1. */
static int find_terminal(const struct fd_dump *d, const struct fd_source *s)
{
	uint64_t device = fd_terminal_of(s->dup);

	if (!device)
		return -1;
	for (int i = 0; i < 3; i++)
		if (d->streams[i].terminal == device)
			return i;
	return d->terminal == device ? 3 : -1;
}

static bool is_of_our_session(const struct fd_source *s)
{
	return getsid(s->pid) == getsid(0);
}

/* In another session it is one of the program's own. Two instances of /dev/pts have terminals of the same number, but a
 * session has one terminal only. */
static int find_tty(const struct fd_dump *d, const struct fd_source *s)
{
	return is_of_our_session(s) ? find_terminal(d, s) : -1;
}

bool fd_is_left_terminal(const struct fd_dump *d, const struct fd_source *s)
{
	return is_dev_tty(s) && !is_of_our_session(s) && find_terminal(d, s) >= 0;
}

static int find_source(const struct fd_dump *d, const struct fd_source *s)
{
	return is_dev_tty(s) ? find_tty(d, s) : find_stream(d, s);
}

bool fd_inherited_match(const struct fd_dump *d, const struct fd_source *s)
{
	return find_source(d, s) >= 0;
}

/* A standard stream of the process that is the same open file as @s; -1: none. */
static int find_twin(const struct fd_dump *d, const struct fd_source *s)
{
	for (int i = 0; i < 3; i++)
		if (leads_to(s, &d->streams[i]) &&
			!syscall(SYS_kcmp, s->task, s->task, KCMP_FILE, (long)s->fd, (long)i))
			return i;
	return -1;
}

bool fd_is_shared_stream(const struct image_description *x)
{
	return x->kind == IMAGE_FD_INHERITED && x->args[1] == IMAGE_INHERITED_SHARED;
}

/* The program may have opened the terminal once more, by its name, so as to have flags of its
 * own (libuv does). */
int fd_inherited_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	int stream = find_source(d, s), twin = stream;

	if (s->fd > 2 && !is_dev_tty(s) && S_ISCHR(s->st.st_mode))
		twin = find_twin(d, s);
	x->path = image_writer_string(d->job, s->link);
	x->args[0] = twin < 0 ? stream : twin;
	x->args[1] = is_dev_tty(s) ? IMAGE_INHERITED_TTY
		     : twin < 0    ? IMAGE_INHERITED_AGAIN
				   : IMAGE_INHERITED_SHARED;
	return 0;
}

int fd_inherited_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	if (x->args[0] > (x->args[1] == IMAGE_INHERITED_TTY ? 3 : 2))
		return err_set(e, 0,
			"the image is damaged: descriptor %d has no standard stream", c->fd);
	return 0;
}

static int take_stream(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	static const char *const names[] = {"input", "output", "error output"};
	int fd = descriptor_range_dup(r, r->streams[x->args[0]], F_DUPFD_CLOEXEC);

	return fd < 0 ? err_set(e, errno, "cannot use the standard %s", names[x->args[0]]) : fd;
}

/* By its name, which may lead to no terminal here. */
static int open_again(struct fd_restore *r, const struct image_description *x)
{
	int stream = r->streams[x->args[0]];

	return isatty(stream) ? fd_open_object(r, stream, x, NULL) : -1;
}

static int open_tty(struct fd_restore *r, const struct image_description *x)
{
	int fd = open("/dev/tty", (x->flags & (O_ACCMODE | O_NONBLOCK)) | O_CLOEXEC);

	return fd < 0 ? -1 : fd_lift(r, fd, NULL);
}

int fd_inherited_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	bool tty = x->args[1] == IMAGE_INHERITED_TTY;
	int fd = tty ? open_tty(r, x) : -1;

	if (fd >= 0)
		return fd;
	if (tty && x->args[0] == 3)
		return err_set(e, errno,
			"cannot open /dev/tty, which the program uses: restart it on a "
			"terminal");
	if (x->args[0] > 2)
		return err_set(e, 0, "the image is damaged: a standard stream has no number");
	if (x->args[1] != IMAGE_INHERITED_SHARED)
		fd = open_again(r, x);
	return fd >= 0 ? fd : take_stream(r, x, e);
}

void fd_inherited_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	static const char *const names[] = {"input", "output", "error output"};

	if (x->args[1])
		buf_printf(out, "controlling terminal (%s)", image_string(job, x->path));
	else
		buf_printf(out, "standard %s (was %s)",
			x->args[0] < 3 ? names[x->args[0]] : "?", image_string(job, x->path));
}

uint32_t fd_dump_ways_to_terminal(const struct fd_dump *d, uint64_t device)
{
	uint32_t ways = 0;

	for (int i = 0; i < 3; i++)
		if (d->inherited[i] && d->streams[i].terminal == device)
			ways |= IMAGE_TERMINAL_STREAM(i);
	for (size_t i = 0; i < buf_count(&d->descriptions, struct fd_described); i++) {
		const struct image_description *x =
			&buf_at(&d->descriptions, struct fd_described, i)->x;

		if (x->kind == IMAGE_FD_INHERITED && x->args[1] == IMAGE_INHERITED_AGAIN &&
			d->streams[x->args[0]].terminal == device)
			ways |= IMAGE_TERMINAL_STREAM(x->args[0]);
		if (x->kind == IMAGE_FD_INHERITED && x->args[1] == IMAGE_INHERITED_TTY &&
			device == (x->args[0] < 3 ? d->streams[x->args[0]].terminal
						  : d->terminal))
			ways |= IMAGE_TERMINAL_OPENED;
	}
	return ways;
}
