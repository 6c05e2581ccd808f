/*
 * The new processes report to the supervisor, which traces them from their first moment on.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/procfs.h"
#include "supervisor/restore/attempt.h"
#include "supervisor/restore/failed_restart.h"
#include "supervisor/restore/restore_stage.h"
#include "supervisor/start/spawn.h"

/* A process that has reported for the first time: whose is it to be? */
static struct restore_one *welcome(struct restore *r, pid_t tid)
{
	cleanup_free char *status = procfs_status(tid, tid, NULL);
	pid_t vpid = status ? (pid_t)status_last_number(status, "NSpid") : 0;

	for (size_t i = 0; i < r->count; i++) {
		struct restore_one *one = &r->processes[i];
		struct tracee *t = &one->process.threads[0].tracee;

		if (one->process.vpid != vpid || one->process.pid)
			continue;
		one->process.pid = one->process.task = t->pid = t->tid = tid;
		restore_advance(one, RESTORE_MADE);
		return one;
	}
	return NULL;
}

static struct other *find_other(struct restore *r, pid_t tid)
{
	for (size_t i = 0; i < buf_count(&r->others, struct other); i++)
		if (buf_at(&r->others, struct other, i)->tid == tid)
			return buf_at(&r->others, struct other, i);
	return NULL;
}

/* NULL for a helper or zombie. */
static struct restore_one *find_one(struct restore *r, pid_t tid)
{
	struct restore_one *one;

	for (size_t i = 0; i < r->count; i++)
		if (r->processes[i].process.pid == tid)
			return &r->processes[i];
	if (find_other(r, tid))
		return NULL;
	one = welcome(r, tid);
	if (!one)
		buf_push(&r->others, struct other, &(struct other){.tid = tid});
	return one;
}

/* One that had been traced and then became our own child ends twice for us. */
static void forget_other(struct restore *r, pid_t tid, int status)
{
	struct other *other = find_other(r, tid);

	if (!other->ended) {
		r->dying--;
		r->dumping -= WCOREDUMP(status) && r->dumping;
	}
	other->ended = true;
}

/* One, or a helper (NULL), with @status. What others say then may be but a consequence. */
static int ended_early(struct restore *r, const struct restore_one *one, int status)
{
	bool killed = restore_killed(r->processes, r->count, r->s->init, r->e) ||
		      restore_killed_one(one, status, r->e);

	/* The others may hold the pipe open. */
	restore_kill_all(r);
	if (!killed)
		birth_error(&r->birth, r->e);
	r->id_taken = r->e->remedy == ERR_ID_TAKEN;
	return -1;
}

/* Deal with a report. The ends of helpers and zombies are waited for. */
static int attend(struct restore *r, struct tracee *t, const struct tracee_report *report)
{
	struct restore_one *one = find_one(r, t->tid);
	int signal = 0;

	/* Let go, it would run the program from its beginning. */
	if (!one && report->event == TRACEE_EVENT_EXEC)
		return err_set(r->e, 0, "cannot tell which process %d is to be", t->tid);
	if (report->event == TRACEE_EVENT_GONE) {
		if (one || t->tid == r->s->init || !birth_done(&r->birth))
			return ended_early(r, one, report->status);
		forget_other(r, t->tid, report->status);
		return 0;
	}
	if (one &&
		(one->stays ? report->event == TRACEE_EVENT_SIGNAL && report->signal == SIGTRAP
			    : report->event == TRACEE_EVENT_EXEC)) {
		restore_advance(one, RESTORE_PLACED);
		restore_advance(one, RESTORE_EXECUTED);
		r->unborn--;
		return 0;
	}
	/* What children's ends tell the program comes from the image. */
	if (report->event == TRACEE_EVENT_SIGNAL && report->signal != SIGCHLD)
		signal = report->signal;
	/* Killed meanwhile: its end is the next report. */
	if (tracee_continue(t, signal, r->e) && t->state != TRACEE_GONE)
		return -1;
	return 0;
}

static int not_ready(const struct restore *r)
{
	size_t i = 0;

	while (i < r->count && r->processes[i].stage >= RESTORE_EXECUTED)
		i++;
	if (i == r->count)
		return err_set(r->e, 0, "a helper did not end within a minute");
	return err_set(r->e, 0,
		"the new process %d (%s) was not ready within a minute, and has not come "
		"further "
		"than stage %s (is the machine overloaded?)",
		r->processes[i].process.vpid, r->processes[i].process.comm,
		restore_stage_name(restore_stage_of(&r->processes[i])));
}

int restore_await_births(struct restore *r)
{
	struct tracee *root = &r->processes[0].process.threads[0].tracee;

	r->processes[0].process.pid = r->processes[0].process.task = r->s->root;
	root->pid = root->tid = r->s->root;
	root->is_child = !r->s->init;
	if (tracee_seize(root, true, r->e) || spawn_release(r->s, r->e))
		return -1;
	restore_advance(&r->processes[0], RESTORE_MADE);
	while (r->unborn || r->dying) {
		uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;
		struct tracee_report report;
		struct tracee t;

		if (tracee_wait_any(&t, deadline, &report, r->e))
			return -1;
		if (report.event == TRACEE_EVENT_NONE)
			return not_ready(r);
		if (attend(r, &t, &report))
			return -1;
	}
	if (r->dumping)
		restore_notice(r,
			"of processes that have ended and are not waited for yet, some no "
			"longer "
			"show that they left a core file (none can be written here)");
	return 0;
}
