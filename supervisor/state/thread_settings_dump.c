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

#include "lib/uring_abi.h"
#include "lib/util.h"
#include "supervisor/state/landlock_refuse.h"
#include "supervisor/state/mempolicy.h"
#include "supervisor/state/own_state.h"
#include "supervisor/state/thread_settings_dump.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

/* <asm/prctl.h> */
#define ARCH_GET_CPUID 0x1011
#define ARCH_SET_CPUID 0x1012

/* Flags of a task, in /proc/PID/stat (include/linux/sched.h): with the flags for the handling of
 * bad memory it is asked for more, and the flags of an I/O flusher are all that shows
 * without the privilege to ask. */
#define PF_MCE_PROCESS    0x00000080u
#define PF_MCE_EARLY      0x08000000u
#define PF_IO_FLUSHER     0x00180000u /* PF_MEMALLOC_NOIO | PF_LOCAL_THROTTLE */
#define PR_MCE_KILL_EARLY 1

static struct remote_query *add_query(
	struct thread_questions *q, long nr, uint64_t a, uint64_t b, uint64_t c)
{
	struct remote_query *query = &q->list[q->count++];

	BUG_ON(q->count > ARRAY_SIZE(q->list));
	*query = (struct remote_query){.nr = nr, .args = {a, b, c}};
	return query;
}

/* prctl(@option), with a result in the call's return value. */
static struct remote_query *ask_prctl(struct thread_questions *q, int option, uint64_t arg)
{
	return add_query(q, SYS_prctl, option, arg, 0);
}

/* The same with a result of @size bytes in memory. */
static struct remote_query *ask_prctl_at(
	struct thread_questions *q, int option, void *out, size_t size)
{
	struct remote_query *query = add_query(q, SYS_prctl, option, 0, 0);

	query->out_arg = 2;
	query->out = out;
	query->size = size;
	return query;
}

static struct remote_query *ask_signal_stack(
	struct thread_questions *q, struct signal_stack *stack)
{
	struct remote_query *query = add_query(q, SYS_sigaltstack, 0, 0, 0);

	query->out_arg = 2;
	query->out = stack;
	query->size = sizeof(*stack);
	return query;
}

/* Which flags it has, and in *ask_it whether it is to be asked what becomes of it when memory
 * fails. */
static int read_task_flags(
	const struct thread *t, struct image_thread *it, bool *ask_it, struct err *e)
{
	struct proc_stat st;

	if (procfs_stat(t->tracee.pid, t->tracee.tid, &st, e))
		return -1;
	if ((st.field[STAT_FLAGS] & PF_IO_FLUSHER) == PF_IO_FLUSHER)
		it->flags |= IMAGE_THREAD_IO_FLUSHER;
	*ask_it = st.field[STAT_FLAGS] & (PF_MCE_PROCESS | PF_MCE_EARLY);
	return 0;
}

/* Where we may not choose, neither may the program. */
static void ask_speculation(
	struct thread_questions *q, struct remote_query *asked[IMAGE_SPECULATIONS])
{
	for (int i = 0; i < IMAGE_SPECULATIONS; i++) {
		int mine = prctl(PR_GET_SPECULATION_CTRL, i, 0, 0, 0);

		asked[i] = mine >= 0 && mine & PR_SPEC_PRCTL
				   ? ask_prctl(q, PR_GET_SPECULATION_CTRL, i)
				   : NULL;
	}
}

/* ENODEV where the processor cannot do it. */
static struct remote_query *ask_cpuid(struct thread_questions *q)
{
	return syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1)
		       ? NULL
		       : add_query(q, SYS_arch_prctl, ARCH_GET_CPUID, 0, 0);
}

/* Saved once for the process. They say what becomes of capabilities: a thread without any cannot
 * even set them, except the bit that keeps capabilities (PR_SET_KEEPCAPS). */
static int refuse_securebits(
	struct dump *d, const struct thread *t, const struct remote_query *bits, struct err *e)
{
	if (!bits)
		return 0;
	if (t == d->process->threads)
		d->securebits = bits->result;
	return bits->result == d->securebits
		       ? 0
		       : err_set(e, 0, "it has secure bits of its own, which is not supported");
}

int ask_thread_settings(struct dump *d, const struct thread *t, struct thread_settings *s,
	struct image_thread *it, struct err *e)
{
	struct thread_questions *q = &s->questions;
	bool restricted = landlock_is_possible(t, d->own->status);
	bool memory_failure;

