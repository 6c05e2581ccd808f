/*
 * The second batch: everything of a process but its memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "supervisor/state/membarrier.h"
#include "supervisor/state/mempolicy.h"
#include "supervisor/state/restore_plan.h"
#include "supervisor/state/seccomp.h"
#include "supervisor/syscall/restart.h"

#define THREAD_STACK 4096

/* sizeof(struct robust_list_head): the kernel takes no other. */
#define ROBUST_LIST_SIZE 24

/* <asm/prctl.h> of kernel 5.16 */
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_TILEDATA   18
#define ARCH_SET_CPUID      0x1012

/* <linux/prctl.h> of kernels 6.3 and 6.4, and the option of 5.6 that old headers lack */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif
#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

static const struct image_process *process_of(const struct restore_plan *p)
{
	size_t count;

	return image_note_array(p->img, IMAGE_NOTE_PROCESS, struct image_process, &count);
}

static void add_mm(struct restore_plan *p)
{
	const struct image_process *ip = process_of(p);
	struct prctl_mm_map map = {
		.start_code = ip->start_code,
		.end_code = ip->end_code,
		.start_data = ip->start_data,
		.end_data = ip->end_data,
		.start_brk = ip->start_brk,
		.brk = ip->brk,
		.start_stack = ip->start_stack,
		.arg_start = ip->arg_start,
		.arg_end = ip->arg_end,
		.env_start = ip->env_start,
		.env_end = ip->env_end,
		.exe_fd = p->fds->exe,
	};
	const void *auxv;
	uint64_t at;
	size_t size;

	auxv = image_note(p->img, IMAGE_NOTE_AUXV, 1, &size);
	map.auxv = (void *)plan_data(&p->plan, auxv, size);
	map.auxv_size = size;
	at = plan_data(&p->plan, &map, sizeof(map));
	BATCH_ADD(&p->rest, "set the memory layout", SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, at,
		sizeof(map));
}

static void add_close(struct restore_plan *p, int fd)
{
	if (fd >= 0)
		BATCH_ADD(&p->rest, "close a descriptor", SYS_close, fd);
}

static void add_descriptors(struct restore_plan *p)
{
	const struct image_fd *fd;
	size_t count;

	add_close(p, p->fds->zero);
	add_close(p, p->fds->exe);
	for (size_t i = 0; i < p->fds->sources; i++)
		add_close(p, extra_source(p->fds, i));
	for (size_t i = 0; i < p->fds->modules; i++) {
		add_close(p, extra_module(p->fds, i, false));
		add_close(p, extra_module(p->fds, i, true));
	}
	for (size_t i = 0; i < p->fds->objects; i++)
		add_close(p, extra_object(p->fds, i));
	fd = image_note_array(p->img, IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++)
		if (fd[i].cloexec)
			BATCH_ADD(&p->rest, "set close-on-exec", SYS_fcntl, fd[i].fd, F_SETFD,
				FD_CLOEXEC);
}

/* What is the memory's, not the process's. */
static void add_memory_settings(struct restore_plan *p)
{
	const struct image_process *ip = process_of(p);
	struct batch_builder *b = &p->rest;

	if (ip->flags & IMAGE_PROCESS_LOCK_FUTURE)
		BATCH_ADD(b, "lock future memory", SYS_mlockall,
			MCL_FUTURE | (p->trial || ip->flags & IMAGE_PROCESS_LOCK_ONFAULT
						     ? MCL_ONFAULT
						     : 0));
	/* Bit 0, and from kernel 6.18 on the flags above it. */
	if (ip->thp_disable)
		BATCH_ADD(b, "disable huge pages", SYS_prctl, PR_SET_THP_DISABLE, 1,
			ip->thp_disable & ~1u);
	membarrier_plan(b, ip->membarrier);
}

static void add_prctls(struct restore_plan *p)
{
	const struct image_process *ip = process_of(p);
	struct batch_builder *b = &p->rest;

	/* It may have been one for a while (restore/birth.c). */
	BATCH_ADD(b, "become subreaper, or not", SYS_prctl, PR_SET_CHILD_SUBREAPER,
		ip->child_subreaper);
	if (ip->xcomp_permission & 1u << XFEATURE_TILEDATA)
		BATCH_ADD(b, "use the tile registers", SYS_arch_prctl, ARCH_REQ_XCOMP_PERM,
			XFEATURE_TILEDATA);
}

