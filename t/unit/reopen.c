/*
 * Files of ours whose modes forbid to open them, where no more descriptors can be had; and what has opened them ends.
 */
#include <errno.h>
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

static void check_few(const char *what, gid_t group)
{
	cleanup_free char *path = xasprintf("%s/%s", scratch_path, what);
	struct timespec before, after;
	struct rlimit usual;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || fchown(fd, -1, group) || fchmod(fd, 0))
		diag("cannot make %s: %s", path, strerror(errno));
	close(fd);
	before = change_of(path);
	getrlimit(RLIMIT_NOFILE, &usual);
	fd_reopen_prepare(path, O_RDWR);
	if (!is_possible(group)) {
		ok(true, "%s # SKIP no user namespaces, or no set-group-ID programs", what);
		return;
	}
	ok(open_with_few(path, &usual) > 0, "%s is opened once there are enough descriptors",
		what);
	after = change_of(path);
	ok(!memcmp(&before, &after, sizeof(before)), "and its mode is not changed before");
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
		check_few("a file of another group", OTHER);
		check_waited_for();
	}
	fd_reopen_end();
	ok(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "and no process is left");
	return done_testing();
}
