/*
 * present_pages.c - mincore(2) in the process, with runs put together where they are too many;
 * and where the pages of a mapping end, by reading.
 */
#include "supervisor/target/present_pages.h"

#include <sys/syscall.h>

#include "supervisor/target/tracee.h"

enum {
	PAGE = 4096,
	MOST_RUNS = 4096, /* of one mapping */
};

static void add_run(struct buf *runs, uint64_t start, uint64_t end)
{
	size_t count = buf_count(runs, struct present_run);
	struct present_run *last = count ? buf_at(runs, struct present_run, count - 1) : NULL;
	struct present_run run = {start, end};

	if (last && last->end == start)
		last->end = end;
	else
		buf_push(runs, struct present_run, &run);
}

/* mincore(2) finds them in the page cache, whether or not this process has touched them. */
static int ask_mincore(struct remote *r, uint64_t start, size_t pages, uint64_t scratch,
	struct buf *runs, struct err *e)
{
	cleanup_free unsigned char *present = xmalloc(pages);
	int64_t result;

	if (REMOTE_CALL(r, &result, e, SYS_mincore, start, pages * PAGE, scratch))
		return -1;
	if (result)
		return err_set(e, -result, "cannot find the pages of %lx in process %d",
			(unsigned long)start, r->process->pid);
	if (tracee_read(r->process->mem_fd, scratch, present, pages, e))
		return -1;
	for (size_t i = 0; i < pages; i++)
		if (present[i] & 1)
			add_run(runs, start + i * PAGE, start + (i + 1) * PAGE);
	return 0;
}

/* From number @first on, across gaps that grow until few enough are left. */
static void put_together(struct buf *runs, size_t first)
{
	struct present_run *run = buf_at(runs, struct present_run, first);
	size_t count = buf_count(runs, struct present_run) - first;

	for (uint64_t gap = PAGE; count > MOST_RUNS; gap *= 2) {
		size_t kept = 0;

		for (size_t i = 1; i < count; i++)
			if (run[i].start - run[kept].end <= gap)
				run[kept].end = run[i].end;
			else
				run[++kept] = run[i];
		count = kept + 1;
	}
	runs->len = (first + count) * sizeof(*run);
}

int present_pages(struct remote *r, uint64_t start, uint64_t end, uint64_t scratch,
	struct buf *runs, struct err *e)
{
	size_t first = buf_count(runs, struct present_run), pages;

	for (uint64_t at = start; at < end; at += pages * PAGE) {
		pages = (end - at) / PAGE;
		if (pages > PRESENT_SCRATCH)
			pages = PRESENT_SCRATCH;
		if (ask_mincore(r, at, pages, scratch, runs, e))
			return -1;
		put_together(runs, first);
	}
	return 0;
}

static bool can_read(const struct process *p, uint64_t page)
{
	char byte;

	return !tracee_read(p->mem_fd, page, &byte, 1, NULL);
}

uint64_t present_end(const struct process *p, uint64_t start, uint64_t end)
{
	uint64_t low = start / PAGE, high = end / PAGE, middle;

	if (start == end || can_read(p, end - PAGE))
		return end;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (can_read(p, middle * PAGE))
			low = middle + 1;
		else
			high = middle;
	}
	return low * PAGE;
}