#define THREAD_FLAGS                                                                           \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

/* NULL for one that has the process's. */
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
		BATCH_ADD(b, "make a thread's descriptor", SYS_dup3, extra_thread(p->fds, i),
			own[i].fd, own[i].cloexec ? O_CLOEXEC : 0);
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

/* The paths are those that one sees who has not changed the root directory yet, as the process
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

static void add_threads(struct restore_plan *p)
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
		c = BATCH_ADD(&p->rest, "make a thread with the id it had", SYS_clone3, at,
			sizeof(args));
		c->check = BATCH_THREAD;
	}
}

static void add_pending(
	struct restore_plan *p, struct batch_builder *b, int32_t tid, int32_t pid)
{
	const struct image_pending *pending;
	size_t count;

	pending = image_note_array(p->img, IMAGE_NOTE_PENDING, struct image_pending, &count);
	for (size_t i = 0; i < count; i++) {
		const struct image_timer *timer;
		uint64_t info;
		int signo;

		memcpy(&signo, pending[i].siginfo, sizeof(signo));
		if (pending[i].tid != tid || restore_signal_is_late(&pending[i]))
			continue;
		timer = restore_pending_timer(p, &pending[i]);
		if (timer && timer->interval_ns)
			continue;
		info = plan_data(&p->plan, pending[i].siginfo, sizeof(pending[i].siginfo));
		if (tid)
			BATCH_ADD(b, "queue a signal", SYS_rt_tgsigqueueinfo, pid, tid, signo,
				info);
		else
			BATCH_ADD(b, "queue a signal", SYS_rt_sigqueueinfo, pid, signo, info);
	}
}

static void add_groups(struct restore_plan *p, struct batch_builder *b)
{
	const uint32_t *groups;
	size_t count;

	groups = image_note_array(p->img, IMAGE_NOTE_GROUPS, uint32_t, &count);
	BATCH_ADD(b, "set the groups", SYS_setgroups, count,
		plan_data(&p->plan, groups, count * sizeof(*groups)));
}

/* A namespace begins with all of them. */
static void add_bounds(struct batch_builder *b, const struct image_process *ip)
{
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(ip->cap_bounding >> cap & 1))
			BATCH_ADD(b, "bound the capabilities", SYS_prctl, PR_CAPBSET_DROP, cap)
				->check =
				BATCH_ANY; /* unknown to this kernel: not held either */
}

static struct batch_call *add_capabilities(struct restore_plan *p, struct batch_builder *b,
	uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {
		{effective, permitted, inheritable},
		{effective >> 32, permitted >> 32, inheritable >> 32},
	};

	return BATCH_ADD(b, "set the capabilities", SYS_capset,
		plan_data(&p->plan, &header, sizeof(header)),
		plan_data(&p->plan, caps, sizeof(caps)));
}

static void add_securebits(struct batch_builder *b, uint32_t bits)
{
	/* The one that takes no privilege. */
	if (!(bits & ~(uint32_t)SECBIT_KEEP_CAPS))
		BATCH_ADD(b, "keep capabilities", SYS_prctl, PR_SET_KEEPCAPS, !!bits);
	else
		BATCH_ADD(b, "set the secure bits", SYS_prctl, PR_SET_SECUREBITS, bits);
}

/* These calls report no error (man 2 setfsuid), but with an invalid id what is in force. */
static void add_file_system_id(struct batch_builder *b, long nr, uint32_t id)
{
	struct batch_call *c;

	BATCH_ADD(b, "set the file system's user or group", nr, id);
	c = BATCH_ADD(b, "set the file system's user or group", nr, -1);
	c->check = BATCH_EQUALS;
	c->expect = id;
}

/* The program's own identity, in place of the one that the restart needed. Last of all, as
 * nothing privileged can be done behind it. A change of user takes the effective capabilities:
 * CAP_SETPCAP is wanted a while longer. Ambient ones are to be had before a secure bit forbids
 * it, inheritable ones before they are bounded. */
