/*
 * What an io_uring takes when its process is there: a thread that may use it or polls it, its
 * counters, what is registered with it; and mappings of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/fd/descriptor_source.h"
#include "supervisor/fd/epoll_watch.h"
#include "supervisor/state/restore_one.h"
#include "supervisor/target/remote.h"
#include "supervisor/target/task_pidfd.h"
#include "supervisor/uring/uring.h"
#include "supervisor/uring/uring_advance.h"
#include "supervisor/uring/uring_late_restore.h"

static struct return_of_ring *of_driver(struct ring_driver *d)
{
	return (struct return_of_ring *)((char *)d -
					 __builtin_offsetof(struct return_of_ring, driver));
}

/* ---- who submits: the thread itself, the one that polls, or we ---- */

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

/* ---- one that is polled is made anew, by the process ---- */

static int remote_ok(struct return_of_ring *r, int64_t result, const char *what)
{
	return result < 0 ? err_set(r->one->e, -result, "cannot %s an io_uring", what) : 0;
}

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
		.sq_thread_idle = 10, /* milliseconds; nothing tells what it was */
	};

	if (other >= 0) {
		p.flags |= IORING_SETUP_ATTACH_WQ;
		p.wq_fd = other;
	}
	if (tracee_write(r->one->process.mem_fd, r->scratch, &p, sizeof(p), r->one->e) ||
		REMOTE_CALL(&r->remote, made, r->one->e, SYS_io_uring_setup, i->sq_entries,
			r->scratch))
		return -1;
	return remote_ok(r, *made, "make");
}

/* Not what stood in for it until now. */
static int watch_again(struct return_of_ring *r, int set, const struct watch *w)
{
	struct epoll_event event = {.events = w->events, .data.u64 = w->data};
	int64_t result;

	if (w->description != r->description)
		return 0;
	if (tracee_write(
		    r->one->process.mem_fd, r->scratch, &event, sizeof(event), r->one->e) ||
		REMOTE_CALL(&r->remote, &result, r->one->e, SYS_epoll_ctl, set, EPOLL_CTL_ADD,
			w->fd, r->scratch))
		return -1;
	/* Another descriptor of the same set has done it. */
	return result == -EEXIST ? 0 : remote_ok(r, result, "watch");
}

static const struct image_description *describe(const struct restore_one *r, uint32_t index)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(
		r->c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	return &x[index];
}

static int watch_all_again(struct return_of_ring *r)
{
	for (size_t i = 0; i < r->fd_count; i++) {
		const struct image_description *x = describe(r->one, r->fds[i].description);
		const char *text;
		struct watch w;
		int more;

		if (x->kind != IMAGE_FD_EPOLL)
			continue;
		text = image_string(r->one->c->job, x->args[0]);
		while ((more = watch_next(&text, &w, r->one->e)) > 0)
			if (watch_again(r, r->fds[i].fd, &w))
				return -1;
		if (more)
			return -1;
	}
	return 0;
}

static int place_polled(struct return_of_ring *r)
{
	int64_t made, result;

	if (make_polled(r, &made))
		return -1;
	for (size_t i = 0; i < r->fd_count; i++) {
		if (r->fds[i].description != r->description)
			continue;
		if (REMOTE_CALL(&r->remote, &result, r->one->e, SYS_dup3, made, r->fds[i].fd,
			    r->fds[i].cloexec ? O_CLOEXEC : 0) ||
			remote_ok(r, result, "place"))
			return -1;
	}
	if (REMOTE_CALL(&r->remote, &result, r->one->e, SYS_close, made))
		return -1;
	return watch_all_again(r);
}

/* ---- what is registered ---- */

static int do_register(struct return_of_ring *r, unsigned opcode, const void *data, size_t size,
	unsigned count, const char *what)
{
	int64_t result;

	if (tracee_write(r->one->process.mem_fd, r->scratch, data, size, r->one->e) ||
		REMOTE_CALL(&r->remote, &result, r->one->e, SYS_io_uring_register, r->number,
			opcode, r->scratch, count))
		return -1;
	return result < 0 ? err_set(r->one->e, -result, "cannot register %s with an io_uring",
				    what)
			  : 0;
}

