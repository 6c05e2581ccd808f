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
bool new_process_exe_is_there(const struct new_process *new)
{
	const char *exe = image_string(new->img, new->ip->exe);

	return !access(exe, X_OK);
}

/* ---- up to the executed file's first instruction ---- */

static struct tracee *leader_thread(struct new_process *new)
{
	return &new->process.threads[0].tracee;
}

static int wait_for(
	struct new_process *new, struct tracee *t, enum tracee_event want, uint64_t patience)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + patience;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(t, deadline, &report, new->e))
			return -1;
		if (report.event == want)
			return 0;
		if (report.event == TRACEE_EVENT_GONE)
			return err_set(new->e, 0, "the new process ended early");
		if (report.event == TRACEE_EVENT_NONE)
			return err_set(new->e, 0,
				"the new process was not ready within a minute (is the machine "
				"overloaded?)");
		if (tracee_continue(
			    t, report.event == TRACEE_EVENT_SIGNAL ? report.signal : 0, new->e))
			return -1;
	}
}

/* Step past the return of execve(2): the process stands in the stop before it, and returning would
 * overwrite the registers of an injected call. A process that executes nothing stands in a trap. */
static int finish_exec(struct new_process *new)
{
	struct tracee *t = leader_thread(new);
	struct tracee_report report = {.event = TRACEE_EVENT_SYSCALL};

	if (!new->stays && (tracee_continue_to_syscall(t, 0, new->e) ||
				   tracee_wait(t, clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS,
					   &report, new->e)))
		return -1;
	if (report.event != TRACEE_EVENT_SYSCALL)
		return err_set(new->e, 0, "the new process stops in an unexpected way");
	if (tracee_get_regs(t, &new->process.threads[0].regs, new->e) ||
		seccomp_suspend_new(t, new->img, new->e))
		return -1;
	return process_prepare(&new->process, new->e);
}

/* ---- the window ---- */

/* The C library has registered one, which goes with the memory that it is in. execve(2) would
 * have forgotten it. */
static int forget_rseq(struct new_process *new, struct remote *remote)
{
	struct tracee_rseq rseq;
	int64_t result;

	if (!new->stays || tracee_get_rseq(leader_thread(new), &rseq, new->e))
		return new->stays ? -1 : 0;
	if (!rseq.pointer)
		return 0;
	if (REMOTE_CALL(remote, &result, new->e, SYS_rseq, rseq.pointer, rseq.size,
		    RSEQ_FLAG_UNREGISTER, rseq.signature))
		return -1;
	return result ? err_set(new->e, -result, "cannot unregister rseq") : 0;
}

/* What keeps its userfaultfd open. It has a chance only if nobody ends two processes at a time. */
static void make_anchor(struct new_process *new, struct remote *remote)
{
	struct err why = ERR_INIT;

	new->anchor = anchor_make(remote, &why);
	if (new->anchor >= 0 || !new->o->notice)
		return;
	notice_printf(new->o->notice,
		"%s, which would keep pages that are not there yet from being read as zeros: "
		"do not kill "
		"trecr-restart and its child trecr-lazy at the same time before all "
		"memory is there",
		why.msg);
}

/* For memory that is filled later: of the address space that the loader will clear. */
static int make_uffd(struct new_process *new, struct remote *remote)
{
	if (!new->plan.lazy)
		return 0;
	new->uffd = fetch_new_uffd(remote, 0, new->e);
	if (new->uffd < 0)
		return -1;
	make_anchor(new, remote);
	return 0;
}

/* From here on it waits for its pages. Nothing has touched that memory so far. */
static int begin_lazy(struct new_process *new)
{
	const struct lazy_process lazy = {
		new->index, new->process.pid, new->uffd, new->anchor, &new->plan.lazy_ranges};
	int failed = new->plan.lazy &&lazy_add(new->s->lazy, &lazy, new->e);

	util_close(&new->uffd);
	new->uffd = -1;
	return failed ? -1 : 0;
}

/* The loader's code, and behind it the plan; of further processes in the same memory the plan
 * alone. */
