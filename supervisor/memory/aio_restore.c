/*
 * Contexts of asynchronous I/O, when the process has its memory: in place of each is as yet
 * ordinary memory with what was in it (memory/aio_dump.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "supervisor/state/restore_one.h"
#include "supervisor/target/remote.h"

struct return_of_context {
	struct restore_one *one;
	const struct image_region *region;
	struct remote remote;
	uint64_t scratch;
	uint64_t context; /* where the kernel has put it */
	struct buf old;   /* what was in it */
};

#define EVENT_SIZE 32u
#define PAGE       4096u

/* The least number to ask for that takes as many pages: the kernel doubles it, adds two, and
 * uses up the last page (aio_setup_ring(), fs/aio.c). */
static uint64_t requests(uint64_t pages)
{
	uint64_t below = (pages - 1) * (PAGE / EVENT_SIZE);

	return below < 4 ? 1 : (below - 3) / 2 + 1;
}

static int make(struct return_of_context *r)
{
	const struct image_aio_ring *old = r->old.data;
	struct err *e = r->one->e;
	struct image_aio_ring new;
	int64_t result;

	r->context = 0;
	if (tracee_write(
		    r->one->process.mem_fd, r->scratch, &r->context, sizeof(r->context), e) ||
		REMOTE_CALL(&r->remote, &result, e, SYS_io_setup, requests(r->old.len / PAGE),
			r->scratch))
		return -1;
	if (result < 0)
		return err_set(e, -result, "cannot make an AIO context%s",
			result == -EAGAIN ? " (fs.aio-max-nr is used up)" : "");
	if (tracee_read(
		    r->one->process.mem_fd, r->scratch, &r->context, sizeof(r->context), e) ||
		tracee_read(r->one->process.mem_fd, r->context, &new, sizeof(new), e))
		return -1;
	return new.nr == old->nr
		       ? 0
		       : err_set(e, 0,
				 "an AIO context of %u events gets %u here: the kernel makes "
				 "them larger where there are more processors",
				 old->nr, new.nr);
}

/* Pointers to the same empty request, behind it in the scratch page. */
#define POINTERS_AT 256u
#define AT_ONCE     ((PAGE - POINTERS_AT) / sizeof(uint64_t))

static int prepare(struct return_of_context *r, int64_t fd)
{
	struct {
		struct iocb request;
		uint64_t rest[POINTERS_AT / 8 - sizeof(struct iocb) / 8];
		uint64_t pointers[AT_ONCE];
	} page = {.request = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd}};

	_Static_assert(sizeof(page) == PAGE, "one page");
	for (size_t i = 0; i < AT_ONCE; i++)
		page.pointers[i] = r->scratch;
	return tracee_write(r->one->process.mem_fd, r->scratch, &page, sizeof(page), r->one->e);
}

/* The kernel counts events in memory of its own: reads of nothing bring it to the old place. */
static int submit(struct return_of_context *r, uint32_t count)
{
	struct err *e = r->one->e;
	int64_t done;

	while (count) {
		uint32_t n = count < AT_ONCE ? count : AT_ONCE;

		if (REMOTE_CALL(&r->remote, &done, e, SYS_io_submit, r->context, n,
			    r->scratch + POINTERS_AT))
			return -1;
		if (done <= 0)
			return err_set(e, -done, "cannot use an AIO context");
		count -= done;
	}
	return 0;
}

static int advance(struct return_of_context *r)
{
	static const char null[] = "/dev/null";
	const struct image_aio_ring *old = r->old.data;
	struct err *e = r->one->e;
	int64_t fd, result;
	int failed;

	if (!old->tail)
		return 0;
	if (tracee_write(r->one->process.mem_fd, r->scratch, null, sizeof(null), e) ||
		REMOTE_CALL(&r->remote, &fd, e, SYS_openat, AT_FDCWD, r->scratch,
			O_RDONLY | O_CLOEXEC, 0))
		return -1;
	if (fd < 0)
		return err_set(e, -fd, "cannot open %s in the new process", null);
	failed = prepare(r, fd) || submit(r, old->tail);
	return REMOTE_CALL(&r->remote, &result, failed ? NULL : e, SYS_close, fd) || failed ? -1
											    : 0;
}

/* The kernel follows it to another address (aio_ring_mremap()). */
static int move(struct return_of_context *r)
{
	uint64_t size = r->old.len, to = r->region->start;
	int64_t at;

	if (REMOTE_CALL(&r->remote, &at, r->one->e, SYS_mremap, r->context, size, size,
		    MREMAP_MAYMOVE | MREMAP_FIXED, to))
		return -1;
	return at == (int64_t)to ? 0
				 : err_set(r->one->e, at < 0 ? -at : 0,
					   "cannot move an AIO context to %#" PRIx64, to);
}

/* All but the number by which the kernel finds it. */
static int put(struct return_of_context *r)
{
	const size_t at = offsetof(struct image_aio_ring, nr);

	return tracee_write(r->one->process.mem_fd, r->region->start + at,
		(const char *)r->old.data + at, r->old.len - at, r->one->e);
}

static int bring_back(struct return_of_context *r)
{
	const struct image_aio_ring *old;
	uint64_t size = r->region->end - r->region->start;

	r->old.len = 0;
	if (tracee_read(r->one->process.mem_fd, r->region->start, buf_grow(&r->old, size), size,
		    r->one->e))
		return -1;
	old = r->old.data;
	if (old->magic != IMAGE_AIO_MAGIC || old->tail >= old->nr ||
		old->nr > size / EVENT_SIZE)
		return err_set(r->one->e, 0, "the image is damaged: an AIO context");
	return make(r) || advance(r) || move(r) || put(r) ? -1 : 0;
}

static int bring_back_all(struct return_of_context *r)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(r->one->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		r->region = &g[i];
		if (g[i].kind == IMAGE_REGION_AIO && bring_back(r))
			return -1;
	}
	return 0;
}

int restore_one_aio(struct restore_one *one)
{
	struct return_of_context r = {.one = one};
	const struct image_region *g;
	bool any = false;
	size_t count;
	int failed;

	g = image_note_array(one->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		any |= g[i].kind == IMAGE_REGION_AIO;
	if (!any)
		return 0;
	if (remote_begin(&r.remote, &one->process, &one->process.threads[0], one->e))
		return -1;
	r.scratch = remote_scratch(&r.remote, PAGE, one->e);
	failed = !r.scratch || bring_back_all(&r);
	buf_free(&r.old);
	return remote_end(&r.remote, failed ? NULL : one->e) || failed ? -1 : 0;
}
