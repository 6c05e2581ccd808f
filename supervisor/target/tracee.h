/*
 * tracee.h - the verbs for acting on a stopped thread. The only place that calls ptrace(2).
 *
 * A tracee is seized (never attached), interrupted, and then sits in a "trap stop"
 * (PTRACE_EVENT_STOP), where its registers belong to its own code: user code, or a system
 * call interrupted with rax = -ERESTART*. From there it can be made to run system calls
 * (remote.h), and is let go by tracee_detach(). When the supervisor dies, the kernel detaches
 * all tracees and lets them run.
 */
#ifndef SUPERVISOR_TARGET_TRACEE_H
#define SUPERVISOR_TARGET_TRACEE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "lib/err.h"

enum tracee_state {
	TRACEE_RUNNING = 0, /* seized, and not known to be stopped */
	TRACEE_STOPPED,     /* in a trap stop or group stop: registers are its own */
	TRACEE_GONE,        /* has ended */
};

struct tracee {
	pid_t pid; /* its thread group, as we see it */
	pid_t tid;
	enum tracee_state state;
	int group_stopped; /* by this job-control signal; 0: it is not */
	bool is_child;     /* a child of ours whose end the event loop must see */
};

/* What a tracee reported. */
enum tracee_event {
	TRACEE_EVENT_NONE = 0, /* nothing (yet) */
	TRACEE_EVENT_TRAP,     /* trap stop: interrupted, group-stopped, or just attached */
	TRACEE_EVENT_SIGNAL,   /* a signal is about to be delivered: event->signal */
	TRACEE_EVENT_SYSCALL,  /* entry to or exit from a system call */
	TRACEE_EVENT_NEW,      /* made a thread or process: event->new_tid, is attached */
	TRACEE_EVENT_EXEC,     /* has executed a new program */
	TRACEE_EVENT_OTHER,    /* another stop, to be continued */
	TRACEE_EVENT_GONE,     /* has ended: event->status as of waitpid(2) */
};

struct tracee_report {
	enum tracee_event event;
	int signal;
	pid_t new_tid;
	int status;
};

/* Attach to @t without stopping it; threads and processes that it makes are attached as they
 * appear, and with @kill_with_us the tracee is killed when the supervisor ends. Errors: ESRCH
 * (gone), EPERM (traced by another debugger, not ours, not dumpable). */
int tracee_seize(struct tracee *t, bool kill_with_us, struct err *e);
/* Whether ptrace(2) may be called at all: a container's seccomp filter may forbid it. */
bool tracee_seize_allowed(void);
int tracee_interrupt(struct tracee *t, struct err *e);
/* Wait for the next report of @t, at most until @deadline_ns (CLOCK_MONOTONIC; 0: do not
 * wait). TRACEE_EVENT_NONE when there was none in time. */
int tracee_wait(
	struct tracee *t, uint64_t deadline_ns, struct tracee_report *report, struct err *e);
/* The same for whichever tracee reports first: @t is filled with its id. It may be a tracee that
 * was attached just now because its parent is, and of which nothing is known yet. Ends of
 * children are reported, too, and taken. */
int tracee_wait_any(
	struct tracee *t, uint64_t deadline_ns, struct tracee_report *report, struct err *e);
/* Wait for a change of any tracee, 2 ms at most and not beyond @deadline_ns. */
void tracee_pause(uint64_t deadline_ns);
/* Let a stopped tracee run on with @signal (0: none). */
int tracee_continue(struct tracee *t, int signal, struct err *e);
/* The same, to stop at the next entry to or exit from a system call. */
int tracee_continue_to_syscall(struct tracee *t, int signal, struct err *e);
/* For one instruction: SIGTRAP, or the signal of its fault, is reported. */
int tracee_step(struct tracee *t, struct err *e);
/* Let go for good, from a stop, delivering @signal (0: none). A tracee that has ended meanwhile
 * is no error. A tracee that runs cannot be let go: the end of the tracing thread does that. */
int tracee_detach(struct tracee *t, int signal, struct err *e);
/* From a stop: it is no longer to be killed when the supervisor ends. */
int tracee_clear_exitkill(struct tracee *t, struct err *e);
/* And: it is. */
int tracee_set_exitkill(struct tracee *t, struct err *e);

/* From a stop: seccomp does not act on what it does, until it is let go. Takes CAP_SYS_ADMIN in
 * the initial user namespace. @kill_with_us as it was attached. */
int tracee_suspend_seccomp(struct tracee *t, bool kill_with_us, struct err *e);
/* Filter @number, from 0, the oldest: its instructions, BPF_MAXINSNS at most, and flags of
 * seccomp(2). Returns how many, 0 when there is none with this number, -1 on failure. */
int tracee_get_filter(
	struct tracee *t, unsigned number, uint64_t *code, uint32_t *flags, struct err *e);

int tracee_get_regs(struct tracee *t, struct user_regs_struct *regs, struct err *e);
int tracee_set_regs(struct tracee *t, const struct user_regs_struct *regs, struct err *e);
/* Bytes: more than any XSAVE area so far (AMX: 11 KiB). */
#define XSTATE_ROOM 65536
/* The whole XSAVE area in the kernel's standard (uncompacted) format. *size in: room, out:
 * bytes. */
int tracee_get_xstate(struct tracee *t, void *data, size_t *size, struct err *e);
int tracee_set_xstate(struct tracee *t, const void *data, size_t size, struct err *e);
int tracee_get_sigmask(struct tracee *t, uint64_t *mask, struct err *e);
int tracee_set_sigmask(struct tracee *t, uint64_t mask, struct err *e);
/* Pending signals of the thread, or of the process with @shared: up to @max from number
 * @first on. Returns how many, -1 on failure. */
int tracee_pending(
	struct tracee *t, bool shared, uint64_t first, siginfo_t *info, int max, struct err *e);

/* As struct ptrace_rseq_configuration; all 0 when the thread has not registered any. */
struct tracee_rseq {
	uint64_t pointer;
	uint32_t size, signature, flags;
};

int tracee_get_rseq(struct tracee *t, struct tracee_rseq *rseq, struct err *e);

/* Whether its system calls may be turned into signals (prctl PR_SET_SYSCALL_USER_DISPATCH). */
int tracee_get_dispatch(struct tracee *t, bool *on, struct err *e);

/* Whether it may use I/O ports (ioperm). Of iopl(2) the kernel does not tell. */
int tracee_get_ports(struct tracee *t, bool *some, struct err *e);
/* Whether it has made itself a segment for thread-local data (set_thread_area). */
int tracee_get_segments(struct tracee *t, bool *some, struct err *e);

/* Memory of the process whose /proc/PID/mem is open as @mem_fd, whatever its protection. */
int tracee_read(int mem_fd, uint64_t address, void *data, size_t size, struct err *e);
int tracee_write(int mem_fd, uint64_t address, const void *data, size_t size, struct err *e);

#endif
