/*
 * An io_uring: its memory and counters, entries that are not submitted yet and completions that
 * are not read yet, files and memory and an eventfd that are registered. The argument says of
 * what kind it is; with another one the thread knows it by a number of its own even where the kernel
 * does not take that number for everything.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "uring.h"

/* An enum value where headers have it (Linux 6.3). */
#define USE_REGISTERED_RING (1u << 31)

#define BEFORE  1003 /* requests */
#define WAITING 2
#define SEED    7

static const struct {
	const char *name;
	unsigned entries, flags;
	unsigned unread; /* completions; 0: 3 */
} kinds[] = {
	{"plain", 256, 0},
	{"small", 4, 0},
	{"nearly-full", 4, 0, 7},
	{"overflowing", 4, 0, 11},
	{"overflowing-deferred", 4, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		13},
	{"polled", 64, IORING_SETUP_SQPOLL},
	{"deferred", 32, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN},
	{"issuer", 16, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN},
	{"no-array", 16, IORING_SETUP_NO_SQARRAY},
	{"wide", 16, IORING_SETUP_SQE128 | IORING_SETUP_CQE32},
	{"wide-large", 128, IORING_SETUP_SQE128 | IORING_SETUP_CQE32},
	{"wide-no-array", 128, IORING_SETUP_SQE128 | IORING_SETUP_NO_SQARRAY},
};

static struct uring u;
static int file, event, set, index_of_ring = -1;
static bool file_is_registered;
static unsigned unread;
static char *memory;

void victim_hurt(void)
{
	uring_seen(&u);
}

static bool is_polled(void)
{
	return u.p.flags & IORING_SETUP_SQPOLL;
}

static long do_register(unsigned opcode, void *arg, unsigned count)
{
	return syscall(SYS_io_uring_register, u.fd, opcode, arg, count);
}

/* Whether others than io_uring_enter(2) take the number, from Linux 6.3 on. */
static bool can_be_asked(unsigned number)
{
	return !syscall(SYS_io_uring_register, number,
		       IORING_UNREGISTER_EVENTFD | USE_REGISTERED_RING, NULL, 0) &&
	       !do_register(IORING_REGISTER_EVENTFD, &event, 1);
}

/* Older kernels show the names of registered files without their directories, and a checkpoint is refused. */
static bool file_is_shown(void)
{
	char path[64], line[512];
	bool shown = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", u.fd);
	f = fopen(path, "r");
	while (f && !shown && fgets(line, sizeof(line), f))
		shown = strstr(line, "/read\n");
	if (f)
		fclose(f);
	return shown;
}

static void register_all(bool in_any_case)
{
	struct iovec {
		void *at;
		size_t size;
	} memories[2] = {{memory, 8192}, {memory + 16384, 4096}};
	struct io_uring_rsrc_update ring = {.offset = 5, .data = u.fd};
	int files[4] = {-1, file, -1, -1};

	MUST(!do_register(IORING_REGISTER_FILES, files, 4));
	file_is_registered = file_is_shown();
	MUST(file_is_registered || !do_register(IORING_UNREGISTER_FILES, NULL, 0));
	MUST(!do_register(IORING_REGISTER_BUFFERS, memories, 2));
	MUST(!do_register(IORING_REGISTER_EVENTFD, &event, 1));
	/* Not before Linux 5.18; a checkpoint is refused before 6.3. */
	if (do_register(IORING_REGISTER_RING_FDS, &ring, 1) != 1)
		return;
	if (in_any_case || can_be_asked(ring.offset)) {
		index_of_ring = ring.offset;
		return;
	}
	ring.data = 0;
	MUST(do_register(IORING_UNREGISTER_RING_FDS, &ring, 1) == 1);
}

/* The last one by a worker, which waits for more for some seconds. */
static void do_some(void)
{
	for (unsigned i = 0; i < BEFORE; i++) {
		uring_next(&u, i)->flags = i == BEFORE - 1 ? IOSQE_ASYNC : 0;
		/* In a polled ring the head may lag behind. */
		MUST(uring_submit(&u, 1) > 0);
		CHECK(uring_take(&u, i) == 0, "an empty request");
	}
}

