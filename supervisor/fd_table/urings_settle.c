/*
 * Requests that are under way in an io_uring open and close descriptors, write to files and
 * pipes, and move positions. So they end before any descriptor of the tree is looked at, in
 * whichever process.
 */
#include <limits.h>
#include <string.h>

#include "supervisor/fd/fd.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/fd_table/descriptors_list.h"
#include "supervisor/target/process.h"
#include "supervisor/target/task_pidfd.h"
#include "supervisor/uring/uring.h"

static bool uses_rings(const struct tree *tree)
{
	for (size_t i = 0; i < tree->living; i++)
		for (size_t k = 0; k < tree->processes[i]->thread_count; k++)
			if (tree->processes[i]->threads[k].uses_rings)
				return true;
	return false;
}

/* Several descriptors may lead to one; each has an inode of its own. */
static bool is_settled(struct buf *settled, uint64_t inode)
{
	for (size_t i = 0; i < buf_count(settled, uint64_t); i++)
		if (*buf_at(settled, uint64_t, i) == inode)
			return true;
	buf_push(settled, uint64_t, &inode);
	return false;
}

static bool is_ring(pid_t task, int fd)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", task, fd);
	cleanup_free char *link = read_link(path, NULL);

	return link && !strcmp(link, URING_LINK);
}

static int settle_ring(struct fd_dump *d, pid_t pid, pid_t task, int pidfd, int fd,
	struct buf *settled, struct err *e)
{
	struct fd_source s;
	int r = fd_source_look(&s, pid, task, pidfd, fd, e);

	if (!r && !is_settled(settled, s.st.st_ino) && uring_dump_settle(d, &s, e)) {
		cleanup_free char *text = fd_source_text(&s);

		r = err_prefix(e, "%s", text);
	}
	fd_source_release(&s);
	return r;
}

static int settle_table(
	struct fd_dump *d, pid_t pid, pid_t task, struct buf *settled, struct err *e)
{
	cleanup_buf struct buf numbers = {0};
	cleanup_fd int pidfd = fd_task_open(pid, task, e);

	if (pidfd < 0 || descriptors_list(task, INT_MAX, &numbers, e))
		return -1;
	for (size_t i = 0; i < buf_count(&numbers, int); i++) {
		int fd = *buf_at(&numbers, int, i);

		if (is_ring(task, fd) && settle_ring(d, pid, task, pidfd, fd, settled, e))
			return -1;
	}
	return 0;
}

int fd_settle_rings(struct fd_dump *d, struct err *e)
{
	cleanup_buf struct buf settled = {0};

	for (size_t i = 0; i < d->tree->living && uses_rings(d->tree); i++) {
		cleanup_buf struct buf tables = {0};
		pid_t pid = d->tree->processes[i]->pid, task;

		if (descriptors_task(pid, &task, &tables, e))
			return -1;
		buf_push(&tables, pid_t, &task);
		for (size_t k = buf_count(&tables, pid_t); k-- > 0;)
			if (settle_table(d, pid, *buf_at(&tables, pid_t, k), &settled, e))
				return -1;
	}
	return 0;
}
