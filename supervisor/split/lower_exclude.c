/* What of a process is its lower half's, and so is no part of an image: memory and descriptors.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bringup/space.h"
#include "lib/stub_path.h"
#include "shared/batch.h"
#include "supervisor/split/lower_half.h"

/* Children of fork(2) have it, too: copies of the window and of what lies outside of it, and
 * descriptors, of no use to them. */
static bool read_saved(const struct process *p, struct records_saved *saved)
{
	return !lower_peek(p->pid, RECORDS_WINDOW, saved, sizeof(*saved)) &&
	       saved->magic == RECORDS_MAGIC && saved->version == RECORDS_VERSION;
}

static struct buf *buf_of(struct process *p, enum space_part part)
{
	switch (part) {
	case SPACE_OUTSIDE:
		return &p->outside;
	case SPACE_FOUND:
		return &p->found;
	default:
		return &p->window;
	}
}

/* The list at @list as it is now, its head and the ranges in use. The caller frees it. NULL: it cannot be read. */
static struct space_list *copy_list(const struct process *p, uint64_t list)
{
	const size_t head = offsetof(struct space_list, ranges);
	struct space_list *copy = xcalloc(1, sizeof(*copy));

	if (!lower_peek(p->pid, list, copy, head) && copy->count <= SPACE_RANGES &&
		!lower_peek(p->pid, list + head, copy->ranges,
			copy->count * sizeof(copy->ranges[0])))
		return copy;
	free(copy);
	return NULL;
}

/* Two copies of one list, with nobody at work on it. */
static bool are_same(const struct space_list *a, const struct space_list *b)
{
	return !a->lock && !b->lock && a->count == b->count &&
	       !memcmp(a->ranges, b->ranges, a->count * sizeof(a->ranges[0]));
}

/* The lower half's own threads are not stopped, and may change the list meanwhile: it is read until two copies are the
 * same, and so often at most. */
#define LIST_READS 1000

static bool read_list(const struct process *p, uint64_t list, struct buf *to)
{
	cleanup_free struct space_list *before = copy_list(p, list);

	for (unsigned i = 0; before && i < LIST_READS; i++) {
		struct space_list *now = copy_list(p, list);
		bool same = now && are_same(before, now);

		free(before);
		before = now;
		if (same)
			break;
		sched_yield();
	}
	if (!before)
		return false;
	buf_add(to, before->ranges, before->count * sizeof(before->ranges[0]));
	return true;
}

static bool read_lists(struct process *p, uint64_t lists)
{
	p->window.len = p->found.len = p->outside.len = 0;
	for (unsigned i = 0; i < SPACE_PARTS; i++)
		if (!read_list(p, lists + i * sizeof(struct space_list), buf_of(p, i)))
			return false;
	return true;
}

int lower_read_parts(struct process *p, struct err *e)
{
	struct records_saved saved;

	/* A child may have lost its copy, lists and all: by a restart, or because it gave it
	 * back. What it has in the window is its own then. */
	p->has_window = read_saved(p, &saved) && read_lists(p, saved.space);
	if (p->has_window || !p->lower)
		return 0;
	return err_set(
		e, 0, "cannot read what memory the lower half of process %d has", p->pid);
}

/* Whether all of @v is memory of the lower half's in its window. Neighbours may be one mapping.
 */
static bool is_lowers(const struct process *p, const struct vma *v)
{
	const struct space_range *r = p->found.data;
	uint64_t at = v->start;

	for (size_t i = 0; i < buf_count(&p->found, struct space_range); i++)
		if (r[i].start < v->end && r[i].end > v->start)
			return false;
	r = p->window.data;
	for (size_t i = 0; i < buf_count(&p->window, struct space_range); i++)
		if (r[i].start <= at && r[i].end > at)
			at = r[i].end;
	return at >= v->end;
}

/* Whether all that is mapped now at addresses of @v is the lower half's. Mappings that touch each other may have become
 * one, with memory of the program in it, or have been parted: so each is looked at as it is now. */
