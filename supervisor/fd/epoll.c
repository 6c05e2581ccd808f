/*
 * fd/epoll.c - epoll(7). A watch belongs to a file, but is made and shown by the number of a
 * descriptor: it can be made again only where that number still leads to that file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "lib/procfs.h"
#include "supervisor/fd/kinds.h"

bool fd_epoll_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:[eventpoll]");
}

/* Of several watches under one number (it was closed and used again, while the old file lived
 * on elsewhere) @nth is this one's place. */
static int check_watch(const struct fd_source *s, int fd, uint32_t nth, struct err *e)
{
	struct kcmp_epoll_slot slot = {.efd = s->fd, .tfd = fd, .toff = nth};
	int r = syscall(SYS_kcmp, s->task, s->task, KCMP_EPOLL_TFD, (long)fd, &slot);

	/* EBADF: nothing has that number any more. */
	if (r > 0 || (r < 0 && errno == EBADF))
		return err_set(
			e, 0, "it watches a file that descriptor %d no longer leads to", fd);
	return r ? err_set(e, errno, "cannot tell what it watches (kcmp)") : 0;
}

/* What a restart can only open when everything is in place (restore/late_files.c): by then the
 * watches have been set, on what stood in for it. */
static bool is_late(const struct fd_source *s, int fd)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", s->task, fd);
	cleanup_free char *info_path = xasprintf("/proc/%d/fdinfo/%d", s->task, fd);
	cleanup_free char *link = read_link(path, NULL), *info = NULL;
	unsigned pid;
	size_t len;

	if (!link || sscanf(link, "/proc/%u", &pid) == 1)
		return true;
	return strstr(link, "pidfd") && !read_file(info_path, &info, &len, NULL) &&
	       status_number(info, "flags", 8) & O_EXCL /* PIDFD_THREAD */;
}

/* The kernel watches for errors always, until a one-shot watch has fired. That state cannot be
 * asked for: a restart has to let it fire once more. */
static bool has_fired(uint32_t events)
{
	return events & EPOLLONESHOT && !(events & (EPOLLERR | EPOLLHUP));
}

#define ANY_EVENT (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP)

static bool could_fire(const struct fd_source *s, int fd)
{
	cleanup_fd int pidfd = fd_task_open(s->pid, s->task, NULL);
	cleanup_fd int dup = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	struct pollfd p = {.fd = dup, .events = ANY_EVENT};

	return dup >= 0 && poll(&p, 1, 0) == 1;
}

static int add_watch(const struct fd_source *s, int fd, uint32_t events, uint64_t data,
	uint32_t nth, struct buf *out, struct err *e)
{
	if (check_watch(s, fd, nth, e))
		return -1;
	if (is_late(s, fd))
		return err_set(e, 0,
			"it watches descriptor %d, a file of /proc or a thread, which is not "
			"supported",
			fd);
	if (has_fired(events) && !could_fire(s, fd))
		return err_set(e, 0,
			"it has a one-shot watch on descriptor %d that has fired, and now "
			"nothing "
			"could let it fire",
			fd);
	buf_printf(out, "%d %" PRIx32 " %" PRIx64 "\n", fd, events, data);
	return 0;
}

/* fdinfo has a line for each watch: "tfd: 5 events: 19 data: 5  pos:0 ino:61af sdev:7" (man
 * proc_pid_fdinfo). */
int fd_epoll_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	cleanup_buf struct buf out = {0};
	int fd, last = -1;
	uint32_t events, nth = 0;
	uint64_t data;

	for (const char *p = strstr(s->info, "tfd:"); p; p = strstr(p + 1, "tfd:")) {
		if (sscanf(p, "tfd: %d events: %" SCNx32 " data: %" SCNx64, &fd, &events,
			    &data) != 3)
			return err_set(e, 0, "cannot understand what it watches");
		nth = fd == last ? nth + 1 : 0;
		last = fd;
		if (add_watch(s, fd, events, data, nth, &out, e))
			return -1;
	}
	buf_add(&out, "", 1);
	x->args[0] = image_writer_string(d->job, out.data);
	return 0;
}

int fd_epoll_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? err_set(e, errno, "cannot make an epoll descriptor")
		      : fd_lift(r, fd, e);
}

/* What has fired already, or all else: nothing else may be there that could fire. */
static int add_watches(int fd, const char *p, bool fired, struct err *e)
{
	for (; *p; p = strchr(p, '\n') + 1) {
		struct epoll_event event;
		uint32_t events;
		uint64_t data;
		int watched;

		if (!strchr(p, '\n') ||
			sscanf(p, "%d %" SCNx32 " %" SCNx64, &watched, &events, &data) != 3)
			return err_set(e, 0, "the image is damaged: epoll watches");
		if (has_fired(events) != fired)
			continue;
		event.events = events | (fired ? ANY_EVENT : 0);
		event.data.u64 = data;
		if (epoll_ctl(fd, EPOLL_CTL_ADD, watched, &event))
			return err_set(e, errno, "cannot watch descriptor %d", watched);
		if (fired && epoll_wait(fd, &event, 1, 0) != 1)
			return err_set(e, 0, "a one-shot watch on descriptor %d does not fire",
				watched);
	}
	return 0;
}

int fd_epoll_finish(
	const struct fd_restore *r, const struct image_description *x, int fd, struct err *e)
{
	const char *watches = image_string(r->job, x->args[0]);

	return add_watches(fd, watches, true, e) || add_watches(fd, watches, false, e) ? -1 : 0;
}

void fd_epoll_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	size_t count = 0;

	for (const char *p = image_string(job, x->args[0]); (p = strchr(p, '\n')); p++)
		count++;
	buf_printf(out, "epoll, %zu watches", count);
}