static int map_window(struct new_process *new)
{
	uint64_t start = LOADER_RANGE + (new->memory ? PLAN_OFFSET + new->plan.plan.shift : 0);
	uint64_t plan = LOADER_RANGE + PLAN_OFFSET + new->plan.plan.shift;
	uint64_t size = align_up(plan + new->plan.plan.data.len - start, 4096);
	struct remote remote;
	int64_t at;

	if (remote_begin(&remote, &new->process, &new->process.threads[0], new->e) ||
		forget_rseq(new, &remote) || make_uffd(new, &remote) ||
		REMOTE_CALL(&remote, &at, new->e, SYS_mmap, start, size,
			PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ||
		remote_wipe(&remote, new->e))
		return -1;
	if (at != (int64_t)start)
		return err_set(
			new->e, at < 0 ? -at : 0, "cannot map the loader into the new process");
	if ((!new->memory &&tracee_write(new->process.mem_fd, LOADER_RANGE, loader_blob,
		    loader_blob_end - loader_blob, new->e)) ||
		tracee_write(new->process.mem_fd, plan, new->plan.plan.data.data,
			new->plan.plan.data.len, new->e))
		return -1;
	return tracee_set_sigmask(leader_thread(new), RESTORE_SIGMASK, new->e);
}

static int start_batch(struct new_process *new, uint64_t batch)
{
	struct user_regs_struct regs = new->process.threads[0].regs;
	const uint64_t args[6] = {batch};

	x86_64_set_syscall(&regs, LOADER_RANGE + LOADER_ENTRY_BATCH, 0, args);
	x86_64_set_stack(&regs, new->plan.stack);
	return tracee_set_regs(leader_thread(new), &regs, new->e) ||
			       tracee_continue(leader_thread(new), 0, new->e)
		       ? -1
		       : 0;
}

/* ---- the first two batches ---- */

/* A thread that fills its share and ends. */
static int wait_fill_thread(struct new_process *new, pid_t tid)
{
	struct tracee t = {.pid = new->process.pid, .tid = tid};
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BATCH_PATIENCE_NS;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(&t, deadline, &report, new->e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_GONE:
			return 0; /* its batch tells how it went */
		case TRACEE_EVENT_NONE:
			return err_set(
				new->e, 0, "the new process made no progress for an hour");
		default:
			if (tracee_continue(&t, 0, new->e))
				return -1;
		}
	}
}

/* Let the leader run its batch to the trap at its end; @tids gets the ids of the threads that it
 * makes, @max at most. The threads wait in their first stop, or with @run_new start at once. */
static int run_batch(struct new_process *new, uint64_t batch, pid_t *tids, size_t max,
	size_t *made, bool run_new)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BATCH_PATIENCE_NS;
	struct tracee_report report;

	*made = 0;
	if (start_batch(new, batch))
		return -1;
	for (;;) {
		if (tracee_wait(leader_thread(new), deadline, &report, new->e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_SIGNAL:
			if (report.signal == SIGTRAP)
				return 0;
			return err_set(new->e, 0,
				"the loader in the new process was hit by signal %d (%s)",
				report.signal, strsignal(report.signal));
		case TRACEE_EVENT_NEW:
			if (*made == max)
				return err_set(
					new->e, 0, "the new process makes too many threads");
			tids[(*made)++] = report.new_tid;
			break;
		case TRACEE_EVENT_NONE:
		case TRACEE_EVENT_GONE:
			return err_set(new->e, 0,
				"the new process ended early, or made no progress for an hour");
		default:
			break;
		}
		if (report.event == TRACEE_EVENT_NEW && run_new) {
			struct tracee t = {.pid = new->process.pid, .tid = report.new_tid};

			if (wait_for(new, &t, TRACEE_EVENT_TRAP, EXEC_PATIENCE_NS) ||
				tracee_continue(&t, 0, new->e))
				return -1;
		}
		if (tracee_continue(leader_thread(new), 0, new->e))
			return -1;
	}
}

/* The loader has compared memory with the hashes as it read it: reading the image again would not
 * prove what is in memory. */
static int check_fill(struct new_process *new, uint64_t at, const struct batch_builder *b)
{
	struct plan_failure f;
	int result = plan_result(new->process.mem_fd, at, b, &f, new->e);
	const struct image_extent *x;

	if (result <= 0)
		return result;
	x = image_find(new->img, 0, f.call.expect);
	if (f.call.check == BATCH_BLOCKS && f.call.result == -BATCH_DAMAGED && x)
		return image_damaged(new->img, x, f.call.expect, new->e);
	(void)plan_err(b, &f, new->e);
	return memory_limits_tell(new->process.pid, new->e);
}

