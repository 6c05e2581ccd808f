/*
 * A thread that executes this program again as soon as it is traced, while the main thread makes other
 * threads: those of them that have begun by then end with it, and are traced from their birth.
 *
 *	traced_exec FILE	the thread is made when FILE is there, which means that the others have been
 *				found, and executes the program when they are stopped: these end with it
 */
#include "victim.h"

static char *name;
static _Atomic pid_t other;

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

static bool is_stopped(pid_t tid)
{
	char path[64], text[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, ") t ");
}

static void *idle(void *arg)
{
	other = gettid();
	for (;;)
		pause();
	return arg;
}

static void *execute_later(void *arg)
{
	char *argv[] = {name, "executed", NULL};

	(void)arg;
	while (!is_stopped(other))
		usleep(100);
	execv("/proc/thread-self/exe", argv);
	_exit(3);
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

static void make_thread_at(const char *file)
{
	victim_thread(idle, NULL);
	while (!other)
		usleep(100);
	unlink(file);
	victim_ready();
	while (access(file, F_OK) && !is_to_go_on())
		usleep(100);
	victim_thread(execute_later, NULL);
}

int main(int argc, char **argv)
{
	name = argv[0];
	if (argc < 2)
		make_threads();
	else if (strcmp(argv[1], "executed"))
		make_thread_at(argv[1]);
	victim_wait();
	return victim_done();
}
