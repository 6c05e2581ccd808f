/*
 * Requests that wait in an io_uring at the checkpoint, of several kinds: each has its
 * completion when what it waits for comes, and not before. The argument says what ring it is.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "uring.h"

#define FUTEX_WAIT_OP 51 /* IORING_OP_FUTEX_WAIT, since Linux 6.7 */
#define FUTEX_WAKE_OP 52
#define FUTEX_32      2u /* FUTEX2_SIZE_U32 */

static const struct {
	const char *name;
	unsigned entries, flags, before; /* before: requests that have ended */
	bool several;
} kinds[] = {
	{"plain", 64, 0, 5},
	{"used", 64, 0, 1003},
	{"polled", 64, IORING_SETUP_SQPOLL, 300},
	{"deferred", 64, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 300},
	{"no-array", 64, IORING_SETUP_NO_SQARRAY, 300},
	{"wide", 64, IORING_SETUP_SQE128 | IORING_SETUP_CQE32, 300},
	{"several", 64, 0, 40, true},
};

enum { POLL = 1, RECV, ACCEPT, READ, FUTEX, LATE, DEADLINE, FIRST, SECOND, MANY, EACH, HELPER };

static struct uring u;
static struct __kernel_timespec late = {.tv_sec = 3600}, deadline;
static int pipe_ends[2], talk[2], listener, event, chain[2], other_event;
static char received[64], written[] = "written";
static uint64_t counted;
static uint32_t word;
static bool several, has_futex;

void victim_hurt(void)
{
	struct io_uring_sqe *sqe = uring_next(&u, HELPER);

	sqe->opcode = IORING_OP_ASYNC_CANCEL;
	sqe->addr = RECV;
	uring_submit(&u, 1);
}

static struct io_uring_sqe *ask_for(uint64_t data, int op, int fd, void *at, unsigned size)
{
	struct io_uring_sqe *sqe = uring_next(&u, data);

	sqe->opcode = op;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)at;
	sqe->len = size;
	return sqe;
}

static void submit(void)
{
	MUST(uring_submit(&u, 0) >= 0);
}

/* ---- what waits ---- */

static int listen_at(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(a.sun_path, path);
	MUST(!bind(fd, (void *)&a, sizeof(a)) && !listen(fd, 5));
	return fd;
}

static void wait_for_files(void)
{
	MUST(!pipe(pipe_ends) && !socketpair(AF_UNIX, SOCK_STREAM, 0, talk));
	event = eventfd(0, 0);
	listener = listen_at("socket");
	ask_for(POLL, IORING_OP_POLL_ADD, pipe_ends[0], NULL, 0)->poll32_events = POLLIN;
	ask_for(RECV, IORING_OP_RECV, talk[0], received, sizeof(received));
	ask_for(ACCEPT, IORING_OP_ACCEPT, listener, NULL, 0);
	ask_for(READ, IORING_OP_READ, event, &counted, sizeof(counted))->off = -1;
}

static void wait_for_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	deadline.tv_sec = now.tv_sec + 3600;
	ask_for(LATE, IORING_OP_TIMEOUT, -1, &late, 1);
	ask_for(DEADLINE, IORING_OP_TIMEOUT, -1, &deadline, 1)->timeout_flags =
		IORING_TIMEOUT_ABS;
}

static void wait_for_futex(void)
{
	struct io_uring_sqe *sqe = ask_for(FUTEX, FUTEX_WAIT_OP, FUTEX_32, &word, 0);

	sqe->addr3 = ~0u;
	submit();
	/* Operations that are not known end at once. */
	has_futex = !uring_peek(&u);
	if (!has_futex)
		uring_seen(&u);
}

/* The second begins when the first has ended. */
static void wait_in_chain(void)
{
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, chain));
	ask_for(FIRST, IORING_OP_RECV, chain[0], received, 1)->flags = IOSQE_IO_LINK;
	ask_for(SECOND, IORING_OP_SEND, chain[0], written, sizeof(written));
}

static void wait_often(void)
{
	struct io_uring_sqe *sqe;

	other_event = eventfd(0, 0);
	sqe = ask_for(MANY, IORING_OP_POLL_ADD, other_event, NULL, IORING_POLL_ADD_MULTI);
	sqe->poll32_events = POLLIN;
	sqe = ask_for(EACH, IORING_OP_ACCEPT, listen_at("many"), NULL, 0);
	sqe->ioprio = IORING_ACCEPT_MULTISHOT;
}

