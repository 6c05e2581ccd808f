/* Descriptors that a system call makes in another process, fetched from there. */
#include "supervisor/target/fetch_new_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/syscall.h>

#include "lib/util.h"
#include "supervisor/target/task_pidfd.h"

int fetch_new(const struct remote *r, int64_t number, struct err *e)
{
	const struct process *p = r->process;
	cleanup_fd int pidfd = fd_task_open(p->pid, p->task, e);
	int fd;

	if (pidfd < 0)
		return -1;
	fd = syscall(SYS_pidfd_getfd, pidfd, (int)number, 0);
	if (fd < 0)
		err_set(e, errno, "cannot fetch a descriptor of process %d", p->pid);
	return fd;
}

int fetch_new_uffd(struct remote *r, int flags, struct err *e)
{
	int64_t number, closed;
	int fd;

	if (REMOTE_CALL(r, &number, e, SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags))
		return -1;
	if (number == -EPERM && !(flags & UFFD_USER_MODE_ONLY))
		return err_set(e, EPERM,
			"process %d cannot have a userfaultfd for pages that the kernel "
			"touches, as it "
			"has no CAP_SYS_PTRACE, and vm.unprivileged_userfaultfd is not 1",
			r->process->pid);
	if (number < 0)
		return err_set(
			e, -number, "process %d cannot have a userfaultfd", r->process->pid);
	fd = fetch_new(r, number, e);
	(void)REMOTE_CALL(r, &closed, NULL, SYS_close, number);
	return fd;
}
