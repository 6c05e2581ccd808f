/*
 * fd/descriptor_source.h - one descriptor of a frozen process, looked at from outside.
 */
#ifndef SUPERVISOR_FD_DESCRIPTOR_SOURCE_H
#define SUPERVISOR_FD_DESCRIPTOR_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/err.h"

struct fd_source {
	pid_t pid;
	pid_t task; /* a living thread of @pid, as its leader may have ended */
	int fd;
	int dup;    /* the same description in this process; never read from or seek it */
	char *link; /* what /proc shows it leads to, or another name of the same file */
	char *info; /* text of fdinfo; see status_value() */
	struct stat st;
	uint32_t flags; /* F_GETFL */
	bool cloexec;
	bool named; /* the path in @link still leads to this very file */
	uint64_t position;
};

/* Look at descriptor @fd of @task; @pidfd is that task's (target/task_pidfd.h). The caller
 * releases @s, also after a failure. */
int fd_source_look(
	struct fd_source *s, pid_t pid, pid_t task, int pidfd, int fd, struct err *e);
void fd_source_release(struct fd_source *s);

/* "descriptor 5 (pipe:[77]) of process 4711 (cat)", the caller's to free. */
char *fd_source_text(const struct fd_source *s);

/* Path of the file in @s without the " (deleted)" that /proc adds, the caller's to free. */
char *fd_source_path(const struct fd_source *s);

/* Who owns the file: uid | gid << 32. */
uint64_t fd_source_owner(const struct fd_source *s);

/* Id of process @pid (negative: a process group) as it is known inside its own namespace. */
pid_t fd_inner_pid(pid_t pid);

#endif
