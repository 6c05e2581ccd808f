/*
 * calls.c - a library to be preloaded into trecr-restart, which writes to the file TRECR_CALLS what that has its tracees
 * do: "run PID" when it lets one run, "stop PID" when it has waited for that to stop or end, and then "clone PID" if that
 * was because it has made a thread or process.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static char *file;
static pid_t self;

/* Not for the program, nor for what becomes a process of it. */
__attribute__((constructor)) static void start(void)
{
	file = getenv("TRECR_CALLS");
	self = getpid();
	unsetenv("LD_PRELOAD");
}

static void note(const char *what, pid_t pid)
{
	int fd = file && getpid() == self
			 ? open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
			 : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%s %d\n", what, pid);
	close(fd);
}

long ptrace(enum __ptrace_request request, ...)
{
	long (*real)(enum __ptrace_request, ...) = dlsym(RTLD_NEXT, "ptrace");
	void *words[3];
	va_list ap;

	va_start(ap, request);
	for (int i = 0; i < 3; i++)
		words[i] = va_arg(ap, void *);
	va_end(ap);
	if (request == PTRACE_CONT || request == PTRACE_SYSCALL)
		note("run", (pid_t)(long)words[0]);
	return real(request, words[0], words[1], words[2]);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	pid_t (*real)(pid_t, int *, int) = dlsym(RTLD_NEXT, "waitpid");
	pid_t got = real(pid, status, options);

	if (got > 0)
		note("stop", got);
	if (got > 0 && WIFSTOPPED(*status) && *status >> 16 == PTRACE_EVENT_CLONE)
		note("clone", got);
	return got;
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	int (*real)(idtype_t, id_t, siginfo_t *, int) = dlsym(RTLD_NEXT, "waitid");
	int failed = real(type, id, info, options);

	if (!failed && info->si_pid)
		note("stop", info->si_pid);
	return failed;
}
