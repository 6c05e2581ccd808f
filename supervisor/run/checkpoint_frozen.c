/*
 * checkpoint_frozen.c - freeze, snapshot, memory, and then thaw or end, with what is undone
 * when one of them fails.
 */
#include "supervisor/run/checkpoint_frozen.h"

#include <time.h>
#include <unistd.h>

#include "lib/phase.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/job/unsaved_between.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/run/checkpoint_commit.h"
#include "supervisor/run/checkpoint_memory.h"
#include "supervisor/run/checkpoint_snapshot.h"
#include "supervisor/run/checkpoint_try_restart.h"
#include "supervisor/run/checkpoint_drain.h"
#include "supervisor/run/checkpoint_quiesce.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/tree/freeze.h"
#include "supervisor/tree/frozen_tree.h"
#include "supervisor/tree/thaw.h"

#define FREEZE_LIMIT_NS 10000000000ull

static int freeze_tree(struct checkpoint_work *w)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t limit = now + FREEZE_LIMIT_NS + w->gpu_wait->ns;
	struct freeze_target target = {
		.root = w->s->root,
		.root_is_child = !w->s->init,
		.reaper = checkpoint_reaper(w),
		.former_children = w->s->former_children.data,
		.former_child_count = buf_count(&w->s->former_children, struct proc_identity),
		.gpu_wait = w->gpu_wait,
	};
	int failed;

	if (w->request->deadline_ns && w->request->deadline_ns < limit)
		limit = w->request->deadline_ns;
	w->frozen_ns = now;
	w->info.realtime_ns = clock_ns(CLOCK_REALTIME);
	target.deadline_ns = limit;
	w->freezer = gettid();
	phase_now = PHASE_FREEZE;
	failed = freeze(&target, &w->tree, w->e);
	w->under_way->frozen = !failed;
	w->freezer = -1;
	return failed;
}

/* See what system call each thread is in the middle of. */
static int classify_threads(struct checkpoint_work *w)
{
	for (size_t i = 0; i < w->tree.count; i++) {
		struct process *p = w->tree.processes[i];

		for (size_t k = 0; k < p->thread_count; k++)
			if (syscall_classify(p, &p->threads[k], &w->s->sleeps, w->e))
				return -1;
	}
	return 0;
}

/* What this member shares with others of the job. */
static int check_between(struct checkpoint_work *w)
{
	cleanup_buf struct buf pids = {0};

	if (!w->request->part)
		return 0;
	for (size_t i = 0; i < w->tree.count; i++)
		buf_push(&pids, pid_t, &w->tree.processes[i]->pid);
	return between_check(pids.data, w->tree.count, w->e);
}

/* With other members of a job: wait for them. */
static int part_has_reached(struct checkpoint_work *w, const char *stage)
{
	return w->request->part ? part_reached(w->request->part, stage, w->e) : 0;
}

/* Resume the program. Calls that have to be entered again come first, while nothing else
 * in the process runs. */
static int thaw_tree(struct checkpoint_work *w)
{
	struct err *e = w->e;
	int failed = 0;

	phase_now = PHASE_THAW;
	if (w->fds)
		fd_dump_resume(w->fds);
	w->s->sleeps.len = 0;
	thaw_stop_again(&w->tree);
	for (size_t i = 0; i < w->tree.count; i++) {
		struct process *p = w->tree.processes[i];

		for (size_t k = 0; k < p->thread_count; k++) {
			syscall_remember(&p->threads[k], &w->s->sleeps);
			failed |= syscall_thaw_in_place(
				p, &p->threads[k], &w->s->sleeps, failed ? NULL : e);
		}
	}
	failed |= thaw(&w->tree, failed ? NULL : e);
	if (w->frozen_ns)
		w->info.pause_ns = clock_ns(CLOCK_MONOTONIC) - w->frozen_ns;
	w->frozen_ns = 0;
	phase_now = PHASE_NONE;
	return failed ? -1 : 0;
}

/* As after a failure: w->e says why. */
static void thaw_after_failure(struct checkpoint_work *w)
{
	struct err *told = w->e;

	if (!w->tree.count)
		return;
	frozen_explain(&w->tree, told);
	w->e = NULL;
	thaw_tree(w);
	w->e = told;
}

/* Frozen, as a trial takes memory of the GPU that the program could miss. */
static int complete_frozen(struct checkpoint_work *w, int (*look)(struct checkpoint_work *))
{
	int failed;

	w->info.pause_ns = clock_ns(CLOCK_MONOTONIC) - w->frozen_ns;
	failed = checkpoint_complete(w);
	return failed ? failed : look(w);
}

/* A program that is to be ended stays frozen until all is on the disk. */
static int stop_program(struct checkpoint_work *w)
{
	int failed = complete_frozen(w, checkpoint_may_end);

	if (failed)
		return failed;
	checkpoint_prune(w);
	thaw_kill(&w->tree, &w->ending);
	fd_dump_let_go(w->fds);
	/* A launcher ends all others when the first supervisor has ended. */
	if (w->request->part)
		(void)part_reached(w->request->part, PART_KILLED, NULL);
	return 0;
}

static int resume_program(struct checkpoint_work *w)
{
	int failed;

	checkpoint_quiesce_end(w);
	checkpoint_keep_devices(w);
	failed = thaw_tree(w) || checkpoint_write_copies(w) ? -1 : 0;
	checkpoint_drop_devices(w);
	return failed;
}

int checkpoint_freeze_and_save(struct checkpoint_work *w)
{
	int failed = -1;

	if (checkpoint_quiesce(w) || freeze_tree(w) || checkpoint_quiesce_check(w) ||
		classify_threads(w) || check_between(w) || part_has_reached(w, PART_FROZEN) ||
		checkpoint_drain(w) || checkpoint_snapshot(w) ||
		part_has_reached(w, PART_WRITTEN) || checkpoint_given_up(w, w->e))
		goto out_thaw;
	if (w->request->stop ? w->request->no_try : !w->request->try_restart)
		checkpoint_tell_untried(w);
	if (w->request->try_restart && (failed = complete_frozen(w, checkpoint_try)))
		goto out_thaw;
	if (!w->request->stop)
		return resume_program(w);
	failed = stop_program(w);
	if (!failed) {
		checkpoint_quiesce_end(w);
		return 0;
	}

out_thaw:
	w->freezer = -1;
	checkpoint_drop_devices(w);
	checkpoint_quiesce_end(w);
	thaw_after_failure(w);
	return failed;
}
