#include "supervisor/lower/memory.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/image.h"
#include "stubs/cuda/state.h"

/* A batch of copies takes milliseconds. */
#define COPY_NS 60000000000ull

#define MAX_ALLOCATIONS (1u << 24)

static int read_at(struct process *p, uint64_t address, void *data, size_t size, struct err *e)
{
	struct iovec local = {data, size}, remote = {(void *)address, size};

	if (process_vm_readv(p->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	return err_set(e, errno, "cannot read the records of process %d", p->pid);
}

static int by_address(const void *a, const void *b)
{
	const struct device_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Small allocations of one slab may have parts of one block. */
static void join(struct buf *ranges)
{
	size_t count = buf_count(ranges, struct device_range), kept = 0;
	struct device_range *r = ranges->data;

	for (size_t i = 0; i < count; i++) {
		if (kept && r[i].start < r[kept - 1].end && r[i].device == r[kept - 1].device) {
			if (r[i].end > r[kept - 1].end)
				r[kept - 1].end = r[i].end;
		} else {
			r[kept++] = r[i];
		}
	}
	ranges->len = kept * sizeof(*r);
}

int lower_device_ranges(struct process *p, struct buf *ranges, struct err *e)
{
	cleanup_free struct allocation *list = NULL;
	struct cuda_state s;

	if (!p->lower)
		return 0;
	if (read_at(p, RECORDS_CUDA, &s, sizeof(s), e))
		return -1;
	if (s.magic != CUDA_STATE_MAGIC || !s.allocation_count)
		return 0;
	if (s.version != CUDA_STATE_VERSION || s.allocation_count > MAX_ALLOCATIONS)
		return err_set(
			e, 0, "the CUDA records of process %d are of another build", p->pid);
	list = xcalloc(s.allocation_count, sizeof(*list));
	if (read_at(p, (uintptr_t)s.allocations, list, s.allocation_count * sizeof(*list), e))
		return -1;
	for (uint64_t i = 0; i < s.allocation_count; i++) {
		struct device_range r = {
			.start = list[i].address & ~(uint64_t)(IMAGE_BLOCK - 1),
			.end = align_up(list[i].address + list[i].mapped, IMAGE_BLOCK),
			.device = list[i].device,
		};

		if (list[i].flags & CUDA_ALLOCATION_SAVE && r.start < r.end)
			buf_push(ranges, struct device_range, &r);
	}
	if (!ranges->len)
		return 0;
	qsort(ranges->data, buf_count(ranges, struct device_range), sizeof(struct device_range),
		by_address);
	join(ranges);
	return 0;
}

int lower_map_staging(struct process *p, struct err *e)
{
	struct staging *staging = &p->lower->staging;
	cleanup_fd int pidfd = -1;
	cleanup_fd int fd = -1;
	uint64_t size;
	int number;

	if (staging->data)
		return 0;
	if (lower_order(p, LOWER_SAVE, NULL, 0, clock_ns(CLOCK_MONOTONIC) + COPY_NS, e) ||
		read_at(p, LOWER_SHARED + offsetof(struct lower_table, staging_fd), &number,
			sizeof(number), e) ||
		read_at(p, LOWER_SHARED + offsetof(struct lower_table, staging_size), &size,
			sizeof(size), e))
		return -1;
	pidfd = syscall(SYS_pidfd_open, p->pid, 0);
	fd = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0)
		return err_set(
			e, errno, "cannot reach the staging buffer of process %d", p->pid);
	staging->data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (staging->data == MAP_FAILED) {
		staging->data = NULL;
		return err_set(e, errno, "cannot map the staging buffer of process %d", p->pid);
	}
	staging->size = size;
	return 0;
}

/* ---- reading ---- */

struct device_source {
	struct process *process;
	struct device_range range;
};

struct device_source *device_source_new(struct process *p, const struct device_range *range)
{
	struct device_source *s = xmalloc(sizeof(*s));

	*s = (struct device_source){p, *range};
	return s;
}

/* As much as there is room for, from @address on: chunks are asked for in order. */
static int fetch(struct device_source *s, uint64_t address, struct err *e)
{
	struct staging *staging = &s->process->lower->staging;
	struct lower_transfer t = {
		.address = address, .size = s->range.end - address, .device = s->range.device};

	if (t.size > staging->size)
		t.size = staging->size;
	staging->filled = 0;
	if (lower_order(s->process, LOWER_SAVE, &t, 1, clock_ns(CLOCK_MONOTONIC) + COPY_NS, e))
		return -1;
	staging->address = address;
	staging->filled = t.size;
	return 0;
}

static bool has(const struct staging *staging, uint64_t address, size_t size)
{
	return address >= staging->address &&
	       address + size <= staging->address + staging->filled;
}

int device_source_read(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	struct device_source *s = context;
	struct staging *staging = &s->process->lower->staging;
	int r = 0;

	pthread_mutex_lock(&staging->lock);
	if (!has(staging, address, size))
		r = fetch(s, address, e);
	if (!r)
		memcpy(data, staging->data + (address - staging->address), size);
	pthread_mutex_unlock(&staging->lock);
	return r;
}