static int map_memory(struct new_process *new)
{
	size_t none;

	return run_batch(new, new->plan.memory_at, NULL, 0, &none, true) ||
			       check_fill(new, new->plan.memory_at, &new->plan.memory)
		       ? -1
		       : 0;
}

static int fill_memory(struct new_process *new)
{
	pid_t tids[FILL_THREADS_MAX];
	size_t made;

	if (run_batch(new, new->plan.fill_at[0], tids, FILL_THREADS_MAX, &made, true) ||
		check_fill(new, new->plan.fill_at[0], &new->plan.fill[0]))
		return -1;
	for (size_t i = 0; i < made; i++)
		if (wait_fill_thread(new, tids[i]))
			return -1;
	for (unsigned i = 1; i <= new->plan.fill_threads; i++)
		if (check_fill(new, new->plan.fill_at[i], &new->plan.fill[i]))
			return -1;
	return 0;
}

/* ---- between the batches: memory that the supervisor writes itself ---- */

static int redirect_vdso(struct new_process *new)
{
	cleanup_free uint8_t *bytes = NULL;
	const void *old;
	size_t size;

	if (!new->plan.other_vdso)
		return 0;
	old = image_note(new->img, IMAGE_NOTE_VDSO, 1, &size);
	if (!old)
		return 0;
	if (vdso_check_frames(new->process.mem_fd, new->img, new->e))
		return -1;
	bytes = xmalloc(size);
	memcpy(bytes, old, size);
	if (vdso_redirect(bytes, size, new->new_vdso, new->process.vdso_size,
		    new->plan.vdso_code, new->e))
		return -1;
	return tracee_write(new->process.mem_fd, new->ip->vdso_start, bytes, size, new->e);
}

/* Registration wants no critical section under way; dump_prepare() has moved the thread out
 * of it. */
static int clear_rseq(struct new_process *new)
{
	static const uint64_t none;

	for (size_t i = 0; i < new->thread_count; i++)
		if (new->threads[i].rseq &&
			tracee_write(new->process.mem_fd, new->threads[i].rseq + 8, &none,
				sizeof(none), new->e))
			return -1;
	return 0;
}

/* ---- the third batch ---- */

static int make_threads(struct new_process *new)
{
	cleanup_free pid_t *tids = xcalloc(new->thread_count, sizeof(*tids));
	struct plan_failure f;
	size_t made;
	int failed;

	if (run_batch(new, new->plan.rest_at, tids, new->thread_count, &made, false))
		return -1;
	failed = plan_result(
		new->process.mem_fd, new->plan.rest_at, &new->plan.rest, &f, new->e);
	if (failed) {
		if (failed > 0)
			(void)plan_err(&new->plan.rest, &f, new->e);
		new->id_taken =
			failed > 0 && f.call.check == BATCH_THREAD &&f.call.result == -EEXIST;
		return memory_limits_tell(new->process.pid, new->e);
	}
	if (made != new->thread_count - 1)
		return err_set(new->e, 0, "the new process has %zu threads instead of %zu",
			made + 1, new->thread_count);
	for (size_t i = 0; i < made; i++) {
		struct tracee *t = &new->process.threads[i + 1].tracee;

		t->pid = new->process.pid;
		t->tid = tids[i];
		if (wait_for(new, t, TRACEE_EVENT_TRAP, EXEC_PATIENCE_NS) ||
			tracee_continue(t, 0, new->e))
			return -1;
	}
	return 0;
}

/* Each thread ends its own part in a trap. */
static int wait_threads(struct new_process *new)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;

	for (size_t i = 1; i < new->thread_count; i++) {
		struct tracee *t = &new->process.threads[i].tracee;
		struct tracee_report report;

		if (tracee_wait(t, deadline, &report, new->e))
			return -1;
		if (report.event != TRACEE_EVENT_SIGNAL || report.signal != SIGTRAP)
			return err_set(new->e, 0, "thread %d of the new process did not start",
				new->threads[i].tid);
	}
	/* All have their own lists of what they did; the first failure is enough. */
	for (size_t i = 1; i < new->thread_count; i++) {
		uint64_t at = new->plan.thread_at[i - 1];

		if (plan_check(new->process.mem_fd, at, &new->plan.threads[i - 1], new->e))
			return err_prefix(new->e, "thread %d", new->threads[i].tid);
	}
	return 0;
}

static void notice_numa_nodes(const struct new_process *new)
{
	if (new->o->notice && mempolicy_lacks_nodes(new->img))
		new->o->notice(
			"memory that was bound to NUMA nodes that are not here comes from "
			"others");
}

