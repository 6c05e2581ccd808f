/*
 * The last steps with one process: settings that are made from outside, registers, and the
 * loader's end.
 */
#include "supervisor/restore/registers_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/memory/aio_restore.h"
#include "supervisor/memory/uffd_anchor.h"
#include "supervisor/restore/file_owners_restore.h"
#include "supervisor/restore/posix_locks_restore.h"
#include "supervisor/restore/restore.h"
#include "supervisor/restore/task_files_restore.h"
#include "supervisor/state/cgroup.h"
#include "supervisor/state/clocks_restore.h"
#include "supervisor/state/limits_restore.h"
#include "supervisor/state/pending_faults.h"
#include "supervisor/state/scheduling.h"
#include "supervisor/syscall/deadline.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/target/remote.h"
#include "supervisor/uring/uring_process_restore.h"

static void note_loss(void *arg, const char *line)
{
	const struct new_process *np = arg;

	if (np->o->notice)
		np->o->notice(line);
}

/* ---- settings that are made from outside ---- */

bool new_process_changes_user(const struct new_process *np)
{
	const uint32_t *uid = np->ip->uid, *gid = np->ip->gid;

	for (int i = 0; i < 3; i++)
		if (uid[i] != getuid() || gid[i] != getgid())
			return true;
	return false;
}

/* Lowering the OOM score takes a privilege, and not every kernel writes core files: the program
 * is no worse off without. */
static void write_setting(
	struct new_process *np, const char *name, const char *format, int value)
{
	cleanup_free char *path = xasprintf("/proc/%d/%s", np->process.pid, name);
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	cleanup_free char *text = xasprintf(format, value);

	if (fd >= 0)
		(void)!write(fd, text, strlen(text));
}

/* Late, as one of them may be frozen. */
static void join_cgroups(struct new_process *np)
{
	size_t size;
	const char *text = image_note(np->img, IMAGE_NOTE_CGROUPS, 1, &size);

	if (text)
		cgroup_join(np->process.pid, text, size, note_loss, np);
}

/* ---- registers, and off ---- */

/* XSTATE_BV: what an XSAVE area holds that is not as at the start of a thread (Intel's Software
 * Developer's Manual, volume 1, 13.4.2). */
#define XSTATE_BV_AT 512
#define XTILE_DATA   18

static bool has_tiles(const struct new_process *np, const struct image_thread *t)
{
	size_t size;
	const uint8_t *note = image_note(np->img, IMAGE_NOTE_XSTATE, 1, &size);
	uint64_t present;

	if (t->xstate_size < XSTATE_BV_AT + sizeof(present))
		return false;
	memcpy(&present, note + t->xstate_offset + XSTATE_BV_AT, sizeof(present));
	return present >> XTILE_DATA & 1;
}

/* A thread has room for the contents of AMX's tiles only from its first use of them on, and
 * before that ptrace refuses to set them (validate_user_xstate_header(),
 * arch/x86/kernel/fpu/xstate.c): let it use one. */
static int make_room_for_tiles(struct new_process *np, struct thread *thread)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;
	struct tracee *t = &thread->tracee;
	struct tracee_report report;
	struct user_regs_struct regs;
	static const uint64_t none[6];

	if (tracee_get_regs(t, &regs, np->e))
		return -1;
	x86_64_set_syscall(&regs, LOADER_RANGE + LOADER_ENTRY_TILES, SYS_getpid, none);
	if (tracee_set_regs(t, &regs, np->e))
		return -1;
	/* Into the system call behind it, and out. */
	for (int i = 0; i < 2; i++)
		if (tracee_continue_to_syscall(t, 0, np->e) ||
			tracee_wait(t, deadline, &report, np->e))
			return -1;
		else if (report.event != TRACEE_EVENT_SYSCALL)
			return err_set(
				np->e, 0, "thread %d cannot use the tiles of AMX", t->tid);
	return 0;
}

static int set_xstate(
	struct new_process *np, struct thread *thread, const struct image_thread *t)
{
	cleanup_free uint8_t *now = xcalloc(1, XSTATE_ROOM);
	size_t size = XSTATE_ROOM, note_size;
	const uint8_t *note = image_note(np->img, IMAGE_NOTE_XSTATE, 1, &note_size);

	/* The kernel takes an area of its own size only: a larger one here ends in components
	 * that the image's processor did not have, a smaller one lacks components that were not in
	 * use (cpu_check() has compared). */
	if (tracee_get_xstate(&thread->tracee, now, &size, np->e))
		return -1;
	memset(now, 0, size);
	memcpy(now, note + t->xstate_offset, t->xstate_size < size ? t->xstate_size : size);
	return tracee_set_xstate(&thread->tracee, now, size, np->e);
}

static int set_registers(
	struct new_process *np, struct thread *thread, const struct image_thread *t)
{
	return set_xstate(np, thread, t) ||
			       tracee_set_regs(&thread->tracee, &thread->regs, np->e)
		       ? -1
		       : 0;
}

