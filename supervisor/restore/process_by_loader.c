/*
 * One process on its way back, from the first instruction of the file that it executed to the
 * last of the loader.
 */
#include "supervisor/restore/process_by_loader.h"

#include "supervisor/memory/decompress.h"
#include "supervisor/restore/loader_plan.h"
#include "supervisor/restore/registers_restore.h"
#include "supervisor/restore/restore.h"
#include "supervisor/state/clocks_restore.h"

#include <errno.h>
#include <linux/rseq.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/notices.h"
#include "lib/test_hooks.h"
#include "supervisor/memory/uffd_anchor.h"
#include "supervisor/memory/lazy.h"
#include "supervisor/state/limits_restore.h"
#include "supervisor/split/lower_restore.h"
#include "supervisor/state/mempolicy.h"
#include "supervisor/state/seccomp.h"
#include "supervisor/state/vdso_restore.h"
#include "supervisor/syscall/vdso_frames.h"
#include "supervisor/target/memory_limits.h"
#include "supervisor/target/module.h"
#include "supervisor/target/remote.h"
#include "supervisor/target/fetch_new_fd.h"

extern const uint8_t loader_blob[], loader_blob_end[];

/* A batch may read many gigabytes: only a process that does nothing at all is given up. */
#define BATCH_PATIENCE_NS 3600000000000ull

/* All signals but SIGTRAP, which ends a batch: a trap that finds its signal blocked would
 * reset the program's action. */
#define RESTORE_SIGMASK (~(1ull << (SIGTRAP - 1)))

/* ---- before anything is made ---- */

/* Whether the program's own file is there to be executed. Only an image that carries its
 * memory can do without. */
bool new_process_exe_is_there(const struct new_process *np)
{
	const char *exe = image_string(np->img, np->ip->exe);

	return !access(exe, X_OK);
}

/* ---- up to the executed file's first instruction ---- */

static struct tracee *leader_thread(struct new_process *np)
{
	return &np->process.threads[0].tracee;
}

static int wait_for(
	struct new_process *np, struct tracee *t, enum tracee_event want, uint64_t patience)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + patience;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(t, deadline, &report, np->e))
			return -1;
		if (report.event == want)
			return 0;
		if (report.event == TRACEE_EVENT_GONE)
			return err_set(np->e, 0, "the new process ended early");
		if (report.event == TRACEE_EVENT_NONE)
			return err_set(np->e, 0,
				"the new process was not ready within a minute (is the machine "
				"overloaded?)");
		if (tracee_continue(
			    t, report.event == TRACEE_EVENT_SIGNAL ? report.signal : 0, np->e))
			return -1;
	}
}

/* Calls that are put into a process need it behind the return of execve(2), which would overwrite their registers.
 * The one that maps the loader's window does not (remote_begin_trapped()). A process that executes nothing stands in
 * a trap. */
static bool returns_from_exec(const struct new_process *np)
{
	return !np->stays && np->s->lazy;
}

static int return_from_exec(struct new_process *np)
{
	return returns_from_exec(np) ? tracee_continue_to_syscall(leader_thread(np), 0, np->e)
				     : 0;
}

static int finish_exec(struct new_process *np)
{
	struct tracee *t = leader_thread(np);
	struct tracee_report report = {.event = TRACEE_EVENT_SYSCALL};

	if (returns_from_exec(np) &&
		tracee_wait(t, clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS, &report, np->e))
		return -1;
	if (report.event != TRACEE_EVENT_SYSCALL)
		return err_set(np->e, 0, "the new process stops in an unexpected way");
	if (tracee_get_regs(t, &np->process.threads[0].regs, np->e) ||
		seccomp_suspend_new(t, np->img, np->e))
		return -1;
	return process_prepare(&np->process, np->e);
}

/* ---- the window ---- */

/* The C library has registered one, which goes with the memory that it is in. execve(2) would
 * have forgotten it. */
static int forget_rseq(struct new_process *np, struct remote *remote)
{
	struct tracee_rseq rseq;
	int64_t result;

	if (!np->stays || tracee_get_rseq(leader_thread(np), &rseq, np->e))
		return np->stays ? -1 : 0;
	if (!rseq.pointer)
		return 0;
	if (REMOTE_CALL(remote, &result, np->e, SYS_rseq, rseq.pointer, rseq.size,
		    RSEQ_FLAG_UNREGISTER, rseq.signature))
		return -1;
	return result ? err_set(np->e, -result, "cannot unregister rseq") : 0;
}

