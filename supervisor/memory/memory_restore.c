/*
 * Memory: the first two batches (state/restore_plan.h), from the executed file's address space to the program's, and
 * what belongs to it in the third: locked memory, protection, guard regions.
 */
#include "supervisor/memory/memory_restore.h"

#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckpt/hash_variant.h"
#include "lib/threads.h"
#include "supervisor/memory/fill_copier.h"
#include "supervisor/memory/lazy_ranges.h"
#include "supervisor/memory/sysv_attach.h"
#include "supervisor/memory/trial_borrow.h"
#include "supervisor/state/mempolicy.h"

/* <linux/prctl.h> of kernel 5.17 */
#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef SYS_mlock2
#define SYS_mlock2 325
#endif

#define FILL_STACK 8192
/* Below this a second thread costs more than it brings. */
#define FILL_SHARE (8ul << 20)

static const struct {
	uint32_t advice;
	int madvise;
} advices[] = {
	{IMAGE_ADVICE_SEQUENTIAL, MADV_SEQUENTIAL},
	{IMAGE_ADVICE_RANDOM, MADV_RANDOM},
	{IMAGE_ADVICE_DONTFORK, MADV_DONTFORK},
	{IMAGE_ADVICE_DONTDUMP, MADV_DONTDUMP},
	{IMAGE_ADVICE_WIPEONFORK, MADV_WIPEONFORK},
	{IMAGE_ADVICE_MERGEABLE, MADV_MERGEABLE},
	{IMAGE_ADVICE_HUGEPAGE, MADV_HUGEPAGE},
	{IMAGE_ADVICE_NOHUGEPAGE, MADV_NOHUGEPAGE},
};

/* Is made and filled by others: the kernel, or the lower half. */
static bool is_foreign(const struct image_region *g)
{
	return g->kind == IMAGE_REGION_VDSO || g->kind == IMAGE_REGION_VVAR ||
	       g->kind == IMAGE_REGION_DEVICE;
}

static bool has_extents(const struct restore_plan *p, const struct image_region *g)
{
	size_t count;
	const struct image_extent *x = image_extents(p->img, 0, &count);
	size_t low = 0, high = count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (x[mid].address + (uint64_t)x[mid].blocks * IMAGE_BLOCK <= g->start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < count && x[low].address < g->end;
}

static int page_shift(uint64_t size)
{
	return __builtin_ctzll(size);
}

/* In a trial nothing is set aside, and nothing gets into files. */
static uint64_t map_flags(const struct restore_plan *p, const struct image_region *g)
{
	uint64_t flags = MAP_FIXED_NOREPLACE;

	switch (g->kind) {
	case IMAGE_REGION_AIO: /* until memory/aio_restore.c */
		flags |= MAP_ANONYMOUS | MAP_PRIVATE;
		break;
	case IMAGE_REGION_ANON:
		flags |= MAP_ANONYMOUS;
		flags |= g->flags & IMAGE_REGION_DROPPABLE ? MAP_DROPPABLE : MAP_PRIVATE;
		break;
	case IMAGE_REGION_FILE:
	case IMAGE_REGION_PRIVATE:
		flags |= MAP_PRIVATE;
		break;
	case IMAGE_REGION_URING: /* until uring/uring_map_restore.c */
		flags |= MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE;
		break;
	case IMAGE_REGION_SHARED_FILE:
		flags |= p->trial ? MAP_PRIVATE : MAP_SHARED;
		break;
	default:
		flags |= MAP_SHARED;
	}
	if (g->flags & IMAGE_REGION_GROWSDOWN)
		flags |= MAP_GROWSDOWN;
	if (g->flags & IMAGE_REGION_NORESERVE)
		flags |= MAP_NORESERVE;
	if (p->trial)
		return flags | MAP_NORESERVE;
	if (g->flags & IMAGE_REGION_HUGETLB)
		flags |= MAP_HUGETLB | (uint64_t)page_shift(g->page_size) << MAP_HUGE_SHIFT;
	return flags;
}

static int region_fd(const struct restore_plan *p, const struct image_region *g)
{
	switch (g->kind) {
	case IMAGE_REGION_FILE:
		return restart_fd_module(p->fds, g->module - 1, false);
	case IMAGE_REGION_SHARED_FILE:
		return restart_fd_module(
			p->fds, g->module - 1, g->max_prot & PROT_WRITE && !p->trial);
	case IMAGE_REGION_SHARED:
	case IMAGE_REGION_PRIVATE:
		return restart_fd_object(p->fds, g->object - 1);
	default:
		return -1;
	}
}

/* "[anon:NAME]", as maps shows a name given with PR_SET_VMA. Other kernels have no names. */
static void add_name(struct restore_plan *p, const struct image_region *g)
{
	static const char *const heads[] = {"[anon:", "[anon_shmem:"};
	const char *shown = image_string(p->img, g->name);
	size_t length = strlen(shown);

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t head = strlen(heads[i]);
		cleanup_free char *name = NULL;

		if (strncmp(shown, heads[i], head) || shown[length - 1] != ']')
			continue;
		name = xasprintf("%.*s", (int)(length - head - 1), shown + head);
		BATCH_ADD(&p->memory, "name memory", SYS_prctl, PR_SET_VMA,
			PR_SET_VMA_ANON_NAME, g->start, g->end - g->start,
			plan_string(&p->plan, name))
			->check = BATCH_ANY;
	}
}

