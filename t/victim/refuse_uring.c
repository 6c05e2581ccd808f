/*
 * What makes an io_uring impossible to save: waiting requests that the kernel does not show, or
 * settings that cannot be read.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "refuse.h"
#include "uring.h"

static struct uring u;
static char buffer[64];

static void open_ring(unsigned flags)
{
	uring_open(&u, 8, flags);
	fd = u.fd;
}

static struct io_uring_sqe *ask_for(uint64_t data, int op, int file)
{
	struct io_uring_sqe *sqe = uring_next(&u, data);

	sqe->opcode = op;
	sqe->fd = file;
	return sqe;
}

static void submit(void)
{
	MUST(uring_submit(&u, 0) > 0);
}

static void do_some(unsigned count)
{
	while (count--) {
		uring_next(&u, 0);
		MUST(uring_submit(&u, 1) > 0);
		uring_seen(&u);
	}
}

/* Until @other, an eventfd, is written to. */
static void poll_other(uint64_t data)
{
	if (other < 0)
		other = eventfd(0, 0);
	ask_for(data, IORING_OP_POLL_ADD, other)->poll32_events = POLLIN;
}

static void still_polls(void)
{
	CHECK(!uring_peek(&u), "it has ended");
	CHECK(!eventfd_write(other, 1), "eventfd_write: %m");
	CHECK(uring_submit(&u, 1) >= 0, "enter: %m");
	CHECK(uring_peek(&u) && uring_peek(&u)->res & POLLIN, "the poll has not ended");
}

static void still_waits(void)
{
	CHECK(!uring_peek(&u), "it has ended");
}

/* ---- requests that wait ---- */

static void used_again(void)
{
	open_ring(0);
	poll_other(1);
	submit();
	do_some(20);
}

static __attribute__((noinline)) void wait_for_long(unsigned count)
{
	struct __kernel_timespec time = {.tv_sec = 3600 + count};
	struct io_uring_sqe *sqe = ask_for(1, IORING_OP_TIMEOUT, -1);

	sqe->addr = (uintptr_t)&time;
	sqe->len = 1;
	sqe->off = count;
	submit();
}

static void lost_arguments(void)
{
	open_ring(0);
	wait_for_long(0);
}

static void counting(void)
{
	open_ring(0);
	wait_for_long(3);
}

static void same_data(void)
{
	int ready = eventfd(1, 0);

	open_ring(0);
	poll_other(0);
	ask_for(0, IORING_OP_POLL_ADD, ready)->poll32_events = POLLIN;
	submit();
	uring_seen(&u);
}

static void closed_file(void)
{
	int ends[2];

	open_ring(0);
	MUST(!pipe(ends));
	ask_for(1, IORING_OP_POLL_ADD, ends[0])->poll32_events = POLLIN;
	submit();
	close(ends[0]);
}

static void changed(void)
{
	struct io_uring_sqe *sqe;

	open_ring(0);
	other = eventfd(0, 0);
	ask_for(1, IORING_OP_POLL_ADD, other)->poll32_events = POLLERR;
	sqe = ask_for(2, IORING_OP_POLL_REMOVE, -1);
	sqe->addr = 1;
	sqe->len = IORING_POLL_UPDATE_EVENTS;
	sqe->poll32_events = POLLIN;
	submit();
	CHECK(uring_take(&u, 2) == 0, "the update");
}

static void fifo(void)
{
	struct io_uring_sqe *sqe;

	open_ring(0);
	MUST(!mkfifo("fifo", 0600));
	sqe = ask_for(1, IORING_OP_OPENAT, AT_FDCWD);
	sqe->flags = IOSQE_ASYNC;
	sqe->addr = (uintptr_t) "fifo";
	sqe->open_flags = O_RDONLY;
	submit();
}

static void still_opens(void)
{
	int end = open("fifo", O_WRONLY);

	CHECK(end >= 0, "open: %m");
	CHECK(uring_submit(&u, 1) >= 0, "enter: %m");
	CHECK(uring_peek(&u) && uring_peek(&u)->res >= 0, "the FIFO has not been opened");
}

/* It has had completions, which are to be seen no longer, as is its entry. */
static void old_several(void)
{
	struct io_uring_sqe *sqe;
	eventfd_t value;

	open_ring(0);
	other = eventfd(0, 0);
	sqe = ask_for(1, IORING_OP_POLL_ADD, other);
	sqe->poll32_events = POLLIN;
	sqe->len = IORING_POLL_ADD_MULTI;
	submit();
	for (int i = 0; i < 3; i++) {
		MUST(!eventfd_write(other, 1) && uring_submit(&u, 1) >= 0);
		uring_seen(&u);
		MUST(!eventfd_read(other, &value));
	}
	sqe = ask_for(2, IORING_OP_POLL_REMOVE, -1);
	sqe->addr = 1;
	MUST(uring_submit(&u, 2) >= 0);
	uring_seen(&u);
	uring_seen(&u);
	do_some(40);
}

