/*
 * Children that are stopped, and what their parent knows of it: by which signal, whether it has
 * been told, no signal more than it has had; what is pending in them waits until they go on.
 * With "pending": the signal that tells the parent of a stop waits, as it is blocked.
 */
#include "tree.h"

enum { TOLD, UNTOLD, PENDING, THREADS, WENT_ON, TOLD_OF_THAT, KIDS };

static pid_t kid[KIDS];
static volatile sig_atomic_t chlds;

void victim_hurt(void)
{
	int status;

	MUST(waitpid(kid[UNTOLD], &status, WUNTRACED) == kid[UNTOLD]);
}

static void on_child(int signal)
{
	chlds++;
}

static void *idle(void *arg)
{
	while (pause())
		;
	return NULL;
}

static void __attribute__((noreturn)) live(int which)
{
	sigset_t none;

	for (int i = 0; which == THREADS && i < 3; i++)
		victim_thread(idle, NULL);
	tree_tell('r');
	sigemptyset(&none);
	for (;;)
		sigsuspend(&none);
}

/* In a group of its own, as a shell would, so that terminals' signals stop it. */
static void start(int which)
{
	kid[which] = fork();
	MUST(kid[which] >= 0);
	if (!kid[which])
		live(which);
	MUST(!setpgid(kid[which], kid[which]));
	tree_await(1);
}

static siginfo_t next(int which, int events)
{
	siginfo_t info = {0};

	MUST(!waitid(P_PID, kid[which], &info, events | WNOHANG));
	return info;
}

/* With SIGCHLD, which comes later than what waitid() sees. */
static void send(int which, int signal, int how)
{
	uint64_t limit = victim_limit();
	int before = chlds;
	siginfo_t info;

	MUST(!kill(kid[which], signal));
	MUST(!waitid(P_PID, kid[which], &info, how));
	while (chlds == before && victim_now() < limit)
		usleep(500);
	MUST(chlds == before + 1);
}

static void check_stop(int which, int code, int status)
{
	siginfo_t info = next(which, WSTOPPED | WCONTINUED);

	CHECK(info.si_code == code && info.si_status == status,
		"child %d: code %d, status %d, not %d, %d", which, info.si_code, info.si_status,
		code, status);
}

static void finish(int which, int signal)
{
	kill(kid[which], SIGCONT);
	kill(kid[which], signal);
	tree_reap(kid[which], signal);
}

static bool sigchld_waits(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGCHLD);
}

static int signal_waits(void)
{
	siginfo_t info = {0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	start(UNTOLD);
	MUST(!kill(kid[UNTOLD], SIGSTOP) && sigwaitinfo(&set, &info) == SIGCHLD);
	MUST(!kill(getpid(), SIGCHLD)); /* another one */
	victim_ready();
	victim_wait();
	CHECK(sigchld_waits(), "the signal is gone");
	check_stop(UNTOLD, CLD_STOPPED, SIGSTOP);
	finish(UNTOLD, SIGKILL);
	return victim_done();
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_child, .sa_flags = SA_RESTART};
	int before;

	if (argc > 1)
		return signal_waits();
	for (int i = 0; i < KIDS; i++)
		start(i);
	MUST(!sigaction(SIGCHLD, &sa, NULL));
	send(TOLD, SIGTTIN, WSTOPPED);
	send(UNTOLD, SIGTSTP, WSTOPPED | WNOWAIT);
	send(PENDING, SIGTSTP, WSTOPPED);
	MUST(!kill(kid[PENDING], SIGTERM));
	send(THREADS, SIGSTOP, WSTOPPED | WNOWAIT);
	send(WENT_ON, SIGSTOP, WSTOPPED);
	send(WENT_ON, SIGCONT, WCONTINUED | WNOWAIT);
	send(TOLD_OF_THAT, SIGSTOP, WSTOPPED);
	send(TOLD_OF_THAT, SIGCONT, WCONTINUED);
	before = chlds;
	victim_ready();
	victim_wait();

	CHECK(chlds == before, "%d more SIGCHLD", chlds - before);
	for (int i = 0; i < WENT_ON; i++)
		tree_until_state(kid[i], 'T');
	tree_until_state(kid[WENT_ON], 'S');
	check_stop(TOLD, 0, 0);
	check_stop(UNTOLD, CLD_STOPPED, SIGTSTP);
	check_stop(PENDING, 0, 0);
	check_stop(THREADS, CLD_STOPPED, SIGSTOP);
	check_stop(WENT_ON, CLD_CONTINUED, SIGCONT);
	check_stop(TOLD_OF_THAT, 0, 0);
	finish(PENDING, SIGTERM);
	for (int i = 0; i < KIDS; i++)
		if (i != PENDING)
			finish(i, SIGKILL);
	return victim_done();
}