static void add_advice(struct restore_plan *p, const struct image_region *g)
{
	uint64_t size = g->end - g->start;

	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
		if (g->advice & advices[i].advice && !(g->flags & IMAGE_REGION_DROPPABLE))
			BATCH_ADD(&p->memory, "advise the kernel on memory", SYS_madvise,
				g->start, size, advices[i].madvise);
}

static bool is_inherited(const struct restore_plan *p, const struct image_region *g)
{
	bool inherited;

	(void)address_ranges_part(&p->inherited.regions, g->start, g->end, &inherited);
	return inherited;
}

static void add_inherited(struct restore_plan *p, const struct image_region *g)
{
	int prot = g->prot | PROT_WRITE;

	if (prot != (PROT_READ | PROT_WRITE))
		BATCH_ADD(&p->memory, "protect memory", SYS_mprotect, g->start,
			g->end - g->start, prot);
	add_advice(p, g);
	add_name(p, g);
}

/* @filled: the mapping gets contents. */
static void add_map(struct restore_plan *p, const struct image_region *g, bool filled)
{
	uint64_t size = g->end - g->start, prot = g->prot;
	struct batch_call *c;
	int fd = region_fd(p, g);

	if (filled)
		prot |= PROT_WRITE;
	c = BATCH_ADD(&p->memory,
		g->flags & IMAGE_REGION_HUGETLB
			? "map memory in huge pages (are enough reserved? see vm.nr_hugepages)"
			: "map memory",
		SYS_mmap, g->start, size, prot, map_flags(p, g), fd, fd < 0 ? 0 : g->offset);
	c->check = BATCH_EQUALS;
	c->expect = g->start;
	if (g->kind == IMAGE_REGION_URING)
		return;
	add_advice(p, g);
	add_name(p, g);
}

/* Whether locking can find pages that are not available: of memory that cannot be read, and behind the
 * end of what is mapped. It is marked as locked nevertheless, and then reported (ENOMEM). */
static bool may_lack_pages(const struct image_region *g)
{
	return !g->prot || g->advice & IMAGE_ADVICE_GUARD || g->kind != IMAGE_REGION_ANON;
}

/* What is not allowed shows when nothing is fetched yet. */
static void add_lock(struct restore_plan *p, const struct image_region *g)
{
	uint64_t size = g->end - g->start;
	struct batch_call *c;

	BATCH_ADD(&p->rest, "lock memory", SYS_mlock2, g->start, size, MLOCK_ONFAULT);
	if (p->trial || g->flags & IMAGE_REGION_LOCKONFAULT)
		return;
	c = BATCH_ADD(&p->rest, "lock memory", SYS_mlock2, g->start, size, 0);
	if (may_lack_pages(g))
		c->check = BATCH_ANY;
}

/* What has to wait until the memory has its contents. */
static void add_finish(struct restore_plan *p, const struct image_region *g, bool filled)
{
	uint64_t size = g->end - g->start;

	if (is_foreign(g))
		return;
	if (filled && !(g->prot & PROT_WRITE))
		BATCH_ADD(&p->rest, "protect memory", SYS_mprotect, g->start, size, g->prot);
	if (g->advice & IMAGE_ADVICE_GUARD)
		BATCH_ADD(&p->rest, "guard memory", SYS_madvise, g->start, size,
			MADV_GUARD_INSTALL);
	if (g->flags & IMAGE_REGION_LOCKED && g->kind != IMAGE_REGION_URING)
		add_lock(p, g);
}

