/*
 * That a process has left a core file shows in its status (WCOREDUMP), where the kernel notes
 * it when one has been written (do_coredump(), fs/coredump.c) and in no other way. So another
 * one is written, of next to nothing, to where nobody sees it: a file system that goes with the
 * process.
 */
#include "supervisor/restore/zombie_end.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"

/* Whether core files go to the working directory: the kernel's pattern is a relative name. */
static bool core_pattern_is_relative(void)
{
	cleanup_free char *pattern = NULL;
	size_t size;

	return !read_file("/proc/sys/kernel/core_pattern", &pattern, &size, NULL) &&
	       *pattern != '|' && *pattern != '@' && !strchr(pattern, '/');
}

/* Change to a tmpfs that is mounted nowhere. */
static int enter_detached_tmpfs(void)
{
	cleanup_fd int context = fsopen("tmpfs", FSOPEN_CLOEXEC), place = -1;

	if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -1;
	place = fsmount(context, FSMOUNT_CLOEXEC, 0);
	return place < 0 ? -1 : fchdir(place);
}

/* Reduce the core file to headers. */
static int make_core_small(void)
{
	cleanup_fd int filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

	return filter < 0 || write(filter, "0", 1) != 1 ? -1 : 0;
}

/* As much as is allowed; below a page the kernel writes none. */
static int raise_limit(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	if (!setrlimit(RLIMIT_CORE, &limit))
		return 0;
	if (getrlimit(RLIMIT_CORE, &limit))
		return -1;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_CORE, &limit);
}

static void prevent_core(void)
{
	static const struct rlimit none;

	/* A handler of core files takes them in spite of the limit, but not of this. */
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_DUMPABLE, 0);
}

int restore_die(const struct image_job_process *entry, const char *comm, struct err *e)
{
	int signal = entry->status & 0x7f;
	bool core = entry->status & WCOREFLAG && core_pattern_is_relative() &&
		    !enter_detached_tmpfs() && !make_core_small() && !raise_limit();
	sigset_t set;

	/* All of these are for looks, or to be on the safe side. */
	(void)prctl(PR_SET_NAME, comm);
	if (entry->uid != getuid())
		(void)!setresuid(entry->uid, entry->uid, entry->uid);
	if (!signal)
		_exit(entry->status >> 8);
	if (core)
		(void)prctl(PR_SET_DUMPABLE, 1);
	else
		prevent_core();
	if (signal != SIGKILL)
		(void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)kill(getpid(), signal);
	return err_set(e, 0, "cannot end by signal %d", signal);
}
