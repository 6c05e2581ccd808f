/* An io_uring that a thread of the kernel polls is made anew, by its process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "supervisor/fd/descriptor_source.h"
#include "supervisor/fd_kinds/epoll_watch.h"
#include "supervisor/uring/uring.h"
#include "supervisor/uring/uring_process_restore.h"

static int attached_to(const struct image_ring *image)
{
	int fd;

	return sscanf(uring_lines(image), "attach %d", &fd) == 1 ? fd : -1;
}

static int make_polled(struct return_of_ring *r, int64_t *made)
{
	const struct image_ring *i = r->image;
	int other = attached_to(i);
	struct io_uring_params p = {
		.flags = i->flags | IORING_SETUP_CQSIZE,
		.cq_entries = i->cq_entries,
		.sq_thread_cpu = i->sq_cpu,
		.sq_thread_idle = 10, /* milliseconds; nothing shows what it was */
	};

	if (other >= 0) {
		p.flags |= IORING_SETUP_ATTACH_WQ;
		p.wq_fd = other;
	}
	if (tracee_write(r->np->process.mem_fd, r->scratch, &p, sizeof(p), r->np->e) ||
		REMOTE_CALL(&r->remote, made, r->np->e, SYS_io_uring_setup, i->sq_entries,
			r->scratch))
		return -1;
	return restore_ring_result(r, *made, "make");
}

/* Not what stood in for it until now. */
static int watch_again(struct return_of_ring *r, int set, const struct watch *w)
{
	struct epoll_event event = {.events = w->events, .data.u64 = w->data};
	int64_t result;

	if (w->description != r->description)
		return 0;
	if (tracee_write(r->np->process.mem_fd, r->scratch, &event, sizeof(event), r->np->e) ||
		REMOTE_CALL(&r->remote, &result, r->np->e, SYS_epoll_ctl, set, EPOLL_CTL_ADD,
			w->fd, r->scratch))
		return -1;
	/* Another descriptor of the same set has done it. */
	return result == -EEXIST ? 0 : restore_ring_result(r, result, "watch");
}

static int watch_all_again(struct return_of_ring *r)
{
	for (size_t i = 0; i < r->fd_count; i++) {
		const struct image_description *x =
			restore_ring_description(r->np, r->fds[i].description);
		const char *text;
		struct watch w;
		int more;

		if (x->kind != IMAGE_FD_EPOLL)
			continue;
		text = image_string(r->np->c->job, x->args[0]);
		while ((more = watch_next(&text, &w, r->np->e)) > 0)
			if (watch_again(r, r->fds[i].fd, &w))
				return -1;
		if (more)
			return -1;
	}
	return 0;
}

int restore_ring_place_polled(struct return_of_ring *r)
{
	int64_t made, result;

	if (make_polled(r, &made))
		return -1;
	for (size_t i = 0; i < r->fd_count; i++) {
		if (r->fds[i].description != r->description)
			continue;
		if (REMOTE_CALL(&r->remote, &result, r->np->e, SYS_dup3, made, r->fds[i].fd,
			    r->fds[i].cloexec ? O_CLOEXEC : 0) ||
			restore_ring_result(r, result, "place"))
			return -1;
	}
	if (REMOTE_CALL(&r->remote, &result, r->np->e, SYS_close, made))
		return -1;
	return watch_all_again(r);
}
