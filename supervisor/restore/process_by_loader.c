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
#include "supervisor/memory/anchor.h"
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
#include "supervisor/target/fetch_new.h"

extern const uint8_t loader_blob[], loader_blob_end[];

/* A batch may read many gigabytes: only a process that does nothing at all is given up. */
#define BATCH_PATIENCE_NS 3600000000000ull

/* All signals but SIGTRAP, which ends a batch: a trap that finds its signal blocked would
 * reset the program's action. */
#define RESTORE_SIGMASK (~(1ull << (SIGTRAP - 1)))

/* ---- before anything is made ---- */

/* Whether the program's own file is there to be executed. Only an image that carries its
 * memory can do without. */
bool new_process_exe_is_there(const struct new_process *r)
{
	const char *exe = image_string(r->img, r->ip->exe);

	return !access(exe, X_OK);
}

/* ---- up to the executed file's first instruction ---- */

static struct tracee *leader_thread(struct new_process *r)
{
	return &r->process.threads[0].tracee;
}

static int wait_for(
	struct new_process *r, struct tracee *t, enum tracee_event want, uint64_t patience)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + patience;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(t, deadline, &report, r->e))
			return -1;
		if (report.event == want)
			return 0;
		if (report.event == TRACEE_EVENT_GONE)
			return err_set(r->e, 0, "the new process ended early");
		if (report.event == TRACEE_EVENT_NONE)
			return err_set(r->e, 0,
				"the new process was not ready within a minute (is the machine "
				"overloaded?)");
		if (tracee_continue(
			    t, report.event == TRACEE_EVENT_SIGNAL ? report.signal : 0, r->e))
			return -1;
	}
}

/* Step past the return of execve(2): the process stands in the stop before it, and returning would
 * overwrite the registers of an injected call. A process that executes nothing stands in a trap. */
static int finish_exec(struct new_process *r)
{
	struct tracee *t = leader_thread(r);
	struct tracee_report report = {.event = TRACEE_EVENT_SYSCALL};

	if (!r->stays && (tracee_continue_to_syscall(t, 0, r->e) ||
				 tracee_wait(t, clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS,
					 &report, r->e)))
		return -1;
	if (report.event != TRACEE_EVENT_SYSCALL)
		return err_set(r->e, 0, "the new process stops in an unexpected way");
	if (tracee_get_regs(t, &r->process.threads[0].regs, r->e) ||
		seccomp_suspend_new(t, r->img, r->e))
		return -1;
	return process_prepare(&r->process, r->e);
}

/* ---- the window ---- */

/* The C library has registered one, which goes with the memory that it is in. execve(2) would
 * have forgotten it. */
static int forget_rseq(struct new_process *r, struct remote *remote)
{
	struct tracee_rseq rseq;
	int64_t result;

	if (!r->stays || tracee_get_rseq(leader_thread(r), &rseq, r->e))
		return r->stays ? -1 : 0;
	if (!rseq.pointer)
		return 0;
	if (REMOTE_CALL(remote, &result, r->e, SYS_rseq, rseq.pointer, rseq.size,
		    RSEQ_FLAG_UNREGISTER, rseq.signature))
		return -1;
	return result ? err_set(r->e, -result, "cannot unregister rseq") : 0;
}

/* What keeps its userfaultfd open. It has a chance only if nobody ends two processes at a time. */
static void make_anchor(struct new_process *r, struct remote *remote)
{
	struct err why = ERR_INIT;

	r->anchor = anchor_make(remote, &why);
	if (r->anchor >= 0 || !r->o->notice)
		return;
	notice_printf(r->o->notice,
		"%s, which would keep pages that are not there yet from being read as zeros: "
		"do not kill "
		"trecr-restart and its child trecr-lazy at the same time before all "
		"memory is there",
		why.msg);
}

/* For memory that is filled later: of the address space that the loader will clear. */
static int make_uffd(struct new_process *r, struct remote *remote)
{
	if (!r->plan.lazy)
		return 0;
	r->uffd = fetch_new_uffd(remote, 0, r->e);
	if (r->uffd < 0)
		return -1;
	make_anchor(r, remote);
	return 0;
}

