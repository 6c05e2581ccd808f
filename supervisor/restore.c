/*
 * The way of a restart:
 *
 *	the new process sets up its descriptors and executes the program's file	restore_child.c
 *	it is stopped before the file's first instruction; the loader and the plan are written
 *	  into the window	restore_plan.h
 *	first batch: the address space; meanwhile blocks are checked against their hashes
 *	second batch: the rest of the process, its threads
 *	registers, the window unmapped, interrupted calls entered again; all let go
 *
 * The tracees die with the supervisor until the very end: a half-restored program never runs.
 */
#include "supervisor/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/procfs.h"
#include "supervisor/cpu.h"
#include "supervisor/fd.h"
#include "supervisor/module.h"
#include "supervisor/process.h"
#include "supervisor/remote.h"
#include "supervisor/restore_child.h"
#include "supervisor/restore_plan.h"
#include "supervisor/restore_vdso.h"
#include "supervisor/spawn.h"
#include "supervisor/syscall_restart.h"

extern const uint8_t loader_blob[], loader_blob_end[];

/* A batch may read many gigabytes: only a process that does nothing at all is given up. */
#define BATCH_PATIENCE_NS 3600000000000ull
#define EXEC_PATIENCE_NS  60000000000ull

#define IOPRIO_WHO_PROCESS 1

/* All signals but SIGTRAP, which ends a batch: a trap that finds its signal blocked would
 * reset the program's action. */
#define RESTORE_SIGMASK (~(1ull << (SIGTRAP - 1)))

struct restore {
	struct supervisor *s;
	const struct checkpoint *c;
	const struct restore_options *o;
	struct err *e;
	const struct image *img;
	const struct image_process *ip;
	const struct image_thread *threads;
	size_t thread_count;

	struct restore_child child;
	struct process process; /* threads in the image's order */
	struct restore_plan plan;
	struct vma_list vmas;
	uint8_t *new_vdso; /* its bytes, while the old one's range is something else */
	uint64_t window_size;

	pthread_t checker;
	int result;
	bool checking;
	int check_result;
	struct err check_error;
};

static void notice(const struct restore *r, const char *line)
{
	if (r->o->notice)
		r->o->notice(line);
}

/* ---- before anything is made ---- */

static int check_modules(const struct restore *r)
{
	const struct image_region *g;
	const struct image_module *m;
	size_t count, modules;

	g = image_note_array(r->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	m = image_note_array(r->img, IMAGE_NOTE_MODULES, struct image_module, &modules);
	for (size_t i = 0, last = 0; i < count; i++) {
		if (g[i].kind != IMAGE_REGION_FILE || g[i].module == last)
			continue;
		last = g[i].module;
		if (!last || last > modules)
			return err_set(
				r->e, 0, "the image names a mapped file that it does not have");
		if (module_check(&m[last - 1], image_string(r->img, m[last - 1].path), r->e))
			return -1;
	}
	return 0;
}

/* Whether the program's own file is there to be executed. Only an image that carries its
 * memory can do without. */
static bool exe_is_there(const struct restore *r)
{
	const char *exe = image_string(r->img, r->ip->exe);

	return !access(exe, X_OK);
}

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

static int check_before(struct restore *r, bool *foreign_exe)
{
	struct fd_restore_options fo = {.rollback_files = r->o->rollback_files};
	cleanup_free char *text = NULL;

	if (r->c->process_count != 1)
		return err_set(r->e, 0,
			"the image holds %zu processes; only one can be brought back so far",
			r->c->process_count);
	if (cpu_check(r->c->info->cpuid, r->c->info->xfeatures, r->e) || check_xsave(r) ||
		check_modules(r) || fd_restore_check(r->c, &fo, r->o->notice, r->e))
		return -1;
	*foreign_exe = !exe_is_there(r);
	if (!*foreign_exe)
		return 0;
	if (!(r->c->info->flags & IMAGE_JOB_PORTABLE))
		return err_set(r->e, errno, "cannot execute the program's file %s",
			image_string(r->img, r->ip->exe));
	text = xasprintf("%s is not here: /proc/self/exe will show trecr-restart instead",
		image_string(r->img, r->ip->exe));
	notice(r, text);
	return 0;
}

/* ---- up to the executed file's first instruction ---- */

static struct tracee *leader(struct restore *r)
{
	return &r->process.threads[0].tracee;
}

static int wait_for(
	struct restore *r, struct tracee *t, enum tracee_event want, uint64_t patience)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + patience;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(t, deadline, &report, r->e))
			return -1;
		if (report.event == want)
			return 0;
		if (report.event == TRACEE_EVENT_GONE)
			return restore_child_error(&r->child, r->e);
		if (report.event == TRACEE_EVENT_NONE)
			return err_set(r->e, 0, "the new process does not come up in time");
		if (tracee_continue(
			    t, report.event == TRACEE_EVENT_SIGNAL ? report.signal : 0, r->e))
			return -1;
	}
}

