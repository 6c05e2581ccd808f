/*
 * Many processes, each with memory of its own:
 *
 *	tree_many [COUNT KIB]	so many, and so much each
 */
#include "tree.h"

#define MOST 50

static int count = MOST;
static size_t size = 64 * KIB;
static pid_t children[MOST];
static char *own;
static int number;

static void fill_own(void)
{
	number = tree_sent;
	victim_fill(own, size, 100 + number);
}

static void own_is_same(void)
{
	SAME(own, size, 100 + number, "memory of its own");
}

void victim_hurt(void)
{
	kill(children[count / 2], SIGKILL);
	tree_tell('x');
}

int main(int argc, char **argv)
{
	if (argc == 3) {
		count = atoi(argv[1]);
		size = atoi(argv[2]) * KIB;
		MUST(count <= MOST);
	}
	own = victim_anon(size);
	for (int i = 0; i < count; i++)
		children[i] = tree_child(fill_own, own_is_same);
	tree_await(count);
	victim_ready();
	victim_wait();
	tree_finish(count);
	for (int i = 0; i < count; i++)
		tree_reap(children[i], 0);
	return victim_done();
}
