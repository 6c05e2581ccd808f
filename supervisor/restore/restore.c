/*
 * The way of a restart:
 *
 *	the new processes are made, one by another, as they were; they set up their descriptors
 *	  and execute their programs' files	restore/birth.c, restore/child_before_exec.c
 *	they are stopped before those files' first instructions; then for one after the other:
 *	  the loader and the plan are written into the window	state/restore_plan.h
 *	  first batch: the address space, filled and compared with the image's hashes
 *	  second batch: the rest of the process, its threads
 *	  registers, the window unmapped
 *	interrupted calls are entered again; all let go
 *
 * The tracees die with the supervisor until the very end: a half-restored program never runs.
 */
#include "supervisor/restore/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/phase.h"
#include "lib/procfs.h"
#include "supervisor/descriptors/descriptors.h"
#include "supervisor/fd/shm_file.h"
#include "supervisor/memory/mapped_files.h"
#include "supervisor/restore/attempt.h"
#include "supervisor/restore/failed_restart.h"
#include "supervisor/restore/job_stops.h"
#include "supervisor/restore/release_choice.h"
#include "supervisor/restore/restore_limits.h"
#include "supervisor/restore/running_already.h"
#include "supervisor/split/lower_restore.h"
#include "supervisor/start/spawn.h"
#include "supervisor/start/terminal.h"
#include "supervisor/state/cpu.h"
#include "supervisor/state/restore_one.h"
#include "supervisor/syscall/restart.h"
#include "supervisor/sysv/sysv.h"

/* ---- before anything is made ---- */

/* Where a component lies in an XSAVE area is the processor's choice; with the same ones and
 * another size, it is another one. */
static int check_xsave(const struct restore *r)
{
	uint32_t words[CPU_WORDS];
	uint64_t xfeatures;

	cpu_features(words, &xfeatures);
	if (xfeatures != r->c->info->xfeatures || cpu_xsave_size() == r->c->info->xsave_size)
		return 0;
	return err_set(r->e, 0,
		"this processor keeps its vector registers in another layout than where the "
		"program ran");
}

/* Which processes have one memory in common. */
static void find_memory(struct restore *r, size_t i)
{
	struct restore_one *one = &r->processes[i];
	size_t keeper = checkpoint_keeper(r->c, i, IMAGE_SHARED_MEMORY);

	one->last = true;
	if (keeper == i)
		return;
	one->memory = &r->processes[keeper];
	one->place = 1;
	for (size_t k = keeper; k < i; k++) {
		if (r->processes[k].memory == one->memory)
			one->place++;
		if (r->processes[k].memory == one->memory || k == keeper)
			r->processes[k].last = false;
	}
}

static int look_at_image(struct restore *r)
{
	if (r->c->process_count < 1)
		return err_set(r->e, 0, "the image holds no process");
	if (birth_init(&r->birth, r->c, r->e))
		return -1;
	r->count = r->c->process_count;
	r->processes = xcalloc(r->count, sizeof(*r->processes));
	for (size_t i = 0; i < r->count; i++) {
		struct restore_one *one = &r->processes[i];

		one->s = r->s;
		one->c = r->c;
		one->o = r->o;
		one->trial = r->o->trial;
		one->clocks = &r->clocks;
		one->e = r->e;
		if (restore_one_init(one, i, r->birth.children[i].fds))
			return -1;
		if (one->ip->pid != r->birth.order.list[i].pid)
			return err_set(r->e, 0, "the image mixes up its processes");
		one->stays = r->birth.children[i].stays;
		find_memory(r, i);
	}
	r->unborn = r->count;
	r->dying = birth_order_count(&r->birth.order) - r->count;
	for (size_t i = r->count; i < r->birth.order.count; i++)
		r->dumping += !!WCOREDUMP(r->birth.order.list[i].status);
	return 0;
}

/* Removed, or replaced by another, when the checkpoint was made: what was mapped of it is in
 * the image then. */
static bool was_removed(const char *exe)
{
	static const char suffix[] = " (deleted)";
	size_t n = strlen(exe), k = sizeof(suffix) - 1;

	return n > k && !strcmp(exe + n - k, suffix);
}

