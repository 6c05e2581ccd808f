#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "supervisor/dump.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

#define IOPRIO_WHO_PROCESS 1
#define PENDING_AT_ONCE    16

/* More than any XSAVE area so far (AMX: 11 KiB). */
#define XSTATE_ROOM 65536

/* struct sched_attr of <linux/sched/types.h>, which old headers lack. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static int read_scheduling(struct thread *t, struct image_thread *it, struct err *e)
{
	struct scheduling s = {0};
	int ioprio;

	if (syscall(SYS_sched_getattr, t->tracee.tid, &s, sizeof(s), 0))
		return err_set(
			e, errno, "cannot read the scheduling of thread %d", t->tracee.tid);
	it->sched_policy = s.policy;
	it->sched_flags = s.flags;
	it->sched_priority = s.priority;
	it->sched_runtime = s.runtime;
	it->sched_deadline = s.deadline;
	it->sched_period = s.period;
	if (sched_getaffinity(t->tracee.tid, sizeof(it->affinity), (cpu_set_t *)it->affinity))
		return err_set(
			e, errno, "cannot read the CPU affinity of thread %d", t->tracee.tid);
	/* sched_getattr tells it for some policies only. */
	errno = 0;
	it->nice = getpriority(PRIO_PROCESS, t->tracee.tid);
	if (errno)
		return err_set(
			e, errno, "cannot read the nice value of thread %d", t->tracee.tid);
	ioprio = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, t->tracee.tid);
	it->ioprio = ioprio < 0 ? 0 : ioprio;
	return 0;
}

static int read_comm(struct dump *d, struct thread *t, struct image_thread *it, struct err *e)
{
	cleanup_free char *path =
		xasprintf("/proc/%d/task/%d/comm", d->process->pid, t->tracee.tid);
	cleanup_free char *text = NULL;
	size_t len;

	if (read_file(path, &text, &len, e))
		return -1;
	if (len && text[len - 1] == '\n')
		len--;
	memcpy(it->comm, text, len < sizeof(it->comm) - 1 ? len : sizeof(it->comm) - 1);
	return 0;
}

/* What the robust list and rseq registrations are can be asked from outside. */
static int read_registrations(struct thread *t, struct image_thread *it, struct err *e)
{
	void *head;
	size_t size;

	if (syscall(SYS_get_robust_list, t->tracee.tid, &head, &size))
		return err_set(
			e, errno, "cannot read the robust list of thread %d", t->tracee.tid);
	it->robust_list = (uintptr_t)head;
	it->robust_list_size = size;
	it->rseq = t->rseq.pointer;
	it->rseq_size = t->rseq.size;
	it->rseq_signature = t->rseq.signature;
	it->rseq_flags = t->rseq.flags;
	return 0;
}

static int read_remote(
	struct remote *r, uint64_t scratch, struct image_thread *it, struct err *e)
{
	struct {
		uint64_t sp;
		int32_t flags;
		uint32_t pad;
		uint64_t size;
	} stack;
	int mem = r->process->mem_fd;
	int64_t result[4];
	int32_t signal;

	if (REMOTE_CALL(r, &result[0], e, SYS_sigaltstack, 0, scratch) ||
		REMOTE_CALL(r, &result[1], e, SYS_prctl, PR_GET_TID_ADDRESS, scratch + 64) ||
		REMOTE_CALL(r, &result[2], e, SYS_prctl, PR_GET_PDEATHSIG, scratch + 128) ||
		REMOTE_CALL(r, &result[3], e, SYS_prctl, PR_GET_TIMERSLACK))
		return -1;
	for (int i = 0; i < 4; i++)
		if (result[i] < 0)
			return err_set(e, -result[i], "cannot read the settings of thread %d",
				it->tid);
	if (tracee_read(mem, scratch, &stack, sizeof(stack), e) ||
		tracee_read(mem, scratch + 64, &it->clear_child_tid, 8, e) ||
		tracee_read(mem, scratch + 128, &signal, sizeof(signal), e))
		return -1;
	it->sigaltstack_sp = stack.sp;
	it->sigaltstack_size = stack.size;
	/* SS_ONSTACK is where the stack pointer is, no setting. */
	it->sigaltstack_flags = stack.flags & ~1;
	it->pdeathsig = signal;
	it->timer_slack_ns = result[3];
	return 0;
}

static int run_remote(struct dump *d, struct thread *t, struct image_thread *it, struct err *e)
{
	struct remote r;
	uint64_t scratch;
	int failed;

	if (remote_begin(&r, d->process, t, e))
		return -1;
	scratch = remote_scratch(&r, 4096, e);
	failed = !scratch || read_remote(&r, scratch, it, e);
	if (remote_end(&r, failed ? NULL : e))
		return -1;
	return failed ? -1 : 0;
}