/* The table, whose slots are empty. */
static int make_table(struct return_of_ring *r, unsigned opcode, uint32_t count)
{
	struct io_uring_rsrc_register table = {
		.nr = count, .flags = IORING_RSRC_REGISTER_SPARSE};

	return do_register(r, opcode, &table, sizeof(table), sizeof(table), "slots");
}

/* One slot. */
static int fill_slot(struct return_of_ring *r, unsigned opcode, uint32_t slot, const void *what,
	size_t size, const char *name)
{
	struct {
		struct io_uring_rsrc_update2 update;
		uint64_t data[2];
	} u = {.update = {.offset = slot, .data = r->scratch + sizeof(u.update), .nr = 1}};

	memcpy(u.data, what, size);
	return do_register(r, opcode, &u, sizeof(u), sizeof(u.update), name);
}

static int register_line(struct return_of_ring *r, const char *line)
{
	uint64_t iov[2];
	uint32_t slot;
	int fd;

	if (sscanf(line, "files %u", &slot) == 1)
		return make_table(r, IORING_REGISTER_FILES2, slot);
	if (sscanf(line, "file %u %d", &slot, &fd) == 2)
		return fill_slot(
			r, IORING_REGISTER_FILES_UPDATE2, slot, &fd, sizeof(fd), "a file");
	if (sscanf(line, "buffers %u", &slot) == 1)
		return make_table(r, IORING_REGISTER_BUFFERS2, slot);
	if (sscanf(line, "buffer %u %" SCNx64 " %" SCNx64, &slot, &iov[0], &iov[1]) == 3)
		return fill_slot(
			r, IORING_REGISTER_BUFFERS_UPDATE, slot, iov, sizeof(iov), "memory");
	if (sscanf(line, "eventfd %d", &fd) == 1)
		return do_register(
			r, IORING_REGISTER_EVENTFD, &fd, sizeof(fd), 1, "an eventfd");
	return 0;
}

