/* Threads that get a signal when their parent ends (PR_SET_PDEATHSIG): each its own, or none.
 */
#include <sys/prctl.h>

#include "tree.h"

enum { CHILD_SIGNAL = SIGUSR2, THREAD_SIGNAL = SIGHUP };

static pid_t middle;
static atomic_bool thread_has_one;
static int of_thread;

void victim_hurt(void)
{
	kill(middle, SIGKILL);
	MUST(waitpid(middle, NULL, 0) == middle);
}

static void *other_thread(void *arg)
{
	MUST(!prctl(PR_SET_PDEATHSIG, THREAD_SIGNAL));
	thread_has_one = true;
	tree_pass();
	MUST(!prctl(PR_GET_PDEATHSIG, &of_thread));
	return NULL;
}

/* Blocked in all threads: waits until it is taken. */
static void prepare(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, CHILD_SIGNAL);
	sigaddset(&set, THREAD_SIGNAL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	MUST(!prctl(PR_SET_PDEATHSIG, CHILD_SIGNAL));
}

static void __attribute__((noreturn)) child(void)
{
	struct timespec limit = {.tv_sec = 20};
	pthread_t thread;
	sigset_t set;
	int of_child;

	prepare();
	thread = victim_thread(other_thread, NULL);
	while (!thread_has_one)
		usleep(500);
	tree_tell('r');
	pthread_join(thread, NULL);
	MUST(!prctl(PR_GET_PDEATHSIG, &of_child));
	CHECK(of_child == CHILD_SIGNAL && of_thread == THREAD_SIGNAL, "signals %d, %d",
		of_child, of_thread);
	/* Its parent is to end now. */
	tree_tell('p');
	sigemptyset(&set);
	sigaddset(&set, CHILD_SIGNAL);
	CHECK(sigtimedwait(&set, NULL, &limit) == CHILD_SIGNAL, "the parent's end is not told");
	tree_tell(victim_failures ? 'x' : 'k');
	_exit(0);
}

int main(void)
{
	int signal = 0;

	middle = fork();
	MUST(middle >= 0);
	if (!middle) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (!pid)
			child();
		while (pause())
			;
	}
	tree_await(1);
	victim_ready();
	victim_wait();
	CHECK(!prctl(PR_GET_PDEATHSIG, &signal) && !signal, "the first process has got one: %d",
		signal);
	CHECK(!kill(middle, 0), "the parent is gone");
	tree_open(1);
	CHECK(tree_hear() == 'p', "the child's own checks");
	kill(middle, SIGKILL);
	tree_reap(middle, SIGKILL);
	CHECK(tree_hear() == 'k', "the child");
	return victim_done();
}
