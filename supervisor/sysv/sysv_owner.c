/*
 * sysv_owner.c - which processes are attached, wait, or existed when an object was made.
 */
#include "supervisor/sysv/sysv_owner.h"

#include <errno.h>
#include <string.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/target/x86_64.h"

/* Ours or another program's: it has copied what may be its own program's, no more. */
static bool is_supervisor(const struct proc_stat *st)
{
	return !strcmp(st->comm, "trecr-run") || !strcmp(st->comm, "trecr-restart");
}

bool sysv_is_alive(pid_t pid, time_t used)
{
	struct proc_stat st;

	if (!pid || procfs_stat(pid, pid, &st, NULL) || is_supervisor(&st))
		return false;
	return procfs_start_time(&st) <= used + 1;
}

/* When the first process of the tree started, by CLOCK_REALTIME; a second of slack, as the
 * kernel's times are whole ones. */
static time_t tree_start(const struct tree *tree)
{
	pid_t root = tree->processes[0]->pid;
	struct proc_stat st;

	if (procfs_stat(root, root, &st, NULL))
		return 0;
	return procfs_start_time(&st) - 2;
}

bool sysv_has_own_namespace(const struct tree *tree)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/ipc", tree->processes[0]->pid);
	cleanup_free char *its = read_link(path, NULL);
	cleanup_free char *ours = read_link("/proc/self/ns/ipc", NULL);

	return its && ours && strcmp(its, ours);
}

/* For longer than a supervisor takes to copy it. */
static bool is_attached(const struct sysv_status *s)
{
	struct proc_stat st;

	for (size_t i = 0; i < buf_count(&s->users, pid_t); i++) {
		pid_t pid = *buf_at(&s->users, pid_t, i);

		if (!procfs_stat(pid, pid, &st, NULL) && is_supervisor(&st))
			return false;
	}
	return s->attached;
}

static bool is_of_user(const struct tree *tree, const struct sysv_status *s)
{
	pid_t root = tree->processes[0]->pid;
	cleanup_free char *status = procfs_status(root, root, NULL);

	return status && s->perm.cuid == status_number(status, "Uid", 10);
}

/* A process that waits at an object has not used it yet, by what the kernel shows of it. */
static bool is_waited_for(const struct tree *tree, const struct sysv_kind *k, int id)
{
	if (!k->waits_at)
		return false;
	for (size_t i = 0; i < tree->living; i++) {
		const struct process *p = tree->processes[i];

		for (size_t t = 0; t < p->thread_count; t++) {
			const struct user_regs_struct *regs = &p->threads[t].regs;

			if (x86_64_in_syscall(regs) &&
				k->waits_at(x86_64_syscall_number(regs)) &&
				(int)x86_64_syscall_arg(regs, 0) == id)
				return true;
		}
	}
	return false;
}

enum sysv_owner sysv_owner_of(
	const struct tree *tree, const struct sysv_kind *k, const struct sysv_status *s)
{
	size_t count = buf_count(&s->users, pid_t);
	bool older = s->changed < tree_start(tree), ours = false, others = false;

	if (is_waited_for(tree, k, s->id))
		return SYSV_TREE;
	for (size_t i = 0; i < count; i++) {
		pid_t pid = *buf_at(&s->users, pid_t, i);

		if (sysv_is_alive(pid, s->used))
			*(tree_find(tree, pid) ? &ours : &others) = true;
	}
	/* What was there before the tree may be what it shares with others. */
	if (ours && !(older && others))
		return SYSV_TREE;
	if (older || others || is_attached(s) || !is_of_user(tree, s))
		return SYSV_OTHERS;
	return count ? SYSV_PERHAPS_TREE : SYSV_UNUSED;
}
