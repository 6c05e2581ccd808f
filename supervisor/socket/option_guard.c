/*
 * A process of its own holds the socket and the old values, and sets them as soon as the pipe
 * from us is closed, whether we do that or the kernel after our death. (The kernel closes a
 * dying process's files before it lets go of those it traces: kernel/exit.c, exit_files() and
 * exit_notify() of do_exit().)
 */
#include "supervisor/socket/option_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/limits.h"
#include "lib/util.h"

int socket_guard_note(struct socket_guard *g, int level, int name, struct err *e)
{
	socklen_t size = sizeof(g->options[0].value);

	BUG_ON(g->count == SOCKET_GUARD_OPTIONS);
	if (getsockopt(g->socket, level, name, &g->options[g->count].value, &size))
		return err_set(e, errno, "cannot query option %d", name);
	g->options[g->count].level = level;
	g->options[g->count].name = name;
	g->count++;
	return 0;
}

static int put_back(const struct socket_guard *g, int i)
{
	return setsockopt(g->socket, g->options[i].level, g->options[i].name,
		&g->options[i].value, sizeof(g->options[i].value));
}

/* A call that fails is made once more: nobody else would put the option back.
 * In the child, of a process with several threads: only system calls. Not to be reached by a
 * signal to our process group. */
static void __attribute__((noreturn)) watch(const struct socket_guard *g, int pipe)
{
	int failed = 0;
	char c;

	(void)setsid();
	while (read(pipe, &c, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < g->count; i++)
		failed |= put_back(g, i) && put_back(g, i);
	_exit(failed ? 1 : 0);
}

int socket_guard_begin(struct socket_guard *g, struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return err_set(e, errno, "cannot create a pipe");
	/* No signal when it ends: nobody else is to wait for it. */
	g->pid = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (!g->pid) {
		close(ends[1]);
		watch(g, ends[0]);
	}
	close(ends[0]);
	g->pipe = ends[1];
	if (g->pid > 0)
		return 0;
	close(g->pipe);
	return limit_err(e, errno, SYS_clone3, "cannot create a process");
}

int socket_guard_end(struct socket_guard *g, struct err *e)
{
	int status;

	close(g->pipe);
	while (waitpid(g->pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return err_set(e, errno, "cannot wait for a process");
	return status ? err_set(e, 0, "cannot put the options of a socket back") : 0;
}