static int complete_line(struct return_of_ring *r, const char *line)
{
	uint32_t result, flags;
	uint64_t data;

	if (sscanf(line, "overflow %" SCNx64 " %x %x", &data, &result, &flags) != 3)
		return 0;
	return ring_complete(&r->driver, data, result, flags, r->one->e);
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

/* ---- one ring ---- */

static int get_ring(struct return_of_ring *r)
{
	cleanup_fd int pidfd =
		fd_task_open(r->one->process.pid, r->one->process.task, r->one->e);

	if (pidfd < 0)
		return -1;
	r->fd = syscall(SYS_pidfd_getfd, pidfd, r->number, 0);
	return r->fd < 0 ? err_set(r->one->e, errno, "cannot get at an io_uring") : 0;
}

static int enable(struct return_of_ring *r)
{
	const uint32_t flags = r->image->flags;
	int64_t result;

	if (flags & IORING_SETUP_SQPOLL) {
		r->driver.enter = restore_ring_enter_polled;
		return place_polled(r);
	}
	r->driver.enter = enter_here;
	if (!(flags & IORING_SETUP_SINGLE_ISSUER))
		return 0;
	r->driver.enter = restore_ring_enter;
	if (REMOTE_CALL(&r->remote, &result, r->one->e, SYS_io_uring_register, r->number,
		    IORING_REGISTER_ENABLE_RINGS, 0, 0))
		return -1;
	return remote_ok(r, result, "enable");
}

int restore_ring_map(struct return_of_ring *r)
{
	const struct image_ring *i = r->image;
	struct err *e = r->one->e;

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
	if (restore_ring_map(r) || ring_advance(&r->driver, &before, r->one->e))
		return -1;
	ring_put(&r->ring, r->image, !waiting);
	return restore_each_line(r, complete_line) || restore_each_line(r, register_line) ? -1
											  : 0;
}

static int bring_back(struct return_of_ring *r)
{
	struct err *e = r->one->e;
	int failed;

	if (!r->thread)
		return 0;
	if (remote_begin(&r->remote, &r->one->process, r->thread, e))
		return -1;
	r->scratch = remote_scratch(&r->remote, 4096, e);
	failed = !r->scratch || enable(r) || fill_ring(r);
	restore_ring_release(r);
	if (remote_end(&r->remote, failed ? NULL : e) || failed)
		return err_prefix(e, "descriptor %d", r->number);
	return 0;
}

/* ---- the rings of a process: one that others have as well is the first one's ---- */

static struct thread *restore_ring_thread(struct return_of_ring *r, int32_t tid)
{
	for (size_t i = 0; i < r->one->thread_count; i++)
		if (r->one->threads[i].tid == tid)
			return &r->one->process.threads[i];
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
	const struct image_description *x = describe(r->one, r->fds[i].description);
	cleanup_buf struct buf data = {0};

	if (x->kind != IMAGE_FD_URING || number_of(r, r->fds[i].description) != r->fds[i].fd)
		return 0;
	r->image = uring_image(r->one->c->job, x->object, &data, r->one->e);
	if (!r->image)
		return -1;
	r->thread = restore_ring_thread(r, r->image->tid);
	r->description = r->fds[i].description;
	r->number = r->fds[i].fd;
	r->fd = -1;
	return act(r);
}

static void begin_ring(struct return_of_ring *r, struct restore_one *one)
{
	size_t table = checkpoint_owner(one->c, one->index, IMAGE_SHARED_FILES);

	*r = (struct return_of_ring){.one = one, .fd = -1};
	r->fds = image_note_array(
		one->c->processes[table], IMAGE_NOTE_FDS, struct image_fd, &r->fd_count);
}

int restore_each_ring(struct restore_one *one, int (*act)(struct return_of_ring *r))
{
	struct return_of_ring r;

	begin_ring(&r, one);
	for (size_t i = 0; i < r.fd_count; i++)
		if (with_ring(&r, i, act))
			return -1;
	return 0;
}

/* ---- numbers that threads have for them ---- */

static int register_ring(struct return_of_ring *r, struct thread *t, unsigned slot)
{
	struct io_uring_rsrc_update u = {.offset = slot, .data = r->number};
	struct err *e = r->one->e;
	int64_t result;
	uint64_t at;
	int failed;

	if (remote_begin(&r->remote, &r->one->process, t, e))
		return -1;
	at = remote_scratch(&r->remote, 4096, e);
	failed = !at || tracee_write(r->one->process.mem_fd, at, &u, sizeof(u), e) ||
		 REMOTE_CALL(&r->remote, &result, e, SYS_io_uring_register, r->number,
			 IORING_REGISTER_RING_FDS, at, 1);
	if (remote_end(&r->remote, failed ? NULL : e) || failed)
		return -1;
	return result == 1 ? 0
			   : err_set(e, result < 0 ? -result : 0,
				     "cannot register an io_uring with a thread");
}

static int register_ring_line(struct return_of_ring *r, const char *line)
{
	struct thread *t;
	unsigned slot;
	int tid;

	if (sscanf(line, "ring %d %u", &tid, &slot) != 2)
		return 0;
	t = restore_ring_thread(r, tid);
	return t ? register_ring(r, t, slot) : 0;
}

static int register_rings(struct return_of_ring *r)
{
	return restore_each_line(r, register_ring_line);
}

/* ---- mappings ---- */

/* The kernel maps a ring nowhere but where it chooses itself (io_uring_get_unmapped_area(),
 * io_uring/memmap.c), and moves no mapping of one: so the right place has to be the only one
 * that is left. */
#define LOWEST 0x10000ul

struct filling {
	struct restore_one *one;
	struct remote remote;
	struct buf filled; /* struct vma */
};

static int fill_gap(struct filling *f, uint64_t start, uint64_t end)
{
	struct vma gap = {.start = start, .end = end};
	int64_t at;

	if (start >= end)
		return 0;
	if (REMOTE_CALL(&f->remote, &at, f->one->e, SYS_mmap, start, end - start, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0))
		return -1;
	/* What is too near to a stack cannot be mapped, and will not be chosen. */
	if (at == (int64_t)start)
		buf_push(&f->filled, struct vma, &gap);
	return 0;
}

static int fill_gaps(struct filling *f)
{
	struct vma_list vmas = {0};
	uint64_t from = LOWEST;
	int failed = procfs_vmas(f->one->process.pid, &vmas, f->one->e);

	for (size_t i = 0; !failed && i < vmas.count; i++) {
		const struct vma *v = &vmas.v[i];

		if (v->start >= LOADER_ADDRESS_END)
			break;
		failed = fill_gap(f, from, v->start);
		from = v->end;
	}
	if (!failed)
		failed = fill_gap(f, from, LOADER_ADDRESS_END);
	vma_list_free(&vmas);
	return failed;
}

static int clear_gaps(struct filling *f)
{
	int64_t result;

	for (size_t i = 0; i < buf_count(&f->filled, struct vma); i++) {
		const struct vma *v = buf_at(&f->filled, struct vma, i);

		if (REMOTE_CALL(&f->remote, &result, f->one->e, SYS_munmap, v->start,
			    v->end - v->start))
			return -1;
	}
	return 0;
}

static const struct {
	uint32_t advice;
	int madvise;
} advices[] = {
	{IMAGE_ADVICE_DONTFORK, MADV_DONTFORK},
	{IMAGE_ADVICE_DONTDUMP, MADV_DONTDUMP},
};

static int map_ring(struct filling *f, const struct image_region *g, int fd)
{
	uint64_t size = g->end - g->start;
	int64_t at;

	if (REMOTE_CALL(&f->remote, &at, f->one->e, SYS_munmap, g->start, size) ||
		REMOTE_CALL(&f->remote, &at, f->one->e, SYS_mmap, 0, size, g->prot,
			MAP_SHARED | MAP_POPULATE, fd, g->offset))
		return -1;
	if (at != (int64_t)g->start)
		return err_set(f->one->e, at < 0 ? -at : 0,
			"cannot map an io_uring at %#" PRIx64 " again", g->start);
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++)
		if (g->advice & advices[i].advice &&
			REMOTE_CALL(&f->remote, &at, f->one->e, SYS_madvise, g->start, size,
				advices[i].madvise))
			return -1;
	return 0;
}

