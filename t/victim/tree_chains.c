/*
 * Chains of processes, each of which makes the next and ends: nobody is there for long, and
 * a process that is missed at a checkpoint breaks its chain. A process that finds the first one gone
 * was missed when that was ended: it leaves the file "survivor" and ends, too.
 */
#include "tree.h"

#define CHAINS 8

static struct {
	_Atomic int stop;
	struct {
		_Atomic long length;
		_Atomic int ended;
	} chain[CHAINS];
} * all;

/* Whatever happens, the machine is not to be filled with processes. */
#define LIFE (300 * SEC)

static uint64_t end;

static void check_root(void)
{
	if (!kill(tree_root, 0) && victim_now() < end)
		return;
	close(open("survivor", O_CREAT | O_WRONLY, 0600));
	_exit(1);
}

static void __attribute__((noreturn)) run(int chain)
{
	while (!all->stop) {
		pid_t pid;

		check_root();
		usleep(200);
		pid = fork();
		if (pid > 0)
			_exit(0);
		/* Too many at once: try again. */
		if (!pid)
			all->chain[chain].length++;
	}
	all->chain[chain].ended = 1;
	_exit(0);
}

static void until(_Atomic long *value, long more)
{
	uint64_t limit = victim_limit();
	long start = *value;

	while (*value < start + more && victim_now() < limit)
		usleep(500);
	CHECK(*value >= start + more, "a chain is broken after %ld", *value);
}

void victim_hurt(void)
{
	all->stop = 1;
}

int main(void)
{
	end = victim_now() + LIFE;
	all = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	for (int i = 0; i < CHAINS; i++) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (!pid)
			run(i);
		MUST(waitpid(pid, NULL, 0) == pid);
	}
	for (int i = 0; i < CHAINS; i++)
		until(&all->chain[i].length, 3);
	victim_ready();
	victim_wait();
	for (int i = 0; i < CHAINS && !victim_failures; i++)
		until(&all->chain[i].length, 3);
	all->stop = 1;
	for (int i = 0; i < CHAINS && !victim_failures; i++)
		while (!all->chain[i].ended)
			usleep(500);
	return victim_done();
}