/* What keeps its userfaultfd open. It has a chance only if nobody ends two processes at a time. */
static void make_anchor(struct new_process *np, struct remote *remote)
{
	struct err why = ERR_INIT;

	np->anchor = anchor_make(remote, &why);
	if (np->anchor >= 0 || !np->o->notice)
		return;
	notice_printf(np->o->notice,
		"%s, which would keep pages that are not there yet from being read as zeros: "
		"do not kill "
		"trecr-restart and its child trecr-lazy at the same time before all "
		"memory is there",
		why.msg);
}

/* For memory that is filled later: of the address space that the loader will clear. */
static int make_uffd(struct new_process *np, struct remote *remote)
{
	if (!np->plan.lazy)
		return 0;
	np->uffd = fetch_new_uffd(remote, 0, np->e);
	if (np->uffd < 0)
		return -1;
	make_anchor(np, remote);
	return 0;
}

/* From here on it waits for its pages. Nothing has touched that memory so far. */
static int begin_lazy(struct new_process *np)
{
	const struct lazy_process lazy = {
		np->index, np->process.pid, np->uffd, np->anchor, &np->plan.lazy_ranges};
	int failed = np->plan.lazy && lazy_add(np->s->lazy, &lazy, np->e);

	util_close(&np->uffd);
	np->uffd = -1;
	return failed ? -1 : 0;
}

/* What has to be asked of the address space that the loader will clear. */
static int use_old_memory(struct new_process *np)
{
	struct remote remote;

	if (!np->stays && !np->plan.lazy)
		return 0;
	return remote_begin(&remote, &np->process, &np->process.threads[0], np->e) ||
			       forget_rseq(np, &remote) || make_uffd(np, &remote) ||
			       remote_wipe(&remote, np->e)
		       ? -1
		       : 0;
}

static uint64_t plan_start(const struct new_process *np)
{
	return LOADER_RANGE + PLAN_OFFSET + np->plan.plan.shift;
}

/* The loader's code, and behind it the plan; of further processes in the same memory the plan
 * alone. */
static uint64_t window_start(const struct new_process *np)
{
	return np->memory ? plan_start(np) : LOADER_RANGE;
}

static int begin_window(struct new_process *np)
{
	uint64_t start = window_start(np);
	const uint64_t args[6] = {start,
		align_up(plan_start(np) + np->plan.plan.data.len - start, 4096),
		PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0};

	return use_old_memory(np) ||
			       tracee_set_sigmask(leader_thread(np), RESTORE_SIGMASK, np->e) ||
			       remote_begin_trapped(&np->process, &np->process.threads[0],
				       SYS_mmap, args, np->e)
		       ? -1
		       : 0;
}

static int finish_window(struct new_process *np)
{
	int64_t at;

	if (remote_finish_trapped(&np->process, &np->process.threads[0], &at, np->e))
		return -1;
	if (at != (int64_t)window_start(np))
		return err_set(
			np->e, at < 0 ? -at : 0, "cannot map the loader into the new process");
	return (!np->memory && tracee_write(np->process.mem_fd, LOADER_RANGE, loader_blob,
				       loader_blob_end - loader_blob, np->e)) ||
			       tracee_write(np->process.mem_fd, plan_start(np),
				       np->plan.plan.data.data, np->plan.plan.data.len, np->e)
		       ? -1
		       : 0;
}

static int start_batch(struct new_process *np, uint64_t batch)
{
	struct user_regs_struct regs = np->process.threads[0].regs;
	const uint64_t args[6] = {batch};

	x86_64_set_syscall(&regs, LOADER_RANGE + LOADER_ENTRY_BATCH, 0, args);
	x86_64_set_stack(&regs, np->plan.stack);
	return tracee_set_regs(leader_thread(np), &regs, np->e) ||
			       tracee_continue(leader_thread(np), 0, np->e)
		       ? -1
		       : 0;
}

/* ---- the first two batches ---- */

/* A thread that fills its share and ends. */
static int wait_fill_thread(struct new_process *np, pid_t tid)
{
	struct tracee t = {.pid = np->process.pid, .tid = tid};
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BATCH_PATIENCE_NS;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(&t, deadline, &report, np->e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_GONE:
			return 0; /* its batch tells how it went */
		case TRACEE_EVENT_NONE:
			return err_set(
				np->e, 0, "the new process made no progress for an hour");
		default:
			if (tracee_continue(&t, 0, np->e))
				return -1;
		}
	}
}

