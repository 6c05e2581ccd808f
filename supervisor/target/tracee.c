/*
 * tracee.c - seize, stop, wait, resume, and registers; with what ptrace(2) says of each.
 */
#include "supervisor/target/tracee.h"

#include <asm/ldt.h>
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"

#define OPTIONS                                                                                \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |                    \
		PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)

static int tracee_failed(struct tracee *t, const char *what, struct err *e)
{
	int code = errno;

	/* ESRCH also means "not stopped". ECHILD means that the thread has executed a
	 * program and so got its leader's id, or is that leader: what has the id now is not
	 * ours. */
	if (code == ECHILD || (code == ESRCH && tgkill(t->pid, t->tid, 0)))
		t->state = TRACEE_GONE;
	return err_set(e, code, "cannot %s thread %d of process %d", what, t->tid, t->pid);
}

int tracee_seize(struct tracee *t, bool kill_with_us, struct err *e)
{
	long options = OPTIONS | (kill_with_us ? PTRACE_O_EXITKILL : 0);

	if (ptrace(PTRACE_SEIZE, t->tid, NULL, options))
		return tracee_failed(t, "attach to", e);
	t->state = TRACEE_RUNNING;
	return 0;
}

/* There is no process 0. */
bool tracee_seize_allowed(void)
{
	return ptrace(PTRACE_SEIZE, 0, NULL, NULL) >= 0 || errno == ESRCH;
}

int tracee_interrupt(struct tracee *t, struct err *e)
{
	if (!ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL))
		return 0;
	/* Stopped or not is all the same here: it is no tracee of ours any more. */
	if (errno == ESRCH)
		t->state = TRACEE_GONE;
	return tracee_failed(t, "stop", e);
}

/* Wait for a change of state of any child or tracee: all of them raise SIGCHLD, which the
 * supervisor keeps blocked. */
void tracee_pause(uint64_t deadline_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	/* Never longer than this: a SIGCHLD taken here may have been for two changes. */
	uint64_t left = 2000000;
	struct timespec ts;
	sigset_t set;

	if (deadline_ns - now < left)
		left = deadline_ns > now ? deadline_ns - now : 0;
	ts.tv_sec = 0;
	ts.tv_nsec = left;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigtimedwait(&set, NULL, &ts);
}

/* A stop's wait status, taken apart (man ptrace, "PTRACE_EVENT stops" and following). */
static void read_stop(struct tracee *t, int status, struct tracee_report *r)
{
	unsigned long message = 0;
	int event = status >> 16;
	int sig = WSTOPSIG(status);

	switch (event) {
	case 0:
		r->event = sig == (SIGTRAP | 0x80) ? TRACEE_EVENT_SYSCALL : TRACEE_EVENT_SIGNAL;
		r->signal = sig;
		return;
	case PTRACE_EVENT_STOP:
		r->event = TRACEE_EVENT_TRAP;
		t->state = TRACEE_STOPPED;
		t->group_stopped = sig == SIGTRAP ? 0 : sig;
		return;
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		/* Fails only when the tracee has just been killed; then there is no new one. */
		if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &message))
			message = 0;
		r->new_tid = message;
		r->event = message ? TRACEE_EVENT_NEW : TRACEE_EVENT_OTHER;
		return;
	case PTRACE_EVENT_EXEC:
		r->event = TRACEE_EVENT_EXEC;
		return;
	default:
		r->event = TRACEE_EVENT_OTHER;
	}
}

/* The end of a child of ours is left for the event loop to see. */
static pid_t wait_once(struct tracee *t, int *status)
{
	siginfo_t info = {0};

	if (!t->is_child)
		return waitpid(t->tid, status, __WALL | WNOHANG);
	if (waitid(P_PID, t->tid, &info, WSTOPPED | __WALL | WNOHANG)) {
		if (errno == ECHILD && !kill(t->tid, 0)) {
			/* Nothing but its end is left to wait for. */
			*status = 0;
			return t->tid;
		}
		return -1;
	}
	*status = info.si_status << 8 | 0x7f;
	return info.si_pid;
}

