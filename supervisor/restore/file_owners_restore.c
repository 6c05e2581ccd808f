/*
 * Owners of open files (F_SETOWN_EX) that are there late, or not to be seen from inside: single
 * threads, and the supervisor's process group.
 */
#include "supervisor/restore/file_owners_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckpt/store.h"
#include "supervisor/restore/task_files_restore.h"
#include "supervisor/target/remote.h"

/* By the process itself, which knows threads by the ids that the image has. */
static int set_thread(struct new_process *np, int fd, pid_t tid)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};
	struct remote remote;
	uint64_t scratch;
	int64_t result;
	int failed;

	if (remote_begin(&remote, &np->process, &np->process.threads[0], np->e))
		return -1;
	scratch = remote_scratch(&remote, 4096, np->e);
	failed = !scratch ||
		 tracee_write(np->process.mem_fd, scratch, &owner, sizeof(owner), np->e) ||
		 REMOTE_CALL(&remote, &result, np->e, SYS_fcntl, fd, F_SETOWN_EX, scratch);
	if (remote_end(&remote, failed ? NULL : np->e) || failed)
		return -1;
	return result ? err_set(np->e, -result, "cannot set the owner of descriptor %d", fd)
		      : 0;
}

/* By us: a process in another namespace cannot name the group. */
static int set_our_group(struct new_process *np, int fd)
{
	struct f_owner_ex owner = {.type = F_OWNER_PGRP, .pid = getpgrp()};
	cleanup_fd int pidfd = syscall(SYS_pidfd_open, np->process.pid, 0);
	cleanup_fd int ours = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	if (ours < 0 || fcntl(ours, F_SETOWN_EX, &owner))
		return err_set(np->e, errno, "cannot set the owner of descriptor %d", fd);
	return 0;
}

int new_process_file_owners(struct new_process *np)
{
	const struct image_fd *fd;
	size_t count;

	fd = image_note_array(np->img, IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++) {
		const struct image_description *x = new_process_description(np, &fd[i]);

		if ((x->owner_kind == IMAGE_OWNER_THREAD &&
			    set_thread(np, fd[i].fd, x->owner)) ||
			(x->owner_kind == IMAGE_OWNER_OUR_GROUP && set_our_group(np, fd[i].fd)))
			return -1;
	}
	return 0;
}
