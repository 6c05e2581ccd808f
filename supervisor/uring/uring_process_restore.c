/*
 * What an io_uring takes when its process is there: a thread that may use it or polls it, its
 * counters, what is registered with it; and mappings of it.
 */
#include "supervisor/uring/uring_process_restore.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/fd/descriptor_source.h"
#include "supervisor/target/task_pidfd.h"
#include "supervisor/uring/uring.h"

static struct return_of_ring *of_driver(struct ring_driver *d)
{
	return (struct return_of_ring *)((char *)d -
					 __builtin_offsetof(struct return_of_ring, driver));
}

/* ---- who submits: the thread itself, the kernel's thread that polls, or we ---- */

int restore_ring_enter(struct ring_driver *d, uint32_t count, struct err *e)
{
	struct return_of_ring *r = of_driver(d);
	int64_t result;

	if (REMOTE_CALL(&r->remote, &result, e, SYS_io_uring_enter, r->number, count, 0,
		    IORING_ENTER_GETEVENTS, 0, 8))
		return -1;
	return result == count ? 0
			       : err_set(e, result < 0 ? -result : 0, "cannot use an io_uring");
}

static int enter_here(struct ring_driver *d, uint32_t count, struct err *e)
{
	long n = syscall(
		SYS_io_uring_enter, d->ring->fd, count, 0, IORING_ENTER_GETEVENTS, NULL, 0);

	return n == count ? 0 : err_set(e, n < 0 ? errno : 0, "cannot use an io_uring");
}

#define POLL_PATIENCE_NS 10000000000ull

int restore_ring_enter_polled(struct ring_driver *d, uint32_t count, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + POLL_PATIENCE_NS;
	const struct ring *r = d->ring;

	/* A sleep would take longer than the few entries of a small ring. */
	while (ring_read(r, r->p.sq_off.head) != ring_read(r, r->p.sq_off.tail)) {
		if (ring_read(r, r->p.sq_off.flags) & IORING_SQ_NEED_WAKEUP &&
			syscall(SYS_io_uring_enter, r->fd, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL,
				0) < 0)
			return err_set(e, errno, "cannot use an io_uring");
		if (clock_ns(CLOCK_MONOTONIC) > deadline)
			return err_set(e, 0, "the thread that polls an io_uring does not");
		sched_yield();
	}
	return 0;
}

/* ---- one ring ---- */

const struct image_description *restore_ring_description(
	const struct new_process *np, uint32_t index)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(
		np->c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	return &x[index];
}

int restore_each_line(
	struct return_of_ring *r, int (*act)(struct return_of_ring *r, const char *line))
{
	for (const char *p = uring_lines(r->image); p && *p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (act(r, p))
			return -1;
	}
	return 0;
}

static int complete_line(struct return_of_ring *r, const char *line)
{
	uint32_t result, flags;
	uint64_t data;

	if (sscanf(line, "overflow %" SCNx64 " %x %x", &data, &result, &flags) != 3)
		return 0;
	return ring_complete(&r->driver, data, result, flags, r->np->e);
}

static int get_ring(struct return_of_ring *r)
{
	cleanup_fd int pidfd = fd_task_open(r->np->process.pid, r->np->process.task, r->np->e);

	if (pidfd < 0)
		return -1;
	r->fd = syscall(SYS_pidfd_getfd, pidfd, r->number, 0);
	return r->fd < 0 ? err_set(r->np->e, errno, "cannot access an io_uring") : 0;
}

static int enable_ring(struct return_of_ring *r)
{
	const uint32_t flags = r->image->flags;
	int64_t result;

	if (flags & IORING_SETUP_SQPOLL) {
		r->driver.enter = restore_ring_enter_polled;
		return restore_ring_place_polled(r);
	}
	r->driver.enter = enter_here;
	if (!(flags & IORING_SETUP_SINGLE_ISSUER))
		return 0;
	r->driver.enter = restore_ring_enter;
	if (REMOTE_CALL(&r->remote, &result, r->np->e, SYS_io_uring_register, r->number,
		    IORING_REGISTER_ENABLE_RINGS, 0, 0))
		return -1;
	return restore_ring_result(r, result, "enable");
}

