/*
 * The new processes report to the supervisor, which traces them from their first moment on.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "supervisor/restore/restart_attempt.h"
#include "supervisor/restore/failed_restart.h"
#include "supervisor/restore/restore_stage.h"

static struct newborn *find_newborn(struct restore *r, pid_t tid)
{
	for (size_t i = 0; i < r->newborn_count; i++)
		if (r->newborns[i].t.tid == tid)
			return &r->newborns[i];
	return NULL;
}

/* The process of the checkpoint that @n is or is the proxy of; NULL: @n is a helper or a zombie. */
static struct new_process *process_of(struct restore *r, const struct newborn *n)
{
	size_t i = n ? (size_t)(n - r->newborns) : r->newborn_count;

	if (i >= creation_order_count(&r->creation.order))
		i -= creation_order_count(&r->creation.order);
	return i < r->count ? &r->processes[i] : NULL;
}

int restore_ended_early(struct restore *r, const struct newborn *n, int status)
{
	bool killed = restore_killed(r->processes, r->count, r->s, r->e) ||
		      restore_killed_one(process_of(r, n), status, r->e);

	/* The others may hold the pipe open. */
	restore_kill_all(r);
	if (!killed)
		creation_error(&r->creation, r->e);
	r->id_taken = r->e->remedy == ERR_ID_TAKEN;
	return -1;
}

/* @n (NULL: an unknown process) has ended. The end of a tracee that has become our own child is
 * reported twice. */
static int handle_end(struct restore *r, struct newborn *n, pid_t tid, int status)
{
	if ((n && n->goal != NEWBORN_ENDS) || tid == r->s->init)
		return restore_ended_early(r, n, status);
	if (n && n->t.state != TRACEE_GONE) {
		n->t.state = TRACEE_GONE;
		n->goal = NEWBORN_STANDS;
		r->dumping -= WCOREDUMP(status) && r->dumping;
	}
	return 0;
}

/* Whether @n has reached the goal that it was let run for. */
static bool has_reached_goal(const struct newborn *n, const struct tracee_report *report)
{
	switch (n->goal) {
	case NEWBORN_TRAPS:
		return report->event == TRACEE_EVENT_SIGNAL && report->signal == SIGTRAP;
	case NEWBORN_EXECUTES:
		return report->event == TRACEE_EVENT_EXEC;
	default:
		return false;
	}
}

static int handle_report(
	struct restore *r, struct tracee *t, const struct tracee_report *report)
{
	struct newborn *n = find_newborn(r, t->tid);
	int signal = 0;

	if (report->event == TRACEE_EVENT_GONE)
		return handle_end(r, n, t->tid, report->status);
	if (n && has_reached_goal(n, report)) {
		n->goal = NEWBORN_STANDS;
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

static struct newborn *find_running(struct restore *r)
{
	for (size_t i = 0; i < r->newborn_count; i++)
		if (r->newborns[i].goal)
			return &r->newborns[i];
	return NULL;
}

static int not_ready(struct restore *r, const struct newborn *n)
{
	const struct new_process *np = process_of(r, n);

	if (!np)
		return err_set(r->e, 0, "a helper did not end within a minute");
	return err_set(r->e, 0,
		"the new process %d (%s) was not ready within a minute, and has not come "
		"further than stage %s (is the machine overloaded?)",
		np->process.vpid, np->process.comm, restore_stage_name(restore_stage_of(np)));
}

int restore_await_newborns(struct restore *r)
{
	const struct newborn *running;

	while ((running = find_running(r))) {
		uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;
		struct tracee_report report;
		struct tracee t;

		if (tracee_wait_any(&t, deadline, &report, r->e))
			return -1;
		if (report.event == TRACEE_EVENT_NONE)
			return not_ready(r, running);
		if (handle_report(r, &t, &report))
			return -1;
	}
	return 0;
}
