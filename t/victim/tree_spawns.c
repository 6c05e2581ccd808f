/* Processes that start programs by vfork(2), one after the other, and wait for them. */
#include <sched.h>
#include <spawn.h>

#include "tree.h"

#define COUNT 4

extern char **environ;

static struct {
	_Atomic int stop;
	_Atomic long spawned[COUNT];
} * all;

/* By vfork(2), or with CLONE_VFORK alone, which waits as well but has nothing in common. */
static int spawn_one(void)
{
	char *argv[] = {"/bin/true", NULL};
	static bool shares;
	int status = -1;
	pid_t pid;

	shares = !shares;
	if (shares && posix_spawn(&pid, argv[0], NULL, NULL, argv, environ))
		return -1;
	if (!shares)
		pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		execv(argv[0], argv);
		_exit(99);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int number;

static void spawn_on(void)
{
	while (!all->stop && getppid() == tree_root) {
		int status = spawn_one();

		CHECK(!status, "a spawned program ends with %x", status);
		all->spawned[number]++;
	}
}

void victim_hurt(void)
{
	all->stop = 1;
	tree_tell('x');
}

int main(void)
{
	all = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	for (number = 0; number < COUNT; number++)
		tree_child(NULL, spawn_on);
	tree_await(COUNT);
	tree_open(COUNT);
	for (int i = 0; i < COUNT; i++)
		while (!all->spawned[i])
			usleep(500);
	victim_ready();
	victim_wait();
	for (int i = 0; i < COUNT && !victim_failures; i++) {
		long before = all->spawned[i];

		while (!all->stop && all->spawned[i] < before + 2)
			usleep(500);
	}
	all->stop = 1;
	for (int i = 0; i < COUNT; i++)
		CHECK(tree_hear() == 'k', "a child");
	while (waitpid(-1, NULL, 0) > 0)
		;
	return victim_done();
}