static int seize_and_exec(struct restore *r)
{
	struct tracee *t = leader(r);
	struct tracee_report report;

	t->pid = t->tid = r->s->root;
	t->is_child = !r->s->init;
	if (tracee_seize(t, true, r->e) || spawn_release(r->s, r->e))
		return -1;
	if (wait_for(r, t, TRACEE_EVENT_EXEC, EXEC_PATIENCE_NS))
		return -1;
	/* The stop comes before execve's own return, which would overwrite what is injected. */
	if (tracee_continue_to_syscall(t, 0, r->e) ||
		tracee_wait(t, clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS, &report, r->e))
		return -1;
	if (report.event != TRACEE_EVENT_SYSCALL)
		return err_set(r->e, 0, "the new process stops in an unexpected way");
	r->process.pid = r->s->root;
	r->process.vpid = r->ip->pid;
	if (tracee_get_regs(t, &r->process.threads[0].regs, r->e))
		return -1;
	return process_prepare(&r->process, r->e);
}

/* ---- the window ---- */

static int map_window(struct restore *r)
{
	struct remote remote;
	int64_t at;

	r->window_size = align_up(PLAN_OFFSET + r->plan.plan.data.len, 4096);
	if (remote_begin(&remote, &r->process, &r->process.threads[0], r->e) ||
		REMOTE_CALL(&remote, &at, r->e, SYS_mmap, LOADER_WINDOW, r->window_size,
			PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ||
		remote_abandon(&remote, r->e))
		return -1;
	if (at != (int64_t)LOADER_WINDOW)
		return err_set(
			r->e, at < 0 ? -at : 0, "cannot map the loader into the new process");
	if (tracee_write(r->process.mem_fd, LOADER_WINDOW, loader_blob,
		    loader_blob_end - loader_blob, r->e) ||
		tracee_write(r->process.mem_fd, LOADER_WINDOW + PLAN_OFFSET,
			r->plan.plan.data.data, r->plan.plan.data.len, r->e))
		return -1;
	return tracee_set_sigmask(leader(r), RESTORE_SIGMASK, r->e);
}

static int start_batch(struct restore *r, uint64_t batch)
{
	struct user_regs_struct regs = r->process.threads[0].regs;
	const uint64_t args[6] = {batch};

	x86_64_set_syscall(&regs, LOADER_WINDOW + LOADER_ENTRY_BATCH, 0, args);
	x86_64_set_stack(&regs, r->plan.stack);
	return tracee_set_regs(leader(r), &regs, r->e) || tracee_continue(leader(r), 0, r->e)
		       ? -1
		       : 0;
}

/* ---- the first batch ---- */

static void *check_blocks(void *arg)
{
	struct restore *r = arg;

	r->check_result = image_check_all(r->img, &r->check_error);
	return NULL;
}

static int start_check(struct restore *r)
{
	int error = pthread_create(&r->checker, NULL, check_blocks, r);

	if (error)
		return err_set(r->e, error, "cannot start a thread");
	r->checking = true;
	return 0;
}

static int join_check(struct restore *r)
{
	int error;

	if (!r->checking)
		return 0;
	error = pthread_join(r->checker, NULL);
	BUG_ON(error);
	r->checking = false;
	return r->check_result;
}

static int finish_check(struct restore *r)
{
	if (!join_check(r))
		return 0;
	*r->e = r->check_error;
	return -1;
}

/* A thread that fills its share and ends. */
static int wait_fill_thread(struct restore *r, pid_t tid)
{
	struct tracee t = {.pid = r->process.pid, .tid = tid};
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BATCH_PATIENCE_NS;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(&t, deadline, &report, r->e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_GONE:
			if (report.status)
				return err_set(r->e, EIO, "cannot read memory from the image");
			return 0;
		case TRACEE_EVENT_NONE:
			return err_set(r->e, 0, "the new process does not get on");
		default:
			if (tracee_continue(&t, 0, r->e))
				return -1;
		}
	}
}