/* Look again instead of sleeping for so long: on another processor a stop takes some microseconds, and to be
 * woken takes longer than that. Where all are busy, the first yield lasts longer, and is the only one. */
#define LOOK_NS 50000u

/* @look returns as waitpid(2) with WNOHANG does. */
static int wait_until(struct tracee *t, pid_t (*look)(struct tracee *, int *status),
	uint64_t deadline_ns, struct tracee_report *report, struct err *e)
{
	uint64_t began = 0, now;

	memset(report, 0, sizeof(*report));
	for (;;) {
		int status = 0;
		pid_t got = look(t, &status);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return tracee_failed(t, "wait for", e);
		if (got > 0 && WIFSTOPPED(status)) {
			read_stop(t, status, report);
			return 0;
		}
		if (got > 0) {
			t->state = TRACEE_GONE;
			report->event = TRACEE_EVENT_GONE;
			report->status = status;
			return 0;
		}
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= deadline_ns)
			return 0;
		if (!began)
			began = now;
		if (now - began < LOOK_NS)
			sched_yield();
		else
			tracee_pause(deadline_ns);
	}
}

int tracee_wait(
	struct tracee *t, uint64_t deadline_ns, struct tracee_report *report, struct err *e)
{
	return wait_until(t, wait_once, deadline_ns, report, e);
}

static pid_t wait_any_once(struct tracee *t, int *status)
{
	pid_t got = waitpid(-1, status, __WALL | WNOHANG);

	if (got > 0)
		t->pid = t->tid = got;
	return got;
}

int tracee_wait_any(
	struct tracee *t, uint64_t deadline_ns, struct tracee_report *report, struct err *e)
{
	memset(t, 0, sizeof(*t));
	return wait_until(t, wait_any_once, deadline_ns, report, e);
}

/* ESRCH: it has been killed, and that is what it reports next. */
static int let_run(struct tracee *t, int request, int signal, struct err *e)
{
	t->state = TRACEE_RUNNING;
	if (ptrace(request, t->tid, NULL, (long)signal) && errno != ESRCH)
		return tracee_failed(t, "continue", e);
	return 0;
}

int tracee_continue(struct tracee *t, int signal, struct err *e)
{
	return let_run(t, PTRACE_CONT, signal, e);
}

int tracee_continue_to_syscall(struct tracee *t, int signal, struct err *e)
{
	return let_run(t, PTRACE_SYSCALL, signal, e);
}

int tracee_step(struct tracee *t, struct err *e)
{
	return let_run(t, PTRACE_SINGLESTEP, 0, e);
}

int tracee_detach(struct tracee *t, int signal, struct err *e)
{
	if (t->state == TRACEE_GONE)
		return 0;
	if (ptrace(PTRACE_DETACH, t->tid, NULL, (long)signal) && errno != ESRCH)
		return tracee_failed(t, "let go of", e);
	t->state = TRACEE_GONE;
	return 0;
}

int tracee_clear_exitkill(struct tracee *t, struct err *e)
{
	return ptrace(PTRACE_SETOPTIONS, t->tid, NULL, (long)OPTIONS)
		       ? tracee_failed(t, "clear the exit-kill of", e)
		       : 0;
}

int tracee_set_exitkill(struct tracee *t, struct err *e)
{
	return ptrace(PTRACE_SETOPTIONS, t->tid, NULL, (long)(OPTIONS | PTRACE_O_EXITKILL))
		       ? tracee_failed(t, "set the exit-kill of", e)
		       : 0;
}

int tracee_suspend_seccomp(struct tracee *t, bool kill_with_us, struct err *e)
{
	long options = OPTIONS | (kill_with_us ? PTRACE_O_EXITKILL : 0);

	return ptrace(PTRACE_SETOPTIONS, t->tid, NULL, options | PTRACE_O_SUSPEND_SECCOMP)
		       ? tracee_failed(t, "suspend the seccomp filters of", e)
		       : 0;
}

