/*
 * Find the processes and threads of the tree. Each is attached to as soon as it is found, as it may
 * end or create others at any moment.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/target/ptrace_policy.h"
#include "supervisor/tree/freeze_private.h"

struct thread *freezer_find_thread(struct process *p, pid_t tid)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].tracee.tid == tid)
			return &p->threads[i];
	return NULL;
}

struct process *freezer_add_process(struct freezer *f, pid_t pid, pid_t parent)
{
	struct process *p = xcalloc(1, sizeof(*p));
	struct tree *tree = f->tree;

	p->pid = pid;
	p->parent = parent;
	p->mem_fd = -1;
	tree->processes = xrealloc(tree->processes, (tree->count + 1) * sizeof(p));
	tree->processes[tree->count++] = p;
	return p;
}

static struct thread *add_thread(struct freezer *f, struct process *p, pid_t tid)
{
	struct thread *t;

	if (p->thread_count == p->thread_room) {
		p->thread_room = p->thread_room ? 2 * p->thread_room : 8;
		p->threads = xrealloc(p->threads, p->thread_room * sizeof(*t));
	}
	t = &p->threads[p->thread_count++];
	memset(t, 0, sizeof(*t));
	t->tracee.pid = p->pid;
	t->tracee.tid = tid;
	t->tracee.is_child = f->target->root_is_child && tid == f->target->root;
	return t;
}

/* A task that is seized by its parent's seizing already says EPERM. The tracer is a thread. */
static bool traced_by_us(pid_t pid, pid_t tid)
{
	cleanup_free char *status = procfs_status(pid, tid, NULL);

	return status && status_number(status, "TracerPid", 10) == (uint64_t)gettid();
}

/* Whether one of the ids on the line of @key, real, effective and saved, is another than @ours. */
static bool has_other_id(const char *status, const char *key, uint64_t ours)
{
	for (size_t i = 1; i <= 3; i++)
		if (status_nth_number(status, key, i) != ours)
			return true;
	return false;
}

/* The kernel lets nobody attach who has not all of a process's capabilities. */
static bool has_more_capabilities(const char *status)
{
	cleanup_free char *own = procfs_status(getpid(), gettid(), NULL);

	return own && status_number(status, "CapPrm", 16) & ~status_number(own, "CapPrm", 16);
}

/* What the kernel asks of somebody without CAP_SYS_PTRACE who wants to attach (ptrace(2), "Ptrace access mode
 * checking"): @e, of the attempt, is given the reason. */
static int refuse_protected(const struct process *p, const char *status, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/status", p->pid);
	const char *why = NULL, *forbidden = ptrace_policy_forbids();
	struct proc_stat st;
	struct stat owner;

	if (e->code != EPERM || !status || procfs_stat(p->pid, p->pid, &st, NULL))
		return -1;
	if (forbidden)
		return err_set(e, EPERM, "cannot attach to process %d (%s): %s", p->pid,
			st.comm, forbidden);
	if (has_other_id(status, "Uid", geteuid()))
		why = "it runs as another user, as a setuid program does";
	else if (has_other_id(status, "Gid", getegid()))
		why = "it runs with another group, as a setgid program does";
	else if (has_more_capabilities(status))
		why = "it has capabilities that trecr lacks, as its program file gives them "
		      "(getcap(8))";
	else if (!stat(path, &owner) && owner.st_uid != geteuid())
		why = "it has made itself inaccessible (PR_SET_DUMPABLE, as programs that keep "
		      "keys do), or its "
		      "program file may not be read";
	if (!why)
		return err_set(e, EPERM,
			"cannot attach to process %d (%s): probably a security policy of this "
			"machine (AppArmor, SELinux) forbids ptrace(2), which its "
			"administrator "
			"can change, or a debugger outside of this container traces it",
			p->pid, st.comm);
	return err_set(e, EPERM,
		"cannot attach to process %d (%s): %s; only root (CAP_SYS_PTRACE) can save it",
		p->pid, st.comm, why);
}

static int refuse_debugger(struct process *p, pid_t tid, struct err *e)
{
	cleanup_free char *status = procfs_status(p->pid, tid, NULL);
	pid_t tracer = status ? (pid_t)status_number(status, "TracerPid", 10) : 0;
	struct proc_stat st;

	if (!tracer)
		return refuse_protected(p, status, e);
	if (procfs_stat(tracer, tracer, &st, NULL))
		snprintf(st.comm, sizeof(st.comm), "?");
	return err_set(e, 0,
		"process %d is being traced by process %d (%s), and a process has one tracer "
		"only: have it detach for the checkpoint; or run the program itself under "
		"trecr-run, and attach to it when need be (gdb -p, strace -p)",
		p->pid, tracer, st.comm);
}

bool freezer_task_alive(pid_t pid, pid_t tid)
{
	struct err e = ERR_INIT;
	struct proc_stat st;

	/* That it cannot be told (no descriptor is left) does not mean that it has ended. */
	if (procfs_stat(pid, tid, &st, &e))
		return e.code != ENOENT && e.code != ESRCH;
	return st.state != 'Z' && st.state != 'X';
}

/* A main thread that has ended cannot be attached to, and by the time that we look a thread
 * that executes a program has taken its id. */
#define SEIZE_ATTEMPTS 20

int freezer_attach(struct freezer *f, struct process *p, pid_t tid, struct err *e)
{
	struct thread *t = add_thread(f, p, tid);
	int attempt = 0;

	while (tracee_seize(&t->tracee, false, e)) {
		if (!freezer_task_alive(p->pid, tid)) {
			p->thread_count--;
			return 1;
		}
		t->tracee.state = TRACEE_RUNNING;
		if (traced_by_us(p->pid, tid))
			break;
		if (++attempt == SEIZE_ATTEMPTS)
			return refuse_debugger(p, tid, e);
		sched_yield();
	}
	/* It runs on until it is interrupted. */
	syscall_before_freeze(t);
	f->found_new = true;
	return 0;
}

