/*
 * inherit_candidates.c - what is left to each process to make for itself: all that is no plain anonymous memory, all
 * of a process that has to execute its program, and what lies where trecr-restart has memory itself, of which a
 * new process is a copy.
 */
#include "supervisor/restore/inherit_candidates.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/procfs.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/target/batch_plan.h"

/* Room for the stack of a new process to grow until the loader comes: as much as it may have as a rule, and the
 * gap that the kernel keeps below. */
#define STACK_ROOM (9ul << 20)

/* ---- whether at all ---- */

/* A limit counts the memory of a new process before the program is in it. */
static bool is_limited(void)
{
	struct rlimit space, data;

	return getrlimit(RLIMIT_AS, &space) || getrlimit(RLIMIT_DATA, &data) ||
	       space.rlim_max != RLIM_INFINITY || data.rlim_max != RLIM_INFINITY;
}

/* Each process that has it for a while, such as a helper, would need as much to be promised. */
static bool is_all_memory_promised(void)
{
	cleanup_free char *text = NULL;
	size_t size;

	return read_file("/proc/sys/vm/overcommit_memory", &text, &size, NULL) || *text == '2';
}

/* ---- processes ---- */

/* /proc/PID/exe is set by a descriptor of the file then. What has its name by now may be a FIFO. */
static bool can_open_exe(const struct image *img, const struct image_process *ip)
{
	cleanup_fd int fd =
		fd_open_trusted(image_string(img, ip->exe), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* One with policies for NUMA nodes has them before the first page is there, and what has a security label of its
 * own gets it by executing its program. */
static bool is_candidate(const struct checkpoint *c, size_t i)
{
	const struct image *img = c->processes[i];
	const struct image_process *ip;
	size_t count;

	ip = image_note_array(img, IMAGE_NOTE_PROCESS, struct image_process, &count);
	return count == 1 && checkpoint_owner(c, i, IMAGE_SHARED_MEMORY) == i &&
	       !(ip->flags & IMAGE_PROCESS_LABELLED) &&
	       !img->notes[IMAGE_NOTE_MEMPOLICIES].data && !img->notes[IMAGE_NOTE_LOWER].data &&
	       can_open_exe(img, ip);
}

/* ---- regions ---- */

#define PAGES_FLAGS  IMAGE_REGION_NORESERVE
#define PAGES_ADVICE (IMAGE_ADVICE_HUGEPAGE | IMAGE_ADVICE_NOHUGEPAGE)

static bool is_guard(const struct image_region *g)
{
	return g->advice & IMAGE_ADVICE_GUARD;
}

/* Regions with a guard between them are one mapping, which mremap(2) takes only if it is one. */
static bool is_part(const struct image_region *all, size_t count, size_t i)
{
	return is_guard(&all[i]) ||
	       (i && is_guard(&all[i - 1]) && all[i - 1].end == all[i].start) ||
	       (i + 1 < count && is_guard(&all[i + 1]) && all[i + 1].start == all[i].end);
}

/* mlock(2) makes copies of all pages that can be written to. */
static bool is_copied(const struct image_region *g)
{
	return g->flags & IMAGE_REGION_LOCKED && !(g->flags & IMAGE_REGION_LOCKONFAULT) &&
	       g->prot & PROT_WRITE;
}

static bool is_plain(const struct image_region *g)
{
	const uint32_t flags = IMAGE_REGION_HEAP | IMAGE_REGION_NORESERVE |
			       IMAGE_REGION_LOCKED | IMAGE_REGION_LOCKONFAULT;

	return g->kind == IMAGE_REGION_ANON && g->tag == IMAGE_TAG_UPPER &&
	       !(g->flags & ~flags) && !is_copied(g) && g->start < g->end &&
	       g->end <= LOADER_ADDRESS_END && !((g->start | g->end) % IMAGE_BLOCK) &&
	       (g->end <= LOADER_RANGE || g->start >= LOADER_RANGE + LOADER_RANGE_SIZE);
}

static uint64_t extent_end(const struct image_extent *x)
{
	return x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
}

static const struct image_region *regions_of(const struct image *img, size_t *count)
{
	return image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, count);
}

/* ---- areas ---- */

static int compare_areas(const void *a, const void *b)
{
	const struct inherit_area *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Extents and regions are sorted; *@next: the first extent that may be in the next region. */
static bool has_stored(
	const struct image_region *g, const struct image_extent *x, size_t count, size_t *next)
{
	while (*next < count && extent_end(&x[*next]) <= g->start)
		++*next;
	for (size_t i = *next; i < count && x[i].address < g->end; i++)
		if (image_extent_is_stored(&x[i]))
			return true;
	return false;
}

static void list_areas(struct buf *areas, const struct image *img)
{
	size_t count, extents, next = 0;
	const struct image_region *g = regions_of(img, &count);
	const struct image_extent *x = image_extents(img, 0, &extents);

	for (size_t i = 0; i < count; i++) {
		struct inherit_area area = {g[i].start, g[i].end, g[i].flags & PAGES_FLAGS,
			g[i].advice & PAGES_ADVICE, true};

		if (is_plain(&g[i]) && !is_part(g, count, i) &&
			has_stored(&g[i], x, extents, &next))
			buf_push(areas, struct inherit_area, &area);
	}
}

static void join_areas(struct buf *areas)
{
	struct inherit_area *a = areas->data;
	size_t count = buf_count(areas, struct inherit_area), kept = 0;

	if (!count)
		return;
	qsort(a, count, sizeof(*a), compare_areas);
	for (size_t i = 1; i < count; i++) {
		struct inherit_area *last = &a[kept];

		if (a[i].start >= last->end) {
			a[++kept] = a[i];
			continue;
		}
		last->usable &= a[i].flags == last->flags && a[i].advice == last->advice;
		last->end = a[i].end > last->end ? a[i].end : last->end;
	}
	areas->len = (kept + 1) * sizeof(*a);
}

/* New processes are copies of this one. */
static void leave_out_own_memory(struct inherit_candidates *k)
{
	struct inherit_area *a = k->areas.data;
	struct vma_list own = {0};

	if (procfs_maps(getpid(), &own, NULL))
		k->areas.len = 0;
	for (size_t i = 0; i < buf_count(&k->areas, struct inherit_area); i++)
		for (size_t v = 0; v < own.count; v++) {
			bool stack = !strcmp(own.v[v].name, "[stack]");
			uint64_t start = own.v[v].start - (stack ? STACK_ROOM : 0);

			if (a[i].start < own.v[v].end && a[i].end > start)
				a[i].usable = false;
		}
	vma_list_free(&own);
}

struct inherit_area *inherit_area_at(const struct inherit_candidates *k, uint64_t address)
{
	struct inherit_area *a = k->areas.data;
	size_t low = 0, count = buf_count(&k->areas, struct inherit_area), high = count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (a[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low < count && a[low].start <= address ? &a[low] : NULL;
}

bool inherit_can_have(const struct inherit_candidates *k, const struct image_region *all,
	size_t count, size_t i)
{
	const struct inherit_area *area;

	if (!is_plain(&all[i]) || is_part(all, count, i))
		return false;
	area = inherit_area_at(k, all[i].start);
	return area && area->usable && all[i].end <= area->end;
}

/* ---- runs ---- */

struct stored_file {
	dev_t dev;
	ino_t ino;
};

/* Its number in k->files; -1: it cannot be known again. */
static int find_file(struct inherit_candidates *k, int fd)
{
	size_t count = buf_count(&k->files, struct stored_file);
	struct stored_file file;
	struct stat st;

	if (fstat(fd, &st))
		return -1;
	file = (struct stored_file){st.st_dev, st.st_ino};
	for (size_t i = 0; i < count; i++) {
		const struct stored_file *known = buf_at(&k->files, struct stored_file, i);

		if (known->dev == file.dev && known->ino == file.ino)
			return i;
	}
	buf_push(&k->files, struct stored_file, &file);
	return count;
}

/* By source: files are asked for only once. */
#define NOT_ASKED -2

static void add_run(struct inherit_candidates *k, size_t process, const struct image *img,
	const struct image_extent *x, int *files, const struct image_region *g)
{
	uint64_t end = extent_end(x);
	const struct image_pack *pack = image_pack_of(img, x);
	struct stored_run run = {
		.start = x->address > g->start ? x->address : g->start,
		.end = end < g->end ? end : g->end,
		.pack = pack ? pack->file_offset : NOT_PACKED,
		.base = (pack ? (uint64_t)x->skip * IMAGE_BLOCK : x->file_offset) - x->address,
		.img = img,
		.x = x,
	};

	if (files[x->source] == NOT_ASKED)
		files[x->source] = find_file(k, image_source_fd(img, x));
	if (files[x->source] < 0)
		return;
	run.file = files[x->source];
	buf_push(&k->runs[process], struct stored_run, &run);
}

static void list_runs(struct inherit_candidates *k, size_t process, const struct image *img)
{
	cleanup_free int *files = xcalloc(img->source_count + 1, sizeof(*files));
	size_t regions, extents, at = 0;
	const struct image_region *g = regions_of(img, &regions);
	const struct image_extent *x = image_extents(img, 0, &extents);

	for (size_t i = 0; i <= img->source_count; i++)
		files[i] = NOT_ASKED;
	for (size_t i = 0; i < regions; i++) {
		while (at < extents && extent_end(&x[at]) <= g[i].start)
			at++;
		if (!inherit_can_have(k, g, regions, i))
			continue;
		for (size_t n = at; n < extents && x[n].address < g[i].end; n++)
			if (image_extent_is_stored(&x[n]) && x[n].source <= img->source_count)
				add_run(k, process, img, &x[n], files, &g[i]);
	}
}

void inherit_candidates_find(struct inherit_candidates *k, const struct checkpoint *c)
{
	cleanup_free bool *candidate = xcalloc(c->process_count, sizeof(*candidate));

	*k = (struct inherit_candidates){.count = c->process_count};
	k->runs = xcalloc(c->process_count, sizeof(*k->runs));
	if (c->process_count < 2 || is_limited() || is_all_memory_promised())
		return;
	for (size_t i = 0; i < c->process_count; i++) {
		candidate[i] = is_candidate(c, i);
		if (candidate[i])
			list_areas(&k->areas, c->processes[i]);
	}
	join_areas(&k->areas);
	leave_out_own_memory(k);
	for (size_t i = 0; i < c->process_count; i++)
		if (candidate[i])
			list_runs(k, i, c->processes[i]);
}

void inherit_candidates_free(struct inherit_candidates *k)
{
	for (size_t i = 0; k->runs && i < k->count; i++)
		buf_free(&k->runs[i]);
	free(k->runs);
	buf_free(&k->areas);
	buf_free(&k->files);
}
