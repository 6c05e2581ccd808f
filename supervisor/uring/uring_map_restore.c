/* Mappings of the rings of a process. */
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "supervisor/uring/uring_process_restore.h"

/* The kernel maps a ring nowhere but where it chooses itself (io_uring_get_unmapped_area(),
 * io_uring/memmap.c), and moves no mapping of one: so the right place has to be the only one
 * that is left. */
#define LOWEST 0x10000ul

struct filling {
	struct restore_one *one;
	struct remote remote;
	struct buf filled; /* struct vma */
};

static int fill_gap(struct filling *f, uint64_t start, uint64_t end)
{
	struct vma gap = {.start = start, .end = end};
	int64_t at;

	if (start >= end)
		return 0;
	if (REMOTE_CALL(&f->remote, &at, f->one->e, SYS_mmap, start, end - start, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0))
		return -1;
	/* What is too near to a stack cannot be mapped, and will not be chosen. */
	if (at == (int64_t)start)
		buf_push(&f->filled, struct vma, &gap);
	return 0;
}

static int fill_gaps(struct filling *f)
{
	struct vma_list vmas = {0};
	uint64_t from = LOWEST;
	int failed = procfs_vmas(f->one->process.pid, &vmas, f->one->e);

	for (size_t i = 0; !failed && i < vmas.count; i++) {
		const struct vma *v = &vmas.v[i];

		if (v->start >= LOADER_ADDRESS_END)
			break;
		failed = fill_gap(f, from, v->start);
		from = v->end;
	}
	if (!failed)
		failed = fill_gap(f, from, LOADER_ADDRESS_END);
	vma_list_free(&vmas);
	return failed;
}

static int clear_gaps(struct filling *f)
{
	int64_t result;

	for (size_t i = 0; i < buf_count(&f->filled, struct vma); i++) {
		const struct vma *v = buf_at(&f->filled, struct vma, i);

		if (REMOTE_CALL(&f->remote, &result, f->one->e, SYS_munmap, v->start,
			    v->end - v->start))
			return -1;
	}
	return 0;
}

static const struct {
	uint32_t advice;
	int madvise;
} advices[] = {
	{IMAGE_ADVICE_DONTFORK, MADV_DONTFORK},
	{IMAGE_ADVICE_DONTDUMP, MADV_DONTDUMP},
};

static int map_ring(struct filling *f, const struct image_region *g, int fd)
{
	uint64_t size = g->end - g->start;
	int64_t at;

	if (REMOTE_CALL(&f->remote, &at, f->one->e, SYS_munmap, g->start, size) ||
		REMOTE_CALL(&f->remote, &at, f->one->e, SYS_mmap, 0, size, g->prot,
			MAP_SHARED | MAP_POPULATE, fd, g->offset))
		return -1;
	if (at != (int64_t)g->start)
		return err_set(f->one->e, at < 0 ? -at : 0,
			"cannot map an io_uring at %#" PRIx64 " again", g->start);
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++)
		if (g->advice & advices[i].advice &&
			REMOTE_CALL(&f->remote, &at, f->one->e, SYS_madvise, g->start, size,
				advices[i].madvise))
			return -1;
	return 0;
}

/* A descriptor of the process that leads to object number @object. */
static int object_number(const struct return_of_ring *r, uint32_t object)
{
	for (size_t i = 0; i < r->fd_count; i++) {
		const struct image_description *x =
			restore_ring_description(r->one, r->fds[i].description);

		if (x->kind == IMAGE_FD_URING && x->object == object)
			return r->fds[i].fd;
	}
	return -1;
}

static int map_regions(struct return_of_ring *r, struct filling *f)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(r->one->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		int fd;

		if (g[i].kind != IMAGE_REGION_URING)
			continue;
		fd = object_number(r, g[i].object);
		if (fd < 0)
			return err_set(r->one->e, 0,
				"the image is damaged: no descriptor leads to a mapped "
				"io_uring");
		if (map_ring(f, &g[i], fd))
			return -1;
	}
	return 0;
}

static int map_filled(struct return_of_ring *r)
{
	struct filling f = {.one = r->one};
	int failed;

	if (remote_begin(&f.remote, &r->one->process, &r->one->process.threads[0], r->one->e))
		return -1;
	failed = fill_gaps(&f) || map_regions(r, &f) || clear_gaps(&f);
	buf_free(&f.filled);
	return remote_end(&f.remote, failed ? NULL : r->one->e) || failed ? -1 : 0;
}

/* All of the address space is to be mapped for a moment. */
static int map_rings(struct return_of_ring *r)
{
	struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY}, own;
	pid_t pid = r->one->process.pid;
	int failed;

	if (prlimit(pid, RLIMIT_AS, NULL, &own))
		return err_set(r->one->e, errno, "cannot query a resource limit");
	if (own.rlim_max != RLIM_INFINITY && prlimit(pid, RLIMIT_AS, &most, NULL))
		most.rlim_max = most.rlim_cur = own.rlim_max; /* without the right to more */
	if (prlimit(pid, RLIMIT_AS, &most, NULL))
		return err_set(r->one->e, errno, "cannot set a resource limit");
	failed = map_filled(r);
	if (failed && most.rlim_max != RLIM_INFINITY)
		err_append(r->one->e,
			" (for this a limit of the address space, RLIMIT_AS, is in the way: it "
			"is %llu KiB; restart it under ulimit -v unlimited)",
			(unsigned long long)most.rlim_max >> 10);
	if (prlimit(pid, RLIMIT_AS, &own, NULL) && !failed)
		return err_set(r->one->e, errno, "cannot set a resource limit");
	return failed;
}

static bool has_regions(const struct restore_one *r)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(r->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (g[i].kind == IMAGE_REGION_URING)
			return true;
	return false;
}

int restore_ring_mappings(struct return_of_ring *r)
{
	return has_regions(r->one) ? map_rings(r) : 0;
}
