/*
 * The way of a restart. At the end of this file restore_start() makes attempts; attempt_restart() has
 * the first process made; restore_all() takes all through the stages (enum restore_stage). The
 * parts, in order:
 *
 *	restore_check.c		before all: what the image says; is all here that it needs?
 *	create_processes.c		the processes, up to the first instruction of the program's
 *				file: make_tree.c, sessions_and_groups.c: they make each other,
 *				as they were, by calls put into them; newborn_main.c,
 *				child_before_exec.c: then each sets up its descriptors, and
 *				executes its program's file
 *	loader_plan.c		it plans what the loader is to do in each: memory first
 *				(memory/memory_restore.c), and then, in the order of
 *				restore_plan_process() in state/process_restore.c, all else
 *	process_by_loader.c	the loader acts: the address space, filled and compared with
 *				the image's hashes; then all else, and the threads
 *	registers_restore.c	the supervisor acts, in the order of
 *				new_process_registers(): scheduling, registers, masks, files
 *				of each task, locks, limits; the loader is unmapped
 *
 * The tracees die with the supervisor until the very end: a half-restored program never runs.
 */
#include "supervisor/restore/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/notices.h"
#include "lib/phase.h"
#include "lib/procfs.h"
#include "lib/threads.h"
#include "supervisor/fd/shared_window.h"
#include "supervisor/fd/shm_file.h"
#include "supervisor/fd/temporary_directories.h"
#include "supervisor/fd_kinds/pty.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/memory/lazy.h"
#include "supervisor/memory/lazy_touch.h"
#include "supervisor/restore/restart_attempt.h"
#include "supervisor/restore/failed_restart.h"
#include "supervisor/restore/memfd_seals.h"
#include "supervisor/restore/process_by_loader.h"
#include "supervisor/restore/registers_restore.h"
#include "supervisor/restore/restore_stage.h"
#include "supervisor/restore/running_already.h"
#include "supervisor/split/lower_restore.h"
#include "supervisor/start/spawn.h"
#include "supervisor/start/terminal.h"
#include "supervisor/state/stopped_processes.h"
#include "supervisor/state/limits_restore.h"
#include "supervisor/state/new_process.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/sysv/sysv.h"
#include "supervisor/uring/uring_requests.h"

/* For conditions: 0. */
static int enter_phase(enum phase phase)
{
	phase_now = phase;
	return 0;
}

/* ---- off ---- */

static int thaw_calls(struct restore *r, struct new_process *np)
{
	for (size_t i = 0; i < np->thread_count; i++)
		if (syscall_thaw_in_place(
			    &np->process, &np->process.threads[i], &r->s->sleeps, r->e))
			return -1;
	return 0;
}

static int clear_exit_kill(struct new_process *np, struct err *e)
{
	for (size_t i = 0; i < np->thread_count; i++) {
		struct tracee *t = &np->process.threads[i].tracee;

		if (t->state != TRACEE_GONE && tracee_clear_exitkill(t, e))
			return -1;
	}
	return 0;
}

/* From here on the program is whole, and need not die with us. Connections are opened first, as
 * a call that is entered again may use one. Their other ends hear of them when nothing can fail any
 * more: a thread that could not be detached is detached by the end of the thread that traces it. */
static int let_processes_go(struct restore *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (clear_exit_kill(&r->processes[i], r->e))
			return -1;
	if (socket_kept_open(&r->kept, r->e))
		return -1;
	for (size_t i = 0; i < r->count; i++)
		if (thaw_calls(r, &r->processes[i]))
			return -1;
	if (socket_kept_resume(&r->kept, r->e))
		return -1;
	for (size_t i = 0; i < r->count; i++) {
		struct new_process *np = &r->processes[i];

		for (size_t k = 0; k < np->thread_count; k++)
			(void)tracee_detach(&np->process.threads[k].tracee, 0, NULL);
		restore_advance(np, RESTORE_LET_GO);
	}
	return 0;
}

/* Make the group that was in the foreground the foreground group again, where we may. */
static void pass_terminal_on(struct restore *r)
{
	cleanup_fd int tty = -1;

	for (size_t i = 0; i < r->count && tty < 0; i++) {
		if (r->creation.order.list[i].terminal ||
			!(r->creation.order.list[i].flags & IMAGE_JOB_PROCESS_FOREGROUND))
			continue;
		tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
		if (tty >= 0 && tcgetpgrp(tty) == getpgrp())
			(void)tcsetpgrp(tty, getpgid(r->processes[i].process.pid));
	}
}