static void add_credentials(
	struct restore_plan *p, struct batch_builder *b, const struct image_process *ip)
{
	bool other_user = ip->uid[3] != ip->uid[1], other_group = ip->gid[3] != ip->gid[1];
	uint64_t meanwhile = ip->cap_permitted | 1ull << CAP_SETPCAP;

	if (other_user)
		meanwhile |= 1ull << CAP_SETUID;
	if (!geteuid()) {
		add_groups(p, b);
		BATCH_ADD(b, "keep capabilities", SYS_prctl, PR_SET_KEEPCAPS, 1);
		BATCH_ADD(b, "set the group id", SYS_setresgid, ip->gid[0], ip->gid[1],
			ip->gid[2]);
		if (other_group)
			add_file_system_id(b, SYS_setfsgid, ip->gid[3]);
		BATCH_ADD(b, "set the user id", SYS_setresuid, ip->uid[0], ip->uid[1],
			ip->uid[2]);
	}
	/* Where that is not allowed, what needs it says so. */
	add_capabilities(p, b, meanwhile, meanwhile, ip->cap_inheritable)->check = BATCH_ANY;
	if (other_user)
		add_file_system_id(b, SYS_setfsuid, ip->uid[3]);
	add_bounds(b, ip);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (ip->cap_ambient >> cap & 1)
			BATCH_ADD(b, "set the ambient capabilities", SYS_prctl, PR_CAP_AMBIENT,
				PR_CAP_AMBIENT_RAISE, cap, 0, 0);
	add_securebits(b, ip->securebits);
	add_capabilities(p, b, ip->cap_effective, ip->cap_permitted, ip->cap_inheritable);
	if (ip->no_new_privs)
		BATCH_ADD(b, "set no_new_privs", SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
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
	const struct image_process *ip = process_of(p);
	struct {
		uint64_t sp;
		int32_t flags;
		uint32_t pad;
		uint64_t size;
	} stack = {t->sigaltstack_sp, t->sigaltstack_flags, 0, t->sigaltstack_size};

	BATCH_ADD(b, "set a thread's name", SYS_prctl, PR_SET_NAME,
		plan_data(&p->plan, t->comm, sizeof(t->comm)));
	if (t->flags & IMAGE_THREAD_ENDED) {
		add_credentials(p, b, ip);
		return;
	}
	BATCH_ADD(b, "set the signal stack", SYS_sigaltstack,
		plan_data(&p->plan, &stack, sizeof(stack)), 0);
	/* One that has executed nothing has the C library's. */
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
	add_pending(p, b, t->tid, ip->pid);
	seccomp_plan(&p->plan, b, p->img, t->tid);
	add_credentials(p, b, ip);
	if (t->pdeathsig)
		BATCH_ADD(b, "set the death signal", SYS_prctl, PR_SET_PDEATHSIG, t->pdeathsig);
}

/* What would be in the way of the calls before it. */
static void add_memory_rules(struct restore_plan *p)
{
	const struct image_process *ip = process_of(p);

	/* It takes a privilege, and changes nothing that a program could see. */
	if (ip->memory_merge)
		BATCH_ADD(&p->rest, "merge memory", SYS_prctl, PR_SET_MEMORY_MERGE, 1)->check =
			BATCH_ANY;
	if (ip->mdwe)
		BATCH_ADD(&p->rest, "deny writable code", SYS_prctl, PR_SET_MDWE, ip->mdwe);
}

static void add_last(struct restore_plan *p)
{
	const struct image_process *ip = process_of(p);
	const char *root = image_string(p->img, ip->root);
	static const int which[3] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

	/* The path is that of before: it is gone the same way only once. */
	if (strcmp(root, "/") && !p->kept_elsewhere[IMAGE_SHARED_DIRECTORY])
		BATCH_ADD(&p->rest, "change the root directory", SYS_chroot,
			plan_string(&p->plan, root));
	add_pending(p, &p->rest, 0, ip->pid);
	for (int i = 0; i < 3; i++) {
		/* One whose signal is pending stands still until that is taken
		 * (posixtimer_rearm_itimer(), kernel/time/itimer.c). */
		uint64_t value = ip->itimer_value_us[i] || !ip->itimer_interval_us[i]
					 ? ip->itimer_value_us[i]
					 : 1;
		uint64_t timer[4] = {ip->itimer_interval_us[i] / 1000000,
			ip->itimer_interval_us[i] % 1000000, value / 1000000, value % 1000000};

		if (value)
			BATCH_ADD(&p->rest, "set an interval timer", SYS_setitimer, which[i],
				plan_data(&p->plan, timer, sizeof(timer)), 0);
	}
	BATCH_ADD(&p->rest, "set the personality", SYS_personality, ip->personality);
	if (!p->kept_elsewhere[IMAGE_SHARED_MEMORY])
		add_memory_rules(p);
}

static int check_thread(const struct image_thread *t, size_t xstate, struct err *e)
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

/* Only root can be somebody else. */
static int check_user(const struct restore_plan *p, struct err *e)
{
	const struct image_process *ip = process_of(p);
	const uint32_t *groups;
	cleanup_free gid_t *mine = xcalloc(NGROUPS_MAX, sizeof(*mine));
	size_t count;
	int n = getgroups(NGROUPS_MAX, mine);

	if (!geteuid())
		return 0;
	for (int i = 0; i < 4; i++)
		if (ip->uid[i] != getuid() || ip->gid[i] != getgid())
			return err_set(e, 0,
				"the program ran as user %u and group %u; only these and root "
				"can bring it back",
				ip->uid[i], ip->gid[i]);
	groups = image_note_array(p->img, IMAGE_NOTE_GROUPS, uint32_t, &count);
	for (size_t i = 0; i < count; i++) {
		bool member = false;

		for (int k = 0; k < n; k++)
			member |= mine[k] == groups[i];
		/* 65534 stands for those that a user namespace does not know. */
		if (!member && groups[i] != 65534 && groups[i] != getgid())
			return err_set(e, 0,
				"the program was in group %u, which this user is not in",
				groups[i]);
	}
	return 0;
}

static int check(const struct restore_plan *p, struct err *e)
{
	const struct image_process *ip = process_of(p);
	const struct image_thread *t;
	size_t count, xstate;

	image_note(p->img, IMAGE_NOTE_XSTATE, 1, &xstate);
	t = image_note_array(p->img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	if (!ip || !count || t[0].tid != ip->pid)
		return err_set(e, 0, "the image has no process or no threads");
	if (t[0].flags & IMAGE_THREAD_ENDED && count == 1)
		return err_set(e, 0, "the image has no thread that lives");
	for (size_t i = 0; i < count; i++)
		if (check_thread(&t[i], xstate, e))
			return -1;
	return check_user(p, e);
}

int restore_plan_process(struct restore_plan *p, struct err *e)
{
	const struct image_thread *t;
	size_t count;

	if (check(p, e))
		return -1;
	if (!p->kept_elsewhere[IMAGE_SHARED_MEMORY]) {
		add_mm(p);
		add_memory_settings(p);
	}
	add_descriptors(p);
	add_prctls(p);
	if (restore_plan_undos(p, process_of(p)->pid, e))
		return -1;
	restore_plan_signals(p);
	add_threads(p);
	for (size_t i = 0; i < p->fds->threads; i++)
		add_close(p, extra_thread(p->fds, i));
	if (restore_plan_timers(p, e))
		return -1;
	add_last(p);
	t = image_note_array(p->img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	restore_plan_thread(p, &p->rest, &t[0]);
	return 0;
}

int restore_plan_make(struct restore_plan *p, struct err *e)
{
	if ((!p->kept_elsewhere[IMAGE_SHARED_MEMORY] && restore_plan_memory(p, e)) ||
		restore_plan_process(p, e))
		return -1;
	p->memory_at = plan_batch(&p->plan, &p->memory, BATCH_TRAP);
	p->rest_at = plan_batch(&p->plan, &p->rest, BATCH_TRAP);
	p->stack = plan_stack(&p->plan, 16384, 0);
	p->scratch = plan_data(&p->plan, (const uint64_t[2]){0}, 16);
	return 0;
}

void restore_plan_free(struct restore_plan *p)
{
	buf_free(&p->plan.data);
	batch_free(&p->memory);
	batch_free(&p->rest);
	for (unsigned i = 0; i < FILL_THREADS_MAX; i++)
		batch_free(&p->fill[i]);
	for (size_t i = 0; i < p->thread_count; i++)
		batch_free(&p->threads[i]);
	free(p->threads);
	free(p->thread_at);
}