static int check_exe(struct restore *r, size_t i)
{
	const struct restore_one *one = &r->processes[i];
	const char *exe = image_string(one->img, one->ip->exe);
	cleanup_free char *text = NULL;

	r->birth.children[i].foreign_exe = !restore_one_exe_is_there(one);
	if (!r->birth.children[i].foreign_exe)
		return 0;
	if (!(r->c->info->flags & IMAGE_JOB_PORTABLE) && !was_removed(exe))
		return err_set(r->e, errno, "cannot execute the program's file %s", exe);
	text = xasprintf("%s is not here: /proc/self/exe will show trecr-restart instead", exe);
	restore_notice(r, text);
	return 0;
}

/* @alive: the program of the image is there, and is not to notice. */
static int check_before(struct restore *r, bool alive)
{
	struct fd_restore_options fo = {
		.alive = alive,
		.rollback_files = r->o->rollback_files,
		.clocks_go_on = r->clocks.go_on,
	};

	if (cpu_check(r->c->info->cpuid, r->c->info->xfeatures, r->e) || check_xsave(r))
		return -1;
	if (release_check(r->c, r->e))
		return -1;
	for (size_t i = 0; i < r->count; i++)
		if (restore_lower_check(&r->processes[i]))
			return -1;
	if (mapped_files_check(r->c, r->o->notice, r->e) ||
		fd_restore_check(r->c, &fo, r->o->notice, r->e))
		return -1;
	fd_name_temporary_directories(&fo);
	r->birth.fd_options = fo;
	for (size_t i = 0; i < r->count; i++)
		r->birth.children[i].trial = r->o->trial;
	for (size_t i = 0; i < r->count; i++)
		if (check_exe(r, i))
			return -1;
	return 0;
}

/* For conditions: 0. */
static int enter(enum phase phase)
{
	phase_now = phase;
	return 0;
}

/* ---- off ---- */

static int thaw_calls(struct restore *r, struct restore_one *one)
{
	for (size_t i = 0; i < one->thread_count; i++)
		if (syscall_thaw_in_place(
			    &one->process, &one->process.threads[i], &r->s->sleeps, r->e))
			return -1;
	return 0;
}

static int spare(struct restore_one *one, struct err *e)
{
	for (size_t i = 0; i < one->thread_count; i++) {
		struct tracee *t = &one->process.threads[i].tracee;

		if (t->state != TRACEE_GONE && tracee_clear_exitkill(t, e))
			return -1;
	}
	return 0;
}

/* From here on the program is whole, and need not die with us. A call that is entered again
 * finds its connection open; others hear of it when nothing is left that can fail: a thread
 * that could not be detached is let go by the end of this one. */
static int let_go(struct restore *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (spare(&r->processes[i], r->e))
			return -1;
	if (socket_kept_open(&r->kept, r->e))
		return -1;
	for (size_t i = 0; i < r->count; i++)
		if (thaw_calls(r, &r->processes[i]))
			return -1;
	if (socket_kept_go_on(&r->kept, r->e))
		return -1;
	for (size_t i = 0; i < r->count; i++) {
		struct restore_one *one = &r->processes[i];

		for (size_t k = 0; k < one->thread_count; k++)
			(void)tracee_detach(&one->process.threads[k].tracee, 0, NULL);
	}
	return 0;
}

/* The program's group that had the terminal gets it again, where we may give it away. */
static void pass_terminal_on(struct restore *r)
{
	cleanup_fd int tty = -1;

	for (size_t i = 0; i < r->count && tty < 0; i++) {
		if (r->birth.order.list[i].terminal ||
			!(r->birth.order.list[i].flags & IMAGE_JOB_PROCESS_FOREGROUND))
			continue;
		tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
		if (tty >= 0 && tcgetpgrp(tty) == getpgrp())
			(void)tcsetpgrp(tty, getpgid(r->processes[i].process.pid));
	}
}

static int on_all(struct restore *r, int (*step)(struct restore_one *one))
{
	for (size_t i = 0; i < r->count; i++) {
		struct restore_one *one = &r->processes[i];

		if (!step(one))
			continue;
		r->id_taken = one->id_taken;
		return r->count == 1 ? -1
				     : err_prefix(r->e, "process %d (%s)", one->process.vpid,
					       one->process.comm);
	}
	return 0;
}

