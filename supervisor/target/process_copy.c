/*
 * process_copy.c - the fork in the process, the copy's way to rest, which limits stand in its
 * way, and its end.
 */
#include "supervisor/target/process_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "supervisor/target/remote.h"

/* A new process that does not stop at once is stuck in the kernel. */
#define PATIENCE_NS 10000000000ull

/* Each costs a system call while the program is stopped. */
#define SHARED_MAX 1000

static struct process *new_process(const struct process *p, pid_t pid)
{
	struct process *c = xcalloc(1, sizeof(*c));

	c->pid = c->task = pid;
	c->vpid = p->vpid;
	c->mem_fd = -1;
	memcpy(c->comm, p->comm, sizeof(c->comm));
	c->cave = p->cave;
	c->cave_room = p->cave_room;
	c->threads = xcalloc(1, sizeof(*c->threads));
	c->thread_count = 1;
	c->threads[0].tracee.pid = c->threads[0].tracee.tid = pid;
	return c;
}

/* Its end may be another thread's to see. */
static void kill_and_wait(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		;
}

void copy_end(struct process *copy)
{
	if (!copy)
		return;
	kill_and_wait(copy->pid);
	process_free(copy);
}

/* Wait for the stop that a new tracee begins with. From here on it is killed when we end. */
static int await_stop(struct process *c, struct err *e)
{
	struct thread *t = &c->threads[0];
	struct tracee_report report;

	if (tracee_wait(&t->tracee, clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS, &report, e))
		return -1;
	if (report.event != TRACEE_EVENT_TRAP)
		return err_set(
			e, 0, "a copy of process %d (%s) does not stop", c->vpid, c->comm);
	return tracee_set_exitkill(&t->tracee, e) || tracee_get_regs(&t->tracee, &t->regs, e)
		       ? -1
		       : 0;
}

static struct process *clone_in(
	struct remote *r, uint64_t flags, int64_t *number, struct err *e)
{
	struct process *c;
	pid_t pid;

	if (remote_clone(r, flags, &pid, number, e))
		return NULL;
	c = new_process(r->process, pid);
	if (!await_stop(c, e))
		return c;
	copy_end(c);
	return NULL;
}

/* A child of the program's would be seen by it. So the child is a helper, which makes the copy
 * and ends: that the copy is an orphan then, whose parent is the reaper. The helper shares the
 * memory, raises no signal, and is waited for by the process itself. */
static struct process *clone_orphan(struct remote *r, struct err *e)
{
	int64_t number, result;
	struct process *helper = clone_in(r, CLONE_VM | CLONE_FILES, &number, e), *c;
	struct remote at_helper = *r;

	if (!helper)
		return NULL;
	at_helper.process = helper;
	at_helper.thread = &helper->threads[0];
	c = clone_in(&at_helper, CLONE_FILES, &result, e);
	copy_end(helper);
	if (!REMOTE_CALL(r, &result, e, SYS_wait4, number, 0, __WALL, 0) && result == number)
		return c;
	if (c)
		err_set(e, 0, "the helper that has copied process %d (%s) is lost",
			r->process->pid, r->process->comm);
	copy_end(c);
	return NULL;
}

static struct process *make_copy(struct process *p, bool ours, struct err *e)
{
	struct process *c = NULL;
	int64_t number;
	struct remote r;

	if (!remote_begin(&r, p, &p->threads[0], e))
		c = ours ? clone_in(&r, CLONE_PARENT | CLONE_FILES, &number, e)
			 : clone_orphan(&r, e);
	if (!remote_end(&r, c ? e : NULL))
		return c;
	/* It runs. */
	p->cave_lost = true;
	copy_end(c);
	return NULL;
}

static int call_in_copy(struct remote *r, const char *what, long nr, uint64_t a, uint64_t b,
	uint64_t c, struct err *e)
{
	int64_t result;

	if (REMOTE_CALL(r, &result, e, nr, a, b, c))
		return -1;
	return result < 0 ? err_set(e, -result, "a copy of process %d (%s) cannot %s",
				    r->process->vpid, r->process->comm, what)
			  : 0;
}