static int add_pending(struct thread *t, bool shared, struct buf *out, struct err *e)
{
	siginfo_t info[PENDING_AT_ONCE];
	uint64_t at = 0;
	int n;

	while ((n = tracee_pending(&t->tracee, shared, at, info, PENDING_AT_ONCE, e)) > 0) {
		for (int i = 0; i < n; i++) {
			struct image_pending p = {.tid = shared ? 0 : t->vtid};

			/* A process that is to be stopped comes back stopped. */
			if (info[i].si_signo == SIGSTOP)
				continue;
			_Static_assert(sizeof(info[i]) == sizeof(p.siginfo), "siginfo");
			memcpy(p.siginfo, &info[i], sizeof(p.siginfo));
			buf_push(out, struct image_pending, &p);
		}
		at += n;
	}
	return n;
}

int dump_pending(struct dump *d, struct buf *out, struct err *e)
{
	struct process *p = d->process;

	for (size_t i = 0; i < p->thread_count; i++)
		if (add_pending(&p->threads[i], false, out, e))
			return -1;
	return add_pending(&p->threads[0], true, out, e);
}

/* A restartable sequence that the thread was stopped in: it goes on from the abort handler,
 * as after any preemption (man rseq); the kernel forgets about it when anything else runs in
 * the thread meanwhile. */
struct rseq_section {
	uint32_t version, flags;
	uint64_t start, size, abort;
};

static int leave_rseq_section(struct dump *d, struct thread *t, struct err *e)
{
	struct rseq_section section;
	uint64_t pointer, pc = x86_64_pc(&t->regs);

	if (!t->rseq.pointer)
		return 0;
	if (tracee_read(d->process->mem_fd, t->rseq.pointer + 8, &pointer, sizeof(pointer), e))
		return -1;
	if (!pointer)
		return 0;
	if (tracee_read(d->process->mem_fd, pointer, &section, sizeof(section), e))
		return -1;
	if (pc - section.start >= section.size)
		return 0;
	x86_64_set_pc(&t->regs, section.abort);
	t->regs_changed = true;
	return 0;
}

static int dump_thread(struct dump *d, struct thread *t, uint64_t *xstate_offset, struct err *e)
{
	cleanup_free void *xstate = xmalloc(XSTATE_ROOM);
	struct image_thread it = {.tid = t->vtid, .xstate_offset = *xstate_offset};
	size_t xstate_size = XSTATE_ROOM;
	siginfo_t first = {0};

	if (x86_64_pc(&t->regs) - d->process->vdso < d->process->vdso_size)
		it.flags |= IMAGE_THREAD_IN_VDSO;
	if (tracee_get_xstate(&t->tracee, xstate, &xstate_size, e) ||
		tracee_get_sigmask(&t->tracee, &it.sigmask, e) || run_remote(d, t, &it, e) ||
		read_scheduling(t, &it, e) || read_comm(d, t, &it, e) ||
		read_registrations(t, &it, e) ||
		tracee_pending(&t->tracee, false, 0, &first, 1, e) < 0)
		return -1;
	memcpy(it.regs, &t->regs, sizeof(it.regs));
	it.syscall_class = t->syscall_class;
	it.syscall_left_ns = t->syscall_left_ns;
	it.xstate_size = xstate_size;
	*xstate_offset += xstate_size;
	image_writer_note(d->writer, IMAGE_NOTE_THREADS, &it, sizeof(it));
	image_writer_note(d->writer, IMAGE_NOTE_XSTATE, xstate, xstate_size);
	core_note_thread(d, &it, xstate, xstate_size, first.si_signo, &first);
	return 0;
}

int dump_prepare(struct dump *d, struct err *e)
{
	struct process *p = d->process;

	for (size_t i = 0; i < p->thread_count; i++)
		if (leave_rseq_section(d, &p->threads[i], e))
			return err_prefix(e, "cannot save thread %d of process %d (%s)",
				p->threads[i].tracee.tid, p->pid, p->comm);
	return 0;
}

int dump_threads(struct dump *d, struct err *e)
{
	struct process *p = d->process;
	uint64_t xstate_offset = 0;

	_Static_assert(sizeof(p->threads[0].regs) == IMAGE_REGS * 8, "registers");
	for (size_t i = 0; i < p->thread_count; i++)
		if (dump_thread(d, &p->threads[i], &xstate_offset, e))
			return err_prefix(e, "cannot save thread %d of process %d (%s)",
				p->threads[i].tracee.tid, p->pid, p->comm);
	return 0;
}
