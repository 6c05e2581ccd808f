/*
 * fd/group_opener.h - opens files of ours whose group is a supplementary one of ours, whatever their modes.
 *
 * By a process that has that group as its effective one, and is outside of the user namespace that a user's restart
 * takes: in there, the group has no number. It is started before the first process of the restart, and the sockets to
 * it are inherited.
 */
#ifndef SUPERVISOR_FD_GROUP_OPENER_H
#define SUPERVISOR_FD_GROUP_OPENER_H

#include <stdbool.h>
#include <sys/types.h>

/* Start the process for @group, one of ours, if there is none yet. -1: it cannot do its work here; as when no file system
 * that we may write to is mounted without nosuid and noexec and can make files without a name (O_TMPFILE). If that was for
 * want of descriptors or memory, the next call tries again. */
int group_opener_start(gid_t group);

/* Put another into the place of each that has a process id of which needs(@arg, id) is true. */
void group_openers_avoid(bool (*needs)(const void *arg, pid_t id), const void *arg);

/* Open what @at (O_PATH) leads to with the @flags of open(2): in this process or one that it has made since, also where the
 * file's group cannot be told, as in a user namespace. The new descriptor, or -1 and errno: EACCES: there is no process
 * of ours that may open it; otherwise one that might have could not open it, or could not be started (EMFILE, ENFILE,
 * ENOMEM), or has been ended (EAGAIN). */
int group_opener_open(int at, int flags);

/* End all of these processes, and wait for them. By the process that has started them. */
void group_openers_end(void);

#endif