/* Mappings that are the same as the program's, and huge pages that it may need. */
static bool is_to_go(const struct vma *v)
{
	return (v->shared || v->flags & VMA_HUGETLB) && !(v->flags & VMA_DONTFORK);
}

static size_t count_to_go(const struct vma_list *vmas)
{
	size_t n = 0;

	for (size_t i = 0; i < vmas->count; i++)
		n += is_to_go(&vmas->v[i]);
	return n;
}

/* The table of descriptors has been shared so far, so that none needs to be closed. */
static int leave_program(struct remote *r, const struct vma_list *vmas, struct err *e)
{
	struct process *c = r->process;

	if (call_in_copy(r, "leave the descriptors", SYS_close_range, 0, UINT_MAX,
		    CLOSE_RANGE_UNSHARE, e) ||
		call_in_copy(r, "leave the session", SYS_setsid, 0, 0, 0, e) ||
		tracee_write(c->mem_fd, c->cave + CAVE_SPARE, "/", 2, e) ||
		call_in_copy(
			r, "leave the directory", SYS_chdir, c->cave + CAVE_SPARE, 0, 0, e))
		return -1;
	for (size_t i = 0; i < vmas->count; i++)
		if (is_to_go(&vmas->v[i]) &&
			call_in_copy(r, "unmap shared memory", SYS_munmap, vmas->v[i].start,
				vmas->v[i].end - vmas->v[i].start, 0, e))
			return -1;
	return 0;
}

/* When memory gets scarce it is the copy that is to go. Where that cannot be said, the kernel
 * chooses. */
static void be_killed_first(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/oom_score_adj", pid);
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "1000", 4);
}

static int prepare_copy(
	struct process *c, pid_t reaper, const struct vma_list *vmas, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/mem", c->pid);
	struct proc_stat st;
	struct remote r;

	be_killed_first(c->pid);
	if (procfs_stat(c->pid, c->pid, &st, e))
		return -1;
	if ((pid_t)st.field[STAT_PPID] != reaper)
		return err_set(e, 0,
			"a copy of process %d (%s) has become a child of process %d", c->vpid,
			c->comm, (int)st.field[STAT_PPID]);
	c->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (c->mem_fd < 0)
		return err_set(e, errno, "cannot open %s", path);
	return remote_begin(&r, c, &c->threads[0], e) || leave_program(&r, vmas, e) ? -1 : 0;
}

static const char *obstacle_to_copy(
	const struct process *p, bool ours, bool adopted, const struct vma_list *vmas)
{
	if (p->lower || p->has_window)
		return "it uses a GPU";
	/* What waits for a child of its vfork(2) runs. */
	if (p->threads[0].tracee.state != TRACEE_STOPPED)
		return "it waits in vfork(2)";
	for (size_t i = 0; i < p->thread_count; i++) {
		if (p->threads[i].uses_rings)
			return "it uses an io_uring";
		if (p->threads[i].seccomp)
			return "it has a seccomp filter, which might mind the calls that a "
			       "copy takes";
	}
	if (!ours && adopted)
		return "a process of the program takes orphans over (PR_SET_CHILD_SUBREAPER), "
		       "and would see the copy";
	return count_to_go(vmas) > SHARED_MAX ? "it has too many shared mappings" : NULL;
}

struct process *copy_make(struct process *p, pid_t reaper, bool adopted,
	const struct vma_list *vmas, struct err *e)
{
	const char *why;
	struct process *c;
	struct proc_stat st;
	bool ours;

	if (procfs_stat(p->task, p->task, &st, e))
		return NULL;
	ours = (pid_t)st.field[STAT_PPID] == reaper;
	why = obstacle_to_copy(p, ours, adopted, vmas);
	if (why) {
		err_set(e, 0, "%s", why);
		return NULL;
	}
	c = make_copy(p, ours, e);
	if (!c || !prepare_copy(c, reaper, vmas, e))
		return c;
	copy_end(c);
	return NULL;
}

bool copy_is_whole(const struct process *copy)
{
	struct proc_stat st;

	return !procfs_stat(copy->pid, copy->pid, &st, NULL) && st.state == 't';
}