static bool is_next_part(const struct image_region *g, const struct image_region *next)
{
	return next->start == g->end && (next->advice ^ g->advice) == IMAGE_ADVICE_GUARD &&
	       next->kind == g->kind && next->flags == g->flags && next->prot == g->prot;
}

/* How many of the @left regions from @g on are one mapping, divided by guards. *filled: it gets contents. All of it is
 * writable until then, as parts that are mapped with different rights would stay mappings of their own. */
static size_t mapping_of(
	const struct restore_plan *p, const struct image_region *g, size_t left, bool *filled)
{
	size_t n = 0;

	*filled = false;
	do
		*filled |= has_extents(p, &g[n]);
	while (++n < left && is_next_part(&g[n - 1], &g[n]));
	return n;
}

static void add_region(struct restore_plan *p, const struct image_region *g, bool filled)
{
	if (g->kind == IMAGE_REGION_SYSV)
		add_advice(p, g);
	else if (is_inherited(p, g))
		add_inherited(p, g);
	else if (!is_foreign(g))
		add_map(p, g, filled);
}

static void for_regions(struct restore_plan *p,
	void (*add)(struct restore_plan *p, const struct image_region *g, bool filled))
{
	size_t count, n;
	const struct image_region *g =
		image_note_array(p->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	bool filled;

	for (size_t i = 0; i < count; i += n) {
		n = mapping_of(p, &g[i], count - i, &filled);
		for (size_t k = i; k < i + n; k++)
			add(p, &g[k], filled);
	}
}

static enum batch_unit fastest_unit(void)
{
	const struct hash_variant *fastest = hash_fastest();

	if (fastest == &hash_avx512)
		return BATCH_AVX512;
	return fastest == &hash_avx2 ? BATCH_AVX2 : BATCH_SSE2;
}

/* A call about @size bytes of the memory that @x is of, from @skip on, with their hashes. */
static struct batch_call *add_blocks(struct restore_plan *p, struct batch_builder *b,
	const struct image_extent *x, uint64_t skip, uint64_t size)
{
	/* restore_check_before() has had them read. */
	const uint8_t *first = image_hash(p->img, x, skip / IMAGE_BLOCK);
	uint64_t hashes;

	BUG_ON(!first);
	hashes = plan_data(&p->plan, first, size / IMAGE_BLOCK * IMAGE_HASH_SIZE);
	return BATCH_ADD(b, "read memory from the image", SYS_pread64,
		restart_fd_source(p->fds, x->source), x->address + skip, size,
		x->file_offset + skip, hashes, fastest_unit());
}

/* Zeros, or with their hashes. */
static void add_contents(struct restore_plan *p, struct batch_builder *b,
	const struct image_extent *x, uint64_t skip, uint64_t size, bool copies)
{
	if (x->kind == IMAGE_EXTENT_ZERO)
		BATCH_ADD(b, "read memory from the image", SYS_pread64, p->fds->zero,
			x->address + skip, size, 0)
			->check = copies ? BATCH_COPY_WHOLE : BATCH_WHOLE;
	else
		add_blocks(p, b, x, skip, size)->check =
			copies ? BATCH_COPY_BLOCKS : BATCH_BLOCKS;
}

void restore_plan_fill(struct restore_plan *p, struct batch_builder *b,
	const struct image_extent *x, uint64_t skip, uint64_t size)
{
	add_contents(p, b, x, skip, size, false);
}

bool restore_plan_is_on_device(const struct restore_plan *p, const struct image_extent *x)
{
	const struct image_region *g;
	size_t high, low = 0;

	g = image_note_array(p->img, IMAGE_NOTE_REGIONS, struct image_region, &high);
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (g[mid].end <= x->address)
			low = mid + 1;
		else
			high = mid;
	}
	return g[low].kind == IMAGE_REGION_DEVICE;
}

enum fill_part {
	FILL_LATER, /* not by the loader */
	FILL_READ,
	FILL_COPY,  /* by its copier */
	FILL_THERE, /* inherited: to be compared */
};

/* What is to be done about @x at @skip, and about how many bytes from there on. Compressed blocks come from the
 * supervisor (decompress.c). */