static bool are_lowers_by_now(const struct process *p, const struct vma *v)
{
	struct vma_list now;
	bool are = true;

	if (procfs_maps(p->task, &now, NULL))
		return false;
	for (size_t i = 0; i < now.count && are; i++)
		are = now.v[i].end <= v->start || now.v[i].start >= v->end ||
		      is_lowers(p, &now.v[i]);
	vma_list_free(&now);
	return are;
}

/* What is known of @v when nothing changes any more: so often at most it is asked. */
#define WINDOW_LOOKS 100

/* The lower half's own threads are not stopped: what they have mapped since is in the lists by
 * now, and what they have unmapped since is gone. */
static int has_window_memory(struct process *p, const struct vma *v, struct err *e)
{
	if (is_lowers(p, v))
		return 1;
	for (unsigned i = 0; i < WINDOW_LOOKS; i++) {
		if (lower_read_parts(p, e))
			return -1;
		if (!p->has_window)
			return 0;
		if (is_lowers(p, v) || are_lowers_by_now(p, v))
			return 1;
		sched_yield();
	}
	return err_set(e, 0,
		"process %d (%s) has memory of its own at %#lx-%#lx, in the range "
		"%#lx-%#lx which trecr reserves for the GPU driver: have the program map it "
		"elsewhere",
		p->pid, p->comm, (unsigned long)v->start, (unsigned long)v->end,
		(unsigned long)LOWER_WINDOW, (unsigned long)(LOWER_WINDOW + LOWER_WINDOW_SIZE));
}

int lower_has_memory(struct process *p, const struct vma *v, struct err *e)
{
	const struct space_range *ranges;
	size_t count;

	if (p->has_window && v->start < LOWER_WINDOW + LOWER_WINDOW_SIZE &&
		v->end > LOWER_WINDOW)
		return has_window_memory(p, v, e);
	ranges = p->outside.data;
	count = p->has_window ? buf_count(&p->outside, struct space_range) : 0;
	for (size_t i = 0; i < count; i++) {
		if (v->end <= ranges[i].start || v->start >= ranges[i].end)
			continue;
		if (v->start >= ranges[i].start && v->end <= ranges[i].end)
			return 1;
		return err_set(e, 0,
			"memory of the program and of the driver at %#lx-%#lx of process %d "
			"(%s) cannot be told apart",
			(unsigned long)v->start, (unsigned long)v->end, p->pid, p->comm);
	}
	return 0;
}

static int check_descriptor(
	const struct process *p, const struct records_saved *saved, int fd, struct err *e)
{
	unsigned bit = fd - saved->fd_base;

	if (fd < saved->fd_base || (bit < RECORDS_FDS && saved->fds[bit / 64] >> bit % 64 & 1))
		return 0;
	return err_set(e, 0,
		"descriptor %d of process %d (%s) lies among those of the driver, from %d on, "
		"which is not supported",
		fd, p->pid, p->comm, saved->fd_base);
}

int lower_fd_limit(const struct process *p, int *limit, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", p->pid);
	struct records_saved saved;
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	*limit = LOWER_FD_BASE;
	if (!read_saved(p, &saved) || !saved.fd_base)
		return 0;
	if (saved.fd_base < 0)
		return lower_damaged(p->pid, e);
	*limit = saved.fd_base;
	dir = opendir(path);
	if (!dir)
		return err_set(e, errno, "cannot list %s", path);
	while (!r && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			r = check_descriptor(p, &saved, atoi(entry->d_name), e);
	closedir(dir);
	return r;
}

/* ---- a driver that came in without us ---- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int lower_refuse_driver(const struct process *p, const struct vma *v, struct err *e)
{
	if (strncmp(file_name(v->name), "libcuda.so", 10) || is_stub_path(v->name))
		return 0;
	return err_set(e, 0,
		"process %d (%s) has loaded the GPU driver's library %s past trecr's, and "
		"cannot be checkpointed",
		p->pid, p->comm, v->name);
}
