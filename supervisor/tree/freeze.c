/*
 * A tree that makes threads and processes as fast as it can is a moving target: what a
 * listing shows may have forked since. Seizing with PTRACE_O_TRACECLONE and its like attaches
 * every new task as it appears; and only when two passes in a row have found nothing new, and
 * the kernel has given out no process id between them, is nothing left that was missed
 * (doc/decisions/freeze.md).
 */
#include "supervisor/tree/freeze.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/tree/freeze_private.h"
#include "supervisor/tree/frozen_tree.h"
#include "supervisor/tree/thaw.h"

static int stop_threads(struct freezer *f, struct process *p, struct err *e)
{
	if (p->lower)
		return freezer_stop_above(f, p, e);
	for (size_t k = 0; k < p->thread_count; k++)
		if (freezer_stop_thread(f, p, &p->threads[k], e))
			return -1;
	return 0;
}

static void forget_ended_threads(struct process *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].tracee.state != TRACEE_GONE)
			p->threads[kept++] = p->threads[i];
	p->thread_count = kept;
}

/* Drop processes that have ended: zombies that nobody waits for would make each pass longer than
 * the one before. */
static void drop_ended_processes(struct freezer *f)
{
	for (size_t i = f->tree->count; i-- > 1;) {
		const struct process *p = f->tree->processes[i];
		struct proc_stat st;

		if (p->thread_count)
			continue;
		if (procfs_stat(p->pid, p->pid, &st, NULL) ||
			(pid_t)st.field[STAT_PPID] == f->target->reaper)
			freezer_drop_process(f->tree, i);
	}
}

/* Seize what is new of @p, and stop it. */
static int freeze_process(struct freezer *f, struct process *p, struct err *e)
{
	cleanup_free pid_t *tids = NULL;
	size_t count;

	if (freezer_seize_threads(f, p, &tids, &count, e) ||
		freezer_recheck_missing(f, p, tids, count, e))
		return -1;
	forget_ended_threads(p);
	if ((p->thread_count && freezer_recheck(f, &p->threads[0], e)) || stop_threads(f, p, e))
		return -1;
	forget_ended_threads(p);
	/* Of a thread that has been made since, the next pass finds it and its children. */
	return freezer_add_children(f, p, tids, count, e);
}

/* One pass. The list of processes grows while it is walked. */
static int freeze_pass(struct freezer *f, struct err *e)
{
	struct tree *tree = f->tree;

	f->found_new = false;
	if (freezer_add_orphans(f, e))
		return -1;
	for (size_t i = 0; i < tree->count; i++)
		if (freeze_process(f, tree->processes[i], e))
			return -1;
	drop_ended_processes(f);
	return 0;
}

/* Passes in a row without anything new: with no process id given out meanwhile, or, where
 * others make processes all the time, without regard to that. */
#define QUIET_PASSES      2
#define QUIET_PASSES_BUSY 6

/* Passes with something new before the program is to blame for them: the first always has, and the second may find
 * what was made during the first, however long that was held up (a busy machine, a suspended one). */
#define NEW_PASSES 3

static int freeze_all(struct freezer *f, struct err *e)
{
	int quiet = 0, silent = 0, new_passes = 0;
	pid_t last_pid = 0;

	while (silent < QUIET_PASSES && quiet < QUIET_PASSES_BUSY) {
		pid_t now;

		if (freeze_pass(f, e))
			return -1;
		now = procfs_last_pid();
		quiet = f->found_new ? 0 : quiet + 1;
		silent = f->found_new || now != last_pid ? 0 : silent + 1;
		last_pid = now;
		new_passes += f->found_new;
		if (!quiet && new_passes >= NEW_PASSES &&
			clock_ns(CLOCK_MONOTONIC) > f->target->deadline_ns)
			return err_set(e, 0,
				"cannot freeze process %d: it creates processes faster than "
				"they can be stopped",
				f->target->root);
	}
	return 0;
}

/* What processes have of each other's is restored together, or not at all. */
static int agree_on_sharing(struct freezer *f, struct err *e)
{
	for (size_t i = 0; i < f->tree->count; i++) {
		struct process *p = f->tree->processes[i];

		if (p->thread_count && p->lower && lower_agree(p, f->target->deadline_ns, e))
			return -1;
	}
	return 0;
}

/* All threads of the upper half stand still but for the helpers. Let the lower half come to
 * rest; then the helpers are stopped, too, and what they have set off meanwhile. */
static int drain_lower_halves(struct freezer *f, struct err *e)
{
	uint64_t session = clock_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
	bool any = false;

	for (size_t i = 0; i < f->tree->count; i++) {
		struct process *p = f->tree->processes[i];

		if (!p->thread_count)
			continue;
		/* Not looked for where there is one thread (seize.c): it may have begun since.
		 */
		if (lower_is_coming(p))
			return err_with(
				e, ERR_TRY_AGAIN, "process %d is about to use its GPU", p->pid);
		if (!p->lower)
			continue;
		any = true;
		if (p->threads[0].tracee.group_stopped)
			return freezer_refuse_stopped(p, e);
		if (p->lower->state != RECORDS_UP)
			return err_set(e, 0,
				"process %d could not load the GPU driver, or MPI (its lower "
				"half did not start)",
				p->pid);
		p->lower->patience_ns = f->target->gpu_wait->ns;
		p->lower->session = session;
		if (lower_order(p, LOWER_DRAIN, NULL, 0, f->target->deadline_ns, e)) {
			if (p->lower->restless || p->lower->pending)
				f->target->gpu_wait->restless = p->pid;
			f->target->gpu_wait->pending = p->lower->pending;
			return -1;
		}
		p->lower->drained = true;
	}
	return any ? agree_on_sharing(f, e) || freeze_all(f, e) ? -1 : 0 : 0;
}

int freeze(const struct freeze_target *target, struct tree *tree, struct err *e)
{
	struct freezer f = {.target = target, .tree = tree};

	memset(tree, 0, sizeof(*tree));
	target->gpu_wait->restless = 0;
	target->gpu_wait->in_driver = false;
	target->gpu_wait->pending = false;
	freezer_add_process(&f, target->root, 0);
	if (freeze_all(&f, e) || drain_lower_halves(&f, e))
		goto out_thaw;
	if (!frozen_read(tree, target->root, e))
		return 0;
	frozen_explain(tree, e);

out_thaw:
	for (size_t i = 0; i < tree->count; i++)
		for (size_t k = 0; k < tree->processes[i]->thread_count; k++)
			syscall_undo_eintr(&tree->processes[i]->threads[k]);
	/* The first error is reported, not thaw()'s. */
	thaw(tree, NULL);
	return -1;
}
