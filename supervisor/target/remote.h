/*
 * remote.h - run system calls in a stopped thread, and put everything back.
 *
 * A bracket: remote_begin(), any number of remote_call()s, remote_end(). In between, the
 * thread's signals are blocked and a small piece of code stands in unused bytes of its vdso.
 * When the supervisor is killed at any point in between, the thread finds its own way home
 * (x86_64.h): the program resumes as if nothing had happened.
 */
#ifndef SUPERVISOR_TARGET_REMOTE_H
#define SUPERVISOR_TARGET_REMOTE_H

#include <stdint.h>

#include "supervisor/target/process.h"
#include "supervisor/target/x86_64.h"

struct remote {
	struct process *process;
	struct thread *thread;
	struct cave_home home;
	bool trapped; /* in a trap stop, else at the exit from a call */
	pid_t made;   /* the last process it has made, as we see its id */
	/* ---- of remote_query.h ---- */
	size_t queried;      /* bytes that have been written behind the cave */
	uint64_t query_mark; /* what stands in the page when all calls have returned */
	bool query_table;    /* the scratch memory has a page for the calls to be made */
};

/* @thread must be in a trap stop. */
int remote_begin(
	struct remote *r, struct process *process, struct thread *thread, struct err *e);

/* Run system call @nr with the six @args. *result is what the kernel returns (-errno for an
 * error, which is no failure of this function). The call must not block. */
int remote_call(
	struct remote *r, long nr, const uint64_t args[6], int64_t *result, struct err *e);
#define REMOTE_CALL(r, result, e, nr, ...)                                                     \
	remote_call((r), (nr), (const uint64_t[6]){__VA_ARGS__}, (result), (e))

/* Run clone(2) with @flags in it and the stack it has. *pid is the new process as we see it,
 * *number as the target does. It is a tracee of ours, and ends if it is let run or detached. An
 * error of the call is a failure. */
int remote_clone(struct remote *r, uint64_t flags, pid_t *pid, int64_t *number, struct err *e);

/* Address of @size bytes of memory in the target for arguments and results, gone with
 * remote_end(). One call a bracket. 0 on failure. */
uint64_t remote_scratch(struct remote *r, size_t size, struct err *e);

/* ---- one call in a new process ---- */

/* Begin system call @nr in @thread, which stands in any stop but the entry to a system call, and has process->threads'
 * registers: it runs up to a trap behind the call, which is one stop where remote_call() has two. For a process that
 * ends with us and is to get other registers afterwards; SIGTRAP must not be blocked there, nor have an action of its
 * own. */
int remote_begin_trapped(struct process *process, struct thread *thread, long nr,
	const uint64_t args[6], struct err *e);

/* Wait for the trap, up to a minute. *result is what the kernel returns. */
int remote_finish_trapped(
	struct process *process, struct thread *thread, int64_t *result, struct err *e);

/* ---- for remote_query.h ---- */

/* The memory that the way home unmaps: @size bytes at @start, 0 for none. */
int remote_set_scratch(struct remote *r, uint64_t start, uint64_t size, struct err *e);

/* What the thread, which runs, has to report by now: nothing, or a trap stop; all else is dealt
 * with. */
int remote_look(struct remote *r, struct tracee_report *report, struct err *e);

/* Bring the thread, which runs, into a trap stop. */
int remote_stop(struct remote *r, struct err *e);

/* ---- */

/* End the bracket for a thread whose registers and signal mask the caller sets anew: only the
 * cave is cleared. */
int remote_wipe(struct remote *r, struct err *e);

/* Everything back as it was; to be called on the error path, too. */
int remote_end(struct remote *r, struct err *e);

#endif
