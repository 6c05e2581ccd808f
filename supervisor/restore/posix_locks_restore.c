/*
 * POSIX locks. The kernel drops all that a process has on a file whenever it closes any of
 * its descriptors of that file (man fcntl), and a restart opens and closes what it maps: so
 * each process takes its locks when it, and all that share its descriptors, have closed
 * everything.
 */
#include "supervisor/restore/posix_locks_restore.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "supervisor/fd_table/kind_table.h"
#include "supervisor/fd/file_locks.h"
#include "supervisor/fd/fd.h"
#include "supervisor/target/remote.h"

/* Where the locks of one process have been found. */
struct locks {
	struct new_process *np;
	const struct image_description *descriptions;
	const struct image_fd *fds;
	size_t count;
	struct remote remote;
	uint64_t scratch; /* 0: the process has not been asked for anything yet */
};

static int take_lock(struct locks *l, int fd, const struct flock *range, const char *path)
{
	struct new_process *np = l->np;
	int64_t result;

	if (!l->scratch) {
		if (remote_begin(&l->remote, &np->process, &np->process.threads[0], np->e))
			return -1;
		l->scratch = remote_scratch(&l->remote, sizeof(*range), np->e);
	}
	if (!l->scratch ||
		tracee_write(np->process.mem_fd, l->scratch, range, sizeof(*range), np->e) ||
		REMOTE_CALL(&l->remote, &result, np->e, SYS_fcntl, fd, F_SETLK, l->scratch))
		return -1;
	return result ? fd_lock_failed(-result, path, np->e) : 0;
}

static int take_locks_of(struct locks *l, const struct image_fd *fd)
{
	const struct image_description *x = &l->descriptions[fd->description];
	const struct image *job = l->np->c->job;
	const char *text, *path;
	struct flock range;
	int more;

	if (!(fd_kind_find(x->kind)->traits & FD_CAN_LOCK) || !x->args[0])
		return 0;
	text = image_string(job, x->args[0]);
	path = image_string(job, x->path);
	while ((more = fd_locks_next_posix(
			&text, l->np->ip->pid, x->flags, path, &range, l->np->e)) > 0)
		if (take_lock(l, fd->fd, &range, path))
			return -1;
	return more;
}

int new_process_posix_locks(struct new_process *np)
{
	struct locks l = {.np = np};
	int failed = 0;
	size_t count;

	if (checkpoint_owner(np->c, np->index, IMAGE_SHARED_FILES) != np->index)
		return 0;
	l.descriptions = image_note_array(
		np->c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	l.fds = image_note_array(np->img, IMAGE_NOTE_FDS, struct image_fd, &l.count);
	for (size_t i = 0; i < l.count && !failed; i++)
		failed = take_locks_of(&l, &l.fds[i]);
	if (l.scratch && remote_end(&l.remote, failed ? NULL : np->e))
		failed = -1;
	return failed;
}