	if (read_task_flags(t, it, &memory_failure, e))
		return -1;
	ask_signal_stack(q, &s->stack);
	ask_prctl_at(q, PR_GET_TID_ADDRESS, &it->clear_child_tid, sizeof(it->clear_child_tid));
	ask_prctl_at(q, PR_GET_PDEATHSIG, &s->signal, sizeof(s->signal));
	ask_prctl_at(q, PR_GET_TSC, &s->tsc, sizeof(s->tsc));
	s->slack = ask_prctl(q, PR_GET_TIMERSLACK, 0);
	if (d->has_capabilities)
		s->securebits = ask_prctl(q, PR_GET_SECUREBITS, 0);
	if (memory_failure)
		s->memory_failure = ask_prctl(q, PR_MCE_KILL_GET, 0);
	ask_speculation(q, s->speculation);
	s->cpuid = ask_cpuid(q);
	s->rings = add_query(q, SYS_io_uring_enter, 0, 0, 0);
	s->rings->args[3] = IORING_ENTER_REGISTERED_RING;
	if (restricted)
		s->landlock = landlock_ask(t, add_query(q, 0, 0, 0, 0));
	return 0;
}

/* To enter the first of the rings that it has registered, with nothing to be done, fails with EINVAL
 * where a thread has never used one, else with EBADF, if there is none. Kernels before 5.18 know
 * nothing of such rings, and fail with EINVAL always: there any ring is refused (uring_dump.c). */
static bool uses_rings(int64_t result)
{
	return result != -ENOSYS && result != -EPERM && result != -EINVAL;
}

static int take_answers(struct dump *d, struct thread *t, const struct thread_settings *s,
	struct image_thread *it, struct err *e)
{
	for (size_t i = 0; i < s->questions.count; i++) {
		const struct remote_query *q = &s->questions.list[i];

		if (q->result < 0 && q != s->landlock && q != s->rings)
			return err_set(e, -q->result, "cannot read the settings of thread %d",
				it->tid);
	}
	t->uses_rings = uses_rings(s->rings->result);
	it->sigaltstack_sp = s->stack.sp;
	it->sigaltstack_size = s->stack.size;
	/* SS_ONSTACK is where the stack pointer is, no setting. */
	it->sigaltstack_flags = s->stack.flags & ~1;
	it->pdeathsig = s->signal;
	it->timer_slack_ns = s->slack->result;
	if (s->tsc == PR_TSC_SIGSEGV)
		it->flags |= IMAGE_THREAD_NO_TSC;
	if (s->memory_failure && s->memory_failure->result != PR_MCE_KILL_DEFAULT)
		it->flags |= s->memory_failure->result == PR_MCE_KILL_EARLY
				     ? IMAGE_THREAD_MCE_EARLY
				     : IMAGE_THREAD_MCE_LATE;
	for (int i = 0; i < IMAGE_SPECULATIONS; i++)
		if (s->speculation[i])
			it->speculation[i] = s->speculation[i]->result;
	if (s->cpuid && !s->cpuid->result)
		it->flags |= IMAGE_THREAD_NO_CPUID;
	return refuse_securebits(d, t, s->securebits, e) ||
			       (s->landlock && landlock_refuse(s->landlock->result, e))
		       ? -1
		       : 0;
}

static int read_policy(struct remote *r, struct image_thread *it, struct err *e)
{
	uint64_t scratch;

	if (!mempolicy_matters())
		return 0;
	scratch = r->home.scratch ? r->home.scratch : remote_scratch(r, 4096, e);
	return scratch ? mempolicy_read(r, scratch, 0, &it->policy, e) : -1;
}

int take_thread_settings(struct dump *d, struct remote *r, const struct thread_settings *s,
	struct image_thread *it, struct err *e)
{
	return take_answers(d, r->thread, s, it, e) || read_policy(r, it, e) ? -1 : 0;
}

int dump_thread_settings(
	struct dump *d, struct thread *t, struct image_thread *it, struct err *e)
{
	struct thread_settings s = {0};
	struct remote r;
	int failed;

	if (ask_thread_settings(d, t, &s, it, e) || remote_begin(&r, d->process, t, e))
		return -1;
	failed = remote_query(&r, s.questions.list, s.questions.count, e) ||
		 take_thread_settings(d, &r, &s, it, e);
	if (remote_end(&r, failed ? NULL : e))
		return -1;
	return failed ? -1 : 0;
}
