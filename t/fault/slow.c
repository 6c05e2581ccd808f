/*
 * slow.c - a library to be preloaded into trecr's own processes: from attaching to a thread until it is
 * asked to stop (PTRACE_INTERRUPT) TRECR_SLOW microseconds pass, in which it does what there is hardly
 * time for otherwise. With TRECR_SLOW_FILE they pass from when a thread has been found until it is attached
 * to (PTRACE_SEIZE), and that file is made before.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

static struct timespec delay;
static char *file; /* NULL: none */

/* Not for the program. */
__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("TRECR_SLOW");
	long us = text ? atol(text) : 0;
	const char *name = getenv("TRECR_SLOW_FILE");

	delay = (struct timespec){us / 1000000, us % 1000000 * 1000};
	file = name ? strdup(name) : NULL;
	unsetenv("LD_PRELOAD");
	unsetenv("TRECR_SLOW");
	unsetenv("TRECR_SLOW_FILE");
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
	/* Nothing is waited for: what the program does meanwhile is tested. */
	if (request == PTRACE_SEIZE && file)
		close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	if (request == (file ? PTRACE_SEIZE : PTRACE_INTERRUPT))
		nanosleep(&delay, NULL);
	return real(request, words[0], words[1], words[2]);
}