/* Let the leader run its batch to the trap at its end; @tids gets the threads that it makes,
 * @max at most. They wait in their first stop, or with @run_new start at once. */
static int run_batch(
	struct restore *r, uint64_t batch, pid_t *tids, size_t max, size_t *made, bool run_new)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BATCH_PATIENCE_NS;
	struct tracee_report report;

	*made = 0;
	if (start_batch(r, batch))
		return -1;
	for (;;) {
		if (tracee_wait(leader(r), deadline, &report, r->e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_SIGNAL:
			if (report.signal == SIGTRAP)
				return 0;
			return err_set(r->e, 0,
				"the loader in the new process was hit by signal %d (%s)",
				report.signal, strsignal(report.signal));
		case TRACEE_EVENT_NEW:
			if (*made == max)
				return err_set(
					r->e, 0, "the new process makes too many threads");
			tids[(*made)++] = report.new_tid;
			break;
		case TRACEE_EVENT_NONE:
		case TRACEE_EVENT_GONE:
			return err_set(r->e, 0, "the new process has ended or hangs");
		default:
			break;
		}
		if (report.event == TRACEE_EVENT_NEW && run_new) {
			struct tracee t = {.pid = r->process.pid, .tid = report.new_tid};

			if (wait_for(r, &t, TRACEE_EVENT_TRAP, EXEC_PATIENCE_NS) ||
				tracee_continue(&t, 0, r->e))
				return -1;
		}
		if (tracee_continue(leader(r), 0, r->e))
			return -1;
	}
}

static int fill_memory(struct restore *r)
{
	pid_t tids[FILL_THREADS_MAX];
	size_t made;

	if (start_check(r) ||
		run_batch(r, r->plan.memory_at, tids, FILL_THREADS_MAX, &made, true))
		return -1;
	if (plan_check(r->process.mem_fd, r->plan.memory_at, &r->plan.memory, r->e))
		return -1;
	for (size_t i = 0; i < made; i++)
		if (wait_fill_thread(r, tids[i]))
			return -1;
	return 0;
}

/* ---- between the batches: memory that the supervisor writes itself ---- */

static int redirect_vdso(struct restore *r)
{
	cleanup_free uint8_t *bytes = NULL;
	const void *old;
	size_t size;

	if (!r->plan.other_vdso)
		return 0;
	old = image_note(r->img, IMAGE_NOTE_VDSO, 1, &size);
	if (!old)
		return 0;
	bytes = xmalloc(size);
	memcpy(bytes, old, size);
	if (vdso_redirect(
		    bytes, size, r->new_vdso, r->process.vdso_size, r->plan.vdso_code, r->e))
		return -1;
	return tracee_write(r->process.mem_fd, r->ip->vdso_start, bytes, size, r->e);
}

/* Registration wants no critical section under way; dump_prepare() has moved the thread out
 * of it. */
static int clear_rseq(struct restore *r)
{
	static const uint64_t none;

	for (size_t i = 0; i < r->thread_count; i++)
		if (r->threads[i].rseq &&
			tracee_write(r->process.mem_fd, r->threads[i].rseq + 8, &none,
				sizeof(none), r->e))
			return -1;
	return 0;
}

/* ---- the second batch ---- */

static int make_threads(struct restore *r)
{
	cleanup_free pid_t *tids = xcalloc(r->thread_count, sizeof(*tids));
	size_t made;

	if (run_batch(r, r->plan.rest_at, tids, r->thread_count, &made, false) ||
		plan_check(r->process.mem_fd, r->plan.rest_at, &r->plan.rest, r->e))
		return -1;
	if (made != r->thread_count - 1)
		return err_set(r->e, 0, "the new process has %zu threads instead of %zu",
			made + 1, r->thread_count);
	for (size_t i = 0; i < made; i++) {
		struct tracee *t = &r->process.threads[i + 1].tracee;

		t->pid = r->process.pid;
		t->tid = tids[i];
		if (wait_for(r, t, TRACEE_EVENT_TRAP, EXEC_PATIENCE_NS) ||
			tracee_continue(t, 0, r->e))
			return -1;
	}
	return 0;
}

