/* The one place where a ring can be mapped: all others are mapped meanwhile. */
#include "supervisor/uring/ring_place.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lib/procfs.h"
#include "supervisor/target/batch_plan.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define LOWEST 0x10000ul

static int fill_gap(struct ring_place *p, uint64_t start, uint64_t end, struct err *e)
{
	struct vma gap = {.start = start, .end = end};
	int64_t at;

	if (start >= end)
		return 0;
	if (REMOTE_CALL(p->remote, &at, e, SYS_mmap, start, end - start, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0))
		return -1;
	/* What is too near to a stack cannot be mapped, and will not be chosen. */
	if (at == (int64_t)start)
		buf_push(&p->filled, struct vma, &gap);
	return 0;
}

int ring_place_begin(struct ring_place *p, struct err *e)
{
	struct vma_list vmas = {0};
	uint64_t from = LOWEST;
	int failed = procfs_maps(p->remote->process->pid, &vmas, e);

	for (size_t i = 0; !failed && i < vmas.count; i++) {
		const struct vma *v = &vmas.v[i];

		if (v->start >= LOADER_ADDRESS_END)
			break;
		failed = fill_gap(p, from, v->start, e);
		from = v->end;
	}
	if (!failed)
		failed = fill_gap(p, from, LOADER_ADDRESS_END, e);
	vma_list_free(&vmas);
	return failed;
}

/* A ring in a gap stays when the rest of the gap goes. */
static void leave_out(struct ring_place *p, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < buf_count(&p->filled, struct vma); i++) {
		struct vma *v = buf_at(&p->filled, struct vma, i);
		struct vma behind = {.start = end, .end = v->end};

		if (v->end <= start || v->start >= end)
			continue;
		v->end = start;
		if (behind.start < behind.end)
			buf_push(&p->filled, struct vma, &behind);
		return;
	}
}

int ring_place_map(struct ring_place *p, uint64_t at, uint64_t size, int prot, int fd,
	uint64_t offset, struct err *e)
{
	int64_t result;

	if (REMOTE_CALL(p->remote, &result, e, SYS_munmap, at, size) ||
		REMOTE_CALL(p->remote, &result, e, SYS_mmap, 0, size, prot,
			MAP_SHARED | MAP_POPULATE, fd, offset))
		return -1;
	leave_out(p, at, at + size);
	if (result != (int64_t)at)
		return err_set(
			e, result < 0 ? -result : 0, "cannot map an io_uring at %#" PRIx64, at);
	return 0;
}

int ring_place_end(struct ring_place *p, struct err *e)
{
	int64_t result;
	int failed = 0;

	for (size_t i = 0; !failed && i < buf_count(&p->filled, struct vma); i++) {
		const struct vma *v = buf_at(&p->filled, struct vma, i);

		if (v->start < v->end)
			failed = REMOTE_CALL(
				p->remote, &result, e, SYS_munmap, v->start, v->end - v->start);
	}
	buf_free(&p->filled);
	return failed;
}