/* Completions of another ring's requests. */
static void message_ring(void)
{
	struct uring from;
	struct io_uring_sqe *sqe;

	open_ring(0);
	uring_open(&from, 8, 0);
	for (int i = 0; i < 3; i++) {
		sqe = uring_next(&from, i);
		sqe->opcode = IORING_OP_MSG_RING;
		sqe->fd = u.fd;
		MUST(uring_submit(&from, 1) == 1);
		uring_seen(&from);
		need(uring_peek(&u), "no messages between rings");
		uring_seen(&u);
	}
	do_some(40);
}

/* ---- buffers ---- */

static void receive(void)
{
	struct io_uring_sqe *sqe;
	int ends[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	sqe = ask_for(7, IORING_OP_RECV, ends[0]);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = 5;
	submit();
}

static void given_buffers(void)
{
	struct io_uring_sqe *sqe;

	open_ring(0);
	sqe = ask_for(6, IORING_OP_PROVIDE_BUFFERS, 1);
	sqe->addr = (uintptr_t)buffer;
	sqe->len = sizeof(buffer);
	sqe->buf_group = 5;
	submit();
	CHECK(uring_take(&u, 6) == 0, "buffers");
	receive();
}

/* Nothing has been received into them so far. */
static void make_ring_of_buffers(unsigned flags)
{
	struct io_uring_buf_reg reg = {.ring_entries = 8, .bgid = 5};

	open_ring(flags);
	reg.ring_addr = (uintptr_t)victim_anon(4096);
	need(!syscall(SYS_io_uring_register, fd, IORING_REGISTER_PBUF_RING, &reg, 1),
		"no rings of buffers");
}

static void ring_of_buffers(void)
{
	make_ring_of_buffers(0);
}

static void buffers_of_one(void)
{
	make_ring_of_buffers(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
}

/* ---- settings ---- */

static void credentials(void)
{
	long id;

	open_ring(0);
	id = syscall(SYS_io_uring_register, fd, IORING_REGISTER_PERSONALITY, NULL, 0);
	MUST(id > 0);
}

static void not_enabled(void)
{
	open_ring(IORING_SETUP_R_DISABLED);
}

static void restricted(void)
{
	struct io_uring_restriction only = {
		.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_NOP};

	open_ring(IORING_SETUP_R_DISABLED);
	MUST(!syscall(SYS_io_uring_register, fd, IORING_REGISTER_RESTRICTIONS, &only, 1));
	MUST(!syscall(SYS_io_uring_register, fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0));
}

static void own_memory(void)
{
	struct io_uring_params params = {.flags = 1u << 14 /* IORING_SETUP_NO_MMAP */};
	char *memory =
		mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(memory != MAP_FAILED);
	memset(memory, 0, 8192);
	/* The last eight bytes of each are user_addr, which older headers call resv2. */
	*(uint64_t *)((char *)(&params.sq_off + 1) - 8) = (uintptr_t)memory + 4096;
	*(uint64_t *)((char *)(&params.cq_off + 1) - 8) = (uintptr_t)memory;
	fd = syscall(SYS_io_uring_setup, 8, &params);
	need(fd >= 0, "no ring in memory of one's own");
}

static pid_t ring_waiter;

static atomic_int ring_result;

/* For an event that does not come. */
static void *wait_for_ring(void *arg)
{
	ring_waiter = victim_tid();
	(void)syscall(426 /* io_uring_enter */, fd, 0, 1, 1 /* GETEVENTS */, NULL, 0);
	ring_result = errno;
	return NULL;
}

/* It waits for bytes that will not come, some of which may have come. */
static void waiting_thread(void)
{
	struct io_uring_sqe *sqe;
	static char bytes[8];
	int ends[2];

	open_ring(0);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	sqe = uring_next(&u, 1);
	sqe->opcode = IORING_OP_RECV;
	sqe->fd = ends[0];
	sqe->addr = (uintptr_t)bytes;
	sqe->len = sizeof(bytes);
	sqe->msg_flags = MSG_WAITALL;
	MUST(uring_submit(&u, 0) == 1);
	victim_thread(wait_for_ring, NULL);
	while (!ring_waiter)
		usleep(500);
	victim_until_blocked(ring_waiter, 426);
}

static void still_waits_for_ring(void)
{
	CHECK(!ring_result, "it has been interrupted: %s", strerror(ring_result));
}

static const struct kind kinds[] = {
	{"waiting-thread", waiting_thread, still_waits_for_ring, 'd'},
	{"used-again", used_again, still_polls, 'd'},
	{"lost-arguments", lost_arguments, still_waits, 'd'},
	{"counting", counting, still_waits, 'd'},
	{"same-data", same_data, still_polls, 'd'},
	{"closed-file", closed_file, still_waits, 'd'},
	{"changed", changed, still_polls, 'd'},
	{"fifo", fifo, still_opens, 'd'},
	{"old-several", old_several, nothing, 'd'},
	{"message-ring", message_ring, nothing, 'd'},
	{"given-buffers", given_buffers, still_waits, 'd'},
	{"ring-of-buffers", ring_of_buffers, nothing, 'd'},
	{"buffers-of-one", buffers_of_one, nothing, 'd'},
	{"credentials", credentials, nothing, 'd'},
	{"not-enabled", not_enabled, nothing, 'd'},
	{"restricted", restricted, nothing, 'd'},
	{"own-memory", own_memory, nothing, 'd'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