/* Each thread ends its own part in a trap. */
static int wait_threads(struct restore *r)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;

	for (size_t i = 1; i < r->thread_count; i++) {
		struct tracee *t = &r->process.threads[i].tracee;
		struct tracee_report report;

		if (tracee_wait(t, deadline, &report, r->e))
			return -1;
		if (report.event != TRACEE_EVENT_SIGNAL || report.signal != SIGTRAP)
			return err_set(r->e, 0, "thread %d of the new process does not come up",
				r->threads[i].tid);
	}
	/* All have their own lists of what they did; the first failure is enough. */
	for (size_t i = 1; i < r->thread_count; i++) {
		uint64_t at = r->plan.thread_at[i - 1];

		if (plan_check(r->process.mem_fd, at, &r->plan.threads[i - 1], r->e))
			return err_prefix(r->e, "thread %d", r->threads[i].tid);
	}
	return 0;
}

/* ---- settings that are made from outside ---- */

struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static void set_scheduling(struct restore *r, pid_t tid, const struct image_thread *t)
{
	struct scheduling s = {sizeof(s), t->sched_policy, t->sched_flags, t->nice,
		t->sched_priority, t->sched_runtime, t->sched_deadline, t->sched_period};
	cpu_set_t possible, wanted;
	char line[128];

	/* Processors that are not here are left out; with none left, all are as good. */
	if (!sched_getaffinity(0, sizeof(possible), &possible)) {
		memcpy(&wanted, t->affinity, sizeof(wanted));
		CPU_AND(&wanted, &wanted, &possible);
		if (CPU_COUNT(&wanted) && sched_setaffinity(tid, sizeof(wanted), &wanted)) {
			snprintf(line, sizeof(line),
				"cannot set the CPU affinity of thread %d: %s", t->tid,
				strerror(errno));
			notice(r, line);
		}
	}
	if (setpriority(PRIO_PROCESS, tid, t->nice) || syscall(SYS_sched_setattr, tid, &s, 0)) {
		snprintf(line, sizeof(line), "cannot set the scheduling of thread %d: %s",
			t->tid, strerror(errno));
		notice(r, line);
	}
	if (t->ioprio && syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, t->ioprio)) {
		snprintf(line, sizeof(line), "cannot set the I/O priority of thread %d: %s",
			t->tid, strerror(errno));
		notice(r, line);
	}
}

static void set_limits(struct restore *r)
{
	for (int i = 0; i < IMAGE_RLIMITS; i++) {
		struct rlimit want = {r->ip->rlimit_cur[i], r->ip->rlimit_max[i]}, now;
		char line[128];

		if (!prlimit(r->s->root, i, &want, NULL))
			continue;
		/* Only root can raise a hard limit: as near as can be. */
		if (!prlimit(r->s->root, i, NULL, &now)) {
			want.rlim_max = now.rlim_max;
			if (want.rlim_cur > want.rlim_max)
				want.rlim_cur = want.rlim_max;
			if (!prlimit(r->s->root, i, &want, NULL)) {
				snprintf(line, sizeof(line),
					"resource limit %d is lower here than where the "
					"program ran",
					i);
				notice(r, line);
				continue;
			}
		}
		snprintf(line, sizeof(line), "cannot set resource limit %d: %s", i,
			strerror(errno));
		notice(r, line);
	}
}

/* The limit on locked memory has to be there before memory is locked. */
static void raise_memlock(struct restore *r)
{
	struct rlimit want = {
		r->ip->rlimit_cur[RLIMIT_MEMLOCK], r->ip->rlimit_max[RLIMIT_MEMLOCK]};

	/* Without the right to: mlock2 says so if it matters. */
	(void)prlimit(r->s->root, RLIMIT_MEMLOCK, &want, NULL);
}

static void set_oom_score(struct restore *r)
{
	cleanup_free char *path = xasprintf("/proc/%d/oom_score_adj", r->s->root);
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	cleanup_free char *text = xasprintf("%d", (int)r->ip->oom_score_adj);

	/* Lowering it takes a privilege; the program is no worse off without. */
	if (fd >= 0)
		(void)!write(fd, text, strlen(text));
}

/* ---- registers, and off ---- */