/* Without metadata (Linux 4.14) there are no flags either. */
int tracee_get_filter(
	struct tracee *t, unsigned number, uint64_t *code, uint32_t *flags, struct err *e)
{
	struct {
		uint64_t number, flags;
	} metadata = {.number = number};
	long count = ptrace(PTRACE_SECCOMP_GET_FILTER, t->tid, (long)number, code);

	if (count < 0)
		return errno == ENOENT ? 0 : tracee_failed(t, "read a seccomp filter of", e);
	if (ptrace(PTRACE_SECCOMP_GET_METADATA, t->tid, sizeof(metadata), &metadata) < 0)
		metadata.flags = 0;
	*flags = metadata.flags;
	return count;
}

int tracee_get_regs(struct tracee *t, struct user_regs_struct *regs, struct err *e)
{
	struct iovec iov = {regs, sizeof(*regs)};

	if (ptrace(PTRACE_GETREGSET, t->tid, (long)NT_PRSTATUS, &iov))
		return tracee_failed(t, "read the registers of", e);
	if (iov.iov_len != sizeof(*regs))
		return err_set(
			e, 0, "process %d is a 32-bit program, which is not supported", t->pid);
	return 0;
}

int tracee_set_regs(struct tracee *t, const struct user_regs_struct *regs, struct err *e)
{
	struct iovec iov = {(void *)regs, sizeof(*regs)};

	if (ptrace(PTRACE_SETREGSET, t->tid, (long)NT_PRSTATUS, &iov))
		return tracee_failed(t, "set the registers of", e);
	return 0;
}

int tracee_get_xstate(struct tracee *t, void *data, size_t *size, struct err *e)
{
	struct iovec iov = {data, *size};

	if (ptrace(PTRACE_GETREGSET, t->tid, (long)NT_X86_XSTATE, &iov))
		return tracee_failed(t, "read the vector registers of", e);
	*size = iov.iov_len;
	return 0;
}

int tracee_set_xstate(struct tracee *t, const void *data, size_t size, struct err *e)
{
	struct iovec iov = {(void *)data, size};

	if (ptrace(PTRACE_SETREGSET, t->tid, (long)NT_X86_XSTATE, &iov))
		return tracee_failed(t, "set the vector registers of", e);
	return 0;
}

int tracee_get_sigmask(struct tracee *t, uint64_t *mask, struct err *e)
{
	if (ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(*mask), mask))
		return tracee_failed(t, "read the signal mask of", e);
	return 0;
}

int tracee_set_sigmask(struct tracee *t, uint64_t mask, struct err *e)
{
	if (ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask))
		return tracee_failed(t, "set the signal mask of", e);
	return 0;
}

int tracee_pending(
	struct tracee *t, bool shared, uint64_t first, siginfo_t *info, int max, struct err *e)
{
	struct __ptrace_peeksiginfo_args args = {
		.off = first,
		.flags = shared ? PTRACE_PEEKSIGINFO_SHARED : 0,
		.nr = max,
	};
	long n = ptrace(PTRACE_PEEKSIGINFO, t->tid, &args, info);

	return n < 0 ? tracee_failed(t, "read the pending signals of", e) : (int)n;
}

int tracee_get_rseq(struct tracee *t, struct tracee_rseq *rseq, struct err *e)
{
	struct {
		uint64_t pointer;
		uint32_t size, signature, flags, pad;
	} conf = {0};
	long n = ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(conf), &conf);

	memset(rseq, 0, sizeof(*rseq));
	/* A kernel without restartable sequences does not know the request. */
	if (n < 0 && errno == EIO) {
		if (syscall(SYS_rseq, NULL, 0, 0, 0) && errno == ENOSYS)
			return 0;
		return err_set(e, 0,
			"this kernel does not show where thread %d of process %d has "
			"registered "
			"its rseq area (Linux 5.13 does)",
			t->tid, t->pid);
	}
	if (n < 0)
		return tracee_failed(t, "read the rseq registration of", e);
	rseq->pointer = conf.pointer;
	rseq->size = conf.pointer ? conf.size : 0;
	rseq->signature = conf.signature;
	rseq->flags = conf.flags;
	return 0;
}