/* What a read through the file, the memory and the ring's number gives. */
static void read_registered(uint64_t data)
{
	struct io_uring_sqe *sqe = uring_next(&u, data);
	unsigned flags = IORING_ENTER_GETEVENTS;
	int n;

	sqe->opcode = IORING_OP_READ_FIXED;
	sqe->flags = file_is_registered ? IOSQE_FIXED_FILE : 0;
	sqe->fd = file_is_registered ? 1 : file;
	sqe->addr = (uintptr_t)memory + 16384;
	sqe->len = 4096;
	sqe->off = 4096;
	sqe->buf_index = 1;
	memset(memory + 16384, 0, 4096);
	uring_show(&u);
	if (index_of_ring >= 0)
		flags |= IORING_ENTER_REGISTERED_RING;
	if (is_polled())
		flags |= IORING_ENTER_SQ_WAKEUP;
	n = uring_enter(index_of_ring >= 0 ? index_of_ring : u.fd, 1, 1, flags);
	CHECK(n == 1, "io_uring_enter by its registered number: %d %m", n);
	n = uring_take(&u, data);
	CHECK(n == 4096, "a read of a registered file: %d", n);
	SAME(memory + 16384, 4096, SEED, "what was read");
}

/* The first 4096 bytes and the second are alike. */
static void make_file(void)
{
	file = victim_file("read", 4096, SEED);
	victim_fill(memory, 4096, SEED);
	MUST(pwrite(file, memory, 4096, 4096) == 4096);
}

static void *other_thread(void *arg)
{
	*(long *)arg =
		do_register(IORING_UNREGISTER_PERSONALITY, NULL, 0x10000) < 0 ? errno : 0;
	return NULL;
}

/* What the kernel tells by the way it refuses. */
static void check_flags(unsigned flags)
{
	long error = 0;
	void *bad = (void *)1;

	pthread_join(victim_thread(other_thread, &error), NULL);
	CHECK((error == EEXIST) == !!(flags & IORING_SETUP_SINGLE_ISSUER), "another thread: %s",
		strerror(error));
	if (do_register(33 /* IORING_REGISTER_RESIZE_RINGS */, bad, 1) < 0 && flags)
		CHECK((errno == EFAULT) == !!(flags & IORING_SETUP_DEFER_TASKRUN),
			"IORING_SETUP_DEFER_TASKRUN: %m");
}

static void check_event(void)
{
	struct epoll_event e = {0};
	eventfd_t count = 0;

	CHECK(!eventfd_read(event, &count) && count, "the eventfd: %m");
	CHECK(epoll_wait(set, &e, 1, 0) == 0, "an event of an empty ring");
	uring_next(&u, 77);
	CHECK(uring_submit(&u, 1) > 0, "submit: %m");
	CHECK(epoll_wait(set, &e, 1, 2000) == 1 && e.data.u64 == 0x5eed,
		"the ring is not watched");
	CHECK(uring_take(&u, 77) == 0, "an empty request");
	CHECK(!eventfd_read(event, &count) && count == 1, "the eventfd counts %d", (int)count);
}

static void prepare(unsigned entries, unsigned flags, bool in_any_case)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 0x5eed};

	uring_open(&u, entries, flags);
	memory = victim_anon(32768);
	make_file();
	event = eventfd(0, EFD_NONBLOCK);
	set = epoll_create1(0);
	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, u.fd, &e));
	do_some();
	register_all(in_any_case);
	read_registered(99);
	for (unsigned i = 0; i < unread; i++) {
		uring_next(&u, 1000 + i);
		MUST(uring_submit(&u, is_polled() ? i + 1 : 0) > 0);
	}
	for (unsigned i = 0; !is_polled() && i < WAITING; i++)
		uring_next(&u, 2000 + i);
	uring_show(&u);
}

static void check_ring(unsigned flags)
{
	unsigned waiting = is_polled() ? 0 : WAITING;
	const struct uring before = u;

	CHECK(uring_load(&u, u.p.sq_off.tail) == u.tail, "the tail is %u, was %u",
		uring_load(&u, u.p.sq_off.tail), u.tail);
	CHECK(uring_load(&u, u.p.sq_off.head) == u.tail - waiting, "the head is %u",
		uring_load(&u, u.p.sq_off.head));
	/* They must not take the place of what is not read yet. */
	if (waiting)
		CHECK(uring_submit(&u, 0) == (int)waiting, "submit: %m");
	for (unsigned i = 0; i < unread; i++)
		CHECK(uring_take(&u, 1000 + i) == 0, "an empty request");
	for (unsigned i = 0; i < waiting; i++)
		CHECK(uring_take(&u, 2000 + i) == 0, "an empty request");
	CHECK(!uring_peek(&u), "more completions than there were");
	check_event();
	read_registered(98);
	check_flags(flags);
	CHECK(before.rings == u.rings, "its memory");
}

int main(int argc, char **argv)
{
	unsigned k = 0;

	while (argc > 1 && strcmp(kinds[k].name, argv[1]))
		MUST(++k < sizeof(kinds) / sizeof(kinds[0]));
	unread = kinds[k].unread ? kinds[k].unread : 3;
	prepare(kinds[k].entries, kinds[k].flags, argc > 2);
	victim_ready();
	victim_wait();
	check_ring(kinds[k].flags);
	return victim_done();
}