static int read_new_process(struct new_process *new)
{
	const void *old;
	size_t size;

	if (procfs_maps(new->process.pid, &new->vmas, new->e))
		return -1;
	new->new_vdso = xmalloc(new->process.vdso_size);
	if (tracee_read(new->process.mem_fd, new->process.vdso, new->new_vdso,
		    new->process.vdso_size, new->e))
		return -1;
	old = image_note(new->img, IMAGE_NOTE_VDSO, 1, &size);
	new->plan.other_vdso = test_other_vdso() || !old || size != new->process.vdso_size ||
			       memcmp(old, new->new_vdso, size);
	new->plan.vmas = &new->vmas;
	return 0;
}

/* Plans of further processes in one memory lie in the upper half of the window. */
#define PLACE_SIZE (64ul << 20)

static int prepare_plan(struct new_process *new)
{
	new->plan.c = new->c;
	new->plan.index = new->index;
	new->plan.img = new->img;
	new->plan.ip = new->ip;
	new->plan.fds = new->fds;
	new->plan.stays = new->stays;
	new->plan.trial = new->o->trial;
	new->plan.wanted_threads = new->o->threads;
	new->plan.lazy = new->s->lazy && !new->memory && !restore_lower_wanted(new);
	new->plan.filled = !new->o->trial || restore_lower_wanted(new);
	if (clocks_compare(new->process.pid, &new->plan.clocks, new->e))
		return -1;
	for (int k = 0; k < IMAGE_SHARED_KINDS; k++)
		new->plan.owned_elsewhere[k] =
			checkpoint_owner(new->c, new->index, k) != new->index;
	if (!new->memory)
		return read_new_process(new);
	if (new->place >= LOADER_RANGE_SIZE / 2 / PLACE_SIZE)
		return err_set(new->e, 0, "too many processes share one memory");
	new->plan.plan.shift = LOADER_RANGE_SIZE / 2 + (new->place - 1) * PLACE_SIZE;
	return 0;
}

static int make_memory(struct new_process *new)
{
	notice_numa_nodes(new);
	if (map_window(new) || map_memory(new) || begin_lazy(new) || fill_memory(new) ||
		new_process_unpack(new))
		return -1;
	return redirect_vdso(new);
}

/* That is done: its threads are all that it still needs. */
static int join_memory(struct new_process *new)
{
	if (map_window(new))
		return -1;
	return new->memory->plan.other_vdso
		       ? vdso_check_frames(new->process.mem_fd, new->img, new->e)
		       : 0;
}

int new_process_map(struct new_process *new)
{
	if (finish_exec(new) || prepare_plan(new) || restore_plan_make(&new->plan, new->e))
		return -1;
	return (new->memory ? join_memory(new) : make_memory(new)) || clear_rseq(new) ? -1 : 0;
}

int new_process_threads(struct new_process *new)
{
	if (new_process_changes_user(new))
		restore_limits_set(new);
	return make_threads(new) || wait_threads(new) ? -1 : 0;
}

int new_process_init(struct new_process *new, size_t index, const struct extra_fds *fds)
{
	size_t count;

	new->index = index;
	new->img = new->c->processes[index];
	new->fds = fds;
	new->process.mem_fd = new->uffd = new->anchor = -1;
	new->ip = image_note_array(new->img, IMAGE_NOTE_PROCESS, struct image_process, &count);
	if (count != 1)
		return err_set(new->e, 0, "the image lacks the state of its process");
	new->threads = image_note_array(
		new->img, IMAGE_NOTE_THREADS, struct image_thread, &new->thread_count);
	image_note_array(new->img, IMAGE_NOTE_SIGACTIONS, struct image_sigaction, &count);
	if (!new->thread_count || count != 64)
		return err_set(new->e, 0, "the image lacks threads or signal actions");
	new->process.threads = xcalloc(new->thread_count, sizeof(struct thread));
	new->process.thread_count = new->thread_count;
	new->process.vpid = new->ip->pid;
	snprintf(new->process.comm, sizeof(new->process.comm), "%.15s", new->threads[0].comm);
	return 0;
}

void new_process_free(struct new_process *new)
{
	restore_plan_free(&new->plan);
	vma_list_free(&new->vmas);
	free(new->new_vdso);
	free(new->process.threads);
	util_close(&new->process.mem_fd);
	util_close(&new->uffd);
	util_close(&new->anchor);
}
