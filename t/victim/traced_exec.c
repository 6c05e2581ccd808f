/*
 * A thread that executes this program again as soon as it is traced, while the main thread makes other
 * threads: those of them that have begun by then end with it, and are traced from their birth.
 */
#include "victim.h"

static char *name;

void victim_hurt(void)
{
	CHECK(0, "hurt");
}

static bool is_traced(void)
{
	char text[4096];
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	const char *tracer;

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	tracer = strstr(text, "\nTracerPid:\t");
	return tracer && atoi(tracer + 12) > 0;
}

static void *execute(void *arg)
{
	char *argv[] = {name, "executed", NULL};

	(void)arg;
	while (!is_traced())
		usleep(100);
	/* /proc/self/exe is the main thread's, which may not answer. */
	execv("/proc/thread-self/exe", argv);
	_exit(3);
}

static void *end(void *arg)
{
	return arg;
}

static bool is_to_go_on(void)
{
	sigset_t set;

	return !sigpending(&set) && sigismember(&set, SIGUSR1);
}

static void make_threads(void)
{
	victim_thread(execute, NULL);
	victim_ready();
	while (!is_to_go_on()) {
		pthread_t t;

		if (!pthread_create(&t, NULL, end, NULL))
			pthread_join(t, NULL);
	}
}

int main(int argc, char **argv)
{
	name = argv[0];
	if (argc < 2 || strcmp(argv[1], "executed"))
		make_threads();
	victim_wait();
	return victim_done();
}
