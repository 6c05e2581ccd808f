/*
 * Contexts of asynchronous I/O (io_setup): their addresses, events that are not read yet, and
 * that they go on. One has been used round its ring, one up to the ring's end, with what is
 * unread beyond it. Requests that wait for files (IOCB_CMD_POLL) are under way: for pipes, or,
 * with the argument "eventfd", for eventfds.
 */
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "victim.h"

#define EVENTS 5

static aio_context_t used, fresh;
static char *data;
static int file;

struct ring { /* fs/aio.c */
	unsigned id, nr, head, tail, magic;
};

void victim_hurt(void)
{
	((struct ring *)used)->head++;
}

static void submit(aio_context_t context, uint64_t tag, uint64_t offset)
{
	struct iocb request = {
		.aio_data = tag,
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = file,
		.aio_buf = (uintptr_t)data,
		.aio_nbytes = 4096,
		.aio_offset = offset,
	};
	struct iocb *list[] = {&request};

	CHECK(syscall(SYS_io_submit, context, 1, list) == 1, "io_submit: %m");
}

static void take_event(aio_context_t context, uint64_t tag)
{
	struct timespec limit = {.tv_sec = 20};
	struct io_event event = {0};

	CHECK(syscall(SYS_io_getevents, context, 1, 1, &event, &limit) == 1,
		"io_getevents: %m");
	CHECK(event.data == tag && event.res == 4096, "event %llx, %lld", (long long)event.data,
		(long long)event.res);
}

static void go_round(aio_context_t context)
{
	unsigned count = ((struct ring *)context)->nr * 2 + 3;

	for (unsigned i = 0; i < count; i++) {
		submit(context, i, 0);
		take_event(context, i);
	}
}

/* Up to the last place of the ring; then so many that the tail is in front of the head. */
static void go_to_the_end(aio_context_t context, unsigned unread)
{
	const struct ring *r = (struct ring *)context;

	while (r->tail + 2 < r->nr) {
		submit(context, 1, 0);
		take_event(context, 1);
	}
	for (unsigned i = 0; i < unread; i++)
		submit(context, 200 + i, 0);
}

/* ---- requests that wait ---- */

#define POLLS 3

static struct iocb polls[POLLS];
/* To read from and to write to: ends of a pipe, or an eventfd twice. The last is never ready. */
static int waited_for[POLLS][2];
static bool for_eventfds;

/* Where it is not shown, a checkpoint is refused (from Linux 6.5 on it is). */
static bool semaphore_is_shown(int fd)
{
	char path[64], text[512];
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	n = read(info, text, sizeof(text) - 1);
	close(info);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "eventfd-semaphore:");
}

static int open_awaited(int ends[2])
{
	if (!for_eventfds)
		return pipe(ends);
	ends[0] = ends[1] = eventfd(0, 0);
	if (ends[0] >= 0 && !semaphore_is_shown(ends[0]))
		victim_skip("this kernel does not show whether an eventfd is a semaphore");
	return ends[0] < 0 ? -1 : 0;
}

static void poll_all(aio_context_t context)
{
	for (int i = 0; i < POLLS; i++) {
		struct iocb *list[] = {&polls[i]};

		MUST(!open_awaited(waited_for[i]));
		polls[i] = (struct iocb){.aio_data = 300 + i,
			.aio_lio_opcode = IOCB_CMD_POLL,
			.aio_fildes = waited_for[i][0],
			.aio_buf = POLLIN};
		if (syscall(SYS_io_submit, context, 1, list) != 1)
			victim_skip("no polls by asynchronous I/O here");
	}
}

static void take_polls(aio_context_t context)
{
	struct timespec limit = {.tv_sec = 20}, now = {0};
	struct io_event event = {0};
	const eventfd_t one = 1;

	for (int i = POLLS - 2; i >= 0; i--) {
		CHECK(write(waited_for[i][1], &one, sizeof(one)) == sizeof(one), "write: %m");
		CHECK(syscall(SYS_io_getevents, context, 1, 1, &event, &limit) == 1,
			"io_getevents of a poll: %m");
		CHECK(event.data == 300ull + i && event.obj == (uintptr_t)&polls[i] &&
				(event.res & POLLIN),
			"poll %d: event %llx, %lld", i, (long long)event.data,
			(long long)event.res);
	}
	CHECK(!syscall(SYS_io_getevents, context, 0, 1, &event, &now), "a poll too many");
}

int main(int argc, char **argv)
{
	struct io_event event;
	struct timespec now = {0};
	struct ring before, *now_there;
	aio_context_t ends = 0;

	for_eventfds = argc > 1 && !strcmp(argv[1], "eventfd");
	if (syscall(SYS_io_setup, 300, &used))
		victim_skip("no asynchronous I/O here");
	MUST(!syscall(SYS_io_setup, 1, &fresh));
	file = victim_file("read", 8192, 3);
	data = victim_anon(4096);
	go_round(used);
	MUST(!syscall(SYS_io_setup, 300, &ends));
	go_to_the_end(ends, EVENTS);
	poll_all(used);
	for (unsigned i = 0; i < EVENTS; i++)
		submit(used, 100 + i, 0);
	before = *(struct ring *)used;
	victim_ready();
	victim_wait();
	now_there = (struct ring *)used;
	CHECK(now_there->head == before.head && now_there->tail == before.tail,
		"the ring was from %u to %u, and is from %u to %u", before.head, before.tail,
		now_there->head, now_there->tail);
	for (unsigned i = 0; i < EVENTS; i++)
		take_event(used, 100 + i);
	take_polls(used);
	for (unsigned i = 0; i < EVENTS; i++)
		take_event(ends, 200 + i);
	CHECK(!syscall(SYS_io_getevents, ends, 0, 1, &event, &now), "an event too many");
	go_round(ends);
	memset(data, 0, 4096);
	submit(used, 7, 0);
	take_event(used, 7);
	SAME(data, 4096, 3, "what was read");
	go_round(used);
	CHECK(!syscall(SYS_io_getevents, fresh, 0, 1, &event, &now), "an event of nothing");
	go_round(fresh);
	CHECK(!syscall(SYS_io_destroy, used) && !syscall(SYS_io_destroy, ends) &&
			!syscall(SYS_io_destroy, fresh),
		"io_destroy: %m");
	return victim_done();
}
