/*
 * namespace_setup.c - reports between a supervisor and a process in a new namespace, then what that process does by
 * mount(2) and by files in /proc.
 */
#include "supervisor/start/namespace_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/limits.h"
#include "lib/util.h"

/* ---- reports ---- */

int namespace_sockets(int ends[2], struct err *e)
{
	int on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(e, errno, "cannot create a socket pair");
	if (!setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return 0;
	err_set(e, errno, "cannot create a socket pair");
	close(ends[0]);
	close(ends[1]);
	return -1;
}

int namespace_report(int socket, enum namespace_report_kind kind, int value, const char *text)
{
	struct namespace_report r = {.kind = kind, .value = value};

	if (text)
		snprintf(r.text, sizeof(r.text), "%s", text);
	return send(socket, &r, sizeof(r), MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int namespace_await_report(int socket, const char *who, struct namespace_report *report,
	pid_t *sender, struct err *e)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {.iov_base = report, .iov_len = sizeof(*report)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	struct ucred credentials;

	if (n < 0)
		return err_set(e, errno, "cannot get an answer from the new namespace");
	if (n != sizeof(*report) || !c || c->cmsg_type != SCM_CREDENTIALS)
		return err_set(e, 0, "%s was killed", who);
	memcpy(&credentials, CMSG_DATA(c), sizeof(credentials));
	*sender = credentials.pid;
	if (report->kind == NAMESPACE_READY)
		return 0;
	report->text[sizeof(report->text) - 1] = 0;
	return limit_err(e, report->value, SYS_clone3, "%s", report->text);
}

void namespace_fail(const struct namespace_plan *plan, const char *what)
{
	(void)namespace_report(plan->socket, NAMESPACE_FAILED, errno, what);
	_exit(125);
}

/* ---- why there is no namespace ---- */

/* Whether the root directory is one of a chroot, in which the kernel makes no user namespace
 * (user_namespaces(7)): 1, or 0; -1: cannot be told. It is when nothing is mounted there; what is may be mounted
 * just for that, and process 1's can be looked at by root alone. */
static int is_in_chroot(void)
{
	cleanup_free char *text = NULL;
	struct stat own, first;
	bool is_mount = false;
	size_t size;

	if (read_file("/proc/self/mountinfo", &text, &size, NULL) || !size)
		return -1;
	for (char *line = text, *next; *line && !is_mount; line = next) {
		char place[3] = "";

		next = line + strcspn(line, "\n");
		next += *next == '\n';
		is_mount =
			sscanf(line, "%*s %*s %*s %*s %2s", place) == 1 && !strcmp(place, "/");
	}
	if (!is_mount)
		return 1;
	if (stat("/", &own) || stat("/proc/1/root", &first))
		return -1;
	return own.st_dev != first.st_dev || own.st_ino != first.st_ino;
}

static const char *denied_hint(int in_chroot)
{
	if (in_chroot > 0)
		return " (the kernel makes no user namespace in a chroot: restart as root, or "
		       "go "
		       "there as containers do, by pivot_root: bwrap, systemd-nspawn)";
	if (in_chroot < 0)
		return " (the system's security policy does not allow it, or this is a chroot, "
		       "in "
		       "which the kernel makes no user namespace: there, restart as root)";
	return " (the system's security policy does not allow it)";
}

static const char *namespace_hint(int error, bool user_namespace)
{
	switch (error) {
	case ENOSPC:
		return limit_hint(SYS_unshare, error);
	case EPERM:
	case EACCES:
		return denied_hint(user_namespace ? is_in_chroot() : 0);
	default:
		return limit_hint(SYS_clone3, error);
	}
}

int namespace_refused(bool user_namespace, struct err *e)
{
	return err_set(e, errno, "cannot create a new %spid and mount namespace%s",
		user_namespace ? "user, " : "", namespace_hint(errno, user_namespace));
}

/* ---- setting up ---- */

static void write_text(const struct namespace_plan *plan, const char *path, const char *text)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		namespace_fail(plan, "cannot map the user into a user namespace");
}

/* The one mapping that needs no privilege: our own user and group (man user_namespaces). */
void namespace_map_ids(const struct namespace_plan *plan)
{
	char line[64];

	write_text(plan, "/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1", plan->uid, plan->uid);
	write_text(plan, "/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "%u %u 1", plan->gid, plan->gid);
	write_text(plan, "/proc/self/gid_map", line);
}

/* What we mount at @where is not to be seen outside; mounts made later outside still come in.
 * The root directory of a chroot is nothing that is mounted (EINVAL), but what lies below may
 * be. */
static void keep_inside(const struct namespace_plan *plan, const char *where)
{
	if (!mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return;
	if (errno != EINVAL || mount(NULL, where, NULL, MS_SLAVE, NULL) < 0)
		namespace_fail(
			plan, "cannot detach the mounts of a new namespace from the old ones");
}

/* A proc file system that shows this namespace's ids. */
void namespace_mount_proc(const struct namespace_plan *plan)
{
	keep_inside(plan, "/proc");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		namespace_fail(plan,
			"cannot mount /proc in a new pid namespace (a container whose /proc is "
			"partly hidden does not allow it)");
}

/* All numbers of terminals are free in it. /dev/ptmx leads to the instance that is mounted beside it
 * (devpts of Linux 4.7). */
void namespace_mount_terminals(const struct namespace_plan *plan)
{
	keep_inside(plan, "/dev/pts");
	if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		    "newinstance,ptmxmode=0666,mode=0620") < 0)
		namespace_fail(plan, "cannot mount a new /dev/pts");
}

/* The init outlives the supervisor, so it must hold nothing of its: not the control socket,
 * not the lock on the store, not the caller's streams. */
void namespace_close_all_but(int socket)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(125);
	if (socket > 3)
		(void)close_range(3, socket - 1, 0); /* fails for an empty range only */
	(void)close_range(socket + 1, ~0u, 0);
}
