/*
 * surviving_helper.c - starts that process, and waits for it.
 */
#include "supervisor/fd/surviving_helper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/limits.h"

#define STACK (256u * 1024)

struct action {
	int (*f)(void *arg);
	void *arg;
	int result;
};

static int run_action(void *arg)
{
	struct action *d = arg;
	sigset_t all;

	/* Neither can fail: a new process leads no group. */
	(void)setsid();
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	d->result = d->f(d->arg);
	return 0;
}

static int run_with_flags(int flags, int (*f)(void *arg), void *arg, struct err *e)
{
	struct action d = {.f = f, .arg = arg};
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	pid_t pid;

	if (stack == MAP_FAILED)
		return err_set(e, errno, "cannot allocate a stack");
	/* We wait (CLONE_VFORK), so it can use our thread's memory as its own; once we are dead
	 * it is alone with it. No signal when it ends: nobody else is to wait for it. */
	pid = clone(
		run_action, stack + STACK, flags | CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, &d);
	if (pid < 0)
		d.result = limit_err(e, errno, SYS_clone3, "cannot create a process");
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	(void)munmap(stack, STACK);
	return d.result;
}

int run_in_surviving_helper(int (*f)(void *arg), void *arg, struct err *e)
{
	return run_with_flags(0, f, arg, e);
}

int run_in_surviving_namespace(int (*f)(void *arg), void *arg, struct err *e)
{
	return run_with_flags(CLONE_NEWUSER, f, arg, e);
}
