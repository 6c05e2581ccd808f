/*
 * as_creator.c - in this process, with another root or working directory for a moment; or in a
 * helper with the creator's id and user, which shares our descriptors.
 */
#include "supervisor/socket/as_creator.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/target/clone.h"

struct outcome {
	int error;
	int fds[2];
};

/* As this very process: another one cannot have its id. */
static bool is_ours(const struct socket_as_creator *a)
{
	bool other_user = a->has_user && (a->uid != geteuid() || a->gid != getegid());

	return a->pid == getpid() || (!a->pid && !other_user && !a->root && !a->directory);
}

static int enter_as_creator(const struct socket_as_creator *a)
{
	if (a->root && (chroot(a->root) || chdir("/")))
		return -1;
	return a->directory ? chdir(a->directory) : 0;
}

static int act_here(const struct socket_as_creator *a, int (*action)(void *arg, int fds[2]),
	void *arg, int fds[2])
{
	cleanup_fd int root = -1, directory = -1;
	int failed, error;

	if (!a->root && !a->directory)
		return action(arg, fds);
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || directory < 0)
		return -1;
	failed = enter_as_creator(a) || action(arg, fds);
	error = errno;
	if ((a->root && (fchdir(root) || chroot("."))) || fchdir(directory))
		return -1;
	errno = error;
	return failed ? -1 : 0;
}

/* Without the privilege it stays the user that it is. The C library's own calls would look for
 * the threads of the process that this one is a copy of. */
static void become_creator(const struct socket_as_creator *a)
{
	if (!a->has_user)
		return;
	(void)syscall(SYS_setresgid, a->gid, a->gid, a->gid);
	(void)syscall(SYS_setresuid, a->uid, a->uid, a->uid);
}

static void __attribute__((noreturn)) act_as_creator(const struct socket_as_creator *a,
	int (*action)(void *arg, int fds[2]), void *arg, struct outcome *out)
{
	int failed = enter_as_creator(a);

	if (!failed) {
		become_creator(a);
		failed = action(arg, out->fds);
	}
	out->error = failed ? errno : 0;
	_exit(0);
}

/* Not traced, as the supervisor takes every process that it hears of for one of the program's.
 */
static pid_t make_helper(pid_t pid)
{
	pid_t made = clone_process(CLONE_FILES | CLONE_UNTRACED, pid);

	return made < 0 && pid && errno == EEXIST
		       ? clone_process(CLONE_FILES | CLONE_UNTRACED, 0)
		       : made;
}

static int act_elsewhere(const struct socket_as_creator *a,
	int (*action)(void *arg, int fds[2]), void *arg, struct outcome *out)
{
	pid_t pid = make_helper(a->pid);
	int status;

	if (!pid)
		act_as_creator(a, action, arg, out);
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	errno = status ? ECHILD : out->error;
	return errno ? -1 : 0;
}

int socket_as_creator(const struct socket_as_creator *a, int (*action)(void *arg, int fds[2]),
	void *arg, int fds[2], const char *what, struct err *e)
{
	struct outcome *out;
	int failed;

	if (is_ours(a))
		return act_here(a, action, arg, fds) ? err_set(e, errno, "cannot %s", what) : 0;
	out = mmap(
		NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (out == MAP_FAILED)
		return err_set(e, errno, "cannot map shared memory");
	failed = act_elsewhere(a, action, arg, out);
	if (failed)
		err_set(e, errno, "cannot %s", what);
	else if (fds)
		memcpy(fds, out->fds, sizeof(out->fds));
	munmap(out, sizeof(*out));
	return failed;
}
