/* Children that have ended, in every way, and were not waited for. */
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tree.h"

static pid_t exited, failed, killed, faulted, dumped, renamed, inner;

enum { CORE = 99 };

static void write_filter(const char *bits)
{
	int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

	(void)!write(fd, bits, strlen(bits));
	close(fd);
}

/* Its name still shows, and whose it was. */
static pid_t end_renamed(void)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		prctl(PR_SET_NAME, "a dead (one)");
		_exit(geteuid() || !setresuid(65534, 65534, 65534) ? 5 : 6);
	}
	tree_until_state(pid, 'Z');
	return pid;
}

static void check_renamed(void)
{
	char path[64], name[32] = "";
	siginfo_t info = {0};
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", renamed);
	fd = open(path, O_RDONLY);
	CHECK(read(fd, name, sizeof(name) - 1) > 0 && !strcmp(name, "a dead (one)\n"),
		"its name is %s", name);
	close(fd);
	CHECK(!waitid(P_PID, renamed, &info, WEXITED) && info.si_code == CLD_EXITED &&
			info.si_status == 5 && info.si_uid == (geteuid() ? geteuid() : 65534),
		"waitid: code %d, status %d, uid %u", info.si_code, info.si_status,
		info.si_uid);
}

/* The first process of a pid namespace, and of a process group: here it has another id than there. */
static pid_t end_inside(void)
{
	int user = geteuid() ? CLONE_NEWUSER : 0;
	pid_t pid = syscall(SYS_clone, CLONE_NEWPID | user | SIGCHLD, 0, NULL, NULL, 0);

	if (!pid)
		_exit(setpgid(0, 0) ? 9 : 8);
	if (pid > 0)
		tree_until_state(pid, 'Z');
	return pid;
}

static void check_inner(void)
{
	CHECK(getpgid(inner) == inner,
		"the namespace's first process was in group %d, is in %d", inner,
		getpgid(inner));
	tree_reap(inner, 8 << 8);
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
	renamed = end_renamed();
	inner = end_inside();
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
	check_renamed();
	if (inner > 0)
		check_inner();
	tree_reap(killed, SIGKILL);
	CHECK(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "there is another child");
	return victim_done();
}
