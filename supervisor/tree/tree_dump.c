/*
 * What makes processes a tree.
 */
#include "supervisor/tree/tree_dump.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/fd_kinds/pty.h"
#include "supervisor/fd_kinds/pty_state.h"
#include "supervisor/tree/creation_order.h"
#include "supervisor/tree/sharing_dump.h"

/* ---- groups and sessions ---- */

/* Whether a group or session, @id in the supervisor's namespace and @inner in the process's,
 * belongs to a process that is alive but not saved. */
static bool is_outside(const struct tree *tree, pid_t id, pid_t inner)
{
	struct proc_stat st;

	if (!inner)
		return true;
	return !tree_find(tree, id) && !procfs_stat(id, id, &st, NULL) &&
	       !strchr("ZX", st.state);
}

/* Whether it is one of the tree's own can be told when its descriptors are known. */
static int fill_terminal(const struct process *p, const struct proc_stat *st,
	struct image_job_process *out, struct err *e)
{
	uint64_t dev = st->field[STAT_TTY];
	/* As new_encode_dev() makes it. */
	int index = pty_index(
		makedev((dev & 0xfff00) >> 8, (dev & 0xff) | ((dev >> 12) & 0xfff00)));

	if (index < 0)
		return err_set(e, 0,
			"process %d (%s) is in a session with a terminal of its own, which is "
			"not a pseudo-terminal",
			p->pid, p->comm);
	out->terminal = index + 1;
	if (st->field[STAT_TTY_GROUP] == st->field[STAT_PGRP])
		out->flags |= IMAGE_JOB_PROCESS_FOREGROUND;
	return 0;
}

int dump_tree_check_terminals(const struct tree *tree, const struct fd_dump *fds, struct err *e)
{
	for (size_t i = 0; i < tree->living; i++) {
		const struct process *p = tree->processes[i];

		if (p->terminal && !fd_dump_has_terminal(fds, p->terminal - 1))
			return err_set(e, 0,
				"process %d (%s) is in a session with a terminal, /dev/pts/%u, "
				"that no descriptor of the program refers to",
				p->pid, p->comm, p->terminal - 1);
	}
	return 0;
}

static int fill_ids(const struct tree *tree, const struct process *p, const char *status,
	const struct proc_stat *st, struct image_job_process *out, struct err *e)
{
	pid_t pgid = st->field[STAT_PGRP], sid = st->field[STAT_SESSION];

	if (sid != getsid(0))
		out->sid = status_nth_number(status, "NSsid", tree->pid_level);
	if (pgid != getpgrp())
		out->pgid = status_nth_number(status, "NSpgid", tree->pid_level);
	if (sid != getsid(0) && is_outside(tree, sid, out->sid))
		return err_set(e, 0,
			"process %d (%s) is in session %d, whose leader is not being saved",
			p->pid, p->comm, sid);
	if (pgid != getpgrp() && is_outside(tree, pgid, out->pgid))
		return err_set(e, 0,
			"process %d (%s) is in process group %d, whose leader is not being "
			"saved",
			p->pid, p->comm, pgid);
	if (!out->sid && out->pgid && st->field[STAT_TTY] &&
		st->field[STAT_TTY_GROUP] == st->field[STAT_PGRP])
		out->flags |= IMAGE_JOB_PROCESS_FOREGROUND;
	return out->sid && st->field[STAT_TTY] ? fill_terminal(p, st, out, e) : 0;
}

/* ---- reports about children (waitid(2)) that parents have yet to wait for ---- */

/* The report that waiting for @events of @child (0: of any child) would return; pid 0 when there is
 * none. The report stays there (WNOWAIT). */
static int peek_report(struct remote *r, uint64_t scratch, pid_t child, int events,
	siginfo_t *info, struct err *e)
{
	int64_t result;

	memset(info, 0, sizeof(*info));
	if (tracee_write(r->process->mem_fd, scratch, info, sizeof(*info), e) ||
		REMOTE_CALL(r, &result, e, SYS_waitid, child ? P_PID : P_ALL, child, scratch,
			events | WNOHANG | WNOWAIT | __WALL, 0))
		return -1;
	/* ECHILD: it has none for which it could be told so. */
	if (result)
		return result == -ECHILD ? 0 : err_set(e, -result, "cannot query its children");
	return tracee_read(r->process->mem_fd, scratch, info, sizeof(*info), e);
}

static int peek_end(
	const struct process *p, const siginfo_t *info, uint16_t *status, struct err *e)
{
	if (info->si_pid != p->vpid)
		return err_set(
			e, 0, "cannot find out how process %d (%s) has ended", p->pid, p->comm);
	*status = info->si_code == CLD_EXITED ? (info->si_status & 0xff) << 8
					      : info->si_status & 0x7f;
	if (info->si_code == CLD_DUMPED)
		*status |= WCOREFLAG;
	return 0;
}

