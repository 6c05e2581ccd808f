/*
 * control_client.c - goes from the process to its ancestors until one has a socket, connects,
 * and waits for the answer.
 */
#include "supervisor/control/control_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/socket.h>

#include "lib/procfs.h"
#include "supervisor/control/control_protocol.h"
#include "supervisor/start/job_control.h"

#define TICK_MS 100

/* Connect to socket number @turn of process @pid in @dir, which is to be @uid's. -1: none
 * there, without a message; -2: with one. */
static int connect_to(const char *dir, pid_t pid, unsigned turn, uid_t uid, struct err *e)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0) {
		err_set(e, errno, "cannot create a socket");
		return -2;
	}
	control_address(&address, dir, pid, turn);
	if (access(address.sun_path, F_OK) < 0)
		return -1;
	if (control_check_dir(dir, uid, e) < 0)
		return -2;
	if (connect(fd, (void *)&address, sizeof(address)) < 0) {
		if (errno == ECONNREFUSED || errno == ENOENT)
			return -1;
		err_set(e, errno, "cannot connect to the supervisor %d", pid);
		return -2;
	}
	/* A supervisor in another pid namespace may have that id. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid != pid)
		return -1;
	return steal_fd(&fd);
}

/* Any may be missing, as that supervisor has ended. */
static int connect_in(const char *dir, pid_t pid, uid_t uid, struct err *e)
{
	int r = -1;

	for (unsigned turn = 0; r == -1 && turn < CONTROL_TURNS; turn++)
		r = connect_to(dir, pid, turn, uid, e);
	return r;
}

static int try_connect(pid_t pid, uid_t uid, struct err *e)
{
	int fd = -1;

	for (int i = 0; i < CONTROL_DIRS && fd < 0; i++) {
		cleanup_free char *dir = control_dir(uid, i);
		int r = connect_in(dir, pid, uid, fd == -2 ? NULL : e);

		if (r != -1)
			fd = r;
	}
	return fd;
}

/* The id of a process in the innermost pid namespace that it is in, 0: ours. */
static pid_t id_in_namespace(const char *status)
{
	const char *ids = strstr(status, "\nNSpid:\t"),
		   *end = ids ? strchr(ids + 1, '\n') : NULL;
	const char *last = end ? memrchr(ids, '\t', end - ids) : NULL;

	/* The first is ours. */
	return last && last != strchr(ids, '\t') ? atoi(last) : 0;
}

static int refuse_unsupervised(pid_t pid, uid_t uid, pid_t in_namespace, struct err *e)
{
	if (geteuid() != 0 && uid != geteuid())
		return err_set(e, 0, "process %d belongs to another user", pid);
	if (in_namespace)
		return err_set(e, 0,
			"process %d is in another pid namespace, as in a container: if "
			"trecr-run is in there, too, run trecr-ckpt there, where it is "
			"process %d",
			pid, in_namespace);
	return err_set(e, 0, "process %d is not supervised by trecr", pid);
}

/* It may be that it did while it was looked for. */
static bool has_ended(pid_t pid)
{
	cleanup_free char *status = procfs_status(pid, pid, NULL);

	return !status || strstr(status, "\nState:\tZ") || strstr(status, "\nState:\tX");
}

int control_connect(pid_t pid, pid_t *supervisor, struct err *e)
{
	pid_t in_namespace = 0;
	uid_t first_uid = 0;

	for (pid_t p = pid; p > 0;) {
		cleanup_free char *status = procfs_status(p, p, NULL);
		uid_t uid;
		int fd;

		if (!status && p == pid)
			return err_set(e, 0, "there is no process %d", pid);
		if (!status)
			break;
		uid = status_number(status, "Uid", 10);
		if (p == pid) {
			first_uid = uid;
			in_namespace = id_in_namespace(status);
		}
		fd = try_connect(p, uid, e);
		if (fd == -2)
			return -1;
		if (fd >= 0) {
			*supervisor = p;
			return fd;
		}
		p = status_number(status, "PPid", 10);
	}
	if (has_ended(pid))
		return err_set(e, 0, "process %d has ended", pid);
	return refuse_unsupervised(pid, first_uid, in_namespace, e);
}

static void wake_if_stopped(pid_t supervisor)
{
	/* What is missed here is seen at the next tick. */
	if (job_control_stopped(supervisor))
		(void)job_control_wake(supervisor);
}

static int check_answer(struct buf *answer, struct err *e)
{
	char *text = answer->data;

	if (!answer->len || text[answer->len - 1] != '\n')
		return err_set(e, 0, "the supervisor ended before it had answered");
	if (!strncmp(text, "error ", 6)) {
		text[answer->len - 1] = 0;
		control_unescape(text);
		return err_set(e, 0, "%s", text + 6);
	}
	return 0;
}

/* Milliseconds to wait before the next tick, -1 when the time is up. */
static int next_wait(uint64_t deadline_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!deadline_ns || deadline_ns > now + TICK_MS * 1000000ull)
		return TICK_MS;
	return deadline_ns > now ? (int)((deadline_ns - now) / 1000000 + 1) : -1;
}

/* The supervisor cancels a checkpoint when the connection ends, until it is too late (run/checkpoint_under_way.h). */
static const char cancelled[] =
	"; the checkpoint is cancelled, unless it has been written by now: give it more "
	"time, or see how far it comes (trecr-ckpt --status --watch)";

int control_ask(int fd, pid_t supervisor, const char *request, uint64_t deadline_ns,
	struct buf *answer, struct err *e)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	/* Reading shows whether the supervisor has ended since. */
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
		errno != ECONNRESET)
		return err_set(e, errno, "cannot send the request to the supervisor");
	for (;;) {
		int wait_ms = next_wait(deadline_ns);
		char part[4096];
		ssize_t n;

		if (wait_ms < 0)
			return err_set(e, 0,
				"the supervisor has not answered within the time given (-t)%s",
				strncmp(request, "checkpoint", 10) ? "" : cancelled);
		if (poll(&pfd, 1, wait_ms) <= 0) {
			wake_if_stopped(supervisor);
			continue;
		}
		n = recv(fd, part, sizeof(part), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != ECONNRESET)
			return err_set(e, errno, "cannot read the supervisor's answer");
		if (n <= 0)
			break;
		buf_add(answer, part, n);
	}
	buf_grow(answer, 1);
	answer->len--;
	return check_answer(answer, e);
}
