/*
 * group_opener.c - the program of opener/ in a set-group-ID file, which has no name, and so can be executed by
 * nobody else.
 */
#include "supervisor/fd/group_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/passed_fds.h"
#include "lib/util.h"
#include "shared/open_by_group.h"
#include "supervisor/target/clone.h"

extern const uint8_t opener_program[], opener_program_end[];

struct group_opener {
	gid_t group;
	pid_t pid; /* 0: none, it has failed */
	int socket;
};

/* Of this process, and of those that it has made. */
static struct buf openers;

static struct group_opener *find_opener(gid_t group)
{
	for (size_t i = 0; i < buf_count(&openers, struct group_opener); i++) {
		struct group_opener *o = buf_at(&openers, struct group_opener, i);

		if (o->group == group)
			return o;
	}
	return NULL;
}

/* For execveat(2), which takes no file that is open for writing. */
static int make_program(const char *directory, gid_t group)
{
	cleanup_fd int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);
	cleanup_free char *link = xasprintf("/proc/self/fd/%d", fd);

	/* Who is given a file, or writes to it, loses the set-group-ID bit: the mode comes last. */
	if (fd < 0 ||
		write_all(fd, opener_program, opener_program_end - opener_program,
			"a file without a name", NULL) ||
		fchown(fd, -1, group) || fchmod(fd, S_ISGID | 0710))
		return -1;
	return open(link, O_RDONLY | O_CLOEXEC);
}

static void __attribute__((noreturn)) execute(int program, int socket, gid_t group)
{
	char users[40], groups[40];
	char *argv[] = {"trecr-opener", users, groups, NULL}, *none[] = {NULL};

	snprintf(users, sizeof(users), "%u %u 1", geteuid(), geteuid());
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	/* Signals from the terminal are meant for us. It cannot fail: a new process leads no group. */
	(void)setsid();
	if (socket == STDIN_FILENO ? !fcntl(socket, F_SETFD, 0)
				   : dup2(socket, STDIN_FILENO) >= 0)
		fexecve(program, argv, none);
	_exit(1);
}

static int start_from(const char *directory, struct group_opener *o)
{
	cleanup_fd int program = make_program(directory, o->group), ours = -1, its = -1;
	int ends[2];
	char ready;

	if (program < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	ours = ends[0];
	its = ends[1];
	o->pid = clone_process(0, 0);
	if (!o->pid)
		execute(program, its, o->group);
	if (o->pid < 0)
		return -1;
	close(steal_fd(&its));
	if (read(ours, &ready, 1) == 1) {
		o->socket = steal_fd(&ours);
		return 0;
	}
	while (waitpid(o->pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -1;
}

int group_opener_start(gid_t group)
{
	static const char *const directories[] = {"/var/tmp", "/tmp", "."};
	const struct group_opener *known = find_opener(group);
	struct group_opener o = {.group = group, .socket = -1};

	if (known)
		return known->pid ? 0 : -1;
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (!start_from(directories[i], &o)) {
			buf_push(&openers, struct group_opener, &o);
			return 0;
		}
	o.pid = 0;
	buf_push(&openers, struct group_opener, &o);
	return -1;
}

static int ask(const struct group_opener *o, int at, int flags)
{
	const struct open_by_group request = {.flags = flags};
	cleanup_fd int from = -1, to = -1;
	int fds[PASSED_FDS_MOST], ends[2];
	size_t count;
	char byte;

	if (!o->pid || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -1;
	from = ends[0];
	to = ends[1];
	if (passed_fds_send(o->socket, &request, sizeof(request), (int[]){at, to}, 2, 0) < 0)
		return -1;
	/* So that we hear of it when there is no answer. */
	close(steal_fd(&to));
	if (passed_fds_receive(from, &byte, 1, fds, &count, 0) != 1 || count != 1)
		return -1;
	return fds[0];
}

int group_opener_open(int at, int flags)
{
	int fd = -1;

	for (size_t i = 0; i < buf_count(&openers, struct group_opener) && fd < 0; i++)
		fd = ask(buf_at(&openers, struct group_opener, i), at, flags);
	return fd;
}

void group_openers_end(void)
{
	for (size_t i = 0; i < buf_count(&openers, struct group_opener); i++) {
		const struct group_opener *o = buf_at(&openers, struct group_opener, i);

		if (!o->pid)
			continue;
		close(o->socket);
		/* Processes that the restart has made may have the socket still. */
		(void)kill(o->pid, SIGKILL);
		while (waitpid(o->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	buf_free(&openers);
}
