/*
 * clone.c - clone3(2) by itself.
 */
#include "supervisor/target/clone.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t clone_process(uint64_t flags, pid_t pid)
{
	struct clone_args args = {
		.flags = flags,
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,
		.set_tid = pid ? (uintptr_t)&pid : 0,
		.set_tid_size = pid ? 1 : 0,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}

pid_t clone_process_with_pidfd(int *pidfd)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD,
		.pidfd = (uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}