int restore_ring_map(struct return_of_ring *r)
{
	const struct image_ring *i = r->image;
	struct err *e = r->np->e;

	r->driver.ring = &r->ring;
	return ring_layout(&r->ring, i->flags, i->sq_entries, i->cq_entries, e) ||
			       get_ring(r) || ring_map(&r->ring, r->fd, e)
		       ? -1
		       : 0;
}

void restore_ring_release(struct return_of_ring *r)
{
	ring_unmap(&r->ring);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* Waiting requests are issued when all else is there (uring_requests.c). */
static int fill_ring(struct return_of_ring *r)
{
	uint32_t waiting = uring_waiting(r->image);
	struct image_ring before = *r->image;

	before.sq_head -= waiting;
	if (restore_ring_map(r) || ring_advance(&r->driver, &before, r->np->e))
		return -1;
	ring_put(&r->ring, r->image, !waiting);
	return restore_each_line(r, complete_line) || restore_ring_register(r) ? -1 : 0;
}

static int bring_back(struct return_of_ring *r)
{
	struct err *e = r->np->e;
	int failed;

	if (!r->thread)
		return 0;
	if (remote_begin(&r->remote, &r->np->process, r->thread, e))
		return -1;
	r->scratch = remote_scratch(&r->remote, 4096, e);
	failed = !r->scratch || enable_ring(r) || fill_ring(r);
	restore_ring_release(r);
	if (remote_end(&r->remote, failed ? NULL : e) || failed)
		return err_prefix(e, "descriptor %d", r->number);
	return 0;
}

/* ---- the rings of a process: a ring of several processes is with the first ---- */

struct thread *restore_ring_thread(struct return_of_ring *r, int32_t tid)
{
	for (size_t i = 0; i < r->np->thread_count; i++)
		if (r->np->threads[i].tid == tid)
			return &r->np->process.threads[i];
	return NULL;
}

/* Number of the first descriptor that leads to @description. */
static int number_of(const struct return_of_ring *r, uint32_t description)
{
	for (size_t i = 0; i < r->fd_count; i++)
		if (r->fds[i].description == description)
			return r->fds[i].fd;
	return -1;
}

static int with_ring(struct return_of_ring *r, size_t i, int (*act)(struct return_of_ring *r))
{
	const struct image_description *x =
		restore_ring_description(r->np, r->fds[i].description);
	cleanup_buf struct buf data = {0};

	if (x->kind != IMAGE_FD_URING || number_of(r, r->fds[i].description) != r->fds[i].fd)
		return 0;
	r->image = uring_image(r->np->c->job, x->object, &data, r->np->e);
	if (!r->image)
		return -1;
	r->thread = restore_ring_thread(r, r->image->tid);
	r->description = r->fds[i].description;
	r->number = r->fds[i].fd;
	r->fd = -1;
	return act(r);
}

static void begin_ring(struct return_of_ring *r, struct new_process *np)
{
	size_t table = checkpoint_owner(np->c, np->index, IMAGE_SHARED_FILES);

	*r = (struct return_of_ring){.np = np, .fd = -1};
	r->fds = image_note_array(
		np->c->processes[table], IMAGE_NOTE_FDS, struct image_fd, &r->fd_count);
}

int restore_each_ring(struct new_process *np, int (*act)(struct return_of_ring *r))
{
	struct return_of_ring r;

	begin_ring(&r, np);
	for (size_t i = 0; i < r.fd_count; i++)
		if (with_ring(&r, i, act))
			return -1;
	return 0;
}

int new_process_rings(struct new_process *np)
{
	struct return_of_ring r;

	if (restore_each_ring(np, bring_back) ||
		restore_each_ring(np, restore_ring_register_thread))
		return -1;
	begin_ring(&r, np);
	return restore_ring_mappings(&r);
}
