/*
 * Contexts of asynchronous I/O (io_setup): their addresses, events that are not read yet, and
 * that they go on. One has been used round its ring.
 */
#include <linux/aio_abi.h>

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

static void take(aio_context_t context, uint64_t tag)
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
		take(context, i);
	}
}

int main(void)
{
	struct io_event event;
	struct timespec now = {0};

	if (syscall(SYS_io_setup, 300, &used))
		victim_skip("no asynchronous I/O here");
	MUST(!syscall(SYS_io_setup, 1, &fresh));
	file = victim_file("read", 8192, 3);
	data = victim_anon(4096);
	go_round(used);
	for (unsigned i = 0; i < EVENTS; i++)
		submit(used, 100 + i, 0);
	victim_ready();
	victim_wait();
	for (unsigned i = 0; i < EVENTS; i++)
		take(used, 100 + i);
	CHECK(!syscall(SYS_io_getevents, used, 0, 1, &event, &now), "an event too many");
	memset(data, 0, 4096);
	submit(used, 7, 0);
	take(used, 7);
	SAME(data, 4096, 3, "what was read");
	go_round(used);
	CHECK(!syscall(SYS_io_getevents, fresh, 0, 1, &event, &now), "an event of nothing");
	go_round(fresh);
	CHECK(!syscall(SYS_io_destroy, used) && !syscall(SYS_io_destroy, fresh),
		"io_destroy: %m");
	return victim_done();
}
