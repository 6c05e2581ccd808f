/*
 * open_by_group.c - opens files of its user and of one group whatever their modes: in a user namespace in which these two
 * ids are mapped, modes do not count (capable_wrt_inode_uidgid(), kernel/capability.c). Without privileges only a process
 * whose effective group it is can map a group, so this is a program of its own, which is executed from a set-group-ID
 * file. It has no libc: what it would load, or find wrong in an environment, depends on nothing, and the file is small.
 */
#include "shared/open_by_group.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <sys/socket.h>

#include "shared/raw.h"

#define SOCKET 0

union passed {
	struct cmsghdr head;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

__attribute__((noreturn)) static void end(void)
{
	for (;;)
		raw(SYS_exit_group, 1);
}

static void write_or_end(const char *path, const char *text)
{
	long fd = raw(SYS_open, path, O_WRONLY);

	if (raw_failed(fd) || raw_failed(raw(SYS_write, fd, text, raw_length(text))))
		end();
	raw(SYS_close, fd);
}

/* Of a set-group-ID program the files in /proc/self belong to root, unless it is dumpable. */
static void enter_namespace(const char *users, const char *groups)
{
	if (raw_failed(raw(SYS_unshare, CLONE_NEWUSER)) ||
		raw_failed(raw(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0)))
		end();
	write_or_end("/proc/self/setgroups", "deny");
	write_or_end("/proc/self/uid_map", users);
	write_or_end("/proc/self/gid_map", groups);
}

static long open_file(int at, int flags)
{
	char path[32] = "/proc/self/fd/", digits[12];
	size_t length = raw_length(path), count = 0;

	do
		digits[count++] = '0' + at % 10;
	while (at /= 10);
	while (count)
		path[length++] = digits[--count];
	path[length] = 0;
	return raw(SYS_open, path, flags);
}

/* *fds: the file, and where the answer goes. Returns 0 when there will be no more requests. */
static int receive(struct open_by_group *request, int *fds)
{
	union passed passed = {0};
	struct iovec iov = {request, sizeof(*request)};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &passed,
		.msg_controllen = sizeof(passed),
	};
	long n = raw(SYS_recvmsg, SOCKET, &m, 0);

	if (n != (long)sizeof(*request) || passed.head.cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return 0;
	raw_copy(fds, CMSG_DATA(&passed.head), 2 * sizeof(int));
	return 1;
}

static void answer(int to, int fd)
{
	union passed passed = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {"", 1};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &passed,
		.msg_controllen = CMSG_SPACE(sizeof(int)),
	};

	raw_copy(CMSG_DATA(&passed.head), &fd, sizeof(fd));
	/* A process that has ended needs no answer. */
	raw(SYS_sendmsg, to, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* @stack: argc, argv[0], argv[1] ... */
__attribute__((noreturn, used)) static void serve(char **stack)
{
	struct open_by_group request;
	int fds[2];

	enter_namespace(stack[2], stack[3]);
	if (raw(SYS_write, SOCKET, "", 1) != 1)
		end();
	while (receive(&request, fds)) {
		long fd = open_file(fds[0], request.flags);

		if (!raw_failed(fd)) {
			answer(fds[1], fd);
			raw(SYS_close, fd);
		}
		raw(SYS_close, fds[0]);
		raw(SYS_close, fds[1]);
	}
	end();
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall serve\n");