static void prepare(unsigned before)
{
	for (unsigned i = 0; i < before; i++) {
		uring_next(&u, 0);
		MUST(uring_submit(&u, 1) > 0);
		CHECK(uring_take(&u, 0) == 0, "an empty request");
	}
	wait_for_files();
	wait_for_time();
	wait_in_chain();
	if (several)
		wait_often();
	submit();
	wait_for_futex();
}

/* ---- and ends ---- */

static int take_entry(uint64_t data)
{
	MUST(uring_submit(&u, 1) >= 0);
	return uring_take(&u, data);
}

static int connect_to(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(a.sun_path, path);
	CHECK(!connect(fd, (void *)&a, sizeof(a)), "connect: %m");
	return fd;
}

static void check_files(void)
{
	CHECK(write(pipe_ends[1], "x", 1) == 1, "write: %m");
	CHECK(take_entry(POLL) == POLLIN, "the poll");
	CHECK(send(talk[1], "hello", 5, 0) == 5, "send: %m");
	CHECK(take_entry(RECV) == 5 && !memcmp(received, "hello", 5), "received: %.5s",
		received);
	close(connect_to("socket"));
	CHECK(take_entry(ACCEPT) >= 0, "accept");
	CHECK(!eventfd_write(event, 42), "eventfd_write: %m");
	CHECK(take_entry(READ) == 8 && counted == 42, "read %llu", (long long)counted);
}

static void check_cancel(uint64_t data)
{
	ask_for(HELPER, IORING_OP_ASYNC_CANCEL, -1, (void *)data, 0);
	submit();
	/* In either order. */
	for (int i = 0; i < 2; i++) {
		const struct io_uring_cqe *cqe;

		MUST(uring_submit(&u, 1) >= 0);
		cqe = uring_peek(&u);
		CHECK(cqe && cqe->res == (cqe->user_data == HELPER ? 0 : -ECANCELED),
			"cancel %d: %llx %d", (int)data, cqe ? (long long)cqe->user_data : 0,
			cqe ? cqe->res : 0);
		if (!cqe)
			return;
		uring_seen(&u);
	}
}

static void check_chain(void)
{
	char read_[sizeof(written)] = "";

	CHECK(send(chain[1], "c", 1, 0) == 1, "send: %m");
	CHECK(take_entry(FIRST) == 1 && received[0] == 'c', "the first of two");
	CHECK(take_entry(SECOND) == sizeof(written), "the second of two");
	CHECK(read(chain[1], read_, sizeof(read_)) == sizeof(read_) && !strcmp(read_, written),
		"read %s", read_);
}

static void check_futex(void)
{
	ask_for(HELPER, FUTEX_WAKE_OP, FUTEX_32, &word, 0)->addr3 = ~0u;
	((struct io_uring_sqe *)(u.sqes + ((u.tail - 1) & (u.p.sq_entries - 1)) * u.sqe_size))
		->off = 1;
	submit();
	for (int i = 0; i < 2; i++) {
		MUST(uring_submit(&u, 1) >= 0);
		CHECK(uring_peek(&u) &&
				uring_peek(&u)->res == (uring_peek(&u)->user_data == HELPER),
			"futex: %d", uring_peek(&u) ? uring_peek(&u)->res : -1);
		uring_seen(&u);
	}
}

static void check_several(void)
{
	for (int i = 0; i < 3; i++) {
		eventfd_t value;

		CHECK(!eventfd_write(other_event, 1), "eventfd_write: %m");
		CHECK(take_entry(MANY) & POLLIN, "the poll");
		CHECK(!eventfd_read(other_event, &value), "eventfd_read: %m");
		close(connect_to("many"));
		CHECK(take_entry(EACH) >= 0, "accept");
	}
}

int main(int argc, char **argv)
{
	unsigned k = 0;

	while (argc > 1 && strcmp(kinds[k].name, argv[1]))
		MUST(++k < sizeof(kinds) / sizeof(kinds[0]));
	several = kinds[k].several;
	uring_open(&u, kinds[k].entries, kinds[k].flags);
	prepare(kinds[k].before);
	victim_ready();
	victim_wait();
	CHECK(!uring_peek(&u), "something has ended: %llx",
		(long long)uring_peek(&u)->user_data);
	check_cancel(LATE);
	check_cancel(DEADLINE);
	check_files();
	check_chain();
	if (several)
		check_several();
	if (has_futex)
		check_futex();
	return victim_done();
}