static int failed_in(struct restore *r, const struct new_process *np)
{
	r->id_taken = np->id_taken;
	return r->count == 1 ? -1
			     : err_prefix(r->e, "process %d (%s), stage %s", np->process.vpid,
				       np->process.comm, restore_stage_name(np->stage));
}

/* Take all processes, one after the other, to @stage by @step. */
static int advance_all(
	struct restore *r, enum restore_stage stage, int (*step)(struct new_process *np))
{
	for (size_t i = 0; i < r->count; i++) {
		struct new_process *np = &r->processes[i];

		if (step(np))
			return failed_in(r, np);
		restore_advance(np, stage);
	}
	return 0;
}

/* Of rings, which may be about what any of the processes has; and about memory that ranks of a job share in windows,
 * which all have filled when the lower halves have begun to use MPI together. */
static int issue_requests(struct restore *r)
{
	for (size_t i = 0; i < r->count && !r->o->trial; i++)
		if (new_process_requests(&r->processes[i]))
			return failed_in(r, &r->processes[i]);
	return 0;
}

static int each_lower_half(struct restore *r, int (*step)(struct new_process *np))
{
	for (size_t i = 0; i < r->count; i++)
		if (step(&r->processes[i])) {
			r->no_room |= r->processes[i].no_room;
			return -1;
		}
	return 0;
}

static int run_lower_halves(struct restore *r)
{
	r->explained = true;
	if (restore_lower_map_gpus(r->processes, r->count) ||
		each_lower_half(r, restore_lower_run) || each_lower_half(r, restore_lower_rest))
		return -1;
	r->explained = false;
	return 0;
}

/* Stop processes again that job control had stopped, and give the terminal to the program. */
static int restore_stops_and_terminal(struct restore *r)
{
	if (restore_stops(r->processes, r->count, r->creation.order.list, r->e))
		return -1;
	if (r->o->about_to_run)
		r->o->about_to_run();
	pass_terminal_on(r);
	terminal_restore(r->s, r->c->job,
		r->creation.order.list[0].flags & IMAGE_JOB_PROCESS_STOPPED, r->o->notice);
	return 0;
}

static bool shares_with_earlier(const struct restore *r, size_t i)
{
	return checkpoint_owner(r->c, i, IMAGE_SHARED_MEMORY) != i ||
	       checkpoint_owner(r->c, i, IMAGE_SHARED_FILES) != i ||
	       checkpoint_owner(r->c, i, IMAGE_SHARED_DIRECTORY) != i;
}

/* Take processes @first to @end to @stage. While one works for itself, the others get their next step: waiting for
 * each at once takes a machine with much to do several turns of its scheduler for each process. */
static int take_together(struct restore *r, size_t first, size_t end, new_process_step *steps,
	enum restore_stage stage)
{
	for (; *steps; steps++)
		for (size_t i = first; i < end; i++)
			if ((*steps)(&r->processes[i]))
				return failed_in(r, &r->processes[i]);
	for (size_t i = first; i < end; i++)
		restore_advance(&r->processes[i], stage);
	return 0;
}

/* Not more at a time than there may be threads that read an image. */
static int advance_together(
	struct restore *r, enum restore_stage stage, new_process_step *steps)
{
	size_t most = r->o->threads ? r->o->threads : THREADS_MOST, end;

	for (size_t i = 0; i < r->count; i = end) {
		end = i + 1;
		while (end < r->count && end - i < most && !shares_with_earlier(r, i) &&
			!shares_with_earlier(r, end))
			end++;
		if (take_together(r, i, end, steps, stage))
			return -1;
	}
	return 0;
}

/* What some have mapped is sealed when all have. */
static int map_all(struct restore *r)
{
	cleanup_late_seals struct buf seals = {0};

	for (size_t i = 0; r->inherit && !r->o->trial && i < r->count; i++)
		inherit_result(r->inherit, i, &r->processes[i].plan.inherited);
	return late_seals_take(&seals, r->processes, r->count, r->e) ||
			       advance_together(r, RESTORE_MAPPED, new_process_map_steps) ||
			       late_seals_set(&seals, r->e)
		       ? -1
		       : 0;
}

