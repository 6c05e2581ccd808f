/*
 * Threads: registers, signal mask, and what the kernel has registered for each. What a thread
 * sets for itself by prctl(2) is in thread_settings_dump.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "supervisor/state/core_notes.h"
#include "supervisor/state/dump.h"
#include "supervisor/state/scheduling.h"

static int read_comm(struct dump *d, pid_t tid, struct image_thread *it, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/comm", d->process->pid, tid);
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

/* A restartable sequence that the thread was stopped in: it resumes at the abort handler,
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

/* @settings: those of the thread, NULL: it is to be asked for them. */
static int dump_thread(struct dump *d, struct thread *t, const struct image_thread *settings,
	uint64_t *xstate_offset, struct err *e)
{
	cleanup_free void *xstate = xmalloc(XSTATE_ROOM);
	struct image_thread it = settings ? *settings : (struct image_thread){0};
	size_t xstate_size = XSTATE_ROOM;
	siginfo_t first = {0};

	it.tid = t->vtid;
	it.xstate_offset = *xstate_offset;
	if (x86_64_pc(&t->regs) - d->process->vdso < d->process->vdso_size)
		it.flags |= IMAGE_THREAD_IN_VDSO;
	if (tracee_get_xstate(&t->tracee, xstate, &xstate_size, e) ||
		tracee_get_sigmask(&t->tracee, &it.sigmask, e) ||
		(!settings && dump_thread_settings(d, t, &it, e)) ||
		scheduling_read(t->tracee.tid, &it, e) || read_comm(d, t->tracee.tid, &it, e) ||
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

/* All that is left of it is its name and how it ended, which may be how the process ends. */
static int dump_ended_leader(struct dump *d, struct err *e)
{
	struct process *p = d->process;
	struct image_thread it = {
		.tid = p->vpid,
		.flags = IMAGE_THREAD_ENDED,
		.exit_code = p->leader_exit_code,
	};

	if (read_comm(d, p->pid, &it, e))
		return -1;
	image_writer_note(d->writer, IMAGE_NOTE_THREADS, &it, sizeof(it));
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

int dump_threads(struct dump *d, const struct image_thread *first, struct err *e)
{
	struct process *p = d->process;
	uint64_t xstate_offset = 0;

	_Static_assert(sizeof(p->threads[0].regs) == IMAGE_REGS * 8, "registers");
	if (p->leader_ended && dump_ended_leader(d, e))
		return err_prefix(e, "cannot save process %d (%s)", p->pid, p->comm);
	for (size_t i = 0; i < p->thread_count; i++)
		if (dump_thread(d, &p->threads[i], i ? NULL : first, &xstate_offset, e))
			return err_prefix(e, "cannot save thread %d of process %d (%s)",
				p->threads[i].tracee.tid, p->pid, p->comm);
	return 0;
}
