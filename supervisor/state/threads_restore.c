/*
 * Threads into the plan of a new process: each is made with the id it had, and then sets what
 * is its own. Registers and signal mask come last, from outside
 * (restore/registers_restore.c).
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/state/mempolicy.h"
#include "supervisor/state/restore_plan.h"
#include "supervisor/state/seccomp.h"
#include "supervisor/syscall/interrupted_call.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

#define THREAD_STACK 4096

/* sizeof(struct robust_list_head): the kernel takes no other. */
#define ROBUST_LIST_SIZE 24

/* <asm/prctl.h> */
#define ARCH_SET_CPUID 0x1012

#define THREAD_FLAGS                                                                           \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

/* NULL for a thread that has the process's directories. */
static const struct image_directories *directories_of(const struct restore_plan *p, int32_t tid)
{
	const struct image_directories *d;
	size_t count;

	d = image_note_array(p->img, IMAGE_NOTE_DIRECTORIES, struct image_directories, &count);
	for (size_t i = 0; i < count; i++)
		if (d[i].tid == tid)
			return &d[i];
	return NULL;
}

/* Whether the thread has descriptors of its own. Then it has a copy of the process's as they
 * are when it is made, with all that it needs at further numbers. */
static bool add_own_descriptors(struct restore_plan *p, struct batch_builder *b, int32_t tid)
{
	const struct image_thread_fd *own;
	uint64_t next = 0;
	bool any = false;
	size_t count;

	own = image_note_array(p->img, IMAGE_NOTE_THREAD_FDS, struct image_thread_fd, &count);
	for (size_t i = 0; i < count; i++) {
		if (own[i].tid != tid)
			continue;
		any = true;
		if (own[i].fd < 0)
			continue;
		BATCH_ADD(b, "duplicate a thread's descriptor", SYS_dup3,
			restart_fd_thread(p->fds, i), own[i].fd,
			own[i].cloexec ? O_CLOEXEC : 0);
		if ((uint64_t)own[i].fd > next)
			BATCH_ADD(b, "close what a thread does not have", SYS_close_range, next,
				own[i].fd - 1, 0);
		next = own[i].fd + 1;
	}
	if (any)
		BATCH_ADD(
			b, "close what a thread does not have", SYS_close_range, next, ~0u, 0);
	return any;
}

/* The paths are as a process sees them that has not changed its root directory yet, as the process
 * has not when it makes threads. */
static void add_directories(
	struct restore_plan *p, struct batch_builder *b, const struct image_directories *own)
{
	const char *root = image_string(p->img, own->root);

	BATCH_ADD(b, "enter a thread's working directory", SYS_chdir,
		plan_string(&p->plan, image_string(p->img, own->cwd)));
	if (strcmp(root, "/"))
		BATCH_ADD(b, "change a thread's root directory", SYS_chroot,
			plan_string(&p->plan, root));
	BATCH_ADD(b, "set a thread's umask", SYS_umask, own->umask);
}