/* What the kernel itself reads and writes at a thread's end, where it waits for no page
 * (exit_robust_list(), mm_release()): it is to be there. So is what it shows of arguments and
 * environment, which are on the stack. */
static int fetch_for_kernel(struct restore *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (lazy_touch(&r->processes[i]))
			return failed_in(r, &r->processes[i]);
	return 0;
}

/* From here on the process that fills memory continues even if the supervisor ends. */
static int let_memory_go(struct restore *r)
{
	return r->s->lazy && (fetch_for_kernel(r) || lazy_let_go(r->s->lazy, r->e)) ? -1 : 0;
}

/* The stages of a restart. RESTORE_MADE to RESTORE_EXECUTED the processes reach by themselves:
 * they are waited for. What processes share is touched by a step only when all have taken the
 * one before. */
static int restore_all(struct restore *r)
{
	if (restore_create_processes(r))
		return -1;
	if (enter_phase(PHASE_REBUILD) || map_all(r) ||
		advance_together(r, RESTORE_THREADS, new_process_thread_steps))
		return -1;
	if (enter_phase(PHASE_REGISTERS) ||
		advance_all(r, RESTORE_REGISTERS, new_process_registers) ||
		run_lower_halves(r) || issue_requests(r))
		return -1;
	if (r->o->trial)
		return 0;
	if (r->o->all_back && r->o->all_back(r->o->others, r->e)) {
		r->explained = true;
		return -1;
	}
	return let_memory_go(r) || restore_stops_and_terminal(r) || enter_phase(PHASE_LET_GO) ||
			       let_processes_go(r)
		       ? -1
		       : 0;
}

static void *restore_thread(void *arg)
{
	struct restore *r = arg;

	r->result = restore_all(r);
	if (r->result && !r->id_taken && !r->explained)
		r->killed = restore_killed(r->processes, r->count, r->s, r->e) ||
			    restore_helper_killed(r);
	/* The tracees would die with this thread, except where their exit-kill was cleared. */
	if (r->result)
		restore_kill_all(r);
	return NULL;
}

/* The end of the tracing thread lets go of what is still attached, or kills it. */
static int run_in_thread(struct restore *r)
{
	pthread_t thread;
	int error;

	if (thread_start(&thread, restore_thread, r))
		return err_set(r->e, errno, "cannot start a thread");
	error = pthread_join(thread, NULL);
	BUG_ON(error);
	return r->result;
}

static void take_over_job(struct restore *r)
{
	struct supervisor *s = r->s;

	s->command = xstrdup(image_string(r->c->job, r->c->info->command));
	memcpy(s->job_id, r->c->info->job_id, sizeof(s->job_id));
	s->last.path = xstrdup(r->c->path);
	s->last.sequence = r->c->info->sequence;
	s->last.realtime_ns = r->c->info->realtime_ns;
	s->last.pause_ns = r->c->info->pause_ns;
	s->last.stored_bytes = r->c->info->stored_bytes;
	s->last.memory_bytes = r->c->info->memory_bytes;
}

/* Ids that are taken here are free in a namespace. */
static char *namespace_reason(const struct restore *r)
{
	uint64_t terminal;
	pid_t id;

	if (r->clocks.needs_user_namespace)
		return xstrdup("its clocks continue from the checkpoint");
	if (r->o->force_namespace)
		return xstrdup("as asked for");
	id = creation_id_in_use(&r->creation);
	if (id)
		return xasprintf("process id %d is in use", id);
	terminal = fd_terminal_in_use(r->c);
	return terminal ? xasprintf("/dev/pts/%lu is in use", (unsigned long)terminal - 1)
			: NULL;
}

static int make_first(struct restore *r, const struct spawn_request *request, char **why)
{
	struct restore_limits limits;
	int result;

	restore_limits_widen(&limits, r->c);
	result = spawn_restored(
		r->s, r->processes[0].ip->pid, creation_main, &r->creation, request, why, r->e);
	restore_limits_put_back(&limits);
	return result;
}

/* Of a job's member, which has a reason to be in a namespace or not: agree with the others. In a namespace with them,
 * helpers have ids that no other program needs. An attempt because of an id that was taken is by itself. */
static int share_namespace(
	struct restore *r, struct spawn_request *request, bool again, struct err *e)
{
	struct namespace_wish wish;
	bool user, allowed;

