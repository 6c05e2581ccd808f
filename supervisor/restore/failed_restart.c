/*
 * A process killed while it stands still makes any call that is about it fail, each with an
 * error of its own, and others fail that wait for it.
 */
#include "supervisor/restore/failed_restart.h"

#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/memory/lazy.h"
#include "supervisor/start/spawn.h"

/* SIGKILL stays pending until the last thread has ended. */
static bool was_killed(pid_t pid, bool *gone)
{
	struct proc_stat st;

	*gone = procfs_stat(pid, pid, &st, NULL);
	if (*gone || procfs_is_pending(pid, SIGKILL))
		return !*gone;
	return (st.state == 'Z' || st.state == 'X') && st.field[STAT_EXIT_CODE] == SIGKILL;
}

static void name_killed(const struct new_process *np, struct err *e)
{
	err_set(e, 0, "process %d (%s) was killed while it was being brought back",
		np->process.vpid, np->process.comm);
}

bool restore_killed(const struct new_process *processes, size_t count,
	const struct supervisor *s, struct err *e)
{
	bool gone;

	if (s->init > 0 && (was_killed(s->init, &gone) || gone)) {
		err_set(e, 0, "%s was killed", spawn_init_name(s));
		return true;
	}
	for (size_t i = 0; i < count; i++) {
		const struct new_process *np = &processes[i];

		/* Behind its execve(2) it does not end by itself: gone, it has been killed and
		 * waited for. */
		if (!np->process.pid || !(was_killed(np->process.pid, &gone) ||
						(gone && np->stage >= RESTORE_EXECUTED)))
			continue;
		name_killed(np, e);
		return true;
	}
	return false;
}

bool restore_killed_one(const struct new_process *np, int status, struct err *e)
{
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return false;
	if (np)
		name_killed(np, e);
	else
		err_set(e, 0, "a helper process of the restart was killed");
	return true;
}

bool restore_helper_killed(struct restore *r)
{
	bool gone;

	for (size_t i = r->count; i < r->newborn_count; i++) {
		const struct tracee *t = &r->newborns[i].t;

		if (!t->tid || t->state == TRACEE_GONE || !was_killed(t->tid, &gone))
			continue;
		return restore_killed_one(NULL, SIGKILL, r->e);
	}
	return false;
}

static bool descends_from_us(pid_t pid)
{
	struct proc_stat st;

	while (pid > 1 && !procfs_stat(pid, pid, &st, NULL)) {
		pid = st.field[STAT_PPID];
		if (pid == getpid())
			return true;
	}
	return false;
}

/* A process that has ended may have left its id to another. */
static void kill_ours(pid_t pid)
{
	cleanup_fd int fd = pidfd_open(pid, 0);

	/* The process behind the descriptor cannot become another. */
	if (fd >= 0 && descends_from_us(pid))
		(void)pidfd_send_signal(fd, SIGKILL, NULL, 0); /* it has ended: fine */
}

static void kill_and_list(pid_t pid, struct buf *killed)
{
	if (pid <= 0)
		return;
	kill_ours(pid);
	buf_add(killed, &pid, sizeof(pid));
}

/* A child that is neither known nor traced is none of ours: of "daemon & exec trecr-restart". */
static bool is_ours(pid_t pid, const struct buf *killed)
{
	const pid_t *known = killed->data;
	cleanup_free char *status = NULL;

	for (size_t i = 0; i < buf_count(killed, pid_t); i++)
		if (known[i] == pid)
			return true;
	status = procfs_status(pid, pid, NULL);
	return status && status_number(status, "TracerPid", 10) == (uint64_t)gettid();
}

/* The children of a process that ends become ours before it can be waited for. */
static bool any_is_left(const struct buf *killed)
{
	cleanup_free pid_t *pids = NULL;
	bool left = false;
	size_t count;

	if (procfs_children(getpid(), &pids, &count, NULL))
		return false;
	for (size_t i = 0; i < count && !left; i++)
		left = is_ours(pids[i], killed);
	return left;
}

static void take_reports(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		if (WIFSTOPPED(status))
			kill(pid, SIGKILL);
}

void restore_abort_lazy(struct supervisor *s)
{
	if (s->lazy)
		lazy_abort(s->lazy);
	s->lazy = NULL;
}

/* All that has come to @pid, or to what is below it. */
static void kill_below(pid_t pid)
{
	cleanup_free pid_t *pids = NULL;
	size_t count;

	if (procfs_children(pid, &pids, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		kill_below(pids[i]);
		kill_ours(pids[i]);
	}
}

/* A process has not ended until all its threads have been waited for, including the threads that
 * fill memory; a thread that has not reported yet still reports its first stop. Children that
 * others have left us may end meanwhile, too, but are not waited for. */
static void await_ends(const struct buf *killed, pid_t adopter)
{
	for (;;) {
		take_reports();
		if (adopter)
			kill_below(adopter);
		if (!any_is_left(killed))
			break;
		tracee_pause(UINT64_MAX);
	}
	take_reports();
}

void restore_kill_all(struct restore *r)
{
	struct supervisor *s = r->s;
	cleanup_buf struct buf killed = {0};

	for (size_t i = 0; i < r->count; i++) {
		kill_and_list(r->processes[i].process.pid, &killed);
		r->processes[i].process.pid = 0;
	}
	/* Helpers and proxies, too. */
	for (size_t i = 0; i < r->newborn_count; i++) {
		struct newborn *n = &r->newborns[i];

		if (n->t.state != TRACEE_GONE)
			kill_and_list(n->t.tid, &killed);
		n->t.tid = 0;
	}
	kill_and_list(s->root, &killed);
	/* An init that its namespace does not end with is to adopt all, and ends when it has no child left. */
	if (s->init_is_first)
		kill_and_list(s->init, &killed);
	else if (s->init)
		buf_push(&killed, pid_t, &s->init);
	restore_abort_lazy(s);
	await_ends(&killed, s->init_is_first ? 0 : s->init);
	util_close(&s->init_fd);
	s->root = s->init = 0;
}
