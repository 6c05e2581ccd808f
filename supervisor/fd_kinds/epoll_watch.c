/*
 * epoll_watch.c - a watch as text, and added to an epoll descriptor again by way of the number
 * that it was made by.
 */
#include "supervisor/fd/descriptor_range.h"
#include "supervisor/fd_kinds/epoll_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

bool watch_has_fired(const struct watch *w)
{
	return w->events & EPOLLONESHOT && !(w->events & (EPOLLERR | EPOLLHUP));
}

void watch_write(const struct watch *w, struct buf *out)
{
	buf_printf(out, "%d %" PRIx32 " %" PRIx64 " %" PRIu32 "\n", w->fd, w->events, w->data,
		w->description);
}

int watch_next(const char **text, struct watch *w, struct err *e)
{
	const char *end = strchr(*text, '\n');
	int n;

	if (!**text)
		return 0;
	n = sscanf(*text, "%d %" SCNx32 " %" SCNx64 " %" SCNu32, &w->fd, &w->events, &w->data,
		&w->description);
	if (end && n == 3)
		return err_set(e, 0,
			"the image was written by an earlier release of trecr, which did not "
			"save what epoll descriptors watch");
	if (!end || n != 4)
		return err_set(e, 0, "the image is damaged: epoll watches");
	*text = end + 1;
	return 1;
}

/* ---- restart ---- */

/* A number of this process that leads to another file for the moment. */
struct place {
	int fd;
	int was; /* what it led to, or -1 */
	int flags;
};

static int take_place(const struct fd_restore *r, int fd, int file, struct place *p)
{
	*p = (struct place){.fd = fd, .was = -1, .flags = fcntl(fd, F_GETFD)};
	if (p->flags >= 0) {
		p->was = descriptor_range_dup(r, fd, F_DUPFD_CLOEXEC);
		if (p->was < 0)
			return -1;
	}
	return dup2(file, fd) < 0 ? -1 : 0;
}

/* -1: what it led to is lost. */
static int give_back(struct place *p)
{
	int failed = 0;

	if (p->was < 0)
		return close(p->fd);
	if (dup3(p->was, p->fd, p->flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		failed = -1;
	close(p->was);
	return failed;
}

/* Nothing else may be in @ep that has an event. */
static int take_event(int ep, int fd)
{
	struct epoll_event event;

	if (epoll_wait(ep, &event, 1, 0) == 1)
		return 1;
	return epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL) ? -1 : 0;
}

static int add_watch(int ep, const struct watch *w, uint32_t events, bool once)
{
	struct epoll_event event = {.events = events, .data.u64 = w->data};

	if (epoll_ctl(ep, EPOLL_CTL_ADD, w->fd, &event))
		return -1;
	return once ? take_event(ep, w->fd) : 1;
}

int watch_add(const struct fd_restore *r, int ep, int file, const struct watch *w,
	uint32_t events, bool once, struct err *e)
{
	struct place place;
	int result;

	if (w->fd == file) {
		result = add_watch(ep, w, events, once);
	} else {
		if (take_place(r, w->fd, file, &place))
			return err_set(
				e, errno, "cannot use descriptor number %d for a watch", w->fd);
		result = add_watch(ep == w->fd ? place.was : ep, w, events, once);
		if (give_back(&place))
			return err_set(e, errno, "cannot create descriptor %d again", w->fd);
	}
	/* A file, or /dev/null: a standard stream was something else before. */
	if (result < 0 && errno == EPERM)
		return err_set(e, errno,
			"the program watches descriptor %d by epoll, which files do not allow: "
			"restart it with a terminal, pipe or socket there",
			w->fd);
	return result < 0 ? err_set(e, errno, "cannot watch descriptor %d", w->fd) : result;
}
