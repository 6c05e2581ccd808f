/*
 * uring.h - io_uring for victims, as liburing has it: the positions in the queues are kept in
 * the program's memory.
 */
#ifndef T_URING_H
#define T_URING_H

#include <linux/io_uring.h>

#include "victim.h"

#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1u << 16)
#endif

struct uring {
	int fd;
	struct io_uring_params p;
	char *rings, *sqes;
	unsigned tail; /* of the entries that have been filled */
	unsigned sqe_size, cqe_size;
};

static inline unsigned *uring_word(const struct uring *u, unsigned offset)
{
	return (unsigned *)(u->rings + offset);
}

static inline unsigned uring_load(const struct uring *u, unsigned offset)
{
	return __atomic_load_n(uring_word(u, offset), __ATOMIC_ACQUIRE);
}

static inline void uring_store(const struct uring *u, unsigned offset, unsigned value)
{
	__atomic_store_n(uring_word(u, offset), value, __ATOMIC_SEQ_CST);
}

/* Before Linux 6.12 a checkpoint refuses rings (supervisor/uring/uring_dump.c), which t/uring.t looks at. */
static inline void uring_skip_if_refused(void)
{
	FILE *f = fopen("/proc/sys/kernel/osrelease", "re");
	unsigned major = 0, minor = 0;
	bool old = f && fscanf(f, "%u.%u", &major, &minor) == 2 &&
		   (major < 6 || (major == 6 && minor < 12));

	if (f)
		fclose(f);
	if (old && !getenv("URING_REFUSED"))
		victim_skip("rings are refused before Linux 6.12");
}

static inline void uring_open(struct uring *u, unsigned entries, unsigned flags)
{
	size_t size;

	uring_skip_if_refused();
	memset(u, 0, sizeof(*u));
	u->p.flags = flags;
	u->p.sq_thread_idle = 50;
	u->fd = syscall(SYS_io_uring_setup, entries, &u->p);
	if (u->fd < 0)
		victim_skip("no such io_uring here");
	u->sqe_size = flags & IORING_SETUP_SQE128 ? 128 : 64;
	u->cqe_size = flags & IORING_SETUP_CQE32 ? 32 : 16;
	size = u->p.cq_off.cqes + u->p.cq_entries * u->cqe_size;
	if (!(flags & IORING_SETUP_NO_SQARRAY) &&
		u->p.sq_off.array + u->p.sq_entries * 4 > size)
		size = u->p.sq_off.array + u->p.sq_entries * 4;
	u->rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u->fd,
		IORING_OFF_SQ_RING);
	u->sqes = mmap(NULL, u->p.sq_entries * u->sqe_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, u->fd, IORING_OFF_SQES);
	MUST(u->rings != MAP_FAILED && u->sqes != MAP_FAILED);
	for (unsigned i = 0; !(flags & IORING_SETUP_NO_SQARRAY) && i < u->p.sq_entries; i++)
		uring_word(u, u->p.sq_off.array)[i] = i;
}

/* The next entry, filled with zeros: an empty request. */
static inline struct io_uring_sqe *uring_next(struct uring *u, uint64_t data)
{
	struct io_uring_sqe *sqe =
		(void *)(u->sqes + (u->tail++ & (u->p.sq_entries - 1)) * u->sqe_size);

	memset(sqe, 0, u->sqe_size);
	sqe->user_data = data;
	return sqe;
}

/* The kernel may see what has been filled. */
static inline void uring_show(struct uring *u)
{
	uring_store(u, u->p.sq_off.tail, u->tail);
}

static inline int uring_enter(int fd, unsigned submit, unsigned wait, unsigned flags)
{
	return syscall(SYS_io_uring_enter, fd, submit, wait, flags, NULL, 0);
}

/* Submit what is not, and wait for @wait completions. */
static inline int uring_submit(struct uring *u, unsigned wait)
{
	unsigned head = uring_load(u, u->p.sq_off.head), flags = IORING_ENTER_GETEVENTS;

	uring_show(u);
	if (u->p.flags & IORING_SETUP_SQPOLL)
		flags |= IORING_ENTER_SQ_WAKEUP;
	return uring_enter(u->fd, u->tail - head, wait, flags);
}

/* The next completion; NULL: there is none. It is to be taken by uring_seen(). */
static inline const struct io_uring_cqe *uring_peek(const struct uring *u)
{
	unsigned head = uring_load(u, u->p.cq_off.head);

	if (head == uring_load(u, u->p.cq_off.tail))
		return NULL;
	return (void *)(u->rings + u->p.cq_off.cqes +
			(head & (u->p.cq_entries - 1)) * u->cqe_size);
}

static inline void uring_seen(const struct uring *u)
{
	uring_store(u, u->p.cq_off.head, uring_load(u, u->p.cq_off.head) + 1);
}

/* Take the next completion, which must be of @data: its result. */
static inline int uring_take(struct uring *u, uint64_t data)
{
	const struct io_uring_cqe *cqe = uring_peek(u);
	int result = -1;

	if (!cqe && uring_load(u, u->p.sq_off.flags) & IORING_SQ_CQ_OVERFLOW) {
		CHECK(!uring_enter(u->fd, 0, 0, IORING_ENTER_GETEVENTS), "enter: %m");
		cqe = uring_peek(u);
	}
	CHECK(cqe, "no completion of %llx", (long long)data);
	if (!cqe)
		return -1;
	CHECK(cqe->user_data == data, "completion of %llx instead of %llx",
		(long long)cqe->user_data, (long long)data);
	result = cqe->res;
	uring_seen(u);
	return result;
}

#endif
