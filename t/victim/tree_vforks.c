/*
 * Processes that wait for a child in clone(2) with CLONE_VFORK, most of the time: for a sibling
 * (CLONE_PARENT), which has their memory or a copy, for a thread, and for a child that waits for one of
 * its own. They make one after the other.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>

#include "tree.h"

enum { SIBLING, SIBLING_COPY, THREAD, NESTED, KINDS };

static struct {
	_Atomic int stop;
	_Atomic long made[KINDS];
} * all;

static char stacks[2][64 * KIB] __attribute__((aligned(16)));

static void take_a_while(void)
{
	static const struct timespec while_ns = {.tv_nsec = 3000000};

	nanosleep(&while_ns, NULL);
}

static int run_short(void *arg)
{
	(void)arg;
	take_a_while();
	return 0;
}

/* To be found before it ends. */
static int run_longer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++)
		take_a_while();
	return 0;
}

static int run_nested(void *arg)
{
	run_longer(arg);
	clone(run_short, stacks[1] + sizeof(stacks[1]), CLONE_VFORK | CLONE_VM | SIGCHLD, NULL);
	return 0;
}

static int kind;

static pid_t make_one(void)
{
	char *top = stacks[0] + sizeof(stacks[0]);
	pid_t pid;

	switch (kind) {
	case SIBLING:
		return clone(run_short, top, CLONE_VFORK | CLONE_VM | CLONE_PARENT, NULL);
	case SIBLING_COPY:
		pid = syscall(SYS_clone, CLONE_VFORK | CLONE_PARENT, 0, 0, 0, 0);
		if (!pid) {
			take_a_while();
			_exit(0);
		}
		return pid;
	case THREAD:
		return clone(run_longer, top,
			CLONE_VFORK | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, NULL);
	default:
		return clone(run_nested, top, CLONE_VFORK | CLONE_VM | SIGCHLD, NULL);
	}
}

/* Two threads that run while the process waits for one that it has made: a freeze stops them twice. */
static void *nap_on(void *unused)
{
	const struct timespec little = {.tv_nsec = 30000000};

	while (!all->stop)
		CHECK(!syscall(SYS_nanosleep, &little, NULL), "nanosleep: %m");
	return unused;
}

static void *poll_on(void *unused)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	while (!all->stop)
		CHECK(!epoll_wait(fd, &event, 1, 30), "epoll_wait: %m");
	return unused;
}

static void start_bystanders(void)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, nap_on, NULL) &&
		!pthread_create(&thread, NULL, poll_on, NULL));
}

static void make_on(void)
{
	if (kind == THREAD)
		start_bystanders();
	while (!all->stop && getppid() == tree_root) {
		CHECK(make_one() > 0, "clone: %m");
		all->made[kind]++;
	}
	CHECK(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD,
		"a child that nobody waits for stays");
}

void victim_hurt(void)
{
	all->stop = 1;
	tree_tell('x');
}

int main(void)
{
	all = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	/* Nobody waits for the processes that are made. */
	signal(SIGCHLD, SIG_IGN);
	for (kind = 0; kind < KINDS; kind++)
		tree_child(NULL, make_on);
	tree_await(KINDS);
	tree_open(KINDS);
	for (int i = 0; i < KINDS; i++)
		while (!all->made[i])
			usleep(500);
	victim_ready();
	victim_wait();
	for (int i = 0; i < KINDS && !victim_failures; i++) {
		long before = all->made[i];

		while (!all->stop && all->made[i] < before + 2)
			usleep(500);
	}
	all->stop = 1;
	for (int i = 0; i < KINDS; i++)
		CHECK(tree_hear() == 'k', "a child");
	return victim_done();
}
