/*
 * semaphore_undo.c - the sum that is to be undone is found by semop(2) in the process, with
 * amounts that would take the sum out of its range, so that the call fails and changes
 * nothing; sums that processes share, or have in sets of others, are refused.
 */
#include "supervisor/sysv/semaphore_undo.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/fd/objects_dump.h"
#include "supervisor/sysv/sysv_query.h"

#define UNDO_TRIES 5

#define SEM_MAX 32767 /* SEMVMX and SEMAEM (include/uapi/linux/sem.h) */

/* Try operations that cannot all succeed, so that none takes place. Whether one left the range
 * that the kernel allows (ERANGE). -1 on failure. */
static int leaves_range(
	struct sysv_asker *a, int id, const struct sembuf *ops, size_t count, struct err *e)
{
	uint64_t at = a->scratch + SYSV_OPERATIONS;
	int64_t r;

	if (tracee_write(a->process->mem_fd, at, ops, count * sizeof(*ops), e) ||
		SYSV_ASK(a, &r, e, SYS_semop, id, at, count))
		return -1;
	return r == -ERANGE;
}

/* Whether (semadj + @amount) is above the range, where the value is @now. That it is 0 and can
 * be made less is never so: a set that others use, too, may have changed by now. */
static int is_above_range(
	struct sysv_asker *a, int id, unsigned short n, int now, int amount, struct err *e)
{
	struct sembuf ops[5] = {{n, -now, IPC_NOWAIT}, {n, amount, IPC_NOWAIT},
		{n, -amount, IPC_NOWAIT | SEM_UNDO}, {n, 0, IPC_NOWAIT}, {n, -1, IPC_NOWAIT}};

	return leaves_range(a, id, ops + !now, 5 - !now, e);
}

/* Whether (semadj - 1 - @amount) is below it. Here the value is @amount in the end, or more. */
static int is_below_range(
	struct sysv_asker *a, int id, unsigned short n, int now, int amount, struct err *e)
{
	struct sembuf ops[5] = {{n, -now, IPC_NOWAIT}, {n, 1, IPC_NOWAIT | SEM_UNDO},
		{n, -1, IPC_NOWAIT}, {n, amount, IPC_NOWAIT | SEM_UNDO}, {n, 0, IPC_NOWAIT}};

	return leaves_range(a, id, ops + !now, 5 - !now, e);
}

/* What the end of the process would add to semaphore @n (SEM_UNDO): the kernel does not say,
 * but it says when an operation would make the sum too large or too small. */
static int ask_undo(
	struct sysv_asker *a, int id, unsigned short n, int now, int *undo, struct err *e)
{
	int (*const tests[2])(struct sysv_asker *, int, unsigned short, int, int,
		struct err *) = {is_above_range, is_below_range};

	*undo = 0;
	for (int i = 0; i < 2; i++) {
		int low = 1, high = SEM_MAX, r = tests[i](a, id, n, now, SEM_MAX, e);

		if (r < 0)
			return -1;
		if (!r)
			continue;
		/* The least amount that leaves the range. */
		while (low < high) {
			int mid = (low + high) / 2;

			r = tests[i](a, id, n, now, mid, e);
			if (r < 0)
				return -1;
			if (r)
				high = mid;
			else
				low = mid + 1;
		}
		*undo = i ? low - SEM_MAX - 1 : SEM_MAX + 1 - low;
		return 0;
	}
	return 0;
}

/* *any when there is something to be undone. */
static int add_undo(struct sysv_asker *a, struct fd_object *o, bool *any, struct err *e)
{
	size_t count = o->o.args[1];

	for (size_t n = 0; n < count; n++) {
		struct image_sem_undo undo = {a->process->vpid, n, 0};
		int value = ((unsigned short *)o->bytes.data)[n], found;

		if (ask_undo(a, o->o.inode, n, value, &found, e))
			return -1;
		undo.undo = found;
		if (!found)
			continue;
		*any = true;
		buf_push(&o->bytes, struct image_sem_undo, &undo);
	}
	o->o.size = o->bytes.len;
	return 0;
}

static bool same_undo(pid_t a, pid_t b)
{
	return !syscall(SYS_kcmp, a, b, KCMP_SYSVSEM, 0L, 0L);
}

/* With CLONE_SYSVSEM what is to be undone is so at the end of the last of them. That they have
 * nothing to be undone in common tells kcmp(2) of all who have nothing at all. */
