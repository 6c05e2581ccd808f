/*
 * pagemap.c - by the ioctl PAGEMAP_SCAN, or where the kernel does not have it by reading the
 * table.
 */
#include "supervisor/target/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#define PAGE 4096ull

/* PAGEMAP_SCAN of <linux/fs.h> (kernel 6.7), which headers of that age lack. */
struct scan_region {
	uint64_t start, end, categories;
};

struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define PAGEMAP_SCAN _IOWR('f', 16, struct scan_arg)

#define PM_SCAN_WP_MATCHING   (1u << 0)
#define PM_SCAN_CHECK_WPASYNC (1u << 1)

#define PAGE_IS_WRITTEN (1u << 1)
#define PAGE_IS_FILE    (1u << 2)
#define PAGE_IS_PRESENT (1u << 3)
#define PAGE_IS_SWAPPED (1u << 4)
#define PAGE_IS_PFNZERO (1u << 5)
#define PAGE_IS_HUGE    (1u << 6)
#define PAGE_IS_GUARD   (1u << 8) /* kernel 6.16 */

/* An entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#define PM_PRESENT (1ull << 63)
#define PM_SWAP    (1ull << 62)
#define PM_FILE    (1ull << 61)
#define PM_GUARD   (1ull << 58)

#define SCAN_REGIONS 512
#define TABLE_CHUNK  8192

int pagemap_open(pid_t pid, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/pagemap", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_set(e, errno, "cannot open %s", path) : fd;
}

static void add_run(struct buf *runs, uint64_t start, uint64_t end, enum page_kind kind)
{
	struct page_run run = {start, end, kind};
	size_t n = buf_count(runs, struct page_run);
	struct page_run *last = n ? buf_at(runs, struct page_run, n - 1) : NULL;

	if (last && last->end == start && last->kind == kind)
		last->end = end;
	else
		buf_push(runs, struct page_run, &run);
}

/* What is swapped out, or huge, has not been protected; in doubt a page has been written to. */
static bool is_clean(uint64_t categories)
{
	const uint64_t asked = PAGE_IS_PRESENT | PAGE_IS_SWAPPED | PAGE_IS_WRITTEN |
			       PAGE_IS_HUGE | PAGE_IS_FILE | PAGE_IS_PFNZERO;

	return (categories & asked) == PAGE_IS_PRESENT;
}

static void add_scanned(struct buf *runs, const struct scan_region *r, bool watched)
{
	if (r->categories & PAGE_IS_GUARD)
		add_run(runs, r->start, r->end, PAGES_GUARD);
	else if (watched && is_clean(r->categories))
		add_run(runs, r->start, r->end, PAGES_CLEAN);
	else if (!(r->categories & (PAGE_IS_FILE | PAGE_IS_PFNZERO)))
		add_run(runs, r->start, r->end, PAGES_OWN);
}

/* Mappings by others than mmap(2) without a file (the vdso, uprobes) have names like [uprobes]. */
static bool is_anonymous(const struct vma *v)
{
	return !v->inode && !v->shared &&
	       (!*v->name || !strcmp(v->name, "[heap]") || !strcmp(v->name, "[stack]") ||
		       !strncmp(v->name, "[anon:", 6));
}

/* PAGE_IS_FILE, where it has to be asked for: the kernel must look at what describes each page then, and
 * takes several times as long (doc/measurements/pause.md). */
static uint64_t file_category(const struct vma *v)
{
	return is_anonymous(v) ? 0 : PAGE_IS_FILE;
}

/* 1: the kernel does not know PAGEMAP_SCAN. */
static int scan_pages(
	int fd, const struct vma *v, bool watched, struct buf *runs, struct err *e)
{
	static uint64_t guard = PAGE_IS_GUARD; /* 0 once the kernel was found not to know it */
	struct scan_region regions[SCAN_REGIONS];
	struct scan_arg arg = {
		.size = sizeof(arg),
		.start = v->start,
		.end = v->end,
		.vec = (uintptr_t)regions,
		.vec_len = SCAN_REGIONS,
		.category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
	};

	while (arg.start < v->end) {
		int n;

		arg.return_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED | PAGE_IS_PFNZERO | guard |
				  file_category(v) |
				  (watched ? PAGE_IS_WRITTEN | PAGE_IS_HUGE : 0);
		n = ioctl(fd, PAGEMAP_SCAN, &arg);
		if (n < 0 && errno == EINVAL && guard) {
			guard = 0;
			continue;
		}
		if (n < 0 && (errno == ENOTTY || errno == EINVAL))
			return 1;
		if (n < 0)
			return err_set(e, errno, "cannot scan the page table");
		for (int i = 0; i < n; i++)
			add_scanned(runs, &regions[i], watched);
		arg.start = arg.walk_end;
	}
	return 0;
}

static int read_table(int fd, uint64_t start, uint64_t end, struct buf *runs, struct err *e)
{
	cleanup_free uint64_t *entries = xmalloc(TABLE_CHUNK * sizeof(*entries));

	while (start < end) {
		uint64_t n =
			(end - start) / PAGE < TABLE_CHUNK ? (end - start) / PAGE : TABLE_CHUNK;

		if (pread_all(fd, entries, n * 8, start / PAGE * 8, "the page table", e))
			return -1;
		for (uint64_t i = 0; i < n; i++, start += PAGE) {
			if (entries[i] & PM_GUARD)
				add_run(runs, start, start + PAGE, PAGES_GUARD);
			else if ((entries[i] & (PM_PRESENT | PM_SWAP)) &&
				 !(entries[i] & PM_FILE))
				add_run(runs, start, start + PAGE, PAGES_OWN);
		}
	}
	return 0;
}

int pagemap_scan(int fd, const struct vma *v, bool watched, struct buf *runs, struct err *e)
{
	int r = scan_pages(fd, v, watched, runs, e);

	return r > 0 ? read_table(fd, v->start, v->end, runs, e) : r;
}

/* The list of what has been protected is of no interest; without one the kernel would protect
 * whatever there is, pages that are not there included (pagemap_scan_pmd_entry()). */
int pagemap_protect(int fd, const struct vma *v)
{
	const uint64_t unprotected = PAGE_IS_HUGE | PAGE_IS_PFNZERO | file_category(v);
	struct scan_region regions[SCAN_REGIONS];
	struct scan_arg arg = {
		.size = sizeof(arg),
		.flags = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
		.start = v->start,
		.end = v->end,
		.vec = (uintptr_t)regions,
		.vec_len = SCAN_REGIONS,
		.category_mask = PAGE_IS_PRESENT | PAGE_IS_WRITTEN | unprotected,
		.category_inverted = unprotected,
		.return_mask = PAGE_IS_PRESENT,
	};

	for (; arg.start < v->end; arg.start = arg.walk_end)
		if (ioctl(fd, PAGEMAP_SCAN, &arg) < 0)
			return -1;
	return 0;
}
