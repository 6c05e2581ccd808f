/*
 * fd_kinds/eventfd_timerfd_signalfd.c - eventfd(2), timerfd_create(2) and signalfd(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "lib/kernel_release.h"
#include "lib/procfs.h"
#include "supervisor/fd_kinds/eventfd_probe.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/target/process.h"

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

#define SECOND_NS 1000000000ull

bool fd_eventfd_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:[eventfd]");
}

static bool process_has_aio(pid_t pid)
{
	struct vma_list list;
	bool found = false;

	if (procfs_maps(pid, &list, NULL))
		return true;
	for (size_t i = 0; i < list.count; i++)
		found |= list.v[i].shared && !strncmp(list.v[i].name, "/[aio]", 6);
	vma_list_free(&list);
	return found;
}

/* Whether some process of the tree has a context of asynchronous I/O. */
static bool has_aio(struct fd_dump *d)
{
	for (size_t i = 0; d->tree && !d->looked_for_aio && i < d->tree->living; i++)
		d->has_aio |= process_has_aio(d->tree->processes[i]->pid);
	d->looked_for_aio = true;
	return d->has_aio;
}

/* Where the kernel does not show it. A request that waits until there is something to be read
 * (IOCB_CMD_POLL) would end when two are put in to see it, and the program be told that there is. */
static int find_kind(struct fd_dump *d, const struct fd_source *s, uint64_t count,
	bool *semaphore, struct err *e)
{
	if (!count && has_aio(d))
		return err_set(e, 0,
			"this kernel (%s) does not show whether it is a semaphore (6.5 and "
			"later "
			"do), and trying it could end a request of asynchronous I/O that waits "
			"for it",
			kernel_release());
	return eventfd_is_semaphore(s->dup, count, semaphore, e);
}

int fd_eventfd_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	bool semaphore = status_number(s->info, "eventfd-semaphore", 10);

	if (!*status_value(s->info, "eventfd-count"))
		return err_set(e, 0, "this kernel does not show its count");
	x->args[0] = status_number(s->info, "eventfd-count", 16);
	/* Shown from Linux 6.5 on. */
	if (!*status_value(s->info, "eventfd-semaphore") &&
		find_kind(d, s, x->args[0], &semaphore, e))
		return -1;
	x->args[1] = semaphore;
	x->args[2] = status_number(s->info, "eventfd-id", 10);
	return 0;
}

int fd_eventfd_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | (x->args[1] ? EFD_SEMAPHORE : 0));
	uint64_t count = x->args[0];

	if (fd < 0)
		return err_set(e, errno, "cannot create an eventfd");
	if (count && write(fd, &count, sizeof(count)) != sizeof(count)) {
		err_set(e, errno, "cannot set an eventfd to %" PRIu64, count);
		close(fd);
		return -1;
	}
	return fd_lift(r, fd, e);
}

void fd_eventfd_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(
		out, "eventfd%s, count %" PRIu64, x->args[1] ? " (semaphore)" : "", x->args[0]);
}

/* ---- timerfd ---- */

static uint64_t to_ns(const struct timespec *t)
{
	return t->tv_sec * SECOND_NS + t->tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ns / SECOND_NS, ns % SECOND_NS};
}

static bool is_wall_clock(uint64_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_ALARM;
}

bool fd_timerfd_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:[timerfd]");
}

/* The timer runs on while the process is stopped. Asking it first makes an overdue periodic
 * one count what it has missed, as a read would; asking again afterwards shows whether it
 * expired between, and the unread expirations would not fit to what is left. */
static int read_timer(
	const struct fd_source *s, char **info, struct itimerspec *left, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/fdinfo/%d", s->task, s->fd);
	struct itimerspec before;
	size_t len;

	for (;;) {
		if (timerfd_gettime(s->dup, &before))
			return err_set(e, errno, "cannot query the time that is left");
		free(*info);
		if (read_file(path, info, &len, e))
			return -1;
		if (timerfd_gettime(s->dup, left))
			return err_set(e, errno, "cannot query the time that is left");
		if (!to_ns(&before.it_value) == !to_ns(&left->it_value) &&
			to_ns(&left->it_value) <= to_ns(&before.it_value))
			return 0;
	}
}

static int64_t tree_shift(const struct fd_dump *d, clockid_t clock)
{
	return d->tree ? clocks_shift(&d->tree->clocks, clock) : 0;
}

