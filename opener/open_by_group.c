/*
 * open_by_group.c - opens files of its user and of one group whatever their modes: in a user namespace in which these two
 * ids are mapped, modes do not count (capable_wrt_inode_uidgid(), kernel/capability.c). Without privileges only a process
 * whose effective group it is can map a group, so this is a program of its own, which is executed from a set-group-ID
 * file. It has no libc: what it would load, or find wrong in an environment, depends on nothing, and the file is small.
 */
#include "shared/open_by_group.h"

#include <errno.h>
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

/* @result of a system call that has failed. */
static __attribute__((noreturn)) void cannot_start(long result)
{
	int code = -result;

	/* We end in any case. */
	(void)raw(SYS_write, SOCKET, &code, sizeof(code));
	end();
}

static void write_file(const char *path, const char *text)
{
	long fd = raw(SYS_open, path, O_WRONLY);
	long written = raw_failed(fd) ? fd : raw(SYS_write, fd, text, raw_length(text));

	if (raw_failed(written))
		cannot_start(written);
	raw(SYS_close, fd);
}

/* Of a set-group-ID program the files in /proc/self belong to root, unless it is dumpable. */
static void enter_namespace(const char *users, const char *groups)
{
	long result = raw(SYS_unshare, CLONE_NEWUSER);

	if (!raw_failed(result))
		result = raw(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (raw_failed(result))
		cannot_start(result);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", users);
	write_file("/proc/self/gid_map", groups);
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

/* *fds: where the answer goes, and the file. Returns how many of them we had room for; -1: there will be no more requests. */
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
	size_t size =
		passed.head.cmsg_len > CMSG_LEN(0) ? passed.head.cmsg_len - CMSG_LEN(0) : 0;

	if (n != (long)sizeof(*request))
		return -1;
	raw_copy(fds, CMSG_DATA(&passed.head), size);
	return size / sizeof(int);
}

/* @fd: a descriptor, or -errno. */
static void answer(int to, int fd)
{
	union passed passed = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	int code = raw_failed(fd) ? -fd : 0;
	struct iovec iov = {&code, sizeof(code)};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = code ? NULL : &passed,
		.msg_controllen = code ? 0 : CMSG_SPACE(sizeof(int)),
	};

	raw_copy(CMSG_DATA(&passed.head), &fd, sizeof(fd));
	/* A process that has ended needs no answer. */
	raw(SYS_sendmsg, to, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!code)
		raw(SYS_close, fd);
}

/* @stack: argc, argv[0], argv[1] ... */
__attribute__((noreturn, used)) static void serve(char **stack)
{
	struct open_by_group request;
	int fds[2], ready = 0, count;

	enter_namespace(stack[2], stack[3]);
	if (raw(SYS_write, SOCKET, &ready, sizeof(ready)) != sizeof(ready))
		end();
	while ((count = receive(&request, fds)) >= 0) {
		if (count)
			answer(fds[0], count == 2 ? open_file(fds[1], request.flags) : -EMFILE);
		while (count)
			raw(SYS_close, fds[--count]);
	}
	end();
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall serve\n");