/* From here on it waits for its pages. Nothing has touched that memory so far. */
static int begin_lazy(struct new_process *r)
{
	const struct lazy_process lazy = {
		r->index, r->process.pid, r->uffd, r->anchor, &r->plan.lazy_ranges};
	int failed = r->plan.lazy && lazy_add(r->s->lazy, &lazy, r->e);

	util_close(&r->uffd);
	r->uffd = -1;
	return failed ? -1 : 0;
}

/* The loader's code, and behind it the plan; of further processes in the same memory the plan
 * alone. */
static int map_window(struct new_process *r)
{
	uint64_t start = LOADER_RANGE + (r->memory ? PLAN_OFFSET + r->plan.plan.shift : 0);
	uint64_t plan = LOADER_RANGE + PLAN_OFFSET + r->plan.plan.shift;
	uint64_t size = align_up(plan + r->plan.plan.data.len - start, 4096);
	struct remote remote;
	int64_t at;

	if (remote_begin(&remote, &r->process, &r->process.threads[0], r->e) ||
		forget_rseq(r, &remote) || make_uffd(r, &remote) ||
		REMOTE_CALL(&remote, &at, r->e, SYS_mmap, start, size,
			PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ||
		remote_wipe(&remote, r->e))
		return -1;
	if (at != (int64_t)start)
		return err_set(
			r->e, at < 0 ? -at : 0, "cannot map the loader into the new process");
	if ((!r->memory && tracee_write(r->process.mem_fd, LOADER_RANGE, loader_blob,
				   loader_blob_end - loader_blob, r->e)) ||
		tracee_write(r->process.mem_fd, plan, r->plan.plan.data.data,
			r->plan.plan.data.len, r->e))
		return -1;
	return tracee_set_sigmask(leader_thread(r), RESTORE_SIGMASK, r->e);
}

static int start_batch(struct new_process *r, uint64_t batch)
{
	struct user_regs_struct regs = r->process.threads[0].regs;
	const uint64_t args[6] = {batch};

	x86_64_set_syscall(&regs, LOADER_RANGE + LOADER_ENTRY_BATCH, 0, args);
	x86_64_set_stack(&regs, r->plan.stack);
	return tracee_set_regs(leader_thread(r), &regs, r->e) ||
			       tracee_continue(leader_thread(r), 0, r->e)
		       ? -1
		       : 0;
}

/* ---- the first two batches ---- */

/* A thread that fills its share and ends. */
static int wait_fill_thread(struct new_process *r, pid_t tid)
{
	struct tracee t = {.pid = r->process.pid, .tid = tid};
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BATCH_PATIENCE_NS;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(&t, deadline, &report, r->e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_GONE:
			return 0; /* its batch tells how it went */
		case TRACEE_EVENT_NONE:
			return err_set(r->e, 0, "the new process made no progress for an hour");
		default:
			if (tracee_continue(&t, 0, r->e))
				return -1;
		}
	}
}

/* Let the leader run its batch to the trap at its end; @tids gets the ids of the threads that it
 * makes, @max at most. The threads wait in their first stop, or with @run_new start at once. */
static int run_batch(struct new_process *r, uint64_t batch, pid_t *tids, size_t max,
	size_t *made, bool run_new)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BATCH_PATIENCE_NS;
	struct tracee_report report;

	*made = 0;
	if (start_batch(r, batch))
		return -1;
	for (;;) {
		if (tracee_wait(leader_thread(r), deadline, &report, r->e))
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
			return err_set(r->e, 0,
				"the new process ended early, or made no progress for an hour");
		default:
			break;
		}
		if (report.event == TRACEE_EVENT_NEW && run_new) {
			struct tracee t = {.pid = r->process.pid, .tid = report.new_tid};

			if (wait_for(r, &t, TRACEE_EVENT_TRAP, EXEC_PATIENCE_NS) ||
				tracee_continue(&t, 0, r->e))
				return -1;
		}
		if (tracee_continue(leader_thread(r), 0, r->e))
			return -1;
	}
}

