/*
 * Contexts of asynchronous I/O, when the process has its memory: in place of each is as yet
 * ordinary memory with what was in it (memory/aio_dump.c).
 */
#include "supervisor/memory/aio_restore.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "supervisor/memory/aio_ring_position.h"
#include "supervisor/target/remote.h"

struct return_of_context {
	struct new_process *np;
	const struct image_region *region;
	struct remote remote;
	uint64_t scratch;
	uint64_t context; /* where the kernel has put it */
	struct buf old;   /* what was in it */
};

#define EVENT_SIZE 32u
#define PAGE       AIO_SCRATCH

/* The least number to ask for that takes as many pages: the kernel doubles it, adds two, and
 * uses up the last page (aio_setup_ring(), fs/aio.c). */
static uint64_t requests_of_pages(uint64_t pages)
{
	uint64_t below = (pages - 1) * (PAGE / EVENT_SIZE);

	return below < 4 ? 1 : (below - 3) / 2 + 1;
}

static int make_context(struct return_of_context *r)
{
	const struct image_aio_ring *old = r->old.data;
	struct err *e = r->np->e;
	struct image_aio_ring new;
	int64_t result;

	r->context = 0;
	if (tracee_write(
		    r->np->process.mem_fd, r->scratch, &r->context, sizeof(r->context), e) ||
		REMOTE_CALL(&r->remote, &result, e, SYS_io_setup,
			requests_of_pages(r->old.len / PAGE), r->scratch))
		return -1;
	if (result < 0)
		return err_set(e, -result, "cannot create an AIO context%s",
			result == -EAGAIN ? " (fs.aio-max-nr is used up)" : "");
	if (tracee_read(
		    r->np->process.mem_fd, r->scratch, &r->context, sizeof(r->context), e) ||
		tracee_read(r->np->process.mem_fd, r->context, &new, sizeof(new), e))
		return -1;
	return new.nr == old->nr
		       ? 0
		       : err_set(e, 0,
				 "an AIO context for %u events has room for %u here: the "
				 "kernel makes them larger where there are more processors",
				 old->nr, new.nr);
}

/* What the program has not read, of the @nr events that there is room for. */
static uint32_t unread_events(const struct image_aio_ring *ring)
{
	return (ring->tail + ring->nr - ring->head % ring->nr) % ring->nr;
}

/* The kernel's place in the ring is the old one then, with as much unread behind it. */
static int advance_ring(struct return_of_context *r)
{
	const struct image_aio_ring *old = r->old.data;
	struct aio_ring_access turn = {
		.remote = &r->remote, .mem_fd = r->np->process.mem_fd, .scratch = r->scratch};
	cleanup_buf struct buf others = {0};
	uint32_t keep = unread_events(old), count = old->tail;
	int failed;

	if (count < keep)
		count += old->nr;
	if (!count)
		return 0;
	if (aio_open_null(&turn, r->np->e))
		return -1;
	failed = aio_ring_advance(&turn, r->context, count, keep, &others, r->np->e);
	return aio_close_null(&turn, failed ? NULL : r->np->e) || failed ? -1 : 0;
}

/* The kernel follows it to another address (aio_ring_mremap()). */
static int move_context(struct return_of_context *r)
{
	uint64_t size = r->old.len, to = r->region->start;
	int64_t at;

	if (REMOTE_CALL(&r->remote, &at, r->np->e, SYS_mremap, r->context, size, size,
		    MREMAP_MAYMOVE | MREMAP_FIXED, to))
		return -1;
	return at == (int64_t)to ? 0
				 : err_set(r->np->e, at < 0 ? -at : 0,
					   "cannot move an AIO context to %#" PRIx64, to);
}

/* All but the number by which the kernel finds it. */
static int put_context(struct return_of_context *r)
{
	const size_t at = offsetof(struct image_aio_ring, nr);

	return tracee_write(r->np->process.mem_fd, r->region->start + at,
		(const char *)r->old.data + at, r->old.len - at, r->np->e);
}

/* How many events of @request wait to be read. */
static uint32_t events_of(const struct return_of_context *r, uint64_t request)
{
	const struct image_aio_ring *old = r->old.data;
	const struct io_event *events = (const struct io_event *)(old + 1);
	uint32_t found = 0;

	for (uint32_t i = 0, n = unread_events(old); i < n; i++)
		found += events[(old->head % old->nr + i) % old->nr].obj == request;
	return found;
}

/* A request whose event came while the memory was being saved has ended. */
static int issue_again(struct return_of_context *r)
{
	const struct image_aio_request *q;
	struct err *e = r->np->e;
	int64_t done;
	size_t count;

	q = image_note_array(
		r->np->img, IMAGE_NOTE_AIO_REQUESTS, struct image_aio_request, &count);
	for (size_t i = 0; i < count; i++) {
		if (q[i].context != r->region->start ||
			events_of(r, q[i].request) > q[i].events)
			continue;
		if (tracee_write(r->np->process.mem_fd, r->scratch, &q[i].request,
			    sizeof(q[i].request), e) ||
			REMOTE_CALL(&r->remote, &done, e, SYS_io_submit, r->region->start, 1,
				r->scratch))
			return -1;
		if (done != 1)
			return err_set(e, -done,
				"cannot issue a request of asynchronous I/O again (at "
				"%#" PRIx64 ")",
				q[i].request);
	}
	return 0;
}

static int bring_back(struct return_of_context *r)
{
	const struct image_aio_ring *old;
	uint64_t size = r->region->end - r->region->start;

	r->old.len = 0;
	if (tracee_read(r->np->process.mem_fd, r->region->start, buf_grow(&r->old, size), size,
		    r->np->e))
		return -1;
	old = r->old.data;
	if (old->magic != IMAGE_AIO_MAGIC || old->tail >= old->nr ||
		old->nr > (size - sizeof(*old)) / EVENT_SIZE)
		return err_set(r->np->e, 0, "the image is damaged: an AIO context");
	return make_context(r) || advance_ring(r) || move_context(r) || put_context(r) ||
			       issue_again(r)
		       ? -1
		       : 0;
}

static int bring_back_all(struct return_of_context *r)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(r->np->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		r->region = &g[i];
		if (g[i].kind == IMAGE_REGION_AIO && bring_back(r))
			return -1;
	}
	return 0;
}

int new_process_aio(struct new_process *np)
{
	struct return_of_context r = {.np = np};
	const struct image_region *g;
	bool any = false;
	size_t count;
	int failed;

	g = image_note_array(np->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		any |= g[i].kind == IMAGE_REGION_AIO;
	if (!any)
		return 0;
	if (remote_begin(&r.remote, &np->process, &np->process.threads[0], np->e))
		return -1;
	r.scratch = remote_scratch(&r.remote, PAGE, np->e);
	failed = !r.scratch || bring_back_all(&r);
	buf_free(&r.old);
	return remote_end(&r.remote, failed ? NULL : np->e) || failed ? -1 : 0;
}
