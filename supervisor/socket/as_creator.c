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
		return errno;
	return a->directory && chdir(a->directory) ? errno : 0;
}

static int act_here(const struct socket_as_creator *a, int (*action)(void *arg, int fds[2]),
	void *arg, int fds[2])
{
	cleanup_fd int root = -1, directory = -1;
	int error;

	if (!a->root && !a->directory)
		return action(arg, fds);
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || directory < 0)
		return errno;
	error = enter_as_creator(a);
	if (!error)
		error = action(arg, fds);
	if (a->root && (fchdir(root) || chroot(".")))
		return errno;
	return fchdir(directory) ? errno : error;
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

static void __attribute__((noreturn)) act(const struct socket_as_creator *a,
	int (*action)(void *arg, int fds[2]), void *arg, struct outcome *out)
{
	out->error = enter_as_creator(a);
	if (!out->error) {
		become_creator(a);
		out->error = action(arg, out->fds);
	}
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
		act(a, action, arg, out);
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return status ? ECHILD : out->error;
}

int socket_as_creator(const struct socket_as_creator *a, int (*action)(void *arg, int fds[2]),
	void *arg, int fds[2], const char *what, struct err *e)
{
	struct outcome *out;
	int error;

	if (is_ours(a)) {
		error = act_here(a, action, arg, fds);
		return error ? err_set(e, error, "cannot %s", what) : 0;
	}
	out = mmap(
		NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (out == MAP_FAILED)
		return err_set(e, errno, "cannot map shared memory");
	error = act_elsewhere(a, action, arg, out);
	if (!error && fds)
		memcpy(fds, out->fds, sizeof(out->fds));
	munmap(out, sizeof(*out));
	return error ? err_set(e, error, "cannot %s", what) : 0;
}
