/*
 * A thread in vfork(2), or in clone(2) with CLONE_VFORK, cannot be stopped before its child has let
 * go of its memory (or of the copy of its own that it has): it executes a program, or ends. So the
 * child, which may have been stopped before its maker, runs until then.
 */
#include <linux/kcmp.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/syscall/blocking.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/target/x86_64.h"
#include "supervisor/tree/freeze_private.h"

struct runner {
	pid_t pid, tid;
};

struct vfork_wait {
	struct freezer *f;
	struct runner waits;
	/* struct runner: threads that may be the child, or that it waits for in its turn. */
	struct buf runners;
};

/* The flags of the call that makes a child, in which the thread is; 0: it is in none. */
static uint64_t clone_flags(pid_t pid, pid_t tid)
{
	struct user_regs_struct regs;
	struct iovec local, remote;
	uint64_t flags = 0;

	if (!blocked_in_call(pid, tid, &regs))
		return 0;
	switch (x86_64_syscall_number(&regs)) {
	case SYS_vfork:
		return CLONE_VFORK | CLONE_VM;
	case SYS_clone:
		return x86_64_syscall_arg(&regs, 0);
	case SYS_clone3:
		local = (struct iovec){&flags, sizeof(flags)};
		remote = (struct iovec){(void *)x86_64_syscall_arg(&regs, 0), sizeof(flags)};
		/* The thread waits, so CLONE_VFORK was set, whatever has been written there since. */
		return process_vm_readv(tid, &local, 1, &remote, 1, 0) == sizeof(flags)
			       ? flags | CLONE_VFORK
			       : CLONE_VFORK | CLONE_VM;
	default:
		return 0;
	}
}

/* The flags of the call in which it waits for its child; 0: it does not wait for one. */
static uint64_t waiting_flags(const struct runner *r)
{
	struct proc_stat st;
	uint64_t flags;

	if (procfs_stat(r->pid, r->tid, &st, NULL) || st.state != 'D')
		return 0;
	flags = clone_flags(r->pid, r->tid);
	return flags & CLONE_VFORK ? flags : 0;
}

static struct thread *find_runner(const struct vfork_wait *w, const struct runner *r)
{
	struct process *p = tree_find(w->f->tree, r->pid);

	return p ? freezer_find_thread(p, r->tid) : NULL;
}

static bool is_runner(const struct vfork_wait *w, pid_t tid)
{
	for (size_t i = 0; i < buf_count(&w->runners, struct runner); i++)
		if (buf_at(&w->runners, struct runner, i)->tid == tid)
			return true;
	return false;
}

static void add_threads_of(struct vfork_wait *w, const struct process *p)
{
	for (size_t i = 0; p && i < p->thread_count; i++) {
		struct runner r = {p->pid, p->threads[i].tracee.tid};

		if (r.tid != w->waits.tid && !is_runner(w, r.tid))
			buf_push(&w->runners, struct runner, &r);
	}
}

/* All threads of process @pid that we know, and the first one in any case. */
static int add_process(struct vfork_wait *w, pid_t pid, pid_t parent, struct err *e)
{
	struct process *p = tree_find(w->f->tree, pid);

	if (!p)
		p = freezer_add_process(w->f, pid, parent);
	if (!freezer_find_thread(p, pid) && freezer_attach(w->f, p, pid, e) < 0)
		return -1;
	add_threads_of(w, p);
	return 0;
}

/* Of the children @pids of @parent: the ones that share the memory of @r, who waits, or else the youngest. */
static int add_children(struct vfork_wait *w, const struct runner *r, uint64_t flags,
	const pid_t *pids, size_t count, pid_t parent, struct err *e)
{
	parent = tree_find(w->f->tree, parent) ? parent : 0;
	for (size_t i = count; i-- > 0;) {
		if (pids[i] == r->pid || freezer_is_former_child(w->f->target, pids[i]) ||
			!freezer_task_alive(pids[i], pids[i]))
			continue;
		if (!(flags & CLONE_VM))
			return add_process(w, pids[i], parent, e);
		if (!syscall(SYS_kcmp, r->tid, pids[i], KCMP_VM, 0L, 0L) &&
			add_process(w, pids[i], parent, e))
			return -1;
	}
	return 0;
}

static int add_child_of(
	struct vfork_wait *w, const struct runner *r, uint64_t flags, struct err *e)
{
	cleanup_free pid_t *pids = NULL;
	pid_t parent = r->pid;
	struct proc_stat st;
	size_t count;

	if (flags & CLONE_THREAD) {
		add_threads_of(w, tree_find(w->f->tree, r->pid));
		return 0;
	}
	if (flags & CLONE_PARENT) {
		if (procfs_stat(r->pid, r->tid, &st, NULL))
			return 0;
		parent = st.field[STAT_PPID];
	}
	/* What memory several processes have shows whose child it is, whichever thread made it. */
	if (flags & (CLONE_PARENT | CLONE_VM)
			? procfs_children(parent, &pids, &count, NULL)
			: procfs_thread_children(r->pid, r->tid, &pids, &count, NULL))
		return 0;
	return add_children(w, r, flags, pids, count, parent, e);
}