static enum fill_part part_at(const struct restore_plan *p, const struct image_extent *x,
	uint64_t skip, uint64_t *size)
{
	uint64_t at = x->address + skip, to = x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
	bool lazy, inherited, copied;

	to = address_ranges_part(&p->lazy_ranges, at, to, &lazy);
	to = address_ranges_part(&p->inherited.same, at, to, &inherited);
	to = address_ranges_part(&p->copied, at, to, &copied);
	*size = to - at;
	if (lazy || restore_plan_is_on_device(p, x))
		return FILL_LATER;
	if (inherited)
		return FILL_THERE;
	if (x->kind == IMAGE_EXTENT_PACKED)
		return FILL_LATER;
	return copied ? FILL_COPY : FILL_READ;
}

static void add_part(struct restore_plan *p, struct batch_builder *b,
	const struct image_extent *x, uint64_t skip, uint64_t size, enum fill_part part)
{
	if (part == FILL_THERE)
		add_blocks(p, b, x, skip, size)->check = BATCH_THERE;
	else
		add_contents(p, b, x, skip, size, part == FILL_COPY);
}

static uint64_t eager_size(const struct restore_plan *p, const struct image_extent *x)
{
	uint64_t size = (uint64_t)x->blocks * IMAGE_BLOCK, eager = 0, n;

	for (uint64_t skip = 0; skip < size; skip += n)
		if (part_at(p, x, skip, &n))
			eager += n;
	return eager;
}

/* Share the extents out by bytes, in the order of their addresses. */
static void share_fill(struct restore_plan *p)
{
	size_t count;
	const struct image_extent *x = image_extents(p->img, 0, &count);
	uint64_t total = 0, share, given = 0;
	unsigned threads, current = 0;

	for (size_t i = 0; i < count; i++)
		total += eager_size(p, &x[i]);
	threads = threads_wanted(p->wanted_threads, FILL_THREADS);
	if (threads > FILL_THREADS_MAX)
		threads = FILL_THREADS_MAX;
	if (threads > total / FILL_SHARE + 1)
		threads = total / FILL_SHARE + 1;
	share = align_up(total / threads + 1, IMAGE_BLOCK);
	for (size_t i = 0; i < count; i++) {
		uint64_t size = (uint64_t)x[i].blocks * IMAGE_BLOCK, skip = 0;

		while (skip < size) {
			uint64_t left = share - given, n;
			enum fill_part part = part_at(p, &x[i], skip, &n);

			if (!part) {
				skip += n;
				continue;
			}
			n = n < left ? n : left;
			add_part(p, &p->fill[current], &x[i], skip, n, part);
			skip += n;
			given += n;
			if (given == share && current + 1 < threads) {
				current++;
				given = 0;
			} else if (given == share) {
				share += size;
			}
		}
	}
	p->fill_threads = threads - 1;
}

#define THREAD_FLAGS                                                                           \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static void add_fill_thread(struct restore_plan *p, unsigned i)
{
	uint64_t batch = plan_batch(&p->plan, &p->fill[i], BATCH_EXIT);
	uint64_t top = plan_stack(&p->plan, FILL_STACK, batch);
	struct clone_args args = {.flags = THREAD_FLAGS, .stack = top - FILL_STACK + 16};
	struct batch_call *c;
	uint64_t at;

	p->fill_at[i] = batch;
	args.stack_size = top - args.stack;
	at = plan_data(&p->plan, &args, sizeof(args));
	c = BATCH_ADD(&p->fill[0], "start a thread", SYS_clone3, at, sizeof(args));
	c->check = BATCH_THREAD;
}

/* Before the first share is read. */
static void add_fill_threads(struct restore_plan *p)
{
	struct batch_builder own = p->fill[0];

	p->fill[0] = (struct batch_builder){0};
	fill_copier_add(p);
	for (unsigned i = 1; i <= p->fill_threads; i++)
		add_fill_thread(p, i);
	buf_add(&p->fill[0].calls, own.calls.data, own.calls.len);
	buf_add(&p->fill[0].what, own.what.data, own.what.len);
	batch_free(&own);
}

