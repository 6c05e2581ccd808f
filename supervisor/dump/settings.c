/*
 * What a thread has set for itself with prctl(2) and its like. Most of it only the thread can
 * ask for; where something else tells that there is nothing to be asked, it is not: each call
 * that is run in each of many threads makes the pause longer.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/dump/dump.h"
#include "supervisor/landlock.h"
#include "supervisor/mempolicy.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

/* <asm/prctl.h> */
#define ARCH_GET_CPUID 0x1011
#define ARCH_SET_CPUID 0x1012

/* Flags of a task, in /proc/PID/stat (include/linux/sched.h): with those for the handling of
 * bad memory it is asked for more, and those of an I/O flusher are all that tells of one
 * without the privilege to ask. */
#define PF_MCE_PROCESS    0x00000080u
#define PF_MCE_EARLY      0x08000000u
#define PF_IO_FLUSHER     0x00180000u /* PF_MEMALLOC_NOIO | PF_LOCAL_THROTTLE */
#define PR_MCE_KILL_EARLY 1

static int call_failed(const struct image_thread *it, int64_t result, struct err *e)
{
	return err_set(e, -result, "cannot read the settings of thread %d", it->tid);
}

/* prctl(@option) with a result in the call's return value. */
static int get_prctl(struct remote *r, int option, uint64_t arg, const struct image_thread *it,
	int64_t *value, struct err *e)
{
	if (REMOTE_CALL(r, value, e, SYS_prctl, option, arg))
		return -1;
	return *value < 0 ? call_failed(it, *value, e) : 0;
}

/* prctl(@option) with a result of @size bytes in memory. */
static int get_prctl_at(struct remote *r, int option, uint64_t scratch, void *value,
	size_t size, const struct image_thread *it, struct err *e)
{
	int64_t result;

	if (get_prctl(r, option, scratch, it, &result, e))
		return -1;
	return tracee_read(r->process->mem_fd, scratch, value, size, e);
}

static int read_signal_stack(
	struct remote *r, uint64_t scratch, struct image_thread *it, struct err *e)
{
	struct {
		uint64_t sp;
		int32_t flags;
		uint32_t pad;
		uint64_t size;
	} stack;
	int64_t result;

	if (REMOTE_CALL(r, &result, e, SYS_sigaltstack, 0, scratch))
		return -1;
	if (result < 0)
		return call_failed(it, result, e);
	if (tracee_read(r->process->mem_fd, scratch, &stack, sizeof(stack), e))
		return -1;
	it->sigaltstack_sp = stack.sp;
	it->sigaltstack_size = stack.size;
	/* SS_ONSTACK is where the stack pointer is, no setting. */
	it->sigaltstack_flags = stack.flags & ~1;
	return 0;
}

static int read_memory_failure(struct remote *r, struct image_thread *it, struct err *e)
{
	int64_t policy;

	if (get_prctl(r, PR_MCE_KILL_GET, 0, it, &policy, e))
		return -1;
	if (policy != PR_MCE_KILL_DEFAULT)
		it->flags |= policy == PR_MCE_KILL_EARLY ? IMAGE_THREAD_MCE_EARLY
							 : IMAGE_THREAD_MCE_LATE;
	return 0;
}

static int read_task_flags(
	struct remote *r, struct thread *t, struct image_thread *it, struct err *e)
{
	struct proc_stat st;

	if (procfs_stat(t->tracee.pid, t->tracee.tid, &st, e))
		return -1;
	if ((st.field[STAT_FLAGS] & PF_IO_FLUSHER) == PF_IO_FLUSHER)
		it->flags |= IMAGE_THREAD_IO_FLUSHER;
	if (!(st.field[STAT_FLAGS] & (PF_MCE_PROCESS | PF_MCE_EARLY)))
		return 0;
	return read_memory_failure(r, it, e);
}

/* Where we may not choose, neither may the program. */
static int read_speculation(struct remote *r, struct image_thread *it, struct err *e)
{
	for (int i = 0; i < IMAGE_SPECULATIONS; i++) {
		int mine = prctl(PR_GET_SPECULATION_CTRL, i, 0, 0, 0);
		int64_t value;

		if (mine < 0 || !(mine & PR_SPEC_PRCTL))
			continue;
		if (get_prctl(r, PR_GET_SPECULATION_CTRL, i, it, &value, e))
			return -1;
		it->speculation[i] = value;
	}
	return 0;
}

static int read_cpuid(struct remote *r, struct image_thread *it, struct err *e)
{
	int64_t on;

	/* ENODEV where the processor cannot do it. */
	if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1))
		return 0;
	if (REMOTE_CALL(r, &on, e, SYS_arch_prctl, ARCH_GET_CPUID))
		return -1;
	if (!on)
		it->flags |= IMAGE_THREAD_NO_CPUID;
	return 0;
}

/* Kept once for the process. They say what becomes of capabilities: who has none cannot even
 * set them, but for one that says what becomes of those (PR_SET_KEEPCAPS). */
static int refuse_securebits(
	struct dump *d, struct remote *r, const struct image_thread *it, struct err *e)
{
	int64_t bits;

	if (!d->has_capabilities)
		return 0;
	if (get_prctl(r, PR_GET_SECUREBITS, 0, it, &bits, e))
		return -1;
	if (r->thread == d->process->threads)
		d->securebits = bits;
	return bits == d->securebits
		       ? 0
		       : err_set(e, 0, "it has secure bits of its own, which is not supported");
}

static int read_remote(struct dump *d, struct remote *r, struct thread *t, uint64_t scratch,
	struct image_thread *it, struct err *e)
{
	int32_t signal, tsc;
	int64_t slack;

	if (read_signal_stack(r, scratch, it, e) ||
		get_prctl_at(r, PR_GET_TID_ADDRESS, scratch, &it->clear_child_tid, 8, it, e) ||
		get_prctl_at(r, PR_GET_PDEATHSIG, scratch, &signal, sizeof(signal), it, e) ||
		get_prctl_at(r, PR_GET_TSC, scratch, &tsc, sizeof(tsc), it, e) ||
		get_prctl(r, PR_GET_TIMERSLACK, 0, it, &slack, e) ||
		read_task_flags(r, t, it, e) || read_speculation(r, it, e) ||
		read_cpuid(r, it, e) || refuse_securebits(d, r, it, e) || landlock_refuse(r, e))
		return -1;
	it->pdeathsig = signal;
	it->timer_slack_ns = slack;
	if (tsc == PR_TSC_SIGSEGV)
		it->flags |= IMAGE_THREAD_NO_TSC;
	return mempolicy_matters() ? mempolicy_read(r, scratch, 0, &it->policy, e) : 0;
}

int dump_thread_settings(
	struct dump *d, struct thread *t, struct image_thread *it, struct err *e)
{
	struct remote r;
	uint64_t scratch;
	int failed;

	if (remote_begin(&r, d->process, t, e))
		return -1;
	scratch = remote_scratch(&r, 4096, e);
	failed = !scratch || read_remote(d, &r, t, scratch, it, e);
	if (remote_end(&r, failed ? NULL : e))
		return -1;
	return failed ? -1 : 0;
}