static int find_runners(struct vfork_wait *w, struct err *e)
{
	uint64_t flags = waiting_flags(&w->waits);

	if (flags && add_child_of(w, &w->waits, flags, e))
		return -1;
	for (size_t i = 0; i < buf_count(&w->runners, struct runner); i++) {
		struct runner r = *buf_at(&w->runners, struct runner, i);

		flags = waiting_flags(&r);
		if (flags && add_child_of(w, &r, flags, e))
			return -1;
	}
	return 0;
}

/* Made by a runner, which may wait for it in its turn. A thread of the process that waits is left to
 * the next pass: the caller of freezer_end_vfork() has a pointer into that process's list of threads,
 * which moves when it grows. */
static int add_new(struct vfork_wait *w, const struct runner *maker, pid_t tid, struct err *e)
{
	cleanup_free char *status = procfs_status(tid, tid, NULL);
	pid_t pid = status ? (pid_t)status_number(status, "Tgid", 10) : w->waits.pid;
	struct process *p = tree_find(w->f->tree, pid);
	struct runner r = {pid, tid};

	if (pid == w->waits.pid)
		return 0;
	if (pid == tid)
		return add_process(w, pid, maker->pid, e);
	if (!p)
		return 0;
	if (!freezer_find_thread(p, tid) && freezer_attach(w->f, p, tid, e) < 0)
		return -1;
	if (!is_runner(w, tid))
		buf_push(&w->runners, struct runner, &r);
	return 0;
}

static int go_on(struct thread *t, int signal, struct err *e)
{
	syscall_note_restart(t);
	return tracee_continue(&t->tracee, signal, e) && t->tracee.state != TRACEE_GONE ? -1
											: 0;
}

/* A process that is stopped by job control stays so. */
static int begin_run(struct vfork_wait *w, struct err *e)
{
	for (size_t i = 0; i < buf_count(&w->runners, struct runner); i++) {
		struct thread *t = find_runner(w, buf_at(&w->runners, struct runner, i));

		if (!t || t->tracee.state != TRACEE_STOPPED || t->tracee.group_stopped)
			continue;
		syscall_undo_eintr(t);
		if (go_on(t, 0, e))
			return -1;
	}
	return 0;
}

static int handle_report(struct vfork_wait *w, const struct runner *r, struct err *e)
{
	struct thread *t = find_runner(w, r);
	struct tracee_report report;

	if (!t || t->tracee.state != TRACEE_RUNNING)
		return 0;
	if (tracee_wait(&t->tracee, 0, &report, e))
		return t->tracee.state == TRACEE_GONE ? 0 : -1;
	switch (report.event) {
	case TRACEE_EVENT_NONE:
	case TRACEE_EVENT_GONE:
		return 0;
	case TRACEE_EVENT_TRAP:
		if (t->tracee.group_stopped)
			return 0;
		syscall_undo_eintr(t);
		return go_on(t, 0, e);
	case TRACEE_EVENT_SIGNAL:
		return go_on(t, report.signal, e);
	case TRACEE_EVENT_NEW:
		if (go_on(t, 0, e))
			return -1;
		return add_new(w, r, report.new_tid, e);
	default:
		return go_on(t, 0, e);
	}
}

static int run_until_released(struct vfork_wait *w, struct err *e)
{
	uint64_t deadline = w->f->target->deadline_ns;

	while (waiting_flags(&w->waits)) {
		for (size_t i = 0; i < buf_count(&w->runners, struct runner); i++) {
			struct runner r = *buf_at(&w->runners, struct runner, i);

			if (handle_report(w, &r, e))
				return -1;
		}
		if (clock_ns(CLOCK_MONOTONIC) >= deadline)
			return err_set(e, 0,
				"thread %d of process %d waits for what it has made by vfork "
				"to execute a program or to end; try again later",
				w->waits.tid, w->waits.pid);
		tracee_pause(deadline);
	}
	return 0;
}

static int stop_again(struct vfork_wait *w, struct err *e)
{
	for (size_t i = 0; i < buf_count(&w->runners, struct runner); i++) {
		struct thread *t = find_runner(w, buf_at(&w->runners, struct runner, i));

		if (!t || t->tracee.state != TRACEE_RUNNING)
			continue;
		/* It may have begun to sleep since it was stopped for the first time. */
		syscall_before_freeze(t);
		if (tracee_interrupt(&t->tracee, e) && t->tracee.state != TRACEE_GONE)
			return -1;
	}
	w->f->found_new = true;
	return 0;
}

int freezer_end_vfork(struct freezer *f, const struct thread *t, struct err *e)
{
	struct vfork_wait w = {.f = f, .waits = {t->tracee.pid, t->tracee.tid}};
	int failed = find_runners(&w, e);

	if (!failed && w.runners.len)
		failed = begin_run(&w, e) || run_until_released(&w, e) || stop_again(&w, e);
	buf_free(&w.runners);
	return failed ? -1 : 0;
}
