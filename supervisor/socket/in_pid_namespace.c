/*
 * in_pid_namespace.c - a helper that joins the namespace and answers through a pipe.
 */
#include "supervisor/socket/in_pid_namespace.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/util.h"

bool socket_is_our_namespace(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/pid", pid);
	cleanup_free char *its = read_link(path, NULL);
	cleanup_free char *ours = read_link("/proc/self/ns/pid", NULL);

	return its && ours && !strcmp(its, ours);
}

/* Like fork(2), without a signal when it ends: it is nobody else's to wait for. */
static pid_t fork_helper(void)
{
	return syscall(SYS_clone, 0, 0, 0, 0, 0);
}

static int join_namespace(pid_t pid)
{
	int status;

	while (pid > 0 && waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return -1;
	return pid > 0 && !status ? 0 : -1;
}

/* A process that has made a user namespace has all capabilities in it (man 7 user_namespaces).
 * Only children enter a pid namespace. */
static void __attribute__((noreturn))
enter_and_ask(int pidfd, int (*ask)(void *arg), void *arg, volatile int *answer)
{
	pid_t pid;

	if (setns(pidfd, CLONE_NEWUSER | CLONE_NEWPID) && setns(pidfd, CLONE_NEWPID))
		_exit(1);
	pid = fork_helper();
	if (!pid) {
		*answer = ask(arg);
		_exit(0);
	}
	_exit(join_namespace(pid) ? 1 : 0);
}

int socket_ask_in_pid_namespace(pid_t in, int (*ask)(void *arg), void *arg)
{
	cleanup_fd int pidfd = -1;
	int *page, answer = -1;
	pid_t pid;

	if (socket_is_our_namespace(in))
		return ask(arg);
	pidfd = syscall(SYS_pidfd_open, in, 0);
	page = mmap(
		NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pidfd < 0 || page == MAP_FAILED)
		return -1;
	pid = fork_helper();
	if (!pid)
		enter_and_ask(pidfd, ask, arg, page);
	if (!join_namespace(pid))
		answer = *page;
	munmap(page, sizeof(*page));
	return answer;
}
