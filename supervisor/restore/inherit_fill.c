/*
 * inherit_fill.c - new processes get the memory that those they make are to inherit (inherit_plan.h), while they
 * stand still.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "supervisor/memory/memory_fits.h"
#include "supervisor/memory/place_blocks.h"
#include "supervisor/restore/restart_attempt.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* How pages are made is to be known before the first of them is. */
static int advise(struct restore *r, const struct inherit_area *a)
{
	int advice = a->advice & IMAGE_ADVICE_HUGEPAGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
	int64_t result;

	return a->advice ? NODE_CALL(r, 0, "advise the kernel on memory", &result, SYS_madvise,
				   a->start, a->end - a->start, advice)
			 : 0;
}

/* Where that fails, processes map and fill it for themselves. */
static int map_area(struct restore *r, struct inherit_area *a)
{
	uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	int64_t result;

	if (a->flags & IMAGE_REGION_NORESERVE)
		flags |= MAP_NORESERVE;
	if (NEWBORN_CALL(r, &r->newborns[0], &result, SYS_mmap, a->start, a->end - a->start,
		    PROT_READ | PROT_WRITE, flags, -1, 0))
		return -1;
	a->usable = result == (int64_t)a->start;
	return a->usable ? advise(r, a) : 0;
}

/* Processes take more memory than it was before anything was made. */
static int check_growth(struct restore *r)
{
	uint64_t saves = inherit_saves(r->inherit);

	if (memory_fits(r->c, saves, r->e))
		return -1;
	memory_tell_growth(r->c, saves, r->o->notice);
	return 0;
}

/* In the first process, of which all others are copies. */
static int map_areas(struct restore *r)
{
	struct buf *areas = inherit_areas(r->inherit);
	bool failed = false;
	int64_t result;

	if (NODE_CALL(r, 0, "become dumpable", &result, SYS_prctl, PR_SET_DUMPABLE, 1))
		return -1;
	for (size_t i = 0; i < buf_count(areas, struct inherit_area); i++) {
		struct inherit_area *a = buf_at(areas, struct inherit_area, i);

		if (!a->usable)
			continue;
		if (map_area(r, a))
			return -1;
		failed |= !a->usable;
	}
	return failed ? check_growth(r) : 0;
}

static bool has_inherited(const struct restore *r, size_t node)
{
	return r->inherit && !r->o->trial && inherit_concerns(r->inherit, node);
}

int restore_fill_inherited(struct restore *r, size_t node)
{
	cleanup_buf struct buf list = {0};
	cleanup_free char *path = NULL;
	cleanup_fd int mem_fd = -1;
	pid_t pid = r->newborns[node].t.tid;

	if (!has_inherited(r, node))
		return 0;
	if (!node && map_areas(r))
		return -1;
	inherit_fill(r->inherit, node, &list);
	if (!list.len)
		return 0;
	path = xasprintf("/proc/%d/mem", pid);
	mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (mem_fd < 0) {
		err_set(r->e, errno, "cannot open %s", path);
		return restore_prefix_node(r, node);
	}
	return place_blocks(&list, pid, mem_fd, r->o->threads, r->e)
		       ? restore_prefix_node(r, node)
		       : 0;
}

int restore_pass_inherited(struct restore *r, size_t node, size_t child, bool *passes)
{
	const struct creation_node *n = creation_order_at(&r->creation.order, child);
	bool pass = child == node || n->shares & CLONE_VM || has_inherited(r, child);
	const struct buf *areas;
	int64_t result;

	if (pass == *passes || !has_inherited(r, node))
		return 0;
	areas = inherit_areas(r->inherit);
	for (size_t i = 0; i < buf_count(areas, struct inherit_area); i++) {
		const struct inherit_area *a = buf_at(areas, struct inherit_area, i);

		if (a->usable && NODE_CALL(r, node, "advise the kernel on memory", &result,
					 SYS_madvise, a->start, a->end - a->start,
					 pass ? MADV_DOFORK : MADV_DONTFORK))
			return -1;
	}
	*passes = pass;
	return 0;
}
