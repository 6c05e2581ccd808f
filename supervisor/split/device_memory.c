/*
 * device_memory.c - the list of allocations out of the records, checked, joined to ranges, and
 * read through staging.c.
 */
#include "supervisor/split/device_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/image.h"
#include "shared/cuda/cuda_state.h"
#include "shared/address_windows.h"

#define MAX_ALLOCATIONS (1u << 24)

static int read_at(struct process *p, uint64_t address, void *data, size_t size, struct err *e)
{
	if (!lower_peek(p->pid, address, data, size))
		return 0;
	return err_set(e, errno, "cannot read the records of process %d", p->pid);
}

static int by_address(const void *a, const void *b)
{
	const struct device_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Addresses of the lower half of the space. */
#define MAX_ADDRESS (1ul << 47)

/* The list, as the program's memory has it. */
static int check_list(struct process *p, const struct cuda_state *s, struct err *e)
{
	uint64_t start = (uintptr_t)s->allocations;

	if (s->version != CUDA_STATE_VERSION)
		return err_set(e, 0,
			"process %d uses libraries of another version of trecr for its GPU",
			p->pid);
	if (s->allocation_count > MAX_ALLOCATIONS || !in_records_window(start) ||
		!in_records_window(start + s->allocation_count * sizeof(struct allocation) - 1))
		return lower_damaged(p->pid, e);
	return 0;
}

static int add_range(
	struct process *p, const struct allocation *a, struct buf *ranges, struct err *e)
{
	struct device_range r = {.device = a->device};

	if (!(a->flags & CUDA_ALLOCATION_SAVE) || !a->mapped)
		return 0;
	if (a->address >= MAX_ADDRESS || a->mapped > MAX_ADDRESS - a->address ||
		a->device >= CUDA_DEVICES)
		return lower_damaged(p->pid, e);
	r.start = align_down(a->address, IMAGE_BLOCK);
	r.end = align_up(a->address + a->mapped, IMAGE_BLOCK);
	buf_push(ranges, struct device_range, &r);
	return 0;
}

/* Memory of two devices that overlaps is none. */
static int check_apart(struct process *p, const struct buf *ranges, struct err *e)
{
	const struct device_range *r = ranges->data;

	for (size_t i = 1; i < buf_count(ranges, struct device_range); i++)
		if (r[i].start < r[i - 1].end)
			return lower_damaged(p->pid, e);
	return 0;
}

/* Small allocations of one slab may have parts of one block. */
static void join_ranges(struct buf *ranges)
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
	if (!s.magic) /* the driver has not been used, but another library may have been */
		return 0;
	if (s.magic != CUDA_STATE_MAGIC)
		return lower_damaged(p->pid, e);
	if (!s.allocation_count)
		return 0;
	if (check_list(p, &s, e))
		return -1;
	list = xcalloc(s.allocation_count, sizeof(*list));
	if (read_at(p, (uintptr_t)s.allocations, list, s.allocation_count * sizeof(*list), e))
		return -1;
	for (uint64_t i = 0; i < s.allocation_count; i++)
		if (add_range(p, &list[i], ranges, e))
			return -1;
	if (!ranges->len)
		return 0;
	qsort(ranges->data, buf_count(ranges, struct device_range), sizeof(struct device_range),
		by_address);
	join_ranges(ranges);
	return check_apart(p, ranges, e);
}

/* ---- reading ---- */

struct device_source {
	struct process *process;
	struct device_range range;
	bool has_hashes;
	/* Of a snapshot: where it is read, less its address, and where its hashes are; 0: nowhere. */
	uint64_t moved, hashes;
};

static struct staging *staging_of(const struct device_source *s)
{
	return &s->process->lower->staging;
}

struct device_source *device_source_new(struct process *p, const struct device_range *range)
{
	struct device_source *s = xmalloc(sizeof(*s));

	*s = (struct device_source){.process = p, .range = *range};
	/* What an array has is nowhere, and managed memory may be with the host. */
	s->has_hashes = !in_arrays_window(range->start) && !in_lower_window(range->start);
	staging_add(staging_of(s),
		s->has_hashes ? &staging_of(s)->hashes : &staging_of(s)->others, range);
	return s;
}

bool device_source_has_hashes(const struct device_source *s)
{
	return s->has_hashes;
}

void device_source_expect(void *context, uint64_t address, uint64_t size)
{
	const struct device_source *s = context;
	const struct device_range range = {
		address + s->moved, address + size + s->moved, s->range.device};

	staging_add(staging_of(s), &staging_of(s)->wanted, &range);
}

int device_source_read(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	const struct device_source *s = context;

	return staging_read(s->process,
		s->has_hashes ? &staging_of(s)->wanted : &staging_of(s)->others,
		address + s->moved, data, size, e);
}

static int read_copied_hashes(const struct device_source *s, uint64_t address, size_t count,
	uint8_t (*hashes)[IMAGE_HASH_SIZE], struct err *e)
{
	uint64_t first = (address - s->range.start) / IMAGE_BLOCK;

	if (!s->hashes)
		return 1;
	return staging_read(s->process, &staging_of(s)->copied_hashes,
		s->hashes + first * IMAGE_HASH_SIZE, hashes, count * IMAGE_HASH_SIZE, e);
}

int device_source_hash(void *context, uint64_t address, size_t count,
	uint8_t (*hashes)[IMAGE_HASH_SIZE], struct err *e)
{
	const struct device_source *s = context;
	const bool *unable = &s->process->lower->unable;
	struct err failure = ERR_INIT;

	if (s->moved)
		return read_copied_hashes(s, address, count, hashes, e);
	if (__atomic_load_n(unable, __ATOMIC_RELAXED))
		return 1;
	if (!staging_read(s->process, &staging_of(s)->hashes, address, hashes,
		    count * IMAGE_BLOCK, &failure))
		return 0;
	if (__atomic_load_n(unable, __ATOMIC_RELAXED))
		return 1;
	if (e)
		*e = failure;
	return -1;
}

/* ---- of a snapshot ---- */

const struct device_range *device_source_range(const struct device_source *s)
{
	return &s->range;
}

void device_source_move(struct device_source *s, uint64_t address, uint64_t hashes)
{
	uint64_t size = (s->range.end - s->range.start) / IMAGE_BLOCK * IMAGE_HASH_SIZE;
	const struct device_range range = {hashes, hashes + size, s->range.device};

	s->moved = address - s->range.start;
	s->hashes = hashes;
	if (hashes)
		staging_add(staging_of(s), &staging_of(s)->copied_hashes, &range);
}

void device_source_of(struct device_source *s, struct process *p)
{
	s->process = p;
}
