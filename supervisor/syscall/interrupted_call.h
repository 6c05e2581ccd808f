/*
 * interrupted_call.h - system calls that a freeze interrupts continue as if nothing had
 * happened.
 *
 * Three families (measured, doc/decisions/interrupted-calls.md):
 *  - those the kernel starts again from the registers alone: nothing to be done;
 *  - calls that need a "restart block", which holds when they are to end (rax = -516:
 *    nanosleep, poll, timed futex): intact in the same process, to be built anew after a
 *    restart, with what was left of the time-out;
 *  - calls that simply return EINTR after any stop (epoll_wait, sigtimedwait, semtimedop ...):
 *    to be entered again, in the same process too, with what was left of their time-out.
 */
#ifndef SUPERVISOR_SYSCALL_INTERRUPTED_CALL_H
#define SUPERVISOR_SYSCALL_INTERRUPTED_CALL_H

#include "lib/util.h"
#include "supervisor/target/process.h"

/* A sleep that was interrupted once continues in restart_syscall(2), which does not show
 * what call and until when: the supervisor remembers. One for each thread seen asleep. */
struct sleep_record {
	pid_t tid;
	uint64_t pc; /* where it sleeps, to know it again */
	uint64_t args[6];
	long nr;
	uint64_t end_ns; /* CLOCK_MONOTONIC; IMAGE_SYSCALL_FOREVER */
	/* Of a call that was entered again: how often the thread had gone to sleep by then.
	 * With the same number it is still the same sleep. 0 for a restarted call, which shows.
	 */
	uint64_t sleeps;
};

/* Before @t is interrupted: when it is blocked in a call with a relative time-out, note since
 * when. Never earlier than the truth, so that no sleep ends early. */
void syscall_before_freeze(struct thread *t);

/* What has been stopped and is let go again before it was classified: continue a call that a
 * stop alone would end with EINTR. */
void syscall_undo_eintr(struct thread *t);

/* Such a thread will be stopped again: note the call that it continues in restart_syscall(2), which
 * does not show what call that is. The number is kept in t->continued_call. */
void syscall_note_restart(struct thread *t);

/* After the freeze: fill t->syscall_class and t->syscall_left_ns. @records (struct
 * sleep_record) are from the last checkpoint; they are brought up to date by
 * syscall_remember(). */
int syscall_classify(
	struct process *p, struct thread *t, const struct buf *records, struct err *e);

/* Add a record of @t to @records, when it is in a call that will need it. */
void syscall_remember(const struct thread *t, struct buf *records);

/* Whether @nr is one of the calls that have a class other than NONE. */
bool syscall_can_restart(long nr);

/*
 * A thread of class AGAIN with a time-out enters its call with what is left in place of the
 * whole (in its memory, its socket or its register), which is put back as soon as it sleeps.
 * All other threads of the process must still be stopped. It is let go, or left asleep to be
 * let go by the end of the calling thread, which must be near. Other threads are left alone.
 * Adds to @records.
 */
int syscall_thaw_in_place(
	struct process *p, struct thread *t, struct buf *records, struct err *e);

/*
 * After a restart: build the restart block of a thread of class RESTART_BLOCK. The thread is
 * in a stop, with any registers; it runs the call from the syscall instruction at
 * @instruction, which an int3 follows, with its time-out at @scratch, until it sleeps, and is
 * left in a trap stop. When the call ends at once, its result goes into t->regs.
 */
int syscall_build_restart_block(struct process *p, struct thread *t, uint64_t instruction,
	uint64_t scratch, struct err *e);

#endif