static int refuse_common_undo(const struct tree *tree, const struct process *p, struct err *e)
{
	for (size_t i = 0; i < tree->living; i++) {
		const struct process *other = tree->processes[i];

		if (other != p && same_undo(other->task, p->task))
			return err_set(e, 0,
				"processes %d and %d (%s) share the semaphore changes to undo "
				"at their end (CLONE_SYSVSEM), which is not supported",
				other->pid, p->pid, p->comm);
	}
	return 0;
}

/* This thread has none: who has the same has none. To have threads is to have a list of it, be it empty
 * (copy_semundo() in ipc/sem.c), which this thread leaves first; and so an answer of true can be wrong of a process that
 * has threads. */
static bool has_undo(pid_t tid)
{
	/* Where it fails, all seem to have one. */
	(void)unshare(CLONE_SYSVSEM);
	return !same_undo(gettid(), tid);
}

/* Threads have theirs in common, but for threads that were made otherwise or have left it
 * (unshare(2)). */
static int refuse_own_undo(const struct process *p, struct err *e)
{
	pid_t first = p->threads[0].tracee.tid;

	for (size_t i = 1; i < p->thread_count; i++) {
		pid_t tid = p->threads[i].tracee.tid;

		if (!same_undo(first, tid) && has_undo(tid))
			return err_set(e, 0,
				"thread %d of process %d (%s) may have semaphore changes of "
				"its own to undo at its end (CLONE_SYSVSEM), which is not "
				"supported",
				tid, p->pid, p->comm);
	}
	return 0;
}

static bool has_sets(const struct fd_dump *d)
{
	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++)
		if (buf_at(&d->objects, struct fd_object, n - 1)->o.kind == IMAGE_OBJECT_SEM)
			return true;
	return false;
}

static int add_undos(struct fd_dump *d, struct sysv_asker *a, bool *any, struct err *e)
{
	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++)
		if (fd_object_at(d, n)->o.kind == IMAGE_OBJECT_SEM &&
			add_undo(a, fd_object_at(d, n), any, e))
			return -1;
	return 0;
}

/* Others may change its value while it is asked for, which looks like something to be undone:
 * it is there if it is seen as often as that. */
static int has_undo_at(struct sysv_asker *a, int id, unsigned short n, struct err *e)
{
	int undo = 1;

	for (int i = 0; i < UNDO_TRIES && undo; i++) {
		int64_t value;

		if (SYSV_ASK(a, &value, e, SYS_semctl, id, n, GETVAL, 0))
			return -1;
		if (value < 0) /* it may not even look, so it may not operate */
			return 0;
		if (ask_undo(a, id, n, value, &undo, e))
			return -1;
	}
	return undo != 0;
}

static int has_undo_in(struct sysv_asker *a, int id, unsigned count, struct err *e)
{
	int r = 0;

	for (unsigned n = 0; n < count && !r; n++)
		r = has_undo_at(a, id, n, e);
	return r;
}

int sysv_undo_in_tree(const struct tree *tree, int id, unsigned count, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < tree->living && !r; i++) {
		struct sysv_asker a = {0};

		if (!has_undo(tree->processes[i]->task))
			continue;
		if (sysv_asker_begin(&a, tree->processes[i], e))
			return -1;
		r = has_undo_in(&a, id, count, e);
		if (sysv_asker_end(&a, r < 0, e))
			return -1;
	}
	return r;
}

static int refuse_undo_of_others(struct sysv_asker *a, const struct buf *others, struct err *e)
{
	for (size_t i = 0; i < buf_count(others, struct sysv_other_set); i++) {
		const struct sysv_other_set *set = buf_at(others, struct sysv_other_set, i);

		int r = has_undo_in(a, set->id, set->count, e);

		if (r)
			return r < 0 ? -1
				     : err_set(e, 0,
					       "process %d (%s) has changes to undo at its end "
					       "(SEM_UNDO) in System V semaphores %d, which "
					       "others use too",
					       a->process->pid, a->process->comm, set->id);
	}
	return 0;
}

/* Each process has its own. */
int sysv_dump_undo(
	struct fd_dump *d, struct process *p, const struct buf *others, struct err *e)
{
	struct sysv_asker a = {0};
	bool any = false;
	int failed;

	if (!has_sets(d) && !others->len)
		return 0;
	if (refuse_own_undo(p, e))
		return -1;
	if (!has_undo(p->task))
		return 0;
	if (sysv_asker_begin(&a, p, e))
		return -1;
	failed = add_undos(d, &a, &any, e) || refuse_undo_of_others(&a, others, e);
	if (sysv_asker_end(&a, failed, e))
		return -1;
	return any ? refuse_common_undo(d->tree, p, e) : 0;
}