static void mark_unreported(const siginfo_t *info, struct image_job_process *out)
{
	if (info->si_pid && info->si_code == CLD_STOPPED)
		out->flags |= IMAGE_JOB_PROCESS_UNTOLD;
	else if (info->si_pid)
		out->flags |= IMAGE_JOB_PROCESS_CONTINUED;
}

/* Of the children of @parent. Of living ones there is mostly nothing to tell. */
static int peek_children(const struct tree *tree, struct process *parent, struct remote *r,
	uint64_t scratch, struct image_job_process *list, struct err *e)
{
	const int changes = WSTOPPED | WCONTINUED;
	siginfo_t info;
	bool any;

	if (peek_report(r, scratch, 0, changes, &info, e))
		return -1;
	any = info.si_pid;
	for (size_t i = 0; i < tree->count; i++) {
		const struct process *p = tree->processes[i];

		if (p->parent != parent->pid || !(p->zombie || any))
			continue;
		if (peek_report(r, scratch, p->vpid, p->zombie ? WEXITED : changes, &info, e))
			return -1;
		if (!p->zombie)
			mark_unreported(&info, &list[i]);
		else if (peek_end(p, &info, &list[i].status, e))
			return -1;
	}
	return 0;
}

static bool has_children(const struct tree *tree, const struct process *parent)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->processes[i]->parent == parent->pid)
			return true;
	return false;
}

static int fill_from_parent(const struct tree *tree, struct process *parent,
	struct image_job_process *list, struct err *e)
{
	struct remote r;
	uint64_t scratch;
	int failed;

	if (!has_children(tree, parent))
		return 0;
	if (remote_begin(&r, parent, &parent->threads[0], e))
		return -1;
	scratch = remote_scratch(&r, 4096, e);
	failed = !scratch || peek_children(tree, parent, &r, scratch, list, e);
	if (remote_end(&r, failed ? NULL : e) || failed)
		return err_prefix(e, "cannot save process %d (%s)", parent->pid, parent->comm);
	return 0;
}

/* ---- all of them ---- */

static int fill_entry(const struct tree *tree, struct process *p, struct image_job_process *out,
	struct err *e)
{
	bool known = !p->zombie && !p->leader_ended;
	cleanup_free char *own = known ? NULL : procfs_status(p->pid, p->pid, e);
	const char *status = known ? p->threads[0].status : own;
	const struct process *parent = tree_find(tree, p->parent);
	struct proc_stat st;

	if (!status || procfs_stat(p->pid, p->pid, &st, e))
		return -1;
	out->pid = p->vpid;
	if (p->parent && !parent)
		return err_set(e, 0, "process %d (%s) has a parent, %d, that was not found",
			p->pid, p->comm, p->parent);
	out->ppid = parent ? parent->vpid : 0;
	out->threads = p->thread_count + p->leader_ended;
	out->uid = status_number(status, "Uid", 10);
	if (p->zombie)
		out->flags |= IMAGE_JOB_PROCESS_ZOMBIE;
	else if (p->threads[0].tracee.group_stopped) {
		out->flags |= IMAGE_JOB_PROCESS_STOPPED;
		out->status = W_STOPCODE(p->threads[0].tracee.group_stopped);
	}
	return fill_ids(tree, p, status, &st, out, e);
}

int dump_tree(struct tree *tree, pid_t reaper, struct image_writer *job, struct err *e)
{
	cleanup_free struct image_job_process *list = xcalloc(tree->count, sizeof(*list));
	cleanup_free struct image_sharing *sharing = NULL;
	struct creation_order order = {0};
	int r = 0;

	if (dump_sharing(tree, e))
		return -1;
	sharing = dump_sharing_list(tree);
	for (size_t i = 0; i < tree->count && !r; i++) {
		struct process *p = tree->processes[i];

		r = fill_entry(tree, p, &list[i], e);
		p->vparent = list[i].ppid ? list[i].ppid : reaper == getpid() ? reaper : 1;
		p->terminal = list[i].terminal;
		list[i].comm = image_writer_string(job, p->comm);
	}
	for (size_t i = 0; i < tree->living && !r; i++)
		r = fill_from_parent(tree, tree->processes[i], list, e);
	if (!r)
		r = creation_order_plan(&order, list, sharing, tree->count, e);
	creation_order_free(&order);
	if (r)
		return -1;
	image_writer_note(job, IMAGE_NOTE_PROCESSES, list, tree->count * sizeof(*list));
	if (!sharing)
		return 0;
	image_writer_incompat(job, IMAGE_INCOMPAT_SHARED);
	image_writer_note(job, IMAGE_NOTE_SHARING, sharing, tree->count * sizeof(*sharing));
	return 0;
}