static void take_image_thread(struct thread *thread, const struct image_thread *t)
{
	thread->vtid = t->tid;
	memcpy(&thread->regs, t->regs, sizeof(thread->regs));
	thread->regs_changed = true;
	thread->syscall_class = t->syscall_class;
	thread->syscall_left_ns = t->syscall_left_ns;
}

static int set_thread(struct new_process *np, size_t i)
{
	struct thread *thread = &np->process.threads[i];
	const struct image_thread *t = &np->threads[i];
	bool ran;

	if (t->flags & IMAGE_THREAD_ENDED)
		return 0;
	if (!np->o->trial)
		scheduling_set(thread->tracee.tid, t, note_loss, np);
	if (has_tiles(np, t) && make_room_for_tiles(np, thread))
		return -1;
	take_image_thread(thread, t);
	if (np->o->trial)
		return set_registers(np, thread, t);
	if (thread->syscall_class == IMAGE_SYSCALL_RESTART_BLOCK &&
		syscall_build_restart_block(&np->process, thread,
			LOADER_RANGE + LOADER_ENTRY_SYSCALL, np->plan.scratch, np->e))
		return -1;
	if (thread->syscall_class == IMAGE_SYSCALL_AGAIN)
		x86_64_set_result(&thread->regs, -ERESTARTNOHAND);
	if (syscall_move_deadline(&np->process, thread, np->memory ? np->memory : np,
		    &np->clocks->deadline_shift, &np->clocks->moved, np->e))
		return -1;
	syscall_remember(thread, &np->s->sleeps);
	if (set_registers(np, thread, t) || restore_fault_again(np, i, &ran) ||
		(ran && set_registers(np, thread, t)))
		return -1;
	return i ? tracee_set_sigmask(&thread->tracee, t->sigmask, np->e) : 0;
}

/* dumpable is the memory's, and reset whenever a thread of a process that has it changes its user: else the last call
 * of the only thread's batch has set it (restore_plan_process()). */
static bool wants_dumpable(const struct new_process *np)
{
	return !np->plan.sets_dumpable || np->memory || !np->last;
}

/* A trap would be in the way of an action for SIGTRAP, and of what the kernel keeps of a fault whose signal waits. */
static bool may_trap(const struct new_process *np)
{
	return !np->plan.trap_action && !(np->threads[0].flags & IMAGE_THREAD_ENDED) &&
	       !image_note_count(np->img, IMAGE_NOTE_PENDING, sizeof(struct image_pending));
}

static int call_leader(struct new_process *np, int64_t *result, long nr, uint64_t a, uint64_t b)
{
	struct thread *leader = &np->process.threads[0];
	const uint64_t args[6] = {a, b};

	return remote_begin_trapped(&np->process, leader, nr, args, np->e) ||
			       remote_finish_trapped(&np->process, leader, result, np->e)
		       ? -1
		       : 0;
}

/* What finish_leader() does, with one stop for each call. It ends in the stop before the trap's signal is delivered:
 * from there, as from a trap stop, the kernel looks at the registers for a system call to restart (get_signal(),
 * arch_do_signal_or_restart()). */
static int finish_by_traps(struct new_process *np, int64_t *result)
{
	struct thread *leader = &np->process.threads[0];

	/* Its mask is still that of the batches. */
	if ((wants_dumpable(np) && call_leader(np, &result[1], SYS_prctl, PR_SET_DUMPABLE,
					   np->ip->dumpable == 1)) ||
		(np->last && call_leader(np, &result[2], SYS_munmap, LOADER_RANGE,
				     ANCHOR_AT - LOADER_RANGE)) ||
		tracee_set_sigmask(&leader->tracee, np->threads[0].sigmask, np->e) ||
		tracee_set_regs(&leader->tracee, &leader->regs, np->e))
		return -1;
	leader->tracee.state = TRACEE_STOPPED;
	return 0;
}

static int finish_by_bracket(struct new_process *np, int64_t *result)
{
	struct remote remote;
	int failed;

	if (remote_begin(&remote, &np->process, &np->process.threads[0], np->e))
		return -1;
	/* A leader that is still to end must not take signals that are meant for the others. */
	remote.home.sigmask =
		np->threads[0].flags & IMAGE_THREAD_ENDED ? ~0ull : np->threads[0].sigmask;
	failed = (np->plan.trap_action &&
			 REMOTE_CALL(&remote, &result[0], np->e, SYS_rt_sigaction, SIGTRAP,
				 np->plan.trap_action, 0, 8)) ||
		 (wants_dumpable(np) && REMOTE_CALL(&remote, &result[1], np->e, SYS_prctl,
						PR_SET_DUMPABLE, np->ip->dumpable == 1)) ||
		 (np->last && REMOTE_CALL(&remote, &result[2], np->e, SYS_munmap, LOADER_RANGE,
				      ANCHOR_AT - LOADER_RANGE));
	return failed || remote_end(&remote, np->e) ? -1 : 0;
}