	if (!r->o->share || again)
		return 0;
	user = request->user || !procfs_has_capability(CAP_SYS_ADMIN);
	allowed = shared_namespace_allowed(user);
	wish = (struct namespace_wish){
		.needed = request->reason || !spawn_may_choose_ids(),
		.apart = sysv_has_objects(r->c) || !allowed,
		.user = user,
		/* By System V memory, libraries of ranks that are elsewhere would be found. */
		.whole = request->ipc_apart,
		.ids = &r->creation.ids,
	};
	if (r->o->share(r->o->others, &wish, &request->shared, e))
		return -1;
	if (wish.needed && !allowed)
		restore_notice(r,
			"setns(2) is not permitted here (a container?), so the ranks of this "
			"node share no pid namespace: they do not know each other by their "
			"process ids, and MPI libraries talk by TCP");
	if (!request->shared)
		return 0;
	r->helper_id = request->shared->plan.first_free;
	if (!request->reason)
		request->reason =
			wish.needed
				? "choosing process ids requires CAP_CHECKPOINT_RESTORE here"
				: "another rank needs one";
	return 0;
}

static int begin_lazy(struct restore *r)
{
	if (!r->o->lazy)
		return 0;
	r->s->lazy = lazy_check(r->e) ? NULL : lazy_begin(r->c, r->e);
	return r->s->lazy ? 0 : -1;
}

/* With a @reason in namespaces of its own for all ids there are. *again: it has failed only
 * because an id was taken, which cannot happen there. */
static int attempt_restart(struct supervisor *s, const struct checkpoint *c,
	const struct restore_options *o, char *reason, bool *again, struct err *e)
{
	struct restore r = {.s = s, .c = c, .o = o, .e = e, .kept = SOCKET_KEPT_NONE};
	cleanup_free char *obstacle = NULL;
	struct spawn_request request = {0};
	cleanup_buf struct buf left_over = {0};
	bool again_apart = reason;
	char *why = NULL;
	int result = -1;

	if (enter_phase(PHASE_CHECK) || restore_look_at_image(&r) ||
		restore_clocks_choose(c, o, &r.clocks, e) || restore_check_before(&r, false) ||
		socket_kept_begin(&r.kept, c, e) || fd_shm_files_begin(c, e))
		goto out;
	r.creation.fd_options.kept = r.kept.theirs;
	request.terminals = reason ? fd_has_terminals(c) : fd_terminal_in_use(c);
	request.ipc = reason && sysv_has_objects(c);
	if (!reason)
		reason = namespace_reason(&r);
	obstacle = sysv_obstacle(c);
	request.ipc = request.ipc || obstacle;
	request.reason = reason ? reason : obstacle;
	sysv_list(c, request.ipc, &left_over);
	request.ipc_apart = restore_lower_has_mpi(c);
	request.clocks = r.clocks.continued ? &r.clocks.shifts : NULL;
	request.user = r.clocks.needs_user_namespace;
	if (share_namespace(&r, &request, again_apart, e) || begin_lazy(&r) ||
		enter_phase(PHASE_CREATE) || make_first(&r, &request, &why))
		goto out;
	if (why)
		restore_notice(&r, why);
	result = run_in_thread(&r);
	*again = result && r.id_taken;
	/* What a failed attempt has made goes: processes, temporary directories with the names of
	 * sockets in them, System V objects, and files of shared memory (at `out`). Connections that
	 * are kept stay blocked, so that the other end does not hear of it; what --save-files has
	 * put back stays, with what it replaced beside it. */
	if (result) {
		restore_kill_all(&r);
		socket_kept_silence(&r.kept);
		fd_remove_temporary_directories(c, &r.creation.fd_options);
	} else {
		take_over_job(&r);
	}
	/* After a success in a namespace of its own, the System V objects outside, which the program
	 * has left there, are of no use any more. After a failure, remove the objects that it has
	 * made. */
	if (request.ipc ? !result : result)
		sysv_remove(&left_over);
out:
	if (result)
		restore_abort_lazy(s);
	fd_shm_files_end(c, result);
	free(reason);
	free(why);
	restore_release(&r);
	return result;
}

