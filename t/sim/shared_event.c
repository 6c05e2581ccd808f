/* A count of records, and of the records that streams have come to: whichever process's they are. */
#include "t/sim/shared_event.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "t/sim/stream.h"

#define ROOM 4096

struct shared_event {
	uint32_t recorded, done; /* done: a futex */
};

struct shared_event *shared_event_map(int fd)
{
	(void)!ftruncate(fd, ROOM); /* what fails shows when it is mapped */
	return mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static uint32_t recorded(const struct shared_event *e)
{
	return __atomic_load_n(&e->recorded, __ATOMIC_ACQUIRE);
}

static bool is_behind(uint32_t done, uint32_t record)
{
	return (int)(done - record) >= 0;
}

bool shared_event_is_done(const struct shared_event *e)
{
	uint32_t record = recorded(e);

	return is_behind(__atomic_load_n(&e->done, __ATOMIC_ACQUIRE), record);
}

static void await_record(struct shared_event *e, uint32_t record)
{
	uint32_t done;

	while (done = __atomic_load_n(&e->done, __ATOMIC_ACQUIRE), !is_behind(done, record))
		syscall(SYS_futex, &e->done, FUTEX_WAIT, done, NULL, NULL, 0);
}

void shared_event_await(struct shared_event *e)
{
	await_record(e, recorded(e));
}

struct work {
	struct shared_event *event;
	uint32_t record;
};

static void run_record(void *data)
{
	const struct work *w = data;

	__atomic_store_n(&w->event->done, w->record, __ATOMIC_RELEASE);
	syscall(SYS_futex, &w->event->done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void run_wait(void *data)
{
	const struct work *w = data;

	await_record(w->event, w->record);
}

int shared_event_record(struct shared_event *e, void *stream)
{
	struct work w = {e, __atomic_add_fetch(&e->recorded, 1, __ATOMIC_ACQ_REL)};

	return stream_queue(stream, run_record, stream_data(&w, sizeof(w)), "cuEventRecord");
}

int shared_event_wait(struct shared_event *e, void *stream)
{
	struct work w = {e, recorded(e)};

	return stream_queue(stream, run_wait, stream_data(&w, sizeof(w)), "cuStreamWaitEvent");
}
