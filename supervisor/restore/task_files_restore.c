/*
 * Descriptors that can only be had when all processes and threads are what they were: files of
 * /proc that belong to a process, and pidfds of threads. Each process opens its own.
 */
#include "supervisor/restore/task_files_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckpt/store.h"
#include "supervisor/fd_table/kind_table.h"
#include "supervisor/target/remote.h"

const struct image_description *new_process_description(
	const struct new_process *np, const struct image_fd *fd)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(
		np->c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	return &x[fd->description];
}

/* The first number of the same description, at or before @fd[@i]. */
static size_t first_of(const struct image_fd *fd, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (fd[k].description == fd[i].description)
			return k;
	return i;
}

static bool needs_threads(const struct image_description *x)
{
	const struct fd_kind *kind = fd_kind_find(x->kind);

	return kind->needs_threads && kind->needs_threads(x);
}

static int open_and_replace(
	struct new_process *np, struct remote *remote, int64_t from, const struct image_fd *to)
{
	int64_t result;

	if (REMOTE_CALL(remote, &result, np->e, SYS_dup3, from, to->fd,
		    to->cloexec ? O_CLOEXEC : 0))
		return -1;
	return result < 0 ? err_set(np->e, -result, "cannot create descriptor %d", to->fd) : 0;
}

/* The stand-in is closed first: there may be no other free number. */
static int replace_descriptor(struct new_process *np, struct remote *remote, uint64_t scratch,
	const struct image_fd *fd, const struct image_description *x)
{
	int64_t result, opened;

	if (REMOTE_CALL(remote, &result, np->e, SYS_close, fd->fd))
		return -1;
	if (fd_kind_find(x->kind)->open_remotely(
		    remote, scratch, np->c->job, x, &opened, np->e))
		return err_prefix(np->e, "descriptor %d", fd->fd);
	if (opened != fd->fd)
		return open_and_replace(np, remote, opened, fd) ||
				       REMOTE_CALL(remote, &result, np->e, SYS_close, opened)
			       ? -1
			       : 0;
	return REMOTE_CALL(remote, &result, np->e, SYS_fcntl, opened, F_SETFD,
		       fd->cloexec ? FD_CLOEXEC : 0)
		       ? -1
		       : 0;
}

static int place_all(struct new_process *np, struct remote *remote, uint64_t scratch,
	const struct image_fd *fd, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct image_description *x = new_process_description(np, &fd[i]);
		size_t first = first_of(fd, i);

		if (!needs_threads(x))
			continue;
		if (first == i ? replace_descriptor(np, remote, scratch, &fd[i], x)
			       : open_and_replace(np, remote, fd[first].fd, &fd[i]))
			return -1;
	}
	return 0;
}

int new_process_task_files(struct new_process *np)
{
	const struct image_fd *fd;
	struct remote remote;
	uint64_t scratch;
	bool any = false;
	size_t count;
	int failed;

	fd = image_note_array(np->img, IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++)
		any |= needs_threads(new_process_description(np, &fd[i]));
	if (!any)
		return 0;
	if (remote_begin(&remote, &np->process, &np->process.threads[0], np->e))
		return -1;
	scratch = remote_scratch(&remote, 4096, np->e);
	failed = !scratch || place_all(np, &remote, scratch, fd, count);
	return remote_end(&remote, failed ? NULL : np->e) || failed ? -1 : 0;
}
