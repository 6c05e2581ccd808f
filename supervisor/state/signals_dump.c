/*
 * What signals do, and those that wait to be taken. A thread's mask is saved with the thread
 * (threads_dump.c).
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/state/dump.h"
#include "supervisor/target/remote_query.h"

#define SIGNALS         64
#define PENDING_AT_ONCE 16

/* The kernel's struct sigaction, as rt_sigaction(2) takes it. */
struct kernel_sigaction {
	uint64_t handler, flags, restorer, mask;
};

int dump_sigactions(struct dump *d, struct remote *r, struct err *e)
{
	struct kernel_sigaction actions[SIGNALS];
	struct remote_query queries[SIGNALS];

	/* All of them, also those at their default: flags and masks survive a SIG_DFL. */
	for (int i = 0; i < SIGNALS; i++)
		queries[i] = (struct remote_query){
			.nr = SYS_rt_sigaction,
			.args = {i + 1, 0, 0, 8},
			.out_arg = 3,
			.out = &actions[i],
			.size = sizeof(actions[i]),
		};
	if (remote_query(r, queries, SIGNALS, e))
		return -1;
	for (int i = 0; i < SIGNALS; i++) {
		const struct kernel_sigaction *sa = &actions[i];
		struct image_sigaction out = {sa->handler, sa->flags, sa->restorer, sa->mask};

		if (queries[i].result < 0)
			return err_set(e, -queries[i].result,
				"cannot read the action of signal %d", i + 1);
		image_writer_note(d->writer, IMAGE_NOTE_SIGACTIONS, &out, sizeof(out));
	}
	return 0;
}

/* To find one, the kernel counts through those before it (ptrace_peek_siginfo()): of ten times
 * as many, all take a hundred times as long. */
#define PENDING_PATIENCE_NS 5000000000ull

static int add_pending(struct thread *t, bool shared, struct buf *out, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + PENDING_PATIENCE_NS;
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
		if (clock_ns(CLOCK_MONOTONIC) > deadline)
			return err_set(e, 0,
				"more signals are queued for process %d than the kernel shows "
				"in "
				"%llu seconds, which is for how long it would stand still (the "
				"first %llu were read): let it take them first",
				t->tracee.pid, PENDING_PATIENCE_NS / 1000000000,
				(unsigned long long)at);
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
