/*
 * A freeze that waits for an execve(2) in its own tree is unblocked: see freeze.h.
 */
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/tree/freeze_private.h"

/* The thread that @freezer tries to attach to and has to wait for; 0: it does not. */
static pid_t blocked_on(pid_t freezer)
{
	cleanup_free char *path = xasprintf("/proc/self/task/%d/syscall", freezer);
	cleanup_free char *text = NULL;
	unsigned long tid;
	size_t len;
	long nr;

	/* Number and arguments of a system call, or "running". */
	if (read_file(path, &text, &len, NULL) || sscanf(text, "%ld %*x %lx", &nr, &tid) != 2 ||
		nr != SYS_ptrace)
		return 0;
	return tid;
}

void freeze_unblock(pid_t freezer)
{
	pid_t tid = blocked_on(freezer);
	cleanup_free char *status = tid ? procfs_status(tid, tid, NULL) : NULL;
	pid_t pid = status ? (pid_t)status_number(status, "Tgid", 10) : 0;
	cleanup_free pid_t *tids = NULL;
	size_t count;

	if (!pid || procfs_tasks(pid, &tids, &count, NULL))
		return;
	/* Not the main thread: its end is the process's, and in nobody's way. */
	for (size_t i = 0; i < count; i++)
		if (tids[i] != pid && !freezer_task_alive(pid, tids[i]))
			(void)waitpid(tids[i], NULL, __WALL | WNOHANG);
}