/* SIGTRAP's action could not be set while traps ended the batches; and the window goes. */
static int finish_leader(struct new_process *np)
{
	int64_t result[3] = {0};

	if (may_trap(np) ? finish_by_traps(np, result) : finish_by_bracket(np, result))
		return -1;
	if (result[0] || result[1] || result[2])
		return err_set(np->e, 0,
			"cannot take the loader out of the new process (%ld, %ld, %ld)",
			(long)result[0], (long)result[1], (long)result[2]);
	return 0;
}

/* A signal of the thread's own, or, with @tid 0, of the process. Only the thread itself may queue
 * a signal that came from the kernel or from tgkill(2). */
static int queue_signal(struct new_process *np, struct thread *thread, int32_t tid,
	const struct image_pending *pending)
{
	struct remote remote;
	int signo;
	uint64_t scratch;
	int64_t result;
	int failed;

	memcpy(&signo, pending->siginfo, sizeof(signo));
	if (remote_begin(&remote, &np->process, thread, np->e))
		return -1;
	scratch = remote_scratch(&remote, 4096, np->e);
	failed = !scratch || tracee_write(np->process.mem_fd, scratch, pending->siginfo,
				     sizeof(pending->siginfo), np->e);
	if (!failed && tid)
		failed = REMOTE_CALL(&remote, &result, np->e, SYS_rt_tgsigqueueinfo,
			np->ip->pid, tid, signo, scratch);
	else if (!failed)
		failed = REMOTE_CALL(&remote, &result, np->e, SYS_rt_sigqueueinfo, np->ip->pid,
			signo, scratch);
	if (remote_end(&remote, failed ? NULL : np->e) || failed)
		return -1;
	return result ? err_set(np->e, -result, "cannot queue a signal for process %d",
				np->ip->pid)
		      : 0;
}

/* Signals that waited, and would have disturbed the batches. */
static int queue_held_signals(struct new_process *np)
{
	const struct image_pending *pending;
	size_t count;

	pending = image_note_array(np->img, IMAGE_NOTE_PENDING, struct image_pending, &count);
	for (size_t i = 0; i < count; i++) {
		int32_t tid = pending[i].tid;
		size_t k = 0;

		if (!restore_signal_is_held(&pending[i]))
			continue;
		while (tid && k + 1 < np->thread_count && np->threads[k].tid != tid)
			k++;
		if (queue_signal(np, &np->process.threads[k], tid, &pending[i]))
			return -1;
	}
	return 0;
}

#define EXIT_PATIENCE_NS 10000000000ull

/* While others run nobody is notified of the leader's end; /proc shows it. */
static int await_leader_end(struct new_process *np)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXIT_PATIENCE_NS;
	pid_t pid = np->process.pid;
	struct proc_stat st;

	do {
		if (procfs_stat(pid, pid, &st, np->e))
			return -1;
		if (st.state == 'Z')
			return 0;
		sched_yield();
	} while (clock_ns(CLOCK_MONOTONIC) < deadline);
	return err_set(np->e, 0, "the first thread does not end");
}

/* The first thread had ended before the others. It has nothing registered that its end would
 * touch: no tid address, no robust list. */
static int end_leader(struct new_process *np)
{
	struct thread *thread = &np->process.threads[0];
	const uint64_t args[6] = {np->threads[0].exit_code >> 8};
	struct user_regs_struct regs = thread->regs;
	struct remote remote;

	if (!(np->threads[0].flags & IMAGE_THREAD_ENDED))
		return 0;
	np->process.task = np->process.threads[1].tracee.tid;
	x86_64_set_syscall(&regs, np->process.cave, SYS_exit, args);
	if (remote_begin(&remote, &np->process, thread, np->e) ||
		tracee_clear_exitkill(&thread->tracee, np->e) ||
		tracee_set_regs(&thread->tracee, &regs, np->e) ||
		tracee_continue(&thread->tracee, 0, np->e) || await_leader_end(np) ||
		remote_wipe(&remote, np->e))
		return -1;
	thread->tracee.state = TRACEE_GONE;
	return 0;
}

int new_process_registers(struct new_process *np)
{
	/* The vdso has moved since the process was prepared. */
	close(np->process.mem_fd);
	np->process.mem_fd = -1;
	if (process_prepare(&np->process, np->e))
		return -1;
	/* The leader last: its calls need the window and the others' work done. */
	for (size_t i = np->thread_count; i-- > 0;)
		if (set_thread(np, i))
			return -1;
	if (finish_leader(np))
		return -1;
	if (np->o->trial)
		return end_leader(np);
	if (new_process_task_files(np) || new_process_file_owners(np) || new_process_aio(np) ||
		new_process_rings(np) || new_process_posix_locks(np) || queue_held_signals(np))
		return -1;
	if (!new_process_changes_user(np))
		restore_limits_set(np);
	write_setting(np, "oom_score_adj", "%d", (int)np->ip->oom_score_adj);
	write_setting(np, "coredump_filter", "%#x", np->ip->coredump_filter);
	join_cgroups(np);
	return end_leader(np);
}