/* Until the leader, which runs its batch, comes to the trap at its end; @tids gets the ids of the threads that it
 * makes, @max at most. The threads wait in their first stop, or with @run_new start at once. */
static int finish_batch(
	struct new_process *np, pid_t *tids, size_t max, size_t *made, bool run_new)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BATCH_PATIENCE_NS;
	struct tracee_report report;

	*made = 0;
	for (;;) {
		if (tracee_wait(leader_thread(np), deadline, &report, np->e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_SIGNAL:
			if (report.signal == SIGTRAP)
				return 0;
			return err_set(np->e, 0,
				"the loader in the new process was hit by signal %d (%s)",
				report.signal, strsignal(report.signal));
		case TRACEE_EVENT_NEW:
			if (*made == max)
				return err_set(
					np->e, 0, "the new process creates too many threads");
			tids[(*made)++] = report.new_tid;
			break;
		case TRACEE_EVENT_NONE:
		case TRACEE_EVENT_GONE:
			return err_set(np->e, 0,
				"the new process ended early, or made no progress for an hour");
		default:
			break;
		}
		if (report.event == TRACEE_EVENT_NEW && run_new) {
			struct tracee t = {.pid = np->process.pid, .tid = report.new_tid};

			if (wait_for(np, &t, TRACEE_EVENT_TRAP, EXEC_PATIENCE_NS) ||
				tracee_continue(&t, 0, np->e))
				return -1;
		}
		if (tracee_continue(leader_thread(np), 0, np->e))
			return -1;
	}
}

/* The loader has compared memory with the hashes as it read it: reading the image again would not
 * prove what is in memory. */
static int check_fill(struct new_process *np, uint64_t at, const struct batch_builder *b)
{
	struct plan_failure f;
	int result = plan_result(np->process.mem_fd, at, b, &f, np->e);
	const struct image_extent *x;

	if (result <= 0)
		return result;
	x = image_find(np->img, 0, f.call.expect);
	if ((f.call.check == BATCH_BLOCKS || f.call.check == BATCH_COPY_BLOCKS) &&
		f.call.result == -BATCH_DAMAGED && x)
		return image_damaged(np->img, x, f.call.expect, np->e);
	if (f.call.check == BATCH_THERE && f.call.result == -BATCH_DAMAGED)
		return err_set(np->e, 0,
			"memory at %#lx, which the process has in common with others, does not "
			"have the checksum that the image tells: where trecr-inspect --verify "
			"finds the image whole, it is a fault of this machine's memory, or a "
			"bug in trecr",
			f.call.expect);
	(void)plan_err(b, &f, np->e);
	return memory_limits_tell(np->process.pid, np->e);
}

static int finish_map(struct new_process *np)
{
	size_t none;

	return finish_batch(np, NULL, 0, &none, true) ||
			       check_fill(np, np->plan.memory_at, &np->plan.memory)
		       ? -1
		       : 0;
}

static int finish_fill(struct new_process *np)
{
	pid_t tids[FILL_THREADS_MAX];
	size_t made;

	if (finish_batch(np, tids, FILL_THREADS_MAX, &made, true) ||
		check_fill(np, np->plan.fill_at[0], &np->plan.fill[0]))
		return -1;
	for (size_t i = 0; i < made; i++)
		if (wait_fill_thread(np, tids[i]))
			return -1;
	for (unsigned i = 1; i <= np->plan.fill_threads; i++)
		if (check_fill(np, np->plan.fill_at[i], &np->plan.fill[i]))
			return -1;
	return 0;
}

/* ---- between the batches: memory that the supervisor writes itself ---- */

static int redirect_vdso(struct new_process *np)
{
	cleanup_free uint8_t *bytes = NULL;
	const void *old;
	size_t size;

	if (!np->plan.other_vdso)
		return 0;
	old = image_note(np->img, IMAGE_NOTE_VDSO, 1, &size);
	if (!old)
		return 0;
	if (vdso_check_frames(np->process.mem_fd, np->img, np->e))
		return -1;
	bytes = xmalloc(size);
	memcpy(bytes, old, size);
	if (vdso_redirect(bytes, size, np->new_vdso, np->process.vdso_size, np->plan.vdso_code,
		    np->e))
		return -1;
	return tracee_write(np->process.mem_fd, np->ip->vdso_start, bytes, size, np->e);
}

