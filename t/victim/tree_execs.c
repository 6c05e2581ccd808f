/*
 * Threads that execute programs: the thread that does so gets the process's id, all others end.
 * Each program is this one again, with a thread that executes the next.
 */
#include "tree.h"

#define COUNT 2

static struct counts {
	_Atomic int stop;
	_Atomic long executed[COUNT];
} * all;

void victim_hurt(void)
{
	all->stop = 1;
	tree_tell('x');
}

static struct counts *map_counts(int fd)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static char number[8], file[16];

static void *execute(void *arg)
{
	char *argv[] = {"tree_execs", number, file, NULL};

	/* Sometimes while the others are there, sometimes after the main thread's end. */
	if (all->executed[atoi(number)] % 3 == 0)
		usleep(100);
	/* /proc/self is the main thread, which may have ended. */
	execv("/proc/thread-self/exe", argv);
	_exit(3);
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

/* Nothing is to pile up with each program: a tree has no more open than a restart may open. */
static bool has_few_files(void)
{
	int next = dup(0);

	close(next);
	return next < 32;
}

static void __attribute__((noreturn)) go_on(void)
{
	long n = ++all->executed[atoi(number)];

	if (!has_few_files())
		_exit(4);
	if (all->stop || kill(getppid(), 0) || getppid() == 1)
		_exit(0);
	victim_thread(idle, NULL);
	victim_thread(execute, NULL);
	if (n % 3 == 0)
		pthread_exit(NULL);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int fd = argc > 2 ? atoi(argv[2]) : memfd_create("counts", 0);
	pid_t pids[COUNT];

	MUST(fd >= 0 && (argc > 2 || !ftruncate(fd, 4096)));
	all = map_counts(fd);
	MUST(all != MAP_FAILED);
	if (argc > 2) {
		snprintf(number, sizeof(number), "%s", argv[1]);
		snprintf(file, sizeof(file), "%s", argv[2]);
		go_on();
	}
	snprintf(file, sizeof(file), "%d", fd);
	for (int i = 0; i < COUNT; i++) {
		pids[i] = fork();
		MUST(pids[i] >= 0);
		if (!pids[i]) {
			snprintf(number, sizeof(number), "%d", i);
			go_on();
		}
	}
	for (int i = 0; i < COUNT; i++)
		while (all->executed[i] < 3)
			usleep(500);
	victim_ready();
	victim_wait();
	for (int i = 0; i < COUNT; i++) {
		long before = all->executed[i];
		uint64_t limit = victim_limit();

		while (all->executed[i] < before + 3 && victim_now() < limit && !all->stop)
			usleep(500);
		CHECK(all->executed[i] >= before + 3, "process %d executes nothing", i);
	}
	all->stop = 1;
	for (int i = 0; i < COUNT; i++) {
		int status = -1;

		CHECK(waitpid(pids[i], &status, 0) == pids[i] && !status,
			"process %d ends with %x", i, status);
	}
	return victim_done();
}