/* When it expires, by its clock. Each reading is late by what passes between the two questions, so the earliest counts:
 * under load a single one may be late by milliseconds. */
static uint64_t expiry_of(const struct fd_source *s, clockid_t clock, uint64_t left)
{
	uint64_t expiry = clock_ns(clock) + left;
	struct itimerspec t;

	for (int i = 0; i < 4 && !timerfd_gettime(s->dup, &t) && to_ns(&t.it_value); i++) {
		uint64_t again = clock_ns(clock) + to_ns(&t.it_value);

		expiry = again < expiry ? again : expiry;
	}
	return expiry;
}

int fd_timerfd_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	cleanup_free char *info = NULL;
	struct itimerspec left;

	if (read_timer(s, &info, &left, e))
		return -1;
	x->args[0] = status_number(info, "clockid", 10);
	x->args[1] = to_ns(&left.it_value);
	x->args[2] = to_ns(&left.it_interval);
	x->args[3] = status_number(info, "ticks", 10);
	x->args[4] = status_number(info, "settime flags", 8);
	x->args[5] = is_wall_clock(x->args[0])
			     ? expiry_of(s, CLOCK_REALTIME, x->args[1])
			     : expiry_of(s, x->args[0], x->args[1]) + tree_shift(d, x->args[0]);
	return 0;
}

/* A time of day stays that time of day, and so does the time of a clock that continues from the
 * checkpoint; all other timers continue with what was left. */
static uint64_t time_of(const struct fd_restore *r, const struct image_description *x)
{
	uint64_t left_from_now;

	if (is_wall_clock(x->args[0]))
		return x->args[5];
	left_from_now = clock_ns(x->args[0]) + x->args[1];
	return r->options->clocks_continue && x->args[5] < left_from_now ? x->args[5]
									 : left_from_now;
}

static int set_timer(
	const struct fd_restore *r, int fd, const struct image_description *x, struct err *e)
{
	struct itimerspec t = {.it_interval = to_timespec(x->args[2])};
	int flags = x->args[4] & (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
	uint64_t value = x->args[1];

	if (value && flags & TFD_TIMER_ABSTIME)
		value = time_of(r, x);
	t.it_value = to_timespec(value);
	if (timerfd_settime(fd, flags, &t, NULL))
		return err_set(e, errno, "cannot set a timerfd");
	if (x->args[3] && ioctl(fd, TFD_IOC_SET_TICKS, &x->args[3]))
		return err_set(e, errno, "cannot restore the unread expirations of a timerfd");
	return 0;
}

int fd_timerfd_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	int fd = timerfd_create(x->args[0], TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return err_set(e, errno, "cannot create a timerfd");
	if (set_timer(r, fd, x, e)) {
		close(fd);
		return -1;
	}
	return fd_lift(r, fd, e);
}

/* What has run out meanwhile is counted as well. */
int fd_timerfd_provoke(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t *state)
{
	const uint64_t one = 1;

	return ioctl(fd, TFD_IOC_SET_TICKS, &one);
}

int fd_timerfd_calm(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t state)
{
	uint64_t ticks;

	if (read(fd, &ticks, sizeof(ticks)) != sizeof(ticks))
		return -1;
	return --ticks ? ioctl(fd, TFD_IOC_SET_TICKS, &ticks) : 0;
}

void fd_timerfd_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	if (x->args[1])
		buf_printf(out, "timerfd, expires in %.6f s", x->args[1] / 1e9);
	else
		buf_printf(out, "timerfd, not armed");
	if (x->args[2])
		buf_printf(out, ", every %.6f s", x->args[2] / 1e9);
	if (x->args[3])
		buf_printf(out, ", %" PRIu64 " unread", x->args[3]);
}

/* ---- signalfd: what can be read from it is what is pending in the process ---- */

bool fd_signalfd_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:[signalfd]");
}

int fd_signalfd_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	if (!*status_value(s->info, "sigmask"))
		return err_set(e, 0, "this kernel does not show its signals");
	x->args[0] = status_number(s->info, "sigmask", 16);
	return 0;
}

int fd_signalfd_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	/* glibc's sigset_t is larger than the kernel's. */
	int fd = syscall(SYS_signalfd4, -1, &x->args[0], sizeof(x->args[0]), O_CLOEXEC);

	return fd < 0 ? err_set(e, errno, "cannot create a signalfd") : fd_lift(r, fd, e);
}

void fd_signalfd_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "signalfd, signals %#" PRIx64, x->args[0]);
}