/* Registration wants no critical section under way; dump_prepare() has moved the thread out
 * of it. */
static int clear_rseq(struct new_process *np)
{
	static const uint64_t none;

	for (size_t i = 0; i < np->thread_count; i++)
		if (np->threads[i].rseq &&
			tracee_write(np->process.mem_fd, np->threads[i].rseq + 8, &none,
				sizeof(none), np->e))
			return -1;
	return 0;
}

/* ---- the third batch ---- */

static int finish_rest(struct new_process *np)
{
	cleanup_free pid_t *tids = xcalloc(np->thread_count, sizeof(*tids));
	struct plan_failure f;
	size_t made;
	int failed;

	if (finish_batch(np, tids, np->thread_count, &made, false))
		return -1;
	failed = plan_result(np->process.mem_fd, np->plan.rest_at, &np->plan.rest, &f, np->e);
	if (failed) {
		if (failed > 0)
			(void)plan_err(&np->plan.rest, &f, np->e);
		np->id_taken =
			failed > 0 && f.call.check == BATCH_THREAD && f.call.result == -EEXIST;
		return memory_limits_tell(np->process.pid, np->e);
	}
	if (made != np->thread_count - 1)
		return err_set(np->e, 0, "the new process has %zu threads instead of %zu",
			made + 1, np->thread_count);
	for (size_t i = 0; i < made; i++) {
		struct tracee *t = &np->process.threads[i + 1].tracee;

		t->pid = np->process.pid;
		t->tid = tids[i];
		if (wait_for(np, t, TRACEE_EVENT_TRAP, EXEC_PATIENCE_NS) ||
			tracee_continue(t, 0, np->e))
			return -1;
	}
	return 0;
}

/* Each thread ends its own part in a trap. */
static int wait_threads(struct new_process *np)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;

	for (size_t i = 1; i < np->thread_count; i++) {
		struct tracee *t = &np->process.threads[i].tracee;
		struct tracee_report report;

		if (tracee_wait(t, deadline, &report, np->e))
			return -1;
		if (report.event != TRACEE_EVENT_SIGNAL || report.signal != SIGTRAP)
			return err_set(np->e, 0, "thread %d of the new process did not start",
				np->threads[i].tid);
	}
	/* All have their own lists of what they did; the first failure is enough. */
	for (size_t i = 1; i < np->thread_count; i++) {
		uint64_t at = np->plan.thread_at[i - 1];

		if (plan_check(np->process.mem_fd, at, &np->plan.threads[i - 1], np->e))
			return err_prefix(np->e, "thread %d", np->threads[i].tid);
	}
	return 0;
}

static void notice_numa_nodes(const struct new_process *np)
{
	if (np->o->notice && mempolicy_lacks_nodes(np->img))
		np->o->notice(
			"memory that was bound to NUMA nodes that are not here comes from "
			"others");
}

static int read_new_process(struct new_process *np)
{
	const void *old;
	size_t size;

	if (procfs_maps(np->process.pid, &np->vmas, np->e))
		return -1;
	np->new_vdso = xmalloc(np->process.vdso_size);
	if (tracee_read(np->process.mem_fd, np->process.vdso, np->new_vdso,
		    np->process.vdso_size, np->e))
		return -1;
	old = image_note(np->img, IMAGE_NOTE_VDSO, 1, &size);
	np->plan.other_vdso = test_other_vdso() || !old || size != np->process.vdso_size ||
			      memcmp(old, np->new_vdso, size);
	np->plan.vmas = &np->vmas;
	return 0;
}

/* Plans of further processes in one memory lie in the upper half of the window. */
#define PLACE_SIZE (64ul << 20)