static int check_region(
	const struct restore_plan *p, const struct image_region *g, struct err *e)
{
	size_t modules, objects = p->fds->objects;

	image_note_array(p->img, IMAGE_NOTE_MODULES, struct image_module, &modules);
	if (g->start >= g->end || g->end > LOADER_ADDRESS_END ||
		(g->start | g->end) % IMAGE_BLOCK ||
		(g->kind != IMAGE_REGION_DEVICE &&
			g->start < LOADER_RANGE + LOADER_RANGE_SIZE && g->end > LOADER_RANGE))
		return err_set(e, 0,
			"the image has a region at impossible addresses, %#lx-%#lx",
			(unsigned long)g->start, (unsigned long)g->end);
	if (g->flags & IMAGE_REGION_HUGETLB &&
		(g->page_size < IMAGE_BLOCK || g->page_size & (g->page_size - 1)))
		return err_set(e, 0, "the image has a region with impossible pages");
	if ((g->kind == IMAGE_REGION_FILE || g->kind == IMAGE_REGION_SHARED_FILE) &&
		(!g->module || g->module > modules))
		return err_set(e, 0, "the image names a mapped file that it does not have");
	if ((g->kind == IMAGE_REGION_SHARED || g->kind == IMAGE_REGION_PRIVATE) &&
		(!g->object || g->object > objects))
		return err_set(e, 0, "the image names a shared object that it does not have");
	return 0;
}

static bool holds_memory(const struct image_region *g)
{
	return g->kind == IMAGE_REGION_ANON || g->kind == IMAGE_REGION_FILE ||
	       g->kind == IMAGE_REGION_PRIVATE || g->kind == IMAGE_REGION_DEVICE ||
	       g->kind == IMAGE_REGION_AIO;
}

/* Regions in order, and memory to be filled only where one of them takes it: anything else
 * could be the loader. */
static int check_layout(const struct restore_plan *p, struct err *e)
{
	const struct image_region *g;
	const struct image_extent *x;
	size_t count, extents, at = 0;

	g = image_note_array(p->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (check_region(p, &g[i], e))
			return -1;
	for (size_t i = 1; i < count; i++)
		if (g[i].start < g[i - 1].end)
			return err_set(e, 0, "the image has regions that overlap");
	x = image_extents(p->img, 0, &extents);
	for (size_t i = 0; i < extents; i++) {
		uint64_t from = x[i].address, to = from + (uint64_t)x[i].blocks * IMAGE_BLOCK;

		/* One extent may fill several regions without a gap between them. */
		while (at < count && g[at].end <= from)
			at++;
		for (size_t k = at; from < to; k++) {
			if (k == count || g[k].start > from || !holds_memory(&g[k]) ||
				is_foreign(&g[k]) != is_foreign(&g[at]))
				return err_set(e, 0,
					"the image has memory at %#lx outside of its regions",
					(unsigned long)from);
			from = g[k].end;
		}
	}
	return 0;
}

static void add_unmap(struct restore_plan *p, uint64_t start, uint64_t end)
{
	bool inherited;

	for (uint64_t to; start < end; start = to) {
		to = address_ranges_part(&p->inherited.regions, start, end, &inherited);
		if (!inherited)
			BATCH_ADD(&p->memory, "unmap memory", SYS_munmap, start, to - start);
	}
}

/* But what has been inherited. */
static void add_unmap_all(struct restore_plan *p)
{
	add_unmap(p, 0, LOADER_RANGE);
	add_unmap(p, LOADER_RANGE + LOADER_RANGE_SIZE, LOADER_ADDRESS_END);
}

/* What others have in memory that has been inherited. */
static void add_drop(struct restore_plan *p)
{
	const struct address_range *r = p->inherited.other.data;

	for (size_t i = 0; i < buf_count(&p->inherited.other, struct address_range); i++)
		BATCH_ADD(&p->memory, "drop memory", SYS_madvise, r[i].start,
			r[i].end - r[i].start, MADV_DONTNEED);
}

int restore_plan_memory(struct restore_plan *p, struct err *e)
{
	if (check_layout(p, e) || restore_plan_vdso(p, e))
		return -1;
	add_unmap_all(p);
	restore_plan_old_vdso(p);
	if (restore_plan_segments(p, e))
		return -1;
	for_regions(p, add_region);
	add_drop(p);
	/* Before a page of it is touched. */
	mempolicy_plan_memory(p);
	if (p->lazy)
		lazy_list(p->img, &p->lazy_ranges);
	fill_copier_choose(p);
	if (!p->trial)
		share_fill(p);
	else if (p->filled)
		restore_plan_borrow(p);
	add_fill_threads(p);
	for_regions(p, add_finish);
	return 0;
}