static int set_xstate(struct restore *r, struct thread *thread, const struct image_thread *t)
{
	cleanup_free uint8_t *now = xcalloc(1, 65536);
	size_t size = 65536, note_size;
	const uint8_t *note = image_note(r->img, IMAGE_NOTE_XSTATE, 1, &note_size);

	/* The kernel takes an area of its own size only: a larger one here ends in components
	 * that the image's processor did not have, a smaller one lacks those that were not in
	 * use (cpu_check() has compared). */
	if (tracee_get_xstate(&thread->tracee, now, &size, r->e))
		return -1;
	memset(now, 0, size);
	memcpy(now, note + t->xstate_offset, t->xstate_size < size ? t->xstate_size : size);
	return tracee_set_xstate(&thread->tracee, now, size, r->e);
}

static void take_image_thread(struct thread *thread, const struct image_thread *t)
{
	thread->vtid = t->tid;
	memcpy(&thread->regs, t->regs, sizeof(thread->regs));
	thread->regs_changed = true;
	thread->syscall_class = t->syscall_class;
	thread->syscall_left_ns = t->syscall_left_ns;
}

static int settle_thread(struct restore *r, size_t i)
{
	struct thread *thread = &r->process.threads[i];
	const struct image_thread *t = &r->threads[i];

	set_scheduling(r, thread->tracee.tid, t);
	take_image_thread(thread, t);
	if (thread->syscall_class == IMAGE_SYSCALL_RESTART_BLOCK &&
		syscall_build_restart_block(&r->process, thread,
			LOADER_WINDOW + LOADER_ENTRY_SYSCALL, r->plan.scratch, r->e))
		return -1;
	if (thread->syscall_class == IMAGE_SYSCALL_AGAIN)
		x86_64_set_result(&thread->regs, -ERESTARTNOHAND);
	syscall_remember(thread, &r->s->sleeps);
	if (set_xstate(r, thread, t) || tracee_set_regs(&thread->tracee, &thread->regs, r->e))
		return -1;
	return i ? tracee_set_sigmask(&thread->tracee, t->sigmask, r->e) : 0;
}

/* SIGTRAP's action could not be set while traps ended the batches, dumpable is reset whenever a
 * thread changes its user; and the window goes. */
static int finish_leader(struct restore *r)
{
	const struct image_sigaction *sa;
	struct remote remote;
	int64_t result[3];
	uint64_t scratch;
	size_t count;
	int failed;

	sa = image_note_array(r->img, IMAGE_NOTE_SIGACTIONS, struct image_sigaction, &count);
	if (remote_begin(&remote, &r->process, &r->process.threads[0], r->e))
		return -1;
	remote.home.sigmask = r->threads[0].sigmask;
	scratch = remote_scratch(&remote, 4096, r->e);
	failed =
		!scratch ||
		tracee_write(r->process.mem_fd, scratch, &sa[SIGTRAP - 1], sizeof(*sa), r->e) ||
		REMOTE_CALL(
			&remote, &result[0], r->e, SYS_rt_sigaction, SIGTRAP, scratch, 0, 8) ||
		REMOTE_CALL(&remote, &result[1], r->e, SYS_prctl, PR_SET_DUMPABLE,
			r->ip->dumpable == 1) ||
		REMOTE_CALL(&remote, &result[2], r->e, SYS_munmap, LOADER_WINDOW,
			LOADER_WINDOW_SIZE);
	if (failed || remote_end(&remote, r->e))
		return -1;
	if (result[0] || result[1] || result[2])
		return err_set(r->e, 0,
			"cannot take the loader out of the new process (%ld, %ld, %ld)",
			(long)result[0], (long)result[1], (long)result[2]);
	return 0;
}

/* From here on the program is whole, and need not die with us. */
static int let_go(struct restore *r)
{
	for (size_t i = 0; i < r->thread_count; i++)
		if (tracee_spare(&r->process.threads[i].tracee, r->e))
			return -1;
	for (size_t i = 0; i < r->thread_count; i++)
		if (syscall_thaw_in_place(
			    &r->process, &r->process.threads[i], &r->s->sleeps, r->e))
			return -1;
	if (r->ip->flags & IMAGE_PROCESS_STOPPED)
		kill(r->s->root, SIGSTOP);
	for (size_t i = 0; i < r->thread_count; i++)
		if (tracee_detach(&r->process.threads[i].tracee, 0, r->e))
			return -1;
	return 0;
}

static int settle(struct restore *r)
{
	/* The vdso has moved since the process was prepared. */
	close(r->process.mem_fd);
	r->process.mem_fd = -1;
	if (process_prepare(&r->process, r->e))
		return -1;
	/* The leader last: its calls need the window and the others' work done. */
	for (size_t i = r->thread_count; i-- > 0;)
		if (settle_thread(r, i))
			return -1;
	if (finish_leader(r))
		return -1;
	set_limits(r);
	set_oom_score(r);
	return 0;
}