/* The loader has compared memory with the hashes as it read it: reading the image again would not
 * prove what is in memory. */
static int check_fill(struct new_process *r, uint64_t at, const struct batch_builder *b)
{
	struct plan_failure f;
	int result = plan_result(r->process.mem_fd, at, b, &f, r->e);
	const struct image_extent *x;

	if (result <= 0)
		return result;
	x = image_find(r->img, 0, f.call.expect);
	if (f.call.check == BATCH_BLOCKS && f.call.result == -BATCH_DAMAGED && x)
		return image_damaged(r->img, x, f.call.expect, r->e);
	(void)plan_err(b, &f, r->e);
	return memory_limits_tell(r->process.pid, r->e);
}

static int map_memory(struct new_process *r)
{
	size_t none;

	return run_batch(r, r->plan.memory_at, NULL, 0, &none, true) ||
			       check_fill(r, r->plan.memory_at, &r->plan.memory)
		       ? -1
		       : 0;
}

static int fill_memory(struct new_process *r)
{
	pid_t tids[FILL_THREADS_MAX];
	size_t made;

	if (run_batch(r, r->plan.fill_at[0], tids, FILL_THREADS_MAX, &made, true) ||
		check_fill(r, r->plan.fill_at[0], &r->plan.fill[0]))
		return -1;
	for (size_t i = 0; i < made; i++)
		if (wait_fill_thread(r, tids[i]))
			return -1;
	for (unsigned i = 1; i <= r->plan.fill_threads; i++)
		if (check_fill(r, r->plan.fill_at[i], &r->plan.fill[i]))
			return -1;
	return 0;
}

/* ---- between the batches: memory that the supervisor writes itself ---- */

static int redirect_vdso(struct new_process *r)
{
	cleanup_free uint8_t *bytes = NULL;
	const void *old;
	size_t size;

	if (!r->plan.other_vdso)
		return 0;
	old = image_note(r->img, IMAGE_NOTE_VDSO, 1, &size);
	if (!old)
		return 0;
	if (vdso_check_frames(r->process.mem_fd, r->img, r->e))
		return -1;
	bytes = xmalloc(size);
	memcpy(bytes, old, size);
	if (vdso_redirect(
		    bytes, size, r->new_vdso, r->process.vdso_size, r->plan.vdso_code, r->e))
		return -1;
	return tracee_write(r->process.mem_fd, r->ip->vdso_start, bytes, size, r->e);
}

/* Registration wants no critical section under way; dump_prepare() has moved the thread out
 * of it. */
static int clear_rseq(struct new_process *r)
{
	static const uint64_t none;

	for (size_t i = 0; i < r->thread_count; i++)
		if (r->threads[i].rseq &&
			tracee_write(r->process.mem_fd, r->threads[i].rseq + 8, &none,
				sizeof(none), r->e))
			return -1;
	return 0;
}

/* ---- the third batch ---- */

