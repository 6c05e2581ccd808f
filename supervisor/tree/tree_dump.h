/*
 * tree/tree_dump.h - the list of the processes of a frozen tree, into the image.
 */
#ifndef SUPERVISOR_TREE_TREE_DUMP_H
#define SUPERVISOR_TREE_TREE_DUMP_H

#include "supervisor/state/dump.h"

/* The list of the tree's processes, with what makes them one: parents, groups, sessions. What
 * could not be made again is refused. @reaper: the supervisor, or its namespace's init. Behind
 * dump_prepare() of all and before all else. */
int dump_tree(struct tree *tree, pid_t reaper, struct image_writer *job, struct err *e);

/* Refuse a session whose terminal the tree does not have open. When all descriptors are known. */
int dump_tree_check_terminals(
	const struct tree *tree, const struct fd_dump *fds, struct err *e);

#endif
