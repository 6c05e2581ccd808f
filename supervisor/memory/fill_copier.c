/*
 * fill_copier.c - ordinary memory in small pages. Where pages would be huge, reading into them is faster, and the
 * program has them again.
 */
#include "supervisor/memory/fill_copier.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "supervisor/memory/lazy_ranges.h"

/* <linux/userfaultfd.h> of kernel 5.11 */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* In less, faults take less time than the system calls that make a copier. */
#define LEAST (1ul << 20)

/* In the loader's window, behind the longest plan. */
#define BUFFERS_AT (LOADER_RANGE + LOADER_RANGE_SIZE / 4)

static bool is_always(const char *path)
{
	cleanup_free char *text = NULL;
	size_t size;

	return !read_file(path, &text, &size, NULL) && strstr(text, "[always]");
}

/* Whether memory without advice is in pages of more than 4 KiB where it can be: of some size
 * (Documentation/admin-guide/mm/transhuge.rst). Asked once, as the answer is the machine's. */
static bool pages_are_huge(void)
{
	static enum { UNKNOWN, SMALL, HUGE_PAGES } known;
	glob_t g = {0};
	bool huge;

	if (known)
		return known == HUGE_PAGES;
	huge = is_always("/sys/kernel/mm/transparent_hugepage/enabled");
	if (!huge &&
		!glob("/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled", 0, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc; i++)
			huge |= is_always(g.gl_pathv[i]);
	globfree(&g);
	known = huge ? HUGE_PAGES : SMALL;
	return huge;
}

/* Without a core file, should it be killed. */
static bool child_makes_userfaultfd(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		(void)prctl(PR_SET_DUMPABLE, 0);
		_exit(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY) < 0 ? 1 : 0);
	}
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return !status;
}

/* A seccomp filter that we are under, and new processes with us, may kill who calls userfaultfd(2), as systemd's
 * SystemCallFilter= does. Asked once, as a filter stays. Without one, the loader finds out by itself. */
static bool survives_userfaultfd(void)
{
	static enum { UNKNOWN, SURVIVES, DOES_NOT } known;
	cleanup_free char *status = known ? NULL : procfs_status(getpid(), getpid(), NULL);
	bool filtered = !status || status_number(status, "Seccomp", 10) == SECCOMP_MODE_FILTER;

	if (!known)
		known = !filtered || child_makes_userfaultfd() ? SURVIVES : DOES_NOT;
	return known == SURVIVES;
}

static bool is_inherited(const struct restore_plan *p, const struct image_region *g)
{
	bool inherited;

	(void)address_ranges_part(&p->inherited.regions, g->start, g->end, &inherited);
	return inherited;
}

/* In pages of 4 KiB. */
static bool is_ordinary(const struct image_region *g)
{
	const uint32_t flags = IMAGE_REGION_STACK | IMAGE_REGION_GROWSDOWN |
			       IMAGE_REGION_HUGETLB | IMAGE_REGION_DROPPABLE;

	return g->kind == IMAGE_REGION_ANON && !(g->flags & flags) &&
	       !(g->advice & IMAGE_ADVICE_HUGEPAGE) &&
	       (g->advice & IMAGE_ADVICE_NOHUGEPAGE || !pages_are_huge());
}

/* Whether @next begins where @g ends, and both are, or by mprotect(2) could become, one mapping while they are filled:
 * names do not keep two regions from having one anon_vma, and locks and guards come later. */
static bool is_continued(const struct image_region *g, const struct image_region *next)
{
	const uint32_t later =
		IMAGE_REGION_HEAP | IMAGE_REGION_LOCKED | IMAGE_REGION_LOCKONFAULT;

	return next->start == g->end && next->kind == g->kind &&
	       !((next->flags ^ g->flags) & ~later) &&
	       !((next->advice ^ g->advice) & ~IMAGE_ADVICE_GUARD);
}

/* Not where somebody else fills memory of the same regions meanwhile, as the supervisor does with compressed blocks
 * and lazy memory; nor where policies for NUMA nodes make several mappings of one. */
static bool can_have_copier(const struct restore_plan *p)
{
	return !p->trial && !p->lazy && !(p->img->super.incompat & IMAGE_INCOMPAT_PACKS) &&
	       !p->img->notes[IMAGE_NOTE_MEMPOLICIES].data;
}

/* How many of the @left regions from @g on are continued by the next. *stored: bytes that the image has for them. *at:
 * as in stored_in_region(). */
static size_t chain_of(const struct restore_plan *p, const struct image_region *g, size_t left,
	size_t *at, uint64_t *stored)
{
	size_t n = 0, extents;
	const struct image_extent *x = image_extents(p->img, 0, &extents);

	*stored = 0;
	do
		*stored += stored_in_region(&g[n], x, extents, at);
	while (++n < left && is_continued(&g[n - 1], &g[n]));
	return n;
}

static bool is_any_inherited(
	const struct restore_plan *p, const struct image_region *g, size_t n)
{
	while (n && !is_inherited(p, &g[n - 1]))
		n--;
	return n;
}

/* All regions of a chain or none, be they guards or empty: of a mapping that is registered in part, the parts would get
 * anon_vmas of their own, and stay mappings of their own. Regions side by side stay apart in the list, as a copy must
 * not go beyond a mapping. */
void fill_copier_choose(struct restore_plan *p)
{
	const struct image_region *g;
	size_t count, n, at = 0;
	uint64_t stored;

	if (!can_have_copier(p))
		return;
	g = image_note_array(p->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i += n) {
		n = chain_of(p, &g[i], count - i, &at, &stored);
		if (stored < LEAST || !is_ordinary(&g[i]) || is_any_inherited(p, &g[i], n) ||
			!survives_userfaultfd())
			continue;
		for (size_t k = i; k < i + n; k++) {
			struct address_range range = {g[k].start, g[k].end};

			buf_push(&p->copied, struct address_range, &range);
		}
	}
}

void fill_copier_add(struct restore_plan *p)
{
	size_t count = buf_count(&p->copied, struct address_range);
	struct batch_copier copier = {
		.fd = -1,
		.batches = p->fill_threads + 1,
		.buffers = BUFFERS_AT,
		.buffers_size = (p->fill_threads + 1) * BATCH_PIECE,
	};
	uint64_t at, ranges;

	if (!count)
		return;
	at = plan_data(&p->plan, &copier, sizeof(copier));
	ranges = plan_data(&p->plan, p->copied.data, p->copied.len);
	for (unsigned i = 0; i <= p->fill_threads; i++) {
		p->fill[i].copier = at;
		p->fill[i].buffer = BUFFERS_AT + i * BATCH_PIECE;
	}
	BATCH_ADD(&p->fill[0], "prepare the copying of memory", SYS_userfaultfd, ranges, count)
		->check = BATCH_COPIER;
}
