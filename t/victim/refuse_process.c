/* States of processes and threads that a checkpoint refuses. */
#include <asm/ldt.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/io.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "refuse.h"

static void removed_root(void)
{
	MUST(!mkdir("gone", 0700));
	fd = open(".", O_RDONLY | O_DIRECTORY);
	need(!chroot("gone"), "chroot is not permitted");
	MUST(fd >= 0 && !unlinkat(fd, "gone", AT_REMOVEDIR));
}

static int wait_for_end(void *arg)
{
	while (syscall(SYS_pause))
		;
	return 0;
}

/* A process that shares its descriptors with its grandparent, but no longer with its parent. */
static int leave_gap(void *arg)
{
	static char stack[64 * 1024];
	pid_t *grandchild = arg;

	*grandchild = clone(wait_for_end, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);
	MUST(*grandchild > 0 && !unshare(CLONE_FILES));
	(void)!write(fd, "", 1);
	return wait_for_end(NULL);
}

static pid_t between;

static void shared_over_a_gap(void)
{
	static char stack[64 * 1024];
	pid_t *grandchild =
		victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	int ends[2];
	char c;

	MUST(!pipe(ends));
	fd = ends[1];
	between = clone(leave_gap, stack + sizeof(stack), CLONE_FILES | SIGCHLD, grandchild);
	MUST(between > 0 && read(ends[0], &c, 1) == 1);
	child = *grandchild;
}

static void end_gap(void)
{
	CHECK(!kill(child, SIGKILL) && !kill(between, SIGKILL) &&
			waitpid(between, NULL, 0) == between,
		"children");
}

static void seccomp(void)
{
	struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog program = {1, &allow};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "no seccomp");
}

static void still_seccomp(void)
{
	CHECK(prctl(PR_GET_SECCOMP) == 2, "filter");
}

/* Of another program of the session. */
static void group_outside(void)
{
	need(getenv("OUTSIDE_GROUP"), "no server");
	MUST(!setpgid(0, atoi(getenv("OUTSIDE_GROUP"))));
}

static void pid_namespace_child(void)
{
	/* Its children would be made elsewhere. */
	need(!syscall(SYS_unshare, 0x20000000 /* CLONE_NEWPID */), "no pid namespaces here");
}

static void landlock(void)
{
	struct landlock_ruleset_attr rules = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK,
	};
	int ruleset = syscall(444 /* landlock_create_ruleset */, &rules, sizeof(rules), 0);

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	need(ruleset >= 0 && !syscall(446 /* landlock_restrict_self */, ruleset, 0),
		"no Landlock here");
	close(ruleset);
}

static char selector;

static void dispatch(void)
{
	need(!prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &selector),
		"no dispatch of system calls");
}

static void still_dispatched(void)
{
	prctl(59, 0, 0, 0, 0);
}

static struct user_desc segment = {
	.base_addr = 0x1000, .limit = 0xfff, .seg_32bit = 1, .useable = 1};

static void ldt(void)
{
	need(!syscall(SYS_modify_ldt, 0x11, &segment, sizeof(segment)),
		"no segments of one's own");
}

static void still_ldt(void)
{
	char entries[64];

	CHECK(syscall(SYS_modify_ldt, 0, entries, sizeof(entries)) > 0, "segment");
}

static void thread_area(void)
{
	segment.entry_number = -1;
	need(!syscall(SYS_set_thread_area, &segment), "no thread areas");
}

/* By its parent. */
static void traced(void)
{
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	MUST(child > 0 && waitpid(child, NULL, 0) == child);
}

static void end_traced(void)
{
	int status;

	CHECK(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child &&
			WIFSIGNALED(status),
		"child");
}

static void *idle(void *arg)
{
	pause();
	return NULL;
}

static timer_t cpu_timer;

static void thread_timer(void)
{
	struct itimerspec far = {.it_value = {1000, 0}};

	victim_thread(idle, NULL);
	MUST(!timer_create(CLOCK_THREAD_CPUTIME_ID, NULL, &cpu_timer) &&
		!timer_settime(cpu_timer, 0, &far, NULL));
}

static void still_timer(void)
{
	struct itimerspec left;

	CHECK(!timer_gettime(cpu_timer, &left) && left.it_value.tv_sec, "timer");
}

static void io_ports(void)
{
	need(!ioperm(0x80, 1, 1), "no access to I/O ports");
}