/* What would end this program, were it not busy. */
static void signals_that_end(sigset_t *set)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	struct sigaction action;

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!sigaction(signals[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(set, signals[i]);
}

/* The kernel keeps a port from all who want it for a minute. */
#define WAIT_SEC 65

#define PAUSES   5
#define PAUSE_MS 100

/* Wait before another attempt, after an error that may pass with time (ERR_WAIT). -1: no time is left, and
 * the error is reported. */
static int wait_before_retry(struct supervisor *s, const struct restore_options *o,
	uint64_t *deadline, const struct err *e)
{
	const struct timespec none = {0};
	cleanup_free char *why = NULL;
	sigset_t set;

	if (!*deadline) {
		*deadline = clock_ns(CLOCK_MONOTONIC) + WAIT_SEC * 1000000000ull;
		if (o->notice)
			notice_printf(o->notice, "waiting: %s", e->msg);
	}
	signals_that_end(&set);
	why = xasprintf("the program is not back yet, the restart waits: %s", e->msg);
	for (int i = 0; i < PAUSES; i++) {
		o->put_off(s, PAUSE_MS, why);
		if (sigtimedwait(&set, NULL, &none) > 0)
			return -1;
	}
	return clock_ns(CLOCK_MONOTONIC) > *deadline ? -1 : 0;
}

/* What may fail only because the program is there as well. Memory is asked for without being
 * reserved (memory/memory_restore.c), which is in vain where all is counted. */
static bool lacks_room(const struct restore *r)
{
	cleanup_free char *text = NULL;
	size_t size;

	switch (r->e->code) {
	case EAGAIN:
	case ENFILE:
	case ENOSPC:
	case EDQUOT:
		return true;
	case ENOMEM:
		return !read_file("/proc/sys/vm/overcommit_memory", &text, &size, NULL) &&
		       *text == '2';
	default:
		return r->no_room || r->killed;
	}
}

enum restore_trial restore_try(struct supervisor *s, const struct checkpoint *c, struct err *e)
{
	const struct restore_options o = {.notice = restore_say_nothing, .trial = true};
	struct restore r = {.s = s, .c = c, .o = &o, .e = e, .kept = SOCKET_KEPT_NONE};
	struct spawn_request request = {.reason = "it is a trial", .ipc = true};
	enum restore_trial result = RESTORE_FAILS;
	cleanup_free char *why = NULL;

	if (enter_phase(PHASE_CHECK) || restore_look_at_image(&r) ||
		restore_clocks_choose(c, &o, &r.clocks, e) || restore_check_before(&r, true))
		goto out;
	request.clocks = r.clocks.continued ? &r.clocks.shifts : NULL;
	request.user = r.clocks.needs_user_namespace;
	result = RESTORE_UNKNOWN;
	/* Whether it can be done in the way that a restart takes spawn_check() has found out.
	 */
	if (enter_phase(PHASE_CREATE) || make_first(&r, &request, &why))
		goto out;
	result = RESTORE_WORKS;
	if (run_in_thread(&r))
		result = lacks_room(&r) ? RESTORE_UNKNOWN : RESTORE_FAILS;
	restore_kill_all(&r);
out:
	restore_release(&r);
	return result;
}

static int restart_until_done(struct supervisor *s, const struct checkpoint *c,
	const struct restore_options *o, struct err *e)
{
	struct restore_options quiet = *o;
	cleanup_free char *line = NULL;
	uint64_t deadline = 0;
	bool again = false;
	int result;

	if (running_already_check(s, c, o->force, &line, e))
		return -1;
	if (line && o->notice)
		o->notice(line);
	result = attempt_restart(s, c, o, NULL, &again, e);
	/* All other notices have been given. */
	quiet.notice = restore_say_nothing;
	while (result && !again && e->remedy == ERR_WAIT &&
		!wait_before_retry(s, o, &deadline, e)) {
		s->sleeps.len = 0;
		result = attempt_restart(s, c, &quiet, NULL, &again, e);
	}
	if (!result || !again)
		return result;
	/* An id that was free when we looked. */
	if (o->notice)
		o->notice("an id was taken meanwhile: the program is brought back in a pid "
			  "namespace of its own");
	s->sleeps.len = 0;
	return attempt_restart(s, c, &quiet, xstrdup("an id was taken meanwhile"), &again, e);
}

/* Names are the same for all attempts, as other members may have opened the files already. When one has failed for
 * good, so have all others. */
int restore_start(struct supervisor *s, const struct checkpoint *c,
	const struct restore_options *o, struct err *e)
{
	int result;

	fd_window_share(o->restart);
	result = restart_until_done(s, c, o, e);
	fd_window_remove_names(c->job);
	fd_window_share(NULL);
	return result;
}
