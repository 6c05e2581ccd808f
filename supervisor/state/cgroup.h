/*
 * cgroup.h - the cgroups that a process was put into, of both versions.
 *
 * A process in the supervisor's own cgroup is there because it was started there, and comes
 * back into the cgroup of the process that restarts it. Any other was chosen for it.
 */
#ifndef SUPERVISOR_STATE_CGROUP_H
#define SUPERVISOR_STATE_CGROUP_H

#include <sys/types.h>

#include "lib/err.h"
#include "lib/util.h"

/* Lines of /proc/PID/cgroup (cgroups(7)) that @mine, the text of /proc/self/cgroup, has not: into @out. NULL: this kernel
 * has no cgroups. */
int cgroup_read(pid_t pid, const char *mine, struct buf *out, struct err *e);

/* Put process @pid where the @size bytes of @text say. Where that is impossible (the cgroup is
 * gone, or not ours to write to), @notice is told why, and it stays where it is. */
void cgroup_join(pid_t pid, const char *text, size_t size,
	void (*notice)(void *arg, const char *line), void *arg);

#endif
