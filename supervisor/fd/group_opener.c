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
#include <sys/pidfd.h>
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
	pid_t pid;   /* 0: none, */
	int code;    /* and the errno of why, EACCES for whatever will not be otherwise later */
	int process; /* pidfd: all children may have been waited for when a restart has failed */
	int socket;
};

/* Of this process, and of those that it has made. */
static struct buf openers;

/* What there is to be had again, perhaps. EAGAIN: processes (RLIMIT_NPROC, pids.max). */
static bool is_shortage(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOMEM || code == EAGAIN;
}

static struct group_opener *find_opener(gid_t group)
{
	for (size_t i = 0; i < buf_count(&openers, struct group_opener); i++) {
		struct group_opener *o = buf_at(&openers, struct group_opener, i);

		if (o->group == group)
			return o;
	}
	return NULL;
}

/* For execveat(2), which takes no file that is open for writing. The file can get no name (O_EXCL). */
static int make_program(const char *directory, gid_t group)
{
	cleanup_fd int fd = open(directory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0700);
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
	int code;

	snprintf(users, sizeof(users), "%u %u 1", geteuid(), geteuid());
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	/* Signals from the terminal are meant for us. It cannot fail: a new process leads no group. */
	(void)setsid();
	if (socket == STDIN_FILENO ? !fcntl(socket, F_SETFD, 0)
				   : dup2(socket, STDIN_FILENO) >= 0)
		fexecve(program, argv, none);
	code = errno;
	/* Without it, too, there is none. */
	(void)!write(STDIN_FILENO, &code, sizeof(code));
	_exit(1);
}

static void end_opener(struct group_opener *o)
{
	/* Processes that the restart has made may have the socket still. */
	(void)pidfd_send_signal(o->process, SIGKILL, NULL, 0);
	while (waitid(P_PIDFD, o->process, NULL, WEXITED) && errno == EINTR)
		;
	util_close(&o->process);
	util_close(&o->socket);
	o->pid = 0;
}

/* -1 and errno, of whatever kind. */
static int start_from(const char *directory, struct group_opener *o)
{
	cleanup_fd int program = make_program(directory, o->group), ours = -1, its = -1;
	int ends[2], code = 0;

	if (program < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	ours = ends[0];
	its = ends[1];
	o->pid = clone_process_with_pidfd(&o->process);
	if (!o->pid)
		execute(program, its, o->group);
	if (o->pid < 0)
		return -1;
	close(steal_fd(&its));
	o->socket = steal_fd(&ours);
	if (read(o->socket, &code, sizeof(code)) == sizeof(code) && !code)
		return 0;
	end_opener(o);
	errno = code ? code : EACCES;
	return -1;
}

static struct group_opener start(gid_t group)
{
	static const char *const directories[] = {"/var/tmp", "/tmp", "."};
	struct group_opener o = {.group = group, .process = -1, .socket = -1, .code = EACCES};

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		if (!start_from(directories[i], &o))
			return o;
		if (is_shortage(errno))
			o.code = errno;
	}
	o.pid = 0;
	return o;
}

int group_opener_start(gid_t group)
{
	struct group_opener *known = find_opener(group), o;

	if (!known) {
		o = start(group);
		buf_push(&openers, struct group_opener, &o);
		return o.pid ? 0 : -1;
	}
	if (!known->pid && is_shortage(known->code))
		*known = start(group);
	return known->pid ? 0 : -1;
}

void group_openers_avoid(bool (*needs)(const void *arg, pid_t id), const void *arg)
{
	for (size_t i = 0; i < buf_count(&openers, struct group_opener); i++) {
		struct group_opener *o = buf_at(&openers, struct group_opener, i);

		while (o->pid && needs(arg, o->pid)) {
			/* While the other has its id. */
			struct group_opener next = start(o->group);

			end_opener(o);
			*o = next;
		}
	}
}

/* -1 and errno, which is EAGAIN if there is no answer. */
static int ask(const struct group_opener *o, int at, int flags)
{
	const struct open_by_group request = {.flags = flags};
	cleanup_fd int from = -1, to = -1;
	int fds[PASSED_FDS_MOST], ends[2], code;
	size_t count;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -1;
	from = ends[0];
	to = ends[1];
	/* If it has ended, nobody can have an answer to send. */
	if (passed_fds_send(o->socket, &request, sizeof(request), (int[]){to, at}, 2, 0) < 0 &&
		errno != EPIPE && errno != ECONNRESET)
		return -1;
	/* So that we hear of it when there is no answer. */
	close(steal_fd(&to));
	if (passed_fds_receive(from, &code, sizeof(code), fds, &count, 0) != sizeof(code))
		code = EAGAIN;
	else if (!code && count == 1)
		return fds[0];
	/* Or it could not be received. */
	errno = code ? code : EMFILE;
	return -1;
}

int group_opener_open(int at, int flags)
{
	int code = EACCES;

	for (size_t i = 0; i < buf_count(&openers, struct group_opener); i++) {
		const struct group_opener *o = buf_at(&openers, struct group_opener, i);
		int fd = -1;

		errno = o->code;
		if (o->pid && (fd = ask(o, at, flags)) >= 0)
			return fd;
		/* EPERM: by O_NOATIME. */
		if (errno != EACCES && errno != EPERM)
			code = errno;
	}
	errno = code;
	return -1;
}

void group_openers_end(void)
{
	for (size_t i = 0; i < buf_count(&openers, struct group_opener); i++) {
		struct group_opener *o = buf_at(&openers, struct group_opener, i);

		if (o->pid)
			end_opener(o);
	}
	buf_free(&openers);
}