static int restore_all(struct restore *r)
{
	/* What processes share is touched by the last step only when all have done theirs. */
	if (restore_await_births(r) || enter(PHASE_REBUILD) || on_all(r, restore_one_run) ||
		enter(PHASE_SETTLE) || on_all(r, restore_one_settle) ||
		(!r->o->trial && on_all(r, restore_one_requests)))
		return -1;
	r->explained = true;
	for (size_t i = 0; i < r->count; i++)
		if (restore_lower_run(&r->processes[i])) {
			r->no_room |= r->processes[i].no_room;
			return -1;
		}
	r->explained = false;
	if (r->o->trial)
		return 0;
	if (restore_stops(r->processes, r->count, r->birth.order.list, r->e))
		return -1;
	if (r->o->about_to_run)
		r->o->about_to_run();
	pass_terminal_on(r);
	terminal_restore(r->s, r->c->job,
		r->birth.order.list[0].flags & IMAGE_JOB_PROCESS_STOPPED, r->o->notice);
	(void)enter(PHASE_LET_GO);
	return let_go(r);
}

static void *run(void *arg)
{
	struct restore *r = arg;

	r->result = restore_all(r);
	if (r->result && !r->id_taken && !r->explained)
		r->killed = restore_killed(r->processes, r->count, r->s->init, r->e);
	/* The tracees would die with this thread, but for those that have been spared. */
	if (r->result)
		restore_kill_all(r);
	return NULL;
}

/* The end of the tracing thread lets go of what is still attached, or kills it. */
static int run_in_thread(struct restore *r)
{
	pthread_t thread;
	int error = thread_start(&thread, run, r);

	if (error)
		return err_set(r->e, error, "cannot start a thread");
	error = pthread_join(thread, NULL);
	BUG_ON(error);
	return r->result;
}

static void adopt(struct restore *r)
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

static void release(struct restore *r)
{
	phase_now = PHASE_NONE;
	for (size_t i = 0; i < r->count; i++)
		restore_one_free(&r->processes[i]);
	free(r->processes);
	buf_free(&r->others);
	buf_free(&r->clocks.moved);
	birth_free(&r->birth);
	socket_kept_end(&r->kept);
}

/* Ids that are taken here are free in a namespace. */
static char *namespace_reason(const struct restore *r)
{
	uint64_t terminal;
	pid_t id;

	if (r->clocks.apart)
		return xstrdup("its clocks go on from the checkpoint");
	if (r->o->force_namespace)
		return xstrdup("as asked for");
	id = birth_id_in_use(&r->birth);
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
		r->s, r->processes[0].ip->pid, birth_main, &r->birth, request, why, r->e);
	restore_limits_put_back(&limits);
	return result;
}

/* With a @reason in namespaces of its own for all ids there are. *again: it has failed only
 * because an id was taken, which cannot happen there. */
static int attempt(struct supervisor *s, const struct checkpoint *c,
	const struct restore_options *o, char *reason, bool *again, struct err *e)
{
	struct restore r = {.s = s, .c = c, .o = o, .e = e, .kept = SOCKET_KEPT_NONE};
	cleanup_free char *obstacle = NULL;
	struct spawn_request request = {0};
	cleanup_buf struct buf left_over = {0};
	struct buf shm_files = {0};
	char *why = NULL;
	int result = -1;

	if (enter(PHASE_CHECK) || look_at_image(&r) ||
		restore_clocks_choose(c, o, &r.clocks, e) || check_before(&r, false) ||
		socket_kept_begin(&r.kept, c, e))
		goto out;
	r.birth.fd_options.kept = r.kept.theirs;
	request.terminals = reason ? fd_has_terminals(c) : fd_terminal_in_use(c);
	if (!reason)
		reason = namespace_reason(&r);
	obstacle = sysv_obstacle(c);
	request.ipc = obstacle;
	request.reason = reason ? reason : obstacle;
	/* What is brought back in a namespace has no use for what is left of it outside. */
	sysv_list(c, request.ipc, &left_over);
	fd_shm_files_absent(c, &shm_files);
	request.clocks = r.clocks.go_on ? &r.clocks.shifts : NULL;
	request.user = r.clocks.apart;
	if (enter(PHASE_BIRTH) || make_first(&r, &request, &why))
		goto out;
	if (why)
		restore_notice(&r, why);
	result = run_in_thread(&r);
	*again = result && r.id_taken;
	if (result) {
		restore_kill_all(&r);
		socket_kept_silence(&r.kept);
		fd_remove_temporary_directories(c, &r.birth.fd_options);
	} else {
		adopt(&r);
	}
	if (!result == request.ipc)
		sysv_remove(&left_over);
out:
	fd_shm_files_forget(&shm_files, result);
	free(reason);
	free(why);
	release(&r);
	return result;
}

