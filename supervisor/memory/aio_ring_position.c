/*
 * The kernel counts events in memory of its own, and writes them into a ring of the program's
 * (struct kioctx and struct aio_ring, fs/aio.c). Nothing sets its place there: it moves by one
 * with each request that ends, and a read of nothing from /dev/null ends at once.
 *
 * A request takes one of the ring's places, and gets it back when the program has read the
 * event (moved the head); some places are with another processor at times. So the head is moved
 * behind the tail here whenever there is no place left.
 */
#include "supervisor/memory/aio_ring_position.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Pointers to the same request, behind it in the scratch page. */
#define POINTERS_AT 256u
#define AT_ONCE     ((AIO_SCRATCH - POINTERS_AT) / sizeof(uint64_t))

uint64_t aio_event_at(uint64_t context, uint32_t index)
{
	return context + sizeof(struct image_aio_ring) + index * sizeof(struct io_event);
}

int aio_read_ring(
	int mem_fd, uint64_t context, uint64_t size, struct image_aio_ring *ring, struct err *e)
{
	if (tracee_read(mem_fd, context, ring, sizeof(*ring), e))
		return -1;
	return ring->magic == IMAGE_AIO_MAGIC && ring->nr && ring->tail < ring->nr &&
			       ring->nr <= (size - sizeof(*ring)) / sizeof(struct io_event)
		       ? 0
		       : err_set(e, 0, "the AIO context at %#" PRIx64 " has an unknown layout",
				 context);
}

int aio_open_null(struct aio_ring_access *t, struct err *e)
{
	static const char null[] = "/dev/null";

	if (tracee_write(t->mem_fd, t->scratch, null, sizeof(null), e) ||
		REMOTE_CALL(t->remote, &t->null, e, SYS_openat, AT_FDCWD, t->scratch,
			O_RDONLY | O_CLOEXEC, 0))
		return -1;
	return t->null < 0 ? err_set(e, -t->null, "cannot open %s in the process", null) : 0;
}

int aio_close_null(struct aio_ring_access *t, struct err *e)
{
	int64_t result;

	return REMOTE_CALL(t->remote, &result, e, SYS_close, t->null);
}

static int write_requests(struct aio_ring_access *t, struct err *e)
{
	struct {
		struct iocb request;
		uint64_t rest[POINTERS_AT / 8 - sizeof(struct iocb) / 8];
		uint64_t pointers[AT_ONCE];
	} page = {.request = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = t->null}};

	_Static_assert(sizeof(page) == AIO_SCRATCH, "one page");
	for (size_t i = 0; i < AT_ONCE; i++)
		page.pointers[i] = t->scratch;
	return tracee_write(t->mem_fd, t->scratch, &page, sizeof(page), e);
}

/* The program's own events from *seen on; *seen: the tail now. */
static int collect_others(struct aio_ring_access *t, uint64_t context, uint32_t *seen,
	struct buf *others, struct err *e)
{
	struct image_aio_ring ring;
	struct io_event event;

	if (tracee_read(t->mem_fd, context, &ring, sizeof(ring), e))
		return -1;
	for (; *seen != ring.tail; *seen = (*seen + 1) % ring.nr) {
		if (tracee_read(
			    t->mem_fd, aio_event_at(context, *seen), &event, sizeof(event), e))
			return -1;
		if (event.obj != t->scratch)
			buf_push(others, struct io_event, &event);
	}
	return 0;
}

/* The program has read all events, as far as the kernel knows. */
static int all_read(struct aio_ring_access *t, uint64_t context, uint32_t tail, struct err *e)
{
	return tracee_write(t->mem_fd, context + offsetof(struct image_aio_ring, head), &tail,
		sizeof(tail), e);
}

/* How many requests have ended; 0: there was no place for one. -1: failed. */
static int64_t submit_requests(
	struct aio_ring_access *t, uint64_t context, uint32_t count, struct err *e)
{
	int64_t done;

	if (REMOTE_CALL(t->remote, &done, e, SYS_io_submit, context,
		    count < AT_ONCE ? count : AT_ONCE, t->scratch + POINTERS_AT))
		return -1;
	if (done < 0 && done != -EAGAIN)
		return err_set(e, -done, "cannot use an AIO context");
	return done < 0 ? 0 : done;
}

int aio_ring_advance(struct aio_ring_access *t, uint64_t context, uint32_t count, uint32_t keep,
	struct buf *others, struct err *e)
{
	struct image_aio_ring ring;
	bool full = false;
	uint32_t seen;

	if (write_requests(t, e) || tracee_read(t->mem_fd, context, &ring, sizeof(ring), e))
		return -1;
	seen = ring.tail;
	while (count) {
		int64_t done =
			submit_requests(t, context, count > keep ? count - keep : count, e);

		if (done < 0 || collect_others(t, context, &seen, others, e))
			return -1;
		if (!done && full)
			return err_set(e, EAGAIN,
				"cannot use an AIO context: its requests are all under way");
		/* With no place even for those to be kept, the kernel has to think that the
		 * program has read them: it merely lets it submit a few too many. */
		full = !done;
		count -= done;
		if ((count >= keep || full) && all_read(t, context, seen, e))
			return -1;
	}
	return 0;
}
