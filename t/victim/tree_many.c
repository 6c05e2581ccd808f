/* Many processes, each with memory of its own. */
#include "tree.h"

#define COUNT 50

static pid_t children[COUNT];
static char *own;
static int number;

static void fill_own(void)
{
	number = tree_sent;
	victim_fill(own, 64 * KIB, 100 + number);
}

static void own_is_same(void)
{
	SAME(own, 64 * KIB, 100 + number, "memory of its own");
}

void victim_hurt(void)
{
	kill(children[COUNT / 2], SIGKILL);
	tree_tell('x');
}

int main(void)
{
	own = victim_anon(64 * KIB);
	for (int i = 0; i < COUNT; i++)
		children[i] = tree_child(fill_own, own_is_same);
	tree_await(COUNT);
	victim_ready();
	victim_wait();
	tree_finish(COUNT);
	for (int i = 0; i < COUNT; i++)
		tree_reap(children[i], 0);
	return victim_done();
}