/* A descriptor of the process that leads to object number @object. */
static int object_number(const struct return_of_ring *r, uint32_t object)
{
	for (size_t i = 0; i < r->fd_count; i++) {
		const struct image_description *x = describe(r->one, r->fds[i].description);

		if (x->kind == IMAGE_FD_URING && x->object == object)
			return r->fds[i].fd;
	}
	return -1;
}

static int map_regions(struct return_of_ring *r, struct filling *f)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(r->one->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		int fd;

		if (g[i].kind != IMAGE_REGION_URING)
			continue;
		fd = object_number(r, g[i].object);
		if (fd < 0)
			return err_set(r->one->e, 0,
				"the image is damaged: no descriptor leads to a mapped "
				"io_uring");
		if (map_ring(f, &g[i], fd))
			return -1;
	}
	return 0;
}

static int map_filled(struct return_of_ring *r)
{
	struct filling f = {.one = r->one};
	int failed;

	if (remote_begin(&f.remote, &r->one->process, &r->one->process.threads[0], r->one->e))
		return -1;
	failed = fill_gaps(&f) || map_regions(r, &f) || clear_gaps(&f);
	buf_free(&f.filled);
	return remote_end(&f.remote, failed ? NULL : r->one->e) || failed ? -1 : 0;
}

/* All of the address space is to be mapped for a moment. */
static int map_all(struct return_of_ring *r)
{
	struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY}, own;
	pid_t pid = r->one->process.pid;
	int failed;

	if (prlimit(pid, RLIMIT_AS, NULL, &own))
		return err_set(r->one->e, errno, "cannot ask for a resource limit");
	if (own.rlim_max != RLIM_INFINITY && prlimit(pid, RLIMIT_AS, &most, NULL))
		most.rlim_max = most.rlim_cur = own.rlim_max; /* without the right to more */
	if (prlimit(pid, RLIMIT_AS, &most, NULL))
		return err_set(r->one->e, errno, "cannot set a resource limit");
	failed = map_filled(r);
	if (failed && most.rlim_max != RLIM_INFINITY)
		err_append(r->one->e,
			" (for this a limit of the address space, RLIMIT_AS, is in the way: it "
			"is %llu KiB; restart it under ulimit -v unlimited)",
			(unsigned long long)most.rlim_max >> 10);
	if (prlimit(pid, RLIMIT_AS, &own, NULL) && !failed)
		return err_set(r->one->e, errno, "cannot set a resource limit");
	return failed;
}

static bool has_regions(const struct restore_one *r)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(r->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (g[i].kind == IMAGE_REGION_URING)
			return true;
	return false;
}

int restore_one_rings(struct restore_one *one)
{
	struct return_of_ring r;

	if (restore_each_ring(one, bring_back) || restore_each_ring(one, register_rings))
		return -1;
	begin_ring(&r, one);
	return has_regions(one) ? map_all(&r) : 0;
}
