/* A process whose parent has ended belongs to the process that adopts orphans, and lives on. */
#include "tree.h"

static pid_t reaper, *shared;

static void remember_parent(void)
{
	shared[0] = getpid();
	while (getppid() == shared[1])
		usleep(500);
	reaper = getppid();
}

static void same_parent(void)
{
	CHECK(getppid() != tree_root && getppid() != shared[1], "parent is %d", getppid());
	CHECK(getppid() == 1 || reaper != 1, "parent was %d, is %d", reaper, getppid());
}

void victim_hurt(void)
{
	kill(shared[0], SIGKILL);
	tree_tell('x');
}

int main(void)
{
	pid_t middle;

	shared = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	middle = fork();
	MUST(middle >= 0);
	if (!middle) {
		shared[1] = getpid();
		tree_child(remember_parent, same_parent);
		_exit(0);
	}
	MUST(waitpid(middle, NULL, 0) == middle);
	tree_await(1);
	victim_ready();
	victim_wait();
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "the orphan is ours");
	tree_finish(1);
	return victim_done();
}