static int prepare_plan(struct new_process *np)
{
	np->plan.c = np->c;
	np->plan.index = np->index;
	np->plan.img = np->img;
	np->plan.ip = np->ip;
	np->plan.fds = np->fds;
	np->plan.stays = np->stays;
	np->plan.trial = np->o->trial;
	np->plan.wanted_threads = np->o->threads;
	np->plan.lazy = np->s->lazy && !np->memory && !restore_lower_wanted(np);
	np->plan.filled = !np->o->trial || restore_lower_wanted(np);
	if (clocks_compare(np->process.pid, &np->plan.clocks, np->e))
		return -1;
	for (int k = 0; k < IMAGE_SHARED_KINDS; k++)
		np->plan.owned_elsewhere[k] =
			checkpoint_owner(np->c, np->index, k) != np->index;
	if (!np->memory)
		return read_new_process(np);
	if (np->place >= LOADER_RANGE_SIZE / 2 / PLACE_SIZE)
		return err_set(np->e, 0, "too many processes share one memory");
	np->plan.plan.shift = LOADER_RANGE_SIZE / 2 + (np->place - 1) * PLACE_SIZE;
	return 0;
}

/* ---- the steps of new_process_map_steps ---- */

static int begin_loader(struct new_process *np)
{
	return finish_exec(np) || prepare_plan(np) || restore_plan_make(&np->plan, np->e) ||
			       begin_window(np)
		       ? -1
		       : 0;
}

static int begin_memory(struct new_process *np)
{
	if (finish_window(np))
		return -1;
	if (np->memory) /* all that it still needs are its threads */
		return np->memory->plan.other_vdso
			       ? vdso_check_frames(np->process.mem_fd, np->img, np->e)
			       : 0;
	notice_numa_nodes(np);
	return start_batch(np, np->plan.memory_at);
}

/* One that makes threads for it does so when its turn comes: if all did at once, there could be more than
 * RLIMIT_NPROC or pids.max allow. */
static bool fills_alone(const struct new_process *np)
{
	return np->plan.fill_threads;
}

static int start_fill(struct new_process *np)
{
	return start_batch(np, np->plan.fill_at[0]);
}

static int begin_fill(struct new_process *np)
{
	if (np->memory)
		return 0;
	if (np->plan.filled_at_once)
		return 0;
	return finish_map(np) || begin_lazy(np) || (!fills_alone(np) && start_fill(np)) ? -1
											: 0;
}

static int fill(struct new_process *np)
{
	if (np->plan.filled_at_once)
		return finish_map(np);
	return (fills_alone(np) && start_fill(np)) || finish_fill(np) ? -1 : 0;
}

static int complete_memory(struct new_process *np)
{
	if (!np->memory && (fill(np) || new_process_unpack(np) || redirect_vdso(np)))
		return -1;
	return clear_rseq(np);
}

new_process_step new_process_map_steps[] = {
	return_from_exec, begin_loader, begin_memory, begin_fill, complete_memory, NULL};

/* ---- the steps of new_process_thread_steps ---- */

static int begin_rest(struct new_process *np)
{
	if (new_process_changes_user(np))
		restore_limits_set(np);
	return start_batch(np, np->plan.rest_at);
}

static int complete_threads(struct new_process *np)
{
	return finish_rest(np) || wait_threads(np) ? -1 : 0;
}

new_process_step new_process_thread_steps[] = {begin_rest, complete_threads, NULL};

int new_process_init(struct new_process *np, size_t index, const struct restart_fds *fds)
{
	size_t count;

	np->index = index;
	np->img = np->c->processes[index];
	np->fds = fds;
	np->process.mem_fd = np->uffd = np->anchor = -1;
	np->ip = image_note_array(np->img, IMAGE_NOTE_PROCESS, struct image_process, &count);
	if (count != 1)
		return err_set(np->e, 0, "the image lacks the state of its process");
	np->threads = image_note_array(
		np->img, IMAGE_NOTE_THREADS, struct image_thread, &np->thread_count);
	image_note_array(np->img, IMAGE_NOTE_SIGACTIONS, struct image_sigaction, &count);
	if (!np->thread_count || count != 64)
		return err_set(np->e, 0, "the image lacks threads or signal actions");
	np->process.threads = xcalloc(np->thread_count, sizeof(struct thread));
	np->process.thread_count = np->thread_count;
	np->process.vpid = np->ip->pid;
	snprintf(np->process.comm, sizeof(np->process.comm), "%.15s", np->threads[0].comm);
	return 0;
}

void new_process_free(struct new_process *np)
{
	restore_plan_free(&np->plan);
	vma_list_free(&np->vmas);
	free(np->new_vdso);
	free(np->gpu_variable);
	free(np->process.threads);
	util_close(&np->process.mem_fd);
	util_close(&np->uffd);
	util_close(&np->anchor);
}
