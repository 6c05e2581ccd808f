#include "supervisor/socket_act.h"

#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/clone.h"

struct outcome {
	int error;
	int fds[2];
};

static bool needs_process(const struct socket_act *a)
{
	return a->root || a->directory || (a->pid && a->pid != getpid()) ||
	       (a->has_user && (a->uid != geteuid() || a->gid != getegid()));
}

/* Without the privilege it stays the user that it is. The C library's own calls would look for
 * the threads of the process that this one is a copy of. */
static void become(const struct socket_act *a)
{
	if (!a->has_user)
		return;
	(void)syscall(SYS_setresgid, a->gid, a->gid, a->gid);
	(void)syscall(SYS_setresuid, a->uid, a->uid, a->uid);
}

static void __attribute__((noreturn)) act(const struct socket_act *a,
	int (*deed)(void *arg, int fds[2]), void *arg, struct outcome *out)
{
	if (a->root && (chroot(a->root) || chdir("/")))
		out->error = errno;
	else if (a->directory && chdir(a->directory))
		out->error = errno;
	if (!out->error) {
		become(a);
		out->error = deed(arg, out->fds);
	}
	_exit(0);
}

/* Not traced, as the supervisor takes every process that it hears of for one of the program's.
 */
static pid_t make(pid_t pid)
{
	pid_t made = clone_process(CLONE_FILES | CLONE_UNTRACED, pid);

	return made < 0 && pid && errno == EEXIST
		       ? clone_process(CLONE_FILES | CLONE_UNTRACED, 0)
		       : made;
}

static int act_elsewhere(const struct socket_act *a, int (*deed)(void *arg, int fds[2]),
	void *arg, struct outcome *out)
{
	pid_t pid = make(a->pid == getpid() ? 0 : a->pid);
	int status;

	if (!pid)
		act(a, deed, arg, out);
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return status ? ECHILD : out->error;
}

int socket_act(const struct socket_act *a, int (*deed)(void *arg, int fds[2]), void *arg,
	int fds[2], const char *what, struct err *e)
{
	struct outcome *out;
	int error;

	if (!needs_process(a)) {
		error = deed(arg, fds);
		return error ? err_set(e, error, "cannot %s", what) : 0;
	}
	out = mmap(
		NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (out == MAP_FAILED)
		return err_set(e, errno, "cannot map shared memory");
	error = act_elsewhere(a, deed, arg, out);
	if (!error && fds)
		memcpy(fds, out->fds, sizeof(out->fds));
	munmap(out, sizeof(*out));
	return error ? err_set(e, error, "cannot %s", what) : 0;
}