/* ---- all of it ---- */

static int read_new_process(struct restore *r)
{
	const void *old;
	size_t size;

	if (procfs_vmas(r->process.pid, &r->vmas, r->e))
		return -1;
	r->new_vdso = xmalloc(r->process.vdso_size);
	if (tracee_read(r->process.mem_fd, r->process.vdso, r->new_vdso, r->process.vdso_size,
		    r->e))
		return -1;
	old = image_note(r->img, IMAGE_NOTE_VDSO, 1, &size);
	r->plan.other_vdso = getenv("TRECR_TEST_OTHER_VDSO") || !old ||
			     size != r->process.vdso_size || memcmp(old, r->new_vdso, size);
	r->plan.img = r->img;
	r->plan.fds = r->child.fds;
	r->plan.vmas = &r->vmas;
	return 0;
}

static int restore_all(struct restore *r)
{
	if (seize_and_exec(r) || read_new_process(r) || restore_plan_make(&r->plan, r->e))
		return -1;
	raise_memlock(r);
	if (map_window(r) || fill_memory(r) || redirect_vdso(r) || clear_rseq(r) ||
		make_threads(r) || wait_threads(r) || settle(r) || finish_check(r))
		return -1;
	return let_go(r);
}

static void *run(void *arg)
{
	struct restore *r = arg;

	r->result = restore_all(r);
	return NULL;
}

/* The end of the tracing thread lets go of what is still attached, or kills it. */
static int run_in_thread(struct restore *r)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, r);

	if (error)
		return err_set(r->e, error, "cannot start a thread");
	error = pthread_join(thread, NULL);
	BUG_ON(error);
	return r->result;
}

/* Whatever there is of the new process goes. A process does not count as ended before all its
 * threads have been waited for, also those that fill memory; and nobody else is our child or
 * tracee yet. */
static void kill_all(struct restore *r)
{
	struct supervisor *s = r->s;

	if (s->root > 0)
		kill(s->root, SIGKILL);
	if (s->init > 0)
		kill(s->init, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
	s->root = s->init = 0;
}

static int look_at_image(struct restore *r)
{
	size_t count;

	if (r->c->process_count < 1)
		return err_set(r->e, 0, "the image holds no process");
	r->img = r->c->processes[0];
	r->ip = image_note_array(r->img, IMAGE_NOTE_PROCESS, struct image_process, &count);
	if (count != 1)
		return err_set(r->e, 0, "the image lacks the state of its process");
	r->threads = image_note_array(
		r->img, IMAGE_NOTE_THREADS, struct image_thread, &r->thread_count);
	image_note_array(r->img, IMAGE_NOTE_SIGACTIONS, struct image_sigaction, &count);
	if (!r->thread_count || count != 64)
		return err_set(r->e, 0, "the image lacks threads or signal actions");
	r->process.threads = xcalloc(r->thread_count, sizeof(struct thread));
	r->process.thread_count = r->thread_count;
	r->process.mem_fd = -1;
	snprintf(r->process.comm, sizeof(r->process.comm), "%.15s", r->threads[0].comm);
	return 0;
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
	/* Ended early, it may still be reading. What it finds no longer matters. */
	(void)join_check(r);
	restore_child_free(&r->child);
	restore_plan_free(&r->plan);
	vma_list_free(&r->vmas);
	free(r->new_vdso);
	free(r->process.threads);
	if (r->process.mem_fd >= 0)
		close(r->process.mem_fd);
}

int restore_start(struct supervisor *s, const struct checkpoint *c,
	const struct restore_options *o, struct err *e)
{
	struct restore r = {.s = s, .c = c, .o = o, .e = e, .process.mem_fd = -1};
	bool foreign_exe = false;
	char *why = NULL;
	int result = -1;

	if (look_at_image(&r) || check_before(&r, &foreign_exe) ||
		restore_child_init(&r.child, c, 0, foreign_exe, e))
		goto out;
	if (spawn_restored(
		    s, r.ip->pid, restore_child_main, &r.child, o->force_namespace, &why, e))
		goto out;
	if (why)
		notice(&r, why);
	result = run_in_thread(&r);
	if (result)
		kill_all(&r);
	else
		adopt(&r);
out:
	free(why);
	release(&r);
	return result;
}
