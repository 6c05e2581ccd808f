/*
 * state/restore_plan.h - what the loader is to do in the new process, worked out from the
 * image.
 *
 * Three batches: the first empties the address space and maps all regions; the second fills
 * them, with the help of further threads that end with their part; the third sets everything
 * else and makes the threads. The first does the second's work where there is little.
 */
#ifndef SUPERVISOR_STATE_RESTORE_PLAN_H
#define SUPERVISOR_STATE_RESTORE_PLAN_H

#include <signal.h>
#include <stdbool.h>

#include "ckpt/image_read.h"
#include "lib/address_ranges.h"
#include "lib/procfs.h"
#include "supervisor/state/restart_fds.h"
#include "supervisor/target/batch_plan.h"
#include "supervisor/target/clocks.h"

/* Threads that read memory: as a rule, and at most. */
#define FILL_THREADS     4
#define FILL_THREADS_MAX 32

/*
 * What a process has of its memory from its maker when the loader comes (restore/inherit_plan.h). Each a list of
 * struct address_range; all empty where it has nothing.
 */
struct inherited {
	struct buf
		regions; /* of the image, whole: they are mapped already, to be read and written, */
	struct buf same;  /* the parts of them that have the process's contents, */
	struct buf other; /* and those that have the contents of others, to be dropped */
};

struct restore_plan {
	const struct checkpoint *c;
	size_t index; /* of the process in it */
	const struct image *img;
	const struct image_process *ip; /* its process */
	const struct restart_fds *fds;
	const struct vma_list *vmas; /* of the new process, before anything is done */
	/* By enum image_shared: an earlier process has it, too, and brings it back. */
	bool owned_elsewhere[IMAGE_SHARED_KINDS];
	struct clock_shifts clocks; /* the new process's against ours */
	bool stays;  /* the process has executed nothing: restore/child_before_exec.h */
	bool trial;  /* it takes as little memory as can be, */
	bool filled; /* and has contents only where somebody will look at them */
	bool lazy;   /* some of its memory is filled when it is needed (memory/lazy.h): */
	struct buf lazy_ranges; /* struct address_range, by address */
	struct inherited inherited;
	struct buf
		copied; /* struct address_range, regions: filled by a copier (memory/fill_copier.h) */
	unsigned wanted_threads; /* to read memory, 0: as many as is sensible */
	bool other_vdso;         /* the image's vdso is not this kernel's */
	uint64_t vdso_new;       /* where this kernel's pieces go then, */
	uint64_t vdso_code;      /* and its vdso proper */

	struct plan plan;
	struct batch_builder memory, rest;
	bool filled_at_once; /* fill[0] is part of `memory`: nothing has to be done in between */
	struct batch_builder fill[FILL_THREADS_MAX]; /* [0] starts the threads of the others */
	uint64_t fill_at[FILL_THREADS_MAX];
	unsigned fill_threads;         /* threads that [0] makes */
	struct batch_builder *threads; /* what each thread but the leader does for itself */
	uint64_t *thread_at;           /* where their batches are */
	size_t thread_count;
	uint64_t memory_at, rest_at, scratch, stack;
	uint64_t trap_action; /* where SIGTRAP's action is; 0: it is as a new process has it */
	bool sets_dumpable;   /* the batch does: there is one thread */
};

/* Before everything is unmapped: the kernel's vdso out of the way, to be put back in the end.
 */
int restore_plan_vdso(struct restore_plan *p, struct err *e);
/* After it: where the image's vdso was, memory for its code, if the kernel's is another one. */
void restore_plan_old_vdso(struct restore_plan *p);
/* All of a process but its memory (process_restore.c). */
int restore_plan_process(struct restore_plan *p, struct err *e);

/* ---- threads_restore.c ---- */

/* All threads but the first, which makes them. */
void restore_plan_threads(struct restore_plan *p);
/* What the thread @t sets for itself. */
void restore_plan_thread(
	struct restore_plan *p, struct batch_builder *b, const struct image_thread *t);
/* @xstate: bytes that the image has of all threads' vector registers. */
int restore_check_thread(const struct image_thread *t, size_t xstate, struct err *e);

/* ---- credentials_restore.c ---- */

/* The program's own identity, in place of the restart's: last of all, as
 * nothing privileged can be done behind it. */
void restore_plan_credentials(struct restore_plan *p, struct batch_builder *b);
/* Whether we may become who the program was. */
int restore_check_credentials(const struct restore_plan *p, struct err *e);

/* ---- signals_restore.c ---- */

/* What signals do. */
void restore_plan_signals(struct restore_plan *p);
/* Signals that wait for thread @tid, or with 0 for the process, but for late ones. */
void restore_plan_pending(struct restore_plan *p, struct batch_builder *b, int32_t tid);
/* Whether a signal that waits is of a fault (or a trap, or a filter of system calls). The
 * kernel hands those out before all others, even while they are blocked
 * (dequeue_synchronous_signal() in kernel/signal.c): nothing may trap any more in a thread for
 * which one waits. */
bool restore_signal_is_of_fault(const siginfo_t *info);
/* Signals that are queued when the batches are over: SIGTRAP ends them, SIGCONT stops all
 * threads that are traced (ptrace_trap_notify()), and signals of faults. */
bool restore_signal_is_held(const struct image_pending *pending);

/* ---- timers_restore.c ---- */

/* Timers may be for threads: these must be there first. */
int restore_plan_timers(struct restore_plan *p, struct err *e);
/* Timers of setitimer(2): when signals that wait have been queued. */
void restore_plan_itimers(struct restore_plan *p);
/* The timer that has sent the signal @pending, if it is still there. */
const struct image_timer *restore_pending_timer(
	const struct restore_plan *p, const struct image_pending *pending);

#endif
