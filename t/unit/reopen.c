/*
 * Files of ours whose modes forbid to open them, where no more descriptors can be had, by us or by what opens them; and what
 * has opened them ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/fd/reopen_despite_mode.h"
#include "supervisor/fd/surviving_helper.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

#define USER  64998
#define OTHER 64999 /* a supplementary group */

static int kills;

/* In place of the C library's. */
int kill(pid_t pid, int signal)
{
	kills++;
	return syscall(SYS_kill, pid, signal);
}

/* How many descriptors what is started next may have; 0: as many as we. */
static rlim_t limit_next;

/* It calls that first. */
pid_t setsid(void)
{
	struct rlimit limit;

	if (limit_next && !getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit_next;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return syscall(SYS_setsid);
}

/* As root nothing is forbidden. Who has changed its user cannot write to its /proc/self/uid_map, unless it is dumpable. */
static bool become_user(void)
{
	static const gid_t groups[] = {OTHER};

	return geteuid() || (!chmod(scratch_path, 0777) && !setgroups(1, groups) &&
				    !setresgid(USER, USER, USER) &&
				    !setresuid(USER, USER, USER) && !prctl(PR_SET_DUMPABLE, 1));
}

static struct timespec change_of(const char *path)
{
	struct stat st = {0};

	if (stat(path, &st))
		diag("cannot examine %s", path);
	return st.st_ctim;
}

/* What the first descriptor is that is free, with none below it. */
static rlim_t count_descriptors(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* With each number of descriptors that may be too small: -1 when one of them has been found to be large enough. */
static int open_with_few(const char *path, const struct rlimit *usual)
{
	int failed = 0;

	for (rlim_t more = 0; more < 10; more++) {
		struct rlimit few = {count_descriptors() + more, usual->rlim_max};
		int fd, code;

		setrlimit(RLIMIT_NOFILE, &few);
		fd = fd_reopen(path, O_RDWR | O_CLOEXEC);
		code = errno;
		setrlimit(RLIMIT_NOFILE, usual);
		if (fd >= 0) {
			close(fd);
			return failed;
		}
		failed++;
		if (code != EMFILE)
			diag("%d more: %s", (int)more, strerror(code));
	}
	return -1;
}

static size_t count_children(pid_t *first)
{
	cleanup_free pid_t *pids = NULL;
	size_t count = 0;

	if (!procfs_children(getpid(), &pids, &count, NULL) && count)
		*first = *pids;
	return count;
}

static int make_namespace(void *arg)
{
	return 0;
}

/* To open files of @group without changing their mode. */
static bool is_possible(gid_t group)
{
	pid_t opener;

	return group == getegid() ? !run_in_surviving_namespace(make_namespace, NULL, NULL)
				  : count_children(&opener) == 1;
}

static void make_file(const char *path, gid_t group)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || fchown(fd, -1, group) || fchmod(fd, 0))
		diag("cannot make %s: %s", path, strerror(errno));
	close(fd);
}

static bool is_unchanged(const char *path, const struct timespec *before)
{
	struct timespec now = change_of(path);

	return !memcmp(before, &now, sizeof(now));
}

static void check_few(const char *what, gid_t group)
{
	cleanup_free char *path = xasprintf("%s/%s", scratch_path, what);
	struct timespec before;
	struct rlimit usual;

	make_file(path, group);
	before = change_of(path);
	getrlimit(RLIMIT_NOFILE, &usual);
	fd_reopen_prepare(path, O_RDWR);
	if (!is_possible(group)) {
		ok(true, "%s # SKIP no user namespaces, or no set-group-ID programs", what);
		return;
	}
	ok(open_with_few(path, &usual) > 0, "%s is opened once there are enough descriptors",
		what);
	ok(is_unchanged(path, &before), "and its mode is not changed before");
}

/* With each number of descriptors that what opens the file may have: it cannot start, receive the file or open it. */
static void check_limited_opener(void)
{
	cleanup_free char *path = xasprintf("%s/limited", scratch_path);
	struct timespec before;
	int fd = -1, failed = 0;

	make_file(path, OTHER);
	before = change_of(path);
	for (rlim_t most = 1; fd < 0 && most < 10; most++) {
		limit_next = most;
		fd_reopen_prepare(path, O_RDWR);
		limit_next = 0;
		fd = fd_reopen(path, O_RDWR | O_CLOEXEC);
		if (fd < 0 && errno != EMFILE && errno != EAGAIN)
			diag("%d descriptors: %s", (int)most, strerror(errno));
		failed += fd < 0;
		fd_reopen_end();
	}
	ok(fd >= 0 && failed > 3 && is_unchanged(path, &before),
		"nor for want of descriptors of what opens it");
	close(fd);
}

/* What opens files of another group cannot be started with so few descriptors, and then it can. */
static void check_start(void)
{
	cleanup_free char *path = xasprintf("%s/start", scratch_path);
	struct timespec before;
	struct rlimit usual;
	bool refused = true;
	pid_t opener;
	int fd;

	make_file(path, OTHER);
	before = change_of(path);
	getrlimit(RLIMIT_NOFILE, &usual);
	for (rlim_t more = 0; more < 3; more++) {
		struct rlimit few = {count_descriptors() + more, usual.rlim_max};

		setrlimit(RLIMIT_NOFILE, &few);
		fd_reopen_prepare(path, O_RDWR);
		setrlimit(RLIMIT_NOFILE, &usual);
		fd = fd_reopen(path, O_RDWR | O_CLOEXEC);
		refused = refused && fd < 0 && errno == EMFILE;
		if (fd >= 0)
			close(fd);
	}
	ok(refused && is_unchanged(path, &before), "a file is not opened by changing its mode "
						   "as what would open it could not be started "
						   "for want of descriptors");
	fd_reopen_prepare(path, O_RDWR);
	if (count_children(&opener) != 1)
		return;
	fd = fd_reopen(path, O_RDWR | O_CLOEXEC);
	ok(fd >= 0 && is_unchanged(path, &before), "but by that, once it has been started");
	close(fd);
	fd_reopen_end();
	check_limited_opener();
}

/* A failed restart waits for all of its children: another process may have the number of one of them then. */
static void check_waited_for(void)
{
	pid_t opener;

	if (count_children(&opener) != 1)
		return;
	if (syscall(SYS_kill, opener, SIGKILL) || waitpid(opener, NULL, 0) < 0)
		diag("cannot end process %d: %s", opener, strerror(errno));
	fd_reopen_end();
	ok(!kills, "what opens files by their group is not killed by a number that may be "
		   "another's by then");
}

int main(void)
{
	bool root = !geteuid();

	scratch_make();
	if (!become_user())
		return diag("cannot become a user"), 1;
	check_few("a file of its own group", getegid());
	if (root) {
		check_start();
		check_few("a file of another group", OTHER);
		check_waited_for();
	}
	fd_reopen_end();
	ok(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "and no process is left");
	return done_testing();
}
