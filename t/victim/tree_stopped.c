/* A child that is stopped stays so, until it is continued. */
#include "tree.h"

static pid_t child;

void victim_hurt(void)
{
	kill(child, SIGCONT);
}

int main(void)
{
	int status = 0;
	siginfo_t info = {0};

	child = tree_child(NULL, NULL);
	tree_await(1);
	kill(child, SIGSTOP);
	MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	tree_open(1);
	victim_ready();
	victim_wait();
	tree_until_state(child, getenv("VICTIM_HURT") ? 'Z' : 'T');
	CHECK(waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid,
		"it has run on");
	kill(child, SIGCONT);
	CHECK(tree_hear() == 'k', "the child");
	tree_reap(child, 0);
	return victim_done();
}