/* <linux/ptrace.h> of kernel 6.4 */
#define GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211

int tracee_get_dispatch(struct tracee *t, bool *on, struct err *e)
{
	uint64_t conf[4] = {0}; /* mode, selector, offset, length */

	*on = false;
	/* EIO: the kernel does not tell. */
	if (ptrace(GET_SYSCALL_USER_DISPATCH_CONFIG, t->tid, sizeof(conf), conf) &&
		errno != EIO)
		return tracee_failed(t, "read the dispatch setting of", e);
	*on = conf[0];
	return 0;
}

#ifndef NT_386_IOPERM
#define NT_386_IOPERM 0x201
#endif

int tracee_get_ports(struct tracee *t, bool *some, struct err *e)
{
	uint8_t bitmap[8192];
	struct iovec iov = {bitmap, sizeof(bitmap)};

	/* ENXIO: it has none; ENODEV or EINVAL: the kernel has none to give. */
	*some = !ptrace(PTRACE_GETREGSET, t->tid, (long)NT_386_IOPERM, &iov);
	if (!*some && errno != ENXIO && errno != ENODEV && errno != EINVAL)
		return tracee_failed(t, "read the I/O ports of", e);
	return 0;
}

/* Of the global descriptor table, the entries that are a thread's own (<asm/segment.h>). */
#define FIRST_SEGMENT 12
#define SEGMENTS      3

int tracee_get_segments(struct tracee *t, bool *some, struct err *e)
{
	*some = false;
	for (long i = 0; i < SEGMENTS; i++) {
		struct user_desc desc = {0};

		/* EIO: a kernel without 32-bit programs has no such calls. */
		if (ptrace(PTRACE_GET_THREAD_AREA, t->tid, FIRST_SEGMENT + i, &desc)) {
			if (errno == EIO)
				return 0;
			return tracee_failed(t, "read the segments of", e);
		}
		*some |= desc.base_addr || desc.limit;
	}
	return 0;
}

/* In memory that is filled later (memory/lazy.h) a page may be missing, for which reads and writes of
 * /proc/PID/mem do not wait, but process_vm_readv(2) does. */
static bool page_in(int mem_fd, uint64_t address, size_t size)
{
	cleanup_free char *link = xasprintf("/proc/self/fd/%d", mem_fd);
	cleanup_free char *path = read_link(link, NULL);
	uint64_t end = address + size;
	int pid;
	bool all = path && sscanf(path, "/proc/%d/mem", &pid) == 1;
	char byte;

	for (uint64_t at = address; all && at < end; at = align_down(at, 4096) + 4096) {
		struct iovec local = {&byte, 1}, remote = {(void *)at, 1};

		all = process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1;
	}
	return all;
}

int tracee_read(int mem_fd, uint64_t address, void *data, size_t size, struct err *e)
{
	char what[64];

	snprintf(what, sizeof(what), "memory at %#lx", (unsigned long)address);
	if (!pread_all(mem_fd, data, size, address, what, e))
		return 0;
	return page_in(mem_fd, address, size) ? pread_all(mem_fd, data, size, address, what, e)
					      : -1;
}

int tracee_write(int mem_fd, uint64_t address, const void *data, size_t size, struct err *e)
{
	char what[64];

	snprintf(what, sizeof(what), "memory at %#lx", (unsigned long)address);
	if (!pwrite_all(mem_fd, data, size, address, what, e))
		return 0;
	return page_in(mem_fd, address, size) ? pwrite_all(mem_fd, data, size, address, what, e)
					      : -1;
}