void restore_plan_threads(struct restore_plan *p)
{
	const struct image_thread *t;
	size_t count;

	t = image_note_array(p->img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	p->thread_count = count - 1;
	p->threads = xcalloc(count, sizeof(*p->threads));
	p->thread_at = xcalloc(count, sizeof(*p->thread_at));
	for (size_t i = 1; i < count; i++) {
		const struct image_directories *own = directories_of(p, t[i].tid);
		struct clone_args args = {.flags = THREAD_FLAGS, .set_tid_size = 1};
		struct batch_call *c;
		uint64_t top, at;

		if (own) {
			args.flags &= ~(uint64_t)CLONE_FS;
			add_directories(p, &p->threads[i - 1], own);
		}
		if (add_own_descriptors(p, &p->threads[i - 1], t[i].tid))
			args.flags &= ~(uint64_t)CLONE_FILES;
		restore_plan_thread(p, &p->threads[i - 1], &t[i]);
		p->thread_at[i - 1] = plan_batch(&p->plan, &p->threads[i - 1], BATCH_TRAP);
		top = plan_stack(&p->plan, THREAD_STACK, p->thread_at[i - 1]);
		args.stack = top - THREAD_STACK + 16;
		args.stack_size = top - args.stack;
		args.set_tid = plan_data(&p->plan, &t[i].tid, sizeof(t[i].tid));
		at = plan_data(&p->plan, &args, sizeof(args));
		c = BATCH_ADD(&p->rest, "create a thread with the id it had", SYS_clone3, at,
			sizeof(args));
		c->check = BATCH_THREAD;
	}
}

static void add_speculation(struct batch_builder *b, const struct image_thread *t)
{
	for (int i = 0; i < IMAGE_SPECULATIONS; i++) {
		uint32_t value = t->speculation[i] & ~(uint32_t)PR_SPEC_PRCTL;

		/* Where the program cannot choose, it is as this machine has it. */
		if (t->speculation[i])
			BATCH_ADD(b, "set the speculation control", SYS_prctl,
				PR_SET_SPECULATION_CTRL, i, value)
				->check = BATCH_ANY;
	}
}

/* @t has these when they differ from what a thread begins with. */
static void add_flags(struct batch_builder *b, const struct image_thread *t)
{
	if (t->flags & (IMAGE_THREAD_MCE_EARLY | IMAGE_THREAD_MCE_LATE))
		BATCH_ADD(b, "set the handling of bad memory", SYS_prctl, PR_MCE_KILL,
			PR_MCE_KILL_SET,
			t->flags & IMAGE_THREAD_MCE_EARLY ? PR_MCE_KILL_EARLY
							  : PR_MCE_KILL_LATE);
	if (t->flags & IMAGE_THREAD_IO_FLUSHER)
		BATCH_ADD(b, "become an I/O flusher", SYS_prctl, PR_SET_IO_FLUSHER, 1);
	if (t->flags & IMAGE_THREAD_NO_TSC)
		BATCH_ADD(b, "disable the time stamp counter", SYS_prctl, PR_SET_TSC,
			PR_TSC_SIGSEGV);
	if (t->flags & IMAGE_THREAD_NO_CPUID)
		BATCH_ADD(b, "disable cpuid", SYS_arch_prctl, ARCH_SET_CPUID, 0);
}

void restore_plan_thread(
	struct restore_plan *p, struct batch_builder *b, const struct image_thread *t)
{
	struct {
		uint64_t sp;
		int32_t flags;
		uint32_t pad;
		uint64_t size;
	} stack = {t->sigaltstack_sp, t->sigaltstack_flags, 0, t->sigaltstack_size};

	BATCH_ADD(b, "set a thread's name", SYS_prctl, PR_SET_NAME,
		plan_data(&p->plan, t->comm, sizeof(t->comm)));
	if (t->flags & IMAGE_THREAD_ENDED) {
		restore_plan_credentials(p, b);
		return;
	}
	BATCH_ADD(b, "set the signal stack", SYS_sigaltstack,
		plan_data(&p->plan, &stack, sizeof(stack)), 0);
	/* A process that has executed nothing has the C library's. */
	if (t->robust_list || p->stays)
		BATCH_ADD(b, "set the robust list", SYS_set_robust_list, t->robust_list,
			t->robust_list ? t->robust_list_size : ROBUST_LIST_SIZE);
	if (t->rseq)
		BATCH_ADD(b, "register rseq", SYS_rseq, t->rseq, t->rseq_size, 0,
			t->rseq_signature);
	BATCH_ADD(b, "set the tid address", SYS_set_tid_address, t->clear_child_tid);
	BATCH_ADD(b, "set the timer slack", SYS_prctl, PR_SET_TIMERSLACK, t->timer_slack_ns);
	mempolicy_plan_thread(p, b, t);
	add_speculation(b, t);
	add_flags(b, t);
	restore_plan_pending(p, b, t->tid);
	seccomp_plan(&p->plan, b, p->img, t->tid);
	restore_plan_credentials(p, b);
	if (t->pdeathsig)
		BATCH_ADD(b, "set the death signal", SYS_prctl, PR_SET_PDEATHSIG, t->pdeathsig);
}

int restore_check_thread(const struct image_thread *t, size_t xstate, struct err *e)
{
	long nr = t->regs[15]; /* orig_rax, see struct user_regs_struct */

	if (t->flags & IMAGE_THREAD_ENDED)
		return 0;
	if (t->xstate_offset > xstate || t->xstate_size > xstate - t->xstate_offset)
		return err_set(
			e, 0, "the image lacks the vector registers of thread %d", t->tid);
	if (t->syscall_class > IMAGE_SYSCALL_AGAIN ||
		(t->syscall_class != IMAGE_SYSCALL_NONE && !syscall_can_restart(nr)))
		return err_set(e, 0,
			"the image holds thread %d in system call %ld, unknown here", t->tid,
			nr);
	return 0;
}