static void *set_bits(void *arg)
{
	need(!prctl(PR_SET_SECUREBITS, 1L << 6 /* SECBIT_NO_CAP_AMBIENT_RAISE */),
		"needs root");
	*(atomic_bool *)arg = true;
	while (pause())
		;
	return NULL;
}

static void thread_securebits(void)
{
	static atomic_bool done;

	victim_thread(set_bits, &done);
	while (!done)
		usleep(500);
}

static int own_sem;

static void *use_own_undo(void *arg)
{
	struct sembuf up = {.sem_op = 1, .sem_flg = SEM_UNDO};

	MUST(!unshare(CLONE_SYSVSEM) && !semop(own_sem, &up, 1));
	*(atomic_bool *)arg = true;
	while (pause())
		;
	return NULL;
}

static void thread_undo(void)
{
	static atomic_bool done;

	own_sem = semget(IPC_PRIVATE, 1, 0600);
	MUST(own_sem >= 0);
	victim_thread(use_own_undo, &done);
	while (!done)
		usleep(500);
}

static void remove_sem(void)
{
	CHECK(semctl(own_sem, 0, GETVAL) == 1, "the semaphore");
	semctl(own_sem, 0, IPC_RMID);
}

static void *forbid_privileges(void *arg)
{
	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	*(atomic_bool *)arg = true;
	while (pause())
		;
	return NULL;
}

static void thread_privileges(void)
{
	static atomic_bool done;

	victim_thread(forbid_privileges, &done);
	while (!done)
		usleep(500);
}

static int undo_with_child(void *ready)
{
	struct sembuf up = {.sem_op = 1, .sem_flg = SEM_UNDO};

	MUST(!semop(own_sem, &up, 1) && write(*(int *)ready, "", 1) == 1);
	return wait_for_end(NULL);
}

static void shared_undo(void)
{
	static char stack[64 * 1024];
	int ends[2];
	char c;

	own_sem = semget(IPC_PRIVATE, 1, 0600);
	MUST(own_sem >= 0 && !pipe(ends));
	child = clone(
		undo_with_child, stack + sizeof(stack), CLONE_SYSVSEM | SIGCHLD, &ends[1]);
	MUST(child > 0 && read(ends[0], &c, 1) == 1);
}

static void end_undo(void)
{
	remove_sem();
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child, "child");
}

/* So many that the kernel does not show them all in time. */
#define QUEUED 90000

static void queued_signals(void)
{
	struct rlimit limit = {QUEUED + 1000, QUEUED + 1000};
	sigset_t set;

	/* Only some may; there may be room without. */
	(void)setrlimit(RLIMIT_SIGPENDING, &limit);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	MUST(!sigprocmask(SIG_BLOCK, &set, NULL));
	for (int i = 0; i < QUEUED; i++) {
		union sigval value = {.sival_int = i};

		need(!sigqueue(getpid(), SIGRTMIN, value), "no room for signals");
	}
}

static void still_queued(void)
{
	struct timespec none = {0};
	siginfo_t info;
	sigset_t set;
	int i = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	while (sigtimedwait(&set, &info, &none) > 0 && info.si_value.sival_int == i)
		i++;
	CHECK(i == QUEUED, "signal %d", i);
}

static void undumpable(void)
{
	child = getpid();
	MUST(!prctl(PR_SET_DUMPABLE, 0));
}

static void still_undumpable(void)
{
	CHECK(!prctl(PR_GET_DUMPABLE), "it is dumpable");
}

static const struct kind kinds[] = {
	{"removed-root", removed_root, nothing, '-'},
	{"clone-gap", shared_over_a_gap, end_gap, 'c'},
	{"seccomp", seccomp, still_seccomp, '-'},
	{"landlock", landlock, nothing, '-'},
	{"traced", traced, end_traced, 'c'},
	{"dispatch", dispatch, still_dispatched, '-'},
	{"ldt", ldt, still_ldt, '-'},
	{"thread-area", thread_area, nothing, '-'},
	{"thread-timer", thread_timer, still_timer, '-'},
	{"io-ports", io_ports, nothing, '-'},
	{"thread-undo", thread_undo, remove_sem, '-'},
	{"thread-securebits", thread_securebits, nothing, '-'},
	{"thread-privileges", thread_privileges, nothing, '-'},
	{"shared-undo", shared_undo, end_undo, 'c'},
	{"group-outside", group_outside, nothing, '-'},
	{"pid-namespace", pid_namespace_child, nothing, '-'},
	{"undumpable", undumpable, still_undumpable, 'c'},
	{"queued-signals", queued_signals, still_queued, '-'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
