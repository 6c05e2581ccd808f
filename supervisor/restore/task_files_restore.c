/*
 * Descriptors that can only be had when all processes and threads are what they were: files of
 * /proc that belong to a process, and pidfds of threads. Each process opens its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckpt/store.h"
#include "supervisor/state/restore_one.h"
#include "supervisor/target/remote.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* Flags of open(2) that have done their work. */
#define ONCE (O_CREAT | O_EXCL | O_TRUNC | O_ASYNC)

const struct image_description *restore_one_description(
	const struct restore_one *r, const struct image_fd *fd)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(
		r->c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
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

/* Made in birth as something that leads elsewhere. */
static bool is_late(const struct image_description *x)
{
	return x->kind == IMAGE_FD_PROCESS_FILE ||
	       (x->kind == IMAGE_FD_PIDFD && x->flags & PIDFD_THREAD);
}

static int open_file(struct restore_one *r, struct remote *remote, uint64_t scratch,
	const struct image_description *x, int64_t *opened)
{
	const char *path = image_string(r->c->job, x->path);
	int64_t result;

	if (tracee_write(r->process.mem_fd, scratch, path, strlen(path) + 1, r->e) ||
		REMOTE_CALL(remote, opened, r->e, SYS_openat, AT_FDCWD, scratch,
			x->flags & ~(uint32_t)ONCE, 0))
		return -1;
	if (*opened < 0)
		return err_set(r->e, -*opened, "cannot open %s again", path);
	if (REMOTE_CALL(remote, &result, r->e, SYS_lseek, *opened, x->position, SEEK_SET))
		return -1;
	/* Some have no position to be set, and none that could differ. */
	return result < 0 && x->position
		       ? err_set(r->e, -result, "cannot set the position in %s", path)
		       : 0;
}

static int open_thread(struct restore_one *r, struct remote *remote,
	const struct image_description *x, int64_t *opened)
{
	if (REMOTE_CALL(remote, opened, r->e, SYS_pidfd_open, x->args[0],
		    x->flags & (PIDFD_THREAD | O_NONBLOCK)))
		return -1;
	return *opened < 0 ? err_set(r->e, -*opened, "cannot create a pidfd of thread %d",
				     (int)x->args[0])
			   : 0;
}

static int open_late(struct restore_one *r, struct remote *remote, uint64_t scratch,
	const struct image_fd *fd, const struct image_description *x, int64_t *opened)
{
	int failed = x->kind == IMAGE_FD_PIDFD ? open_thread(r, remote, x, opened)
					       : open_file(r, remote, scratch, x, opened);

	return failed ? err_prefix(r->e, "descriptor %d", fd->fd) : 0;
}

static int put_file(
	struct restore_one *r, struct remote *remote, int64_t from, const struct image_fd *to)
{
	int64_t result;

	if (REMOTE_CALL(
		    remote, &result, r->e, SYS_dup3, from, to->fd, to->cloexec ? O_CLOEXEC : 0))
		return -1;
	return result < 0 ? err_set(r->e, -result, "cannot create descriptor %d", to->fd) : 0;
}

/* What leads elsewhere goes first: there may be no other number. */
static int replace(struct restore_one *r, struct remote *remote, uint64_t scratch,
	const struct image_fd *fd, const struct image_description *x)
{
	int64_t result, opened;

	if (REMOTE_CALL(remote, &result, r->e, SYS_close, fd->fd) ||
		open_late(r, remote, scratch, fd, x, &opened))
		return -1;
	if (opened != fd->fd)
		return put_file(r, remote, opened, fd) ||
				       REMOTE_CALL(remote, &result, r->e, SYS_close, opened)
			       ? -1
			       : 0;
	return REMOTE_CALL(remote, &result, r->e, SYS_fcntl, opened, F_SETFD,
		       fd->cloexec ? FD_CLOEXEC : 0)
		       ? -1
		       : 0;
}

static int place_all(struct restore_one *r, struct remote *remote, uint64_t scratch,
	const struct image_fd *fd, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct image_description *x = restore_one_description(r, &fd[i]);
		size_t first = first_of(fd, i);

		if (!is_late(x))
			continue;
		if (first == i ? replace(r, remote, scratch, &fd[i], x)
			       : put_file(r, remote, fd[first].fd, &fd[i]))
			return -1;
	}
	return 0;
}

int restore_one_task_files(struct restore_one *r)
{
	const struct image_fd *fd;
	struct remote remote;
	uint64_t scratch;
	bool any = false;
	size_t count;
	int failed;

	fd = image_note_array(r->img, IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++)
		any |= is_late(restore_one_description(r, &fd[i]));
	if (!any)
		return 0;
	if (remote_begin(&remote, &r->process, &r->process.threads[0], r->e))
		return -1;
	scratch = remote_scratch(&remote, 4096, r->e);
	failed = !scratch || place_all(r, &remote, scratch, fd, count);
	return remote_end(&remote, failed ? NULL : r->e) || failed ? -1 : 0;
}
