/* Children that have ended, in every way, and were not waited for. */
#include <sys/resource.h>

#include "tree.h"

static pid_t exited, failed, killed, faulted, dumped;

enum { CORE = 99 };

static void write_filter(const char *bits)
{
	int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

	(void)!write(fd, bits, strlen(bits));
	close(fd);
}

static pid_t end(int status, int signal)
{
	struct rlimit limit = {0};
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid) {
		tree_until_state(pid, 'Z');
		return pid;
	}
	/* A core file that is as small as can be, or none. */
	if (status == CORE && !getrlimit(RLIMIT_CORE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		write_filter("0");
	}
	setrlimit(RLIMIT_CORE, &limit);
	if (signal)
		kill(getpid(), signal);
	_exit(status);
}

void victim_hurt(void)
{
	waitpid(failed, NULL, 0);
}

int main(void)
{
	siginfo_t info = {0}, core = {0};

	exited = end(0, 0);
	failed = end(42, 0);
	killed = end(0, SIGKILL);
	faulted = end(0, SIGSEGV);
	dumped = end(CORE, SIGABRT);
	/* Where none can be written, it is another that was killed. */
	MUST(!waitid(P_PID, dumped, &core, WEXITED | WNOWAIT));
	victim_ready();
	victim_wait();
	CHECK(!waitid(P_PID, killed, &info, WEXITED | WNOWAIT) && info.si_pid == killed &&
			info.si_code == CLD_KILLED && info.si_status == SIGKILL &&
			info.si_uid == getuid(),
		"waitid: pid %d, code %d, status %d, uid %u", info.si_pid, info.si_code,
		info.si_status, info.si_uid);
	CHECK(!waitid(P_PID, dumped, &info, WEXITED | WNOWAIT) &&
			info.si_code == core.si_code && info.si_status == SIGABRT,
		"waitid: code %d, was %d, status %d", info.si_code, core.si_code,
		info.si_status);
	tree_reap(dumped, SIGABRT | (core.si_code == CLD_DUMPED ? WCOREFLAG : 0));
	tree_reap(faulted, SIGSEGV);
	tree_reap(failed, 42 << 8);
	tree_reap(exited, 0);
	tree_reap(killed, SIGKILL);
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "there is another child");
	return victim_done();
}
