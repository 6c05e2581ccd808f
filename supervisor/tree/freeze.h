/*
 * freeze.h - stop a whole tree of processes. thaw.h resumes it, or ends it.
 */
#ifndef SUPERVISOR_TREE_FREEZE_H
#define SUPERVISOR_TREE_FREEZE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/procfs.h"
#include "supervisor/target/process.h"
#include "supervisor/tree/gpu_wait.h"

struct freeze_target {
	pid_t root;
	bool root_is_child; /* its end must stay for the event loop to see */
	pid_t reaper;       /* whose children are of the tree, too: orphans */
	const struct proc_identity *former_children;
	size_t former_child_count; /* children of the reaper that are not */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC after which to give up (checkpoint_frozen.c) */
	struct gpu_wait *gpu_wait;
};

/*
 * Stop every thread of the target's root and of all its descendants, orphans included. On
 * success *tree holds them all, each in a trap stop with its registers read, and nothing in
 * the tree runs. On failure everything runs on and *tree is empty.
 */
int freeze(const struct freeze_target *target, struct tree *tree, struct err *e);

/*
 * To be called now and then, from another thread, while thread @freezer of this process is in
 * freeze(). Attaching to a thread in execve(2) blocks until the other threads of its process have
 * ended, and threads that are our tracees already do not end before we have waited for them. This
 * function waits for them.
 */
void freeze_unblock(pid_t freezer);

#endif
