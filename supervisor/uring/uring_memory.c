/*
 * uring_memory.c - the sizes of its parts, and their mapping.
 */
#include "supervisor/uring/uring_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/util.h"

int ring_setup(uint32_t flags, uint32_t sq_entries, uint32_t cq_entries,
	struct io_uring_params *p, struct err *e)
{
	int fd;

	p->flags = flags | IORING_SETUP_CQSIZE;
	p->cq_entries = cq_entries;
	fd = syscall(SYS_io_uring_setup, sq_entries, p);
	/* With Linux 5.17 and earlier a bad entry ends a submission always. */
	if (fd < 0 && errno == EINVAL && p->flags & IORING_SETUP_SUBMIT_ALL) {
		p->flags &= ~IORING_SETUP_SUBMIT_ALL;
		fd = syscall(SYS_io_uring_setup, sq_entries, p);
	}
	if (fd < 0)
		return err_set(e, errno, "cannot create an io_uring%s",
			errno == EPERM ? " (is it forbidden by kernel.io_uring_disabled?)"
				       : "");
	return fd;
}

static size_t larger_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

int ring_layout(
	struct ring *r, uint32_t flags, uint32_t sq_entries, uint32_t cq_entries, struct err *e)
{
	cleanup_fd int fd = -1;

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	r->flags = flags;
	fd = ring_setup(flags & RING_LAYOUT, sq_entries, cq_entries, &r->p, e);
	if (fd < 0)
		return -1;
	if (r->p.sq_entries != sq_entries || r->p.cq_entries != cq_entries)
		return err_set(e, 0, "an io_uring of %u and %u entries gets other numbers here",
			sq_entries, cq_entries);
	r->rings_size = larger_size(r->p.cq_off.cqes + cq_entries * ring_cqe_size(r),
		flags & IORING_SETUP_NO_SQARRAY ? 0 : r->p.sq_off.array + sq_entries * 4ul);
	r->sqes_size = sq_entries * ring_sqe_size(r);
	return 0;
}

int ring_refuse_map(int error, struct err *e)
{
	/* Where it lies in memory of the program's own, the kernel says the one or the other.
	 */
	if (error == EINVAL || error == ENOMEM)
		return err_set(e, 0,
			"its memory cannot be mapped: it is the program's own "
			"(IORING_SETUP_NO_MMAP), which is not supported, or there is no room "
			"for it: have the program do without io_uring (PostgreSQL: "
			"io_method=worker)");
	return err_set(e, error, "its memory cannot be mapped");
}

static char *map_ring(int fd, size_t size, uint64_t offset)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

int ring_map(struct ring *r, int fd, struct err *e)
{
	char *rings = map_ring(fd, r->rings_size, URING_OFF_SQ_RING), *sqes;

	if (rings == MAP_FAILED)
		return ring_refuse_map(errno, e);
	sqes = map_ring(fd, r->sqes_size, URING_OFF_SQES);
	if (sqes == MAP_FAILED) {
		err_set(e, errno, "its memory cannot be mapped");
		munmap(rings, r->rings_size);
		return -1;
	}
	r->fd = fd;
	r->rings = rings;
	r->sqes = sqes;
	return 0;
}

void ring_unmap(struct ring *r)
{
	if (!r->rings)
		return;
	munmap(r->rings, r->rings_size);
	munmap(r->sqes, r->sqes_size);
	r->rings = r->sqes = NULL;
}