static int seize_thread(struct freezer *f, struct process *p, pid_t tid, struct err *e)
{
	int r = freezer_attach(f, p, tid, e);
	struct thread *t;

	if (r)
		return r < 0 ? -1 : 0;
	t = &p->threads[p->thread_count - 1];
	if (tracee_interrupt(&t->tracee, e) && t->tracee.state != TRACEE_GONE)
		return -1;
	return 0;
}

/* It can be attached to, and never stops: it leaves the kernel for nothing but its end. */
static bool is_worker(pid_t pid, pid_t tid)
{
	struct proc_stat st;

	return tid != pid && !procfs_stat(pid, tid, &st, NULL) && procfs_is_worker(&st);
}

/* A process could not be read: no failure (0) if all of its threads have ended. The main thread may
 * end before the others. */
static int fail_unless_ended(const struct err *why, struct err *e)
{
	if (why->code == ENOENT || why->code == ESRCH)
		return 0;
	*e = *why;
	return -1;
}

int freezer_seize_threads(
	struct freezer *f, struct process *p, pid_t **tids, size_t *tid_count, struct err *e)
{
	struct err why = ERR_INIT;
	size_t count;
	pid_t *ids;

	*tids = NULL;
	*tid_count = 0;
	if (procfs_tasks(p->pid, &ids, &count, &why))
		return fail_unless_ended(&why, e);
	*tids = ids;
	*tid_count = count;
	/* A lower half has threads of its own. Memory of a process that forks cannot be read
	 * before it has: processes that do nothing else are not to hold us up. */
	if (count > 1 && lower_find(p, e))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (!freezer_find_thread(p, ids[i]) && !lower_owns(p, ids[i]) &&
			!lower_sleeps(p, ids[i]) && !is_worker(p->pid, ids[i]) &&
			seize_thread(f, p, ids[i], e))
			return -1;
	return 0;
}

void freezer_drop_process(struct tree *tree, size_t i)
{
	struct process *p = tree->processes[i];

	tree->count--;
	memmove(&tree->processes[i], &tree->processes[i + 1],
		(tree->count - i) * sizeof(*tree->processes));
	process_free(p);
}

/* Add a process, and attach to it at once, before it ends or creates others. */
static int add_and_attach(struct freezer *f, pid_t pid, pid_t parent, struct err *e)
{
	struct process *p = freezer_add_process(f, pid, parent);
	cleanup_free pid_t *tids = NULL;
	size_t count;

	/* Also if it has ended by now: it may have created another process before. */
	f->found_new = true;
	if (seize_thread(f, p, pid, e))
		return -1;
	/* Or its main thread is, and others run on. */
	return p->thread_count ? 0 : freezer_seize_threads(f, p, &tids, &count, e);
}

/* When one has ended, its id may be a process's of the tree. */
bool freezer_is_former_child(const struct freeze_target *target, pid_t pid)
{
	struct proc_stat st;

	for (size_t i = 0; i < target->former_child_count; i++)
		if (target->former_children[i].pid == pid)
			return !procfs_stat(pid, pid, &st, NULL) &&
			       st.field[STAT_START_TIME] ==
				       target->former_children[i].start_time;
	return false;
}

/* Whether it has ended and, if that is for us to do, been waited for: one call, as there may be
 * thousands. */
static bool reap_ended(const struct freezer *f, pid_t pid)
{
	return f->target->reaper == getpid() && waitpid(pid, NULL, __WALL | WNOHANG) == pid;
}

/* Children of processes that have ended. Only the reaper can wait for the zombies among them: if that is us,
 * we do so here, as a long list of children could not be read in time. The youngest children are at its
 * end, and only they may still live. */
static int look_for_orphans(struct freezer *f, bool *late, struct err *e)
{
	cleanup_free pid_t *pids = NULL;
	size_t count;

	*late = false;
	if (procfs_children(f->target->reaper, &pids, &count, e))
		return -1;
	for (size_t i = count; i-- > 0;) {
		if (tree_find(f->tree, pids[i]) || freezer_is_former_child(f->target, pids[i]))
			continue;
		if (reap_ended(f, pids[i])) {
			f->found_new = *late = true;
			continue;
		}
		if (add_and_attach(f, pids[i], 0, e))
			return -1;
		if (f->tree->processes[f->tree->count - 1]->thread_count)
			continue;
		freezer_drop_process(f->tree, f->tree->count - 1);
		*late = true;
		(void)reap_ended(f, pids[i]); /* or the loop does */
	}
	return 0;
}

/* A process that was dead when we came may have made another, which is an orphan now: at once after
 * it, as that will do the same. */
int freezer_add_orphans(struct freezer *f, struct err *e)
{
	bool late;

	do {
		if (look_for_orphans(f, &late, e))
			return -1;
	} while (late && clock_ns(CLOCK_MONOTONIC) < f->target->deadline_ns);
	return 0;
}

int freezer_add_children(struct freezer *f, struct process *p, const pid_t *tids,
	size_t tid_count, struct err *e)
{
	cleanup_free pid_t *pids = NULL;
	struct err why = ERR_INIT;
	size_t count;

	if (procfs_children_of(p->pid, tids, tid_count, &pids, &count, &why))
		return fail_unless_ended(&why, e);
	for (size_t i = 0; i < count; i++)
		if (!tree_find(f->tree, pids[i]) && add_and_attach(f, pids[i], p->pid, e))
			return -1;
	return 0;
}
