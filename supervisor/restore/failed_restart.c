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

/* SIGKILL stays pending until the last thread has ended. */
static bool was_killed(pid_t pid, bool *gone)
{
	struct proc_stat st;

	*gone = procfs_stat(pid, pid, &st, NULL);
	if (*gone || procfs_is_pending(pid, SIGKILL))
		return !*gone;
	return (st.state == 'Z' || st.state == 'X') && st.field[STAT_EXIT_CODE] == SIGKILL;
}

static void name_killed(const struct restore_one *one, struct err *e)
{
	err_set(e, 0, "process %d (%s) was killed while it was being brought back",
		one->process.vpid, one->process.comm);
}

bool restore_killed(
	const struct restore_one *processes, size_t count, pid_t init, struct err *e)
{
	bool gone;

	if (init > 0 && (was_killed(init, &gone) || gone)) {
		err_set(e, 0, "the first process of the new namespace was killed");
		return true;
	}
	for (size_t i = 0; i < count; i++) {
		const struct restore_one *one = &processes[i];

		/* Behind its execve(2) it does not end by itself: gone, it has been killed and
		 * waited for. */
		if (!one->process.pid || !(was_killed(one->process.pid, &gone) ||
						 (gone && one->stage >= RESTORE_EXECUTED)))
			continue;
		name_killed(one, e);
		return true;
	}
	return false;
}

bool restore_killed_one(const struct restore_one *one, int status, struct err *e)
{
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return false;
	if (one)
		name_killed(one, e);
	else
		err_set(e, 0, "a process that helps to make the others was killed");
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

/* One that has ended may have left its number to somebody else. */
static void kill_ours(pid_t pid)
{
	cleanup_fd int fd = pidfd_open(pid, 0);

	/* The process behind the descriptor cannot become another. */
	if (fd >= 0 && descends_from_us(pid))
		(void)pidfd_send_signal(fd, SIGKILL, NULL, 0); /* it has ended: fine */
}

/* A process does not count as ended before all its threads have been waited for, also those
 * that fill memory; one that we have not heard of yet reports its first stop. And nobody else
 * is our child or tracee yet. */
void restore_kill_all(struct restore *r)
{
	struct supervisor *s = r->s;
	pid_t pid;
	int status;

	for (size_t i = 0; i < r->count; i++) {
		if (r->processes[i].process.pid)
			kill_ours(r->processes[i].process.pid);
		r->processes[i].process.pid = 0;
	}
	/* Helpers and agents, too. */
	for (size_t i = 0; i < r->newborn_count; i++) {
		struct newborn *n = &r->newborns[i];

		if (n->t.tid && n->t.state != TRACEE_GONE)
			kill_ours(n->t.tid);
		n->t.tid = 0;
	}
	if (s->root > 0)
		kill_ours(s->root);
	if (s->init > 0)
		kill_ours(s->init);
	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR)
		if (pid > 0 && WIFSTOPPED(status))
			kill(pid, SIGKILL);
	util_close(&s->init_fd);
	s->root = s->init = 0;
}
