/*
 * frozen_tree.h - a tree in which nothing runs any more: which processes are in it, and what is
 * known of each.
 */
#ifndef SUPERVISOR_TREE_FROZEN_TREE_H
#define SUPERVISOR_TREE_FROZEN_TREE_H

#include "supervisor/target/process.h"

/* Remove from @tree processes that have ended meanwhile, put zombies and orphans in their places,
 * and read ids, names and registers of all others. Fails when process @root is not there any
 * more. */
int frozen_read(struct tree *tree, pid_t root, struct err *e);

/* After a failure: if a process of @tree was killed while it stood still, that is why, and @e
 * says so. */
void frozen_explain(const struct tree *tree, struct err *e);

#endif
