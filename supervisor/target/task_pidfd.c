/*
 * task_pidfd.c - pidfd_open(2), with PIDFD_THREAD for all threads but the first.
 */
#include "supervisor/target/task_pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

int fd_task_open(pid_t pid, pid_t task, struct err *e)
{
	int fd = syscall(SYS_pidfd_open, task, task == pid ? 0 : PIDFD_THREAD);

	if (fd < 0 && errno == EINVAL && task != pid)
		return err_set(e, 0,
			"the descriptors of process %d can be copied only from its thread %d, "
			"which "
			"takes Linux 6.9",
			pid, task);
	if (fd < 0)
		return err_set(e, errno, "cannot access the descriptors of process %d", pid);
	return fd;
}
