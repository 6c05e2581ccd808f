/* Three generations, each waited for by the one before. */
#include "tree.h"

static pid_t child, grandchild;

static void make_grandchild(void)
{
	grandchild = tree_child(NULL, NULL);
}

static void reap_grandchild(void)
{
	CHECK(getppid() == tree_root, "parent is %d", getppid());
	tree_reap(grandchild, 0);
}

void victim_hurt(void)
{
	kill(child, SIGKILL);
	tree_until_state(child, 'Z');
	tree_tell('x');
}

int main(void)
{
	child = tree_child(make_grandchild, reap_grandchild);
	tree_await(2);
	victim_ready();
	victim_wait();
	tree_finish(2);
	tree_reap(child, 0);
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "there is another child");
	return victim_done();
}
