/* Parents that wait for their children: in wait4, waitid, and by a handler of SIGCHLD. */
#include "tree.h"

static pid_t waiters[3], child;
static volatile sig_atomic_t signals;

static void on_child(int signal)
{
	signals++;
}

static void wait4_child(void)
{
	int status = 0;

	CHECK(waitpid(child, &status, 0) == child && status == 7 << 8, "status %x", status);
}

static void waitid_child(void)
{
	siginfo_t info = {0};

	CHECK(!waitid(P_ALL, 0, &info, WEXITED) && info.si_pid == child && info.si_status == 7,
		"pid %d, status %d", info.si_pid, info.si_status);
}

static void suspend_child(void)
{
	sigset_t none;
	int status = 0;

	sigemptyset(&none);
	while (!signals)
		sigsuspend(&none);
	CHECK(signals == 1, "%d signals", (int)signals);
	CHECK(waitpid(child, &status, WNOHANG) == child && status == 7 << 8, "status %x",
		status);
}

/* A process with a child that passes the gate, which waits for it all the time. */
static pid_t waiter(void (*how)(void))
{
	pid_t pid = fork();
	sigset_t set;

	MUST(pid >= 0);
	if (pid)
		return pid;
	signal(SIGCHLD, on_child);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (how == suspend_child)
		sigprocmask(SIG_BLOCK, &set, NULL);
	child = fork();
	if (!child) {
		tree_tell('r');
		tree_pass();
		_exit(7);
	}
	how();
	tree_tell(victim_failures ? 'x' : 'k');
	_exit(0);
}

void victim_hurt(void)
{
	kill(waiters[0], SIGKILL);
	tree_tell('x');
}

int main(void)
{
	waiters[0] = waiter(wait4_child);
	waiters[1] = waiter(waitid_child);
	waiters[2] = waiter(suspend_child);
	tree_await(3);
	victim_ready();
	victim_wait();
	tree_finish(3);
	for (int i = 0; i < 3; i++)
		tree_reap(waiters[i], 0);
	return victim_done();
}