static void say_nothing(const char *line)
{
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

#define PAUSES   5
#define PAUSE_MS 100

/* Until an error of ERR_WAIT may be none any more. -1 when it is to be told after all. */
static int wait_a_while(struct supervisor *s, const struct restore_options *o,
	uint64_t *deadline, const struct err *e)
{
	const struct timespec none = {0};
	cleanup_free char *line = NULL, *why = NULL;
	sigset_t set;

	if (!*deadline) {
		*deadline = clock_ns(CLOCK_MONOTONIC) + FD_ERROR_WAIT_SEC * 1000000000ull;
		line = xasprintf("waiting: %s", e->msg);
		if (o->notice)
			o->notice(line);
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

int restore_check(struct supervisor *s, const struct checkpoint *c, struct err *e)
{
	const struct restore_options o = {.notice = say_nothing};
	struct restore r = {.s = s, .c = c, .o = &o, .e = e, .kept = SOCKET_KEPT_NONE};
	enum phase phase = phase_now;
	int failed = look_at_image(&r) || check_before(&r, true) ||
		     spawn_check(r.processes[0].ip->pid, e);

	release(&r);
	phase_now = phase;
	return failed ? -1 : 0;
}

/* What may fail only because the program is there as well. Memory is asked for without being
 * reserved (memory.c), which is in vain where all is counted. */
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
	const struct restore_options o = {.notice = say_nothing, .trial = true};
	struct restore r = {.s = s, .c = c, .o = &o, .e = e, .kept = SOCKET_KEPT_NONE};
	struct spawn_request request = {.reason = "it is a trial", .ipc = true};
	enum restore_trial result = RESTORE_FAILS;
	cleanup_free char *why = NULL;

	if (enter(PHASE_CHECK) || look_at_image(&r) ||
		restore_clocks_choose(c, &o, &r.clocks, e) || check_before(&r, true))
		goto out;
	request.clocks = r.clocks.go_on ? &r.clocks.shifts : NULL;
	request.user = r.clocks.apart;
	result = RESTORE_UNKNOWN;
	/* Whether it can be done in the way that a restart takes spawn_check() has found out.
	 */
	if (enter(PHASE_BIRTH) || make_first(&r, &request, &why))
		goto out;
	result = RESTORE_WORKS;
	if (run_in_thread(&r))
		result = lacks_room(&r) ? RESTORE_UNKNOWN : RESTORE_FAILS;
	restore_kill_all(&r);
out:
	release(&r);
	return result;
}

int restore_start(struct supervisor *s, const struct checkpoint *c,
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
	result = attempt(s, c, o, NULL, &again, e);
	/* What there is to say of the rest has been said. */
	quiet.notice = say_nothing;
	while (result && !again && e->remedy == ERR_WAIT && !wait_a_while(s, o, &deadline, e)) {
		s->sleeps.len = 0;
		result = attempt(s, c, &quiet, NULL, &again, e);
	}
	if (!result || !again)
		return result;
	/* An id that was free when we looked. */
	if (o->notice)
		o->notice("an id was taken meanwhile: the program is brought back in a pid "
			  "namespace of its own");
	s->sleeps.len = 0;
	return attempt(s, c, &quiet, xstrdup("an id was taken meanwhile"), &again, e);
}
