/*
 * tree/sharing_dump.h - what processes of a frozen tree share with each other.
 */
#ifndef SUPERVISOR_TREE_SHARING_DUMP_H
#define SUPERVISOR_TREE_SHARING_DUMP_H

#include "supervisor/state/dump.h"

/* What processes share, and what they end with, into the tree: for dump_tree(). */
int dump_sharing(struct tree *tree, struct err *e);

/* The same for IMAGE_NOTE_SHARING, the caller's to free; NULL: there is nothing to tell. */
struct image_sharing *dump_sharing_list(const struct tree *tree);

#endif
