/*
 * dirty.c - the userfaultfd of each process that is watched, what is protected, and what is
 * found written to.
 */
#include "supervisor/target/dirty.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>

#include "supervisor/target/pagemap.h"
#include "supervisor/target/fetch_new_fd.h"

/* <linux/userfaultfd.h> of kernel 6.7 */
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

struct dirty {
	pid_t pid;
	int uffd;          /* -1: this process cannot be watched */
	bool asked;        /* since the last checkpoint */
	uint8_t since[16]; /* the checkpoint that the pages are protected since; zero: none */
};

static const uint8_t no_id[16];

static void end_tracking(struct dirty *d)
{
	if (d->uffd >= 0)
		close(d->uffd);
	free(d);
}

static struct dirty **find_dirty(struct dirty_list *list, pid_t pid)
{
	size_t count = buf_count(&list->processes, struct dirty *);

	for (size_t i = 0; i < count; i++) {
		struct dirty **d = buf_at(&list->processes, struct dirty *, i);

		if ((*d)->pid == pid)
			return d;
	}
	return NULL;
}

/* With user faults only it needs no privilege; the kernel's own faults are recorded all the same,
 * as nobody has to serve them. */
static int fetch_uffd(struct process *p)
{
	struct remote r;
	int fd = -1;

	if (!remote_begin(&r, p, &p->threads[0], NULL))
		fd = fetch_new_uffd(&r, UFFD_USER_MODE_ONLY, NULL);
	(void)remote_end(&r, NULL);
	return fd;
}

static int open_watch(struct process *p)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_WP_ASYNC};
	int fd = fetch_uffd(p);

	if (fd < 0)
		return -1;
	/* Older kernels refuse the feature, or the mode that needs no privilege. */
	if (ioctl(fd, UFFDIO_API, &api) || !(api.features & UFFD_FEATURE_WP_ASYNC)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Memory into which the kernel, or a device, may write behind the page table: pages that a ring
 * has registered, or that a driver has pinned. And what must not be disturbed: calls that a
 * filter may punish. */
static bool can_be_watched(const struct process *p)
{
	if (p->lower || p->has_window)
		return false;
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].uses_rings || p->threads[i].seccomp)
			return false;
	return true;
}

struct dirty *dirty_watch(struct dirty_list *list, struct process *p)
{
	struct dirty **known = find_dirty(list, p->pid), *d = known ? *known : NULL;

	if (!can_be_watched(p))
		return NULL;
	if (!d) {
		d = xcalloc(1, sizeof(*d));
		d->pid = p->pid;
		d->uffd = open_watch(p);
		buf_push(&list->processes, struct dirty *, &d);
	}
	d->asked = true;
	return d->uffd < 0 ? NULL : d;
}

bool dirty_is_since(const struct dirty *d, const uint8_t checkpoint_id[16])
{
	return memcmp(d->since, no_id, sizeof(no_id)) &&
	       !memcmp(d->since, checkpoint_id, sizeof(d->since));
}

/* Fails with EBUSY where another userfaultfd watches (userfaultfd_register() in
 * fs/userfaultfd.c). */
static bool add_range(const struct dirty *d, const struct vma *v)
{
	struct uffdio_register range = {
		.range = {.start = v->start, .len = v->end - v->start},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return !ioctl(d->uffd, UFFDIO_REGISTER, &range);
}

bool dirty_watches(const struct dirty *d, const struct vma *v)
{
	return v->flags & VMA_UFFD_WP && !(v->flags & VMA_UFFD) && add_range(d, v);
}

/* Marks may have come with memory that was moved to here (mremap(2) before kernel 6.13). */
static bool take_marks_back(const struct dirty *d, const struct vma *v)
{
	struct uffdio_writeprotect range = {
		.range = {.start = v->start, .len = v->end - v->start},
		.mode = 0,
	};

	return !ioctl(d->uffd, UFFDIO_WRITEPROTECT, &range);
}

void dirty_protect(struct dirty *d, int pagemap, const struct vma *v)
{
	struct uffdio_range range = {.start = v->start, .len = v->end - v->start};

	if (!(v->flags & VMA_UFFD_WP) && (!add_range(d, v) || !take_marks_back(d, v)))
		goto out_leave;
	if (!pagemap_protect(pagemap, v))
		return;
out_leave:
	/* Not ours: then it was not registered, and this changes nothing. */
	(void)ioctl(d->uffd, UFFDIO_UNREGISTER, &range);
}

void dirty_drop(struct dirty_list *list, const struct process *p)
{
	struct dirty **place = find_dirty(list, p->pid);
	size_t count = buf_count(&list->processes, struct dirty *);

	if (!place)
		return;
	end_tracking(*place);
	*place = *buf_at(&list->processes, struct dirty *, count - 1);
	list->processes.len -= sizeof(*place);
}

void dirty_complete(struct dirty_list *list, const uint8_t checkpoint_id[16])
{
	size_t count = buf_count(&list->processes, struct dirty *), kept = 0;
	struct dirty **all = list->processes.data;

	for (size_t i = 0; i < count; i++) {
		struct dirty *d = all[i];

		if (!d->asked) {
			end_tracking(d);
			continue;
		}
		d->asked = false;
		memcpy(d->since, checkpoint_id, sizeof(d->since));
		all[kept++] = d;
	}
	list->processes.len = kept * sizeof(*all);
}

void dirty_forget(struct dirty_list *list)
{
	for (size_t i = 0; i < buf_count(&list->processes, struct dirty *); i++)
		memcpy((*buf_at(&list->processes, struct dirty *, i))->since, no_id,
			sizeof(no_id));
}

void dirty_end(struct dirty_list *list)
{
	for (size_t i = 0; i < buf_count(&list->processes, struct dirty *); i++)
		end_tracking(*buf_at(&list->processes, struct dirty *, i));
	buf_free(&list->processes);
}
