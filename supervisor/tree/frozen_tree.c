/*
 * frozen_tree.c - from the list of tracees to processes with parents, without processes that have
 * ended meanwhile.
 */
#include "supervisor/tree/frozen_tree.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/target/clocks.h"
#include "supervisor/tree/freeze_private.h"

/* The parent of today: that by which it was found may have ended since. */
static bool find_parent(
	const struct tree *tree, pid_t root, struct process *p, const struct proc_stat *st)
{
	p->parent = tree_find(tree, st->field[STAT_PPID]) ? (pid_t)st->field[STAT_PPID] : 0;
	return p->parent || p->pid == root;
}

/* Whether @p belongs to the frozen tree: it has not ended meanwhile, or is a zombie that its parent
 * has not waited for yet. */
static bool is_there(const struct tree *tree, pid_t root, struct process *p)
{
	struct proc_stat st;
	bool of_tree;

	if (procfs_stat(p->pid, p->pid, &st, NULL))
		return false;
	of_tree = find_parent(tree, root, p, &st);
	p->zombie = !p->thread_count && st.state == 'Z' && of_tree;
	/* Its parent cannot wait for a tracee of ours before we have (wait_consider_task() in
	 * kernel/exit.c). For a process that is no tracee this does nothing. The
	 * first process may be our own child, whose end is the event loop's to see. */
	if (p->zombie && p->pid != root)
		(void)waitpid(p->pid, NULL, __WALL | WNOHANG);
	return p->thread_count || p->zombie;
}

/* Whether it descends from the first process, and not from an orphan. */
static bool descends_from_root(const struct tree *tree, pid_t root, const struct process *p)
{
	while (p && p->parent)
		p = tree_find(tree, p->parent);
	return p && p->pid == root;
}

/* Orphans come last in the list: what they share with other processes comes from these. */
static void move_orphans(struct tree *tree, pid_t root)
{
	cleanup_buf struct buf orphans = {0};
	cleanup_free bool *stays = xcalloc(tree->count, sizeof(*stays));
	size_t kept = 0;

	for (size_t i = 0; i < tree->living; i++)
		stays[i] = descends_from_root(tree, root, tree->processes[i]);
	for (size_t i = 0; i < tree->living; i++)
		if (stays[i])
			tree->processes[kept++] = tree->processes[i];
		else
			buf_push(&orphans, struct process *, &tree->processes[i]);
	if (orphans.len)
		memcpy(&tree->processes[kept], orphans.data, orphans.len);
}

static void drop_ended(struct tree *tree, pid_t root)
{
	cleanup_free bool *there = xcalloc(tree->count, sizeof(*there));
	cleanup_buf struct buf zombies = {0};
	size_t kept = 0;

	for (size_t i = 0; i < tree->count; i++)
		there[i] = is_there(tree, root, tree->processes[i]);
	for (size_t i = 0; i < tree->count; i++) {
		struct process *p = tree->processes[i];

		if (!there[i]) {
			process_free(p);
		} else if (p->zombie) {
			buf_push(&zombies, struct process *, &p);
		} else {
			tree->processes[kept++] = p;
		}
	}
	tree->living = kept;
	tree->count = kept + buf_count(&zombies, struct process *);
	if (zombies.len)
		memcpy(&tree->processes[kept], zombies.data, zombies.len);
	move_orphans(tree, root);
}

/* SIGKILL ends also what is stopped. */
static int read_thread(struct process *p, struct thread *t, struct err *e)
{
	t->status = procfs_status(p->pid, t->tracee.tid, e);
	if (t->status && !tracee_get_regs(&t->tracee, &t->regs, e) &&
		!tracee_get_rseq(&t->tracee, &t->rseq, e)) {
		t->vtid = status_last_number(t->status, "NSpid");
		return 0;
	}
	if (e->code != ENOENT && e->code != ESRCH)
		return -1;
	return err_with(e, ERR_TRY_AGAIN,
		"thread %d of process %d has ended while it was being saved", t->tracee.tid,
		p->pid);
}

/* A zombie may have been the first process of a pid namespace of its own, whose number is not its parent's for
 * it. Living ones there are refused (process_dump.c). */
static int read_id(struct tree *tree, struct process *p, struct err *e)
{
	bool known = p->thread_count && p->threads[0].tracee.tid == p->pid;
	cleanup_free char *own = known ? NULL : procfs_status(p->pid, p->pid, e);
	const char *status = known ? p->threads[0].status : own;

	if (!status)
		return -1;
	if (p == tree->processes[0])
		tree->pid_level = status_count_numbers(status, "NSpid");
	p->vpid = p->zombie ? status_nth_number(status, "NSpid", tree->pid_level)
			    : status_last_number(status, "NSpid");
	return 0;
}

static int read_process(struct tree *tree, struct process *p, struct err *e)
{
	struct proc_stat st;

	if (procfs_stat(p->pid, p->pid, &st, e))
		return -1;
	memcpy(p->comm, st.comm, sizeof(p->comm));
	p->exit_signal = st.field[STAT_EXIT_SIGNAL];
	if (p->zombie)
		return read_id(tree, p, e);
	for (size_t i = 0; i < p->thread_count; i++) {
		struct thread leader = p->threads[i];

		if (read_thread(p, &p->threads[i], e))
			return -1;
		if (leader.tracee.tid != p->pid || !i)
			continue;
		leader = p->threads[i];
		memmove(&p->threads[1], &p->threads[0], i * sizeof(leader));
		p->threads[0] = leader;
	}
	p->task = p->threads[0].tracee.tid;
	p->leader_ended = p->task != p->pid;
	p->leader_exit_code = st.field[STAT_EXIT_CODE];
	return read_id(tree, p, e) || process_prepare(p, e) ? -1 : 0;
}

void frozen_explain(const struct tree *tree, struct err *e)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct process *p = tree->processes[i];

		/* A process that is about to end was alive when it was sent SIGKILL. */
		if (!p->thread_count || (freezer_task_alive(p->pid, p->threads[0].tracee.tid) &&
						!procfs_is_pending(p->pid, SIGKILL)))
			continue;
		/* Without it the program may resume, and another attempt find all in order. */
		err_with(e, i ? ERR_TRY_AGAIN : ERR_FINAL,
			"process %d was killed while it was being saved", p->pid);
		return;
	}
}

/* Whether @p, of which something could not be read, is no more: killed, or, where its parent
 * wants to hear of no ends, away without a trace. */
static bool has_vanished(const struct process *p)
{
	struct err e = ERR_INIT;
	struct proc_stat st;

	if (!procfs_stat(p->pid, p->pid, &st, &e))
		return st.state == 'X';
	return e.code == ENOENT || e.code == ESRCH;
}

int frozen_read(struct tree *tree, pid_t root, struct err *e)
{
	drop_ended(tree, root);
	if (!tree->living || tree->processes[0]->pid != root)
		return err_set(e, 0, "process %d has ended", root);
	for (size_t i = 0; i < tree->count; i++)
		if (read_process(tree, tree->processes[i], e))
			return i && has_vanished(tree->processes[i])
				       ? err_with(e, ERR_TRY_AGAIN,
						 "process %d has ended while it was being "
						 "saved",
						 tree->processes[i]->pid)
				       : -1;
	return clocks_compare(tree->processes[0]->task, &tree->clocks, e);
}
