/*
 * signal_owner.c - reads the owner of a descriptor by fcntl(2), and sets it again.
 */
#include "supervisor/fd/signal_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "supervisor/target/process.h"

/* ---- saving ---- */

/* A process of the tree in group @pgid; NULL: there is none. */
static const struct process *find_member(const struct tree *tree, pid_t pgid)
{
	struct proc_stat st;

	for (size_t i = 0; i < tree->count; i++) {
		pid_t pid = tree->processes[i]->pid;

		if (!procfs_stat(pid, pid, &st, NULL) && (pid_t)st.field[STAT_PGRP] == pgid)
			return tree->processes[i];
	}
	return NULL;
}

static bool has_thread(const struct tree *tree, pid_t tid)
{
	if (!tree)
		return false;
	for (size_t i = 0; i < tree->living; i++) {
		const struct process *p = tree->processes[i];

		for (size_t k = 0; k < p->thread_count; k++)
			if (p->threads[k].tracee.tid == tid)
				return true;
	}
	return tree_find(tree, tid);
}

/* As the program sees it, negative; 0: it has no member in the tree. */
static pid_t inner_group(const struct tree *tree, pid_t pgid)
{
	const struct process *member = tree ? find_member(tree, pgid) : NULL;
	cleanup_free char *status =
		member ? procfs_status(member->pid, member->pid, NULL) : NULL;

	return status ? -status_last_number(status, "NSpgid") : 0;
}

static int refuse_outside(const char *what, pid_t id, struct err *e)
{
	return err_set(e, 0,
		"its signals (F_SETOWN) are for %s %d, which is not being saved; the program "
		"can make itself the owner, or none (0)",
		what, id);
}

static int dump_owner(struct fd_dump *d, const struct f_owner_ex *owner,
	struct image_description *x, struct err *e)
{
	switch (owner->type) {
	case F_OWNER_TID:
		if (!has_thread(d->tree, owner->pid))
			return refuse_outside("thread", owner->pid, e);
		x->owner_kind = IMAGE_OWNER_THREAD;
		break;
	case F_OWNER_PGRP:
		if (owner->pid == getpgrp()) {
			x->owner_kind = IMAGE_OWNER_OUR_GROUP;
			x->owner = -owner->pid;
			break;
		}
		x->owner = inner_group(d->tree, owner->pid);
		return x->owner ? 0 : refuse_outside("process group", owner->pid, e);
	default:
		if (d->tree && !tree_find(d->tree, owner->pid))
			return refuse_outside("process", owner->pid, e);
	}
	if (owner->type != F_OWNER_PGRP)
		x->owner = fd_inner_pid(owner->pid);
	if (x->owner_kind)
		image_writer_incompat(d->job, IMAGE_INCOMPAT_OWNERS);
	return 0;
}

int fd_owner_dump(struct fd_dump *d, const struct fd_kind *kind, const struct fd_source *s,
	struct image_description *x, struct err *e)
{
	struct f_owner_ex owner;
	int signal = fcntl(s->dup, F_GETSIG);

	if (signal < 0 || fcntl(s->dup, F_GETOWN_EX, &owner))
		return err_set(e, errno, "cannot query its owner");
	x->owner_signal = signal;
	if (!owner.pid)
		return 0;
	/* What else would a directory tell an owner? */
	if (S_ISDIR(s->st.st_mode))
		return err_set(e, 0, "change notification (F_NOTIFY) is not supported");
	if (!(kind->traits & FD_FROM_LAUNCHER))
		return dump_owner(d, &owner, x, e);
	if (owner.type != F_OWNER_TID)
		x->owner = fd_inner_pid(owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid);
	return 0;
}

/* ---- restoring ---- */

/* Whether the process or (negative) group @owner is one of the job. */
static bool in_job(const struct fd_restore *r, pid_t owner)
{
	const struct image_job_process *list;
	size_t count;

	list = image_note_array(r->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	for (size_t i = 0; i < count; i++)
		if (list[i].pid == owner || (owner < 0 && list[i].pgid == -owner))
			return true;
	return false;
}

bool fd_owner_is_ours(const struct fd_restore *r, uint32_t description)
{
	return !(r->kinds[description]->traits & FD_FROM_LAUNCHER) ||
	       in_job(r, r->descriptions[description].owner);
}

int fd_owner_set(struct fd_restore *r, uint32_t description, struct err *e)
{
	const struct image_description *x = &r->descriptions[description];
	int fd = r->open[description];
	struct f_owner_ex owner = {
		.type = x->owner < 0 ? F_OWNER_PGRP : F_OWNER_PID,
		.pid = x->owner < 0 ? -x->owner : x->owner,
	};

	if (x->flags & O_PATH || !fd_owner_is_ours(r, description))
		return 0;
	/* Of one process alone, the id may be another one here. */
	if (x->owner == r->pid && !r->for_another)
		owner.pid = getpid();
	if (x->owner_signal && fcntl(fd, F_SETSIG, (int)x->owner_signal))
		return err_set(e, errno, "cannot set the signal of a descriptor");
	if (x->owner && !x->owner_kind && fcntl(fd, F_SETOWN_EX, &owner))
		return err_set(e, errno, "cannot set the owner of a descriptor to process %d",
			x->owner);
	return 0;
}