static int make_threads(struct new_process *r)
{
	cleanup_free pid_t *tids = xcalloc(r->thread_count, sizeof(*tids));
	struct plan_failure f;
	size_t made;
	int failed;

	if (run_batch(r, r->plan.rest_at, tids, r->thread_count, &made, false))
		return -1;
	failed = plan_result(r->process.mem_fd, r->plan.rest_at, &r->plan.rest, &f, r->e);
	if (failed) {
		if (failed > 0)
			(void)plan_err(&r->plan.rest, &f, r->e);
		r->id_taken =
			failed > 0 && f.call.check == BATCH_THREAD && f.call.result == -EEXIST;
		return memory_limits_tell(r->process.pid, r->e);
	}
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
static int wait_threads(struct new_process *r)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;

	for (size_t i = 1; i < r->thread_count; i++) {
		struct tracee *t = &r->process.threads[i].tracee;
		struct tracee_report report;

		if (tracee_wait(t, deadline, &report, r->e))
			return -1;
		if (report.event != TRACEE_EVENT_SIGNAL || report.signal != SIGTRAP)
			return err_set(r->e, 0, "thread %d of the new process did not start",
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

static void notice_numa_nodes(const struct new_process *r)
{
	if (r->o->notice && mempolicy_lacks_nodes(r->img))
		r->o->notice("memory that was bound to NUMA nodes that are not here comes from "
			     "others");
}

static int read_new_process(struct new_process *r)
{
	const void *old;
	size_t size;

	if (procfs_maps(r->process.pid, &r->vmas, r->e))
		return -1;
	r->new_vdso = xmalloc(r->process.vdso_size);
	if (tracee_read(r->process.mem_fd, r->process.vdso, r->new_vdso, r->process.vdso_size,
		    r->e))
		return -1;
	old = image_note(r->img, IMAGE_NOTE_VDSO, 1, &size);
	r->plan.other_vdso = test_other_vdso() || !old || size != r->process.vdso_size ||
			     memcmp(old, r->new_vdso, size);
	r->plan.vmas = &r->vmas;
	return 0;
}

/* Plans of further processes in one memory lie in the upper half of the window. */
#define PLACE_SIZE (64ul << 20)

static int prepare_plan(struct new_process *r)
{
	r->plan.c = r->c;
	r->plan.index = r->index;
	r->plan.img = r->img;
	r->plan.ip = r->ip;
	r->plan.fds = r->fds;
	r->plan.stays = r->stays;
	r->plan.trial = r->o->trial;
	r->plan.wanted_threads = r->o->threads;
	r->plan.lazy = r->s->lazy && !r->memory && !restore_lower_wanted(r);
	r->plan.filled = !r->o->trial || restore_lower_wanted(r);
	if (clocks_compare(r->process.pid, &r->plan.clocks, r->e))
		return -1;
	for (int k = 0; k < IMAGE_SHARED_KINDS; k++)
		r->plan.owned_elsewhere[k] = checkpoint_owner(r->c, r->index, k) != r->index;
	if (!r->memory)
		return read_new_process(r);
	if (r->place >= LOADER_RANGE_SIZE / 2 / PLACE_SIZE)
		return err_set(r->e, 0, "too many processes share one memory");
	r->plan.plan.shift = LOADER_RANGE_SIZE / 2 + (r->place - 1) * PLACE_SIZE;
	return 0;
}

static int make_memory(struct new_process *r)
{
	notice_numa_nodes(r);
	if (map_window(r) || map_memory(r) || begin_lazy(r) || fill_memory(r) ||
		new_process_unpack(r))
		return -1;
	return redirect_vdso(r);
}

/* That is done: its threads are all that it still needs. */
static int join_memory(struct new_process *r)
{
	if (map_window(r))
		return -1;
	return r->memory->plan.other_vdso ? vdso_check_frames(r->process.mem_fd, r->img, r->e)
					  : 0;
}

int new_process_map(struct new_process *r)
{
	if (finish_exec(r) || prepare_plan(r) || restore_plan_make(&r->plan, r->e))
		return -1;
	return (r->memory ? join_memory(r) : make_memory(r)) || clear_rseq(r) ? -1 : 0;
}

int new_process_threads(struct new_process *r)
{
	if (new_process_changes_user(r))
		restore_limits_set(r);
	return make_threads(r) || wait_threads(r) ? -1 : 0;
}

int new_process_init(struct new_process *r, size_t index, const struct extra_fds *fds)
{
	size_t count;

	r->index = index;
	r->img = r->c->processes[index];
	r->fds = fds;
	r->process.mem_fd = r->uffd = r->anchor = -1;
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
	r->process.vpid = r->ip->pid;
	snprintf(r->process.comm, sizeof(r->process.comm), "%.15s", r->threads[0].comm);
	return 0;
}

void new_process_free(struct new_process *r)
{
	restore_plan_free(&r->plan);
	vma_list_free(&r->vmas);
	free(r->new_vdso);
	free(r->process.threads);
	util_close(&r->process.mem_fd);
	util_close(&r->uffd);
	util_close(&r->anchor);
}
