/*
 * target/process_copy.h - a copy of a process's memory that stays as it is while the process runs
 * on: a child by fork, which shares its pages until one of the two writes to them.
 *
 * The copy never runs any of the program's code. It is a tracee of the thread that has made it,
 * and ends with that thread. The program does not see it: it is no child of its processes, no
 * signal comes of its end, it holds no descriptor, no lock, no shared mapping and no directory
 * of theirs, and is in a session of its own (doc/decisions/snapshot.md).
 */
#ifndef SUPERVISOR_TARGET_PROCESS_COPY_H
#define SUPERVISOR_TARGET_PROCESS_COPY_H

#include <stdbool.h>

#include "lib/procfs.h"
#include "supervisor/target/process.h"

/* Copy the memory of the frozen process @p, whose mappings are @vmas. @reaper is the
 * supervisor, or its namespace's init; @adopted: a process of the tree would become the copy's
 * parent in its place. Only task, mem_fd and what names it are for others to use. NULL when it
 * cannot be, with the reason; then p->cave_lost tells when not even that could be left off. */
struct process *copy_make(struct process *p, pid_t reaper, bool adopted,
	const struct vma_list *vmas, struct err *e);

/* Whether it has been there all the time. */
bool copy_is_whole(const struct process *copy);

/* End it. From the thread that has made it. */
void copy_end(struct process *copy);

#endif
