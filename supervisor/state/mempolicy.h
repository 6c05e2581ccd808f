/*
 * mempolicy.h - which NUMA nodes memory comes from: a thread's policy (set_mempolicy) and those
 * of memory (mbind), out of a process and into a new one.
 */
#ifndef SUPERVISOR_STATE_MEMPOLICY_H
#define SUPERVISOR_STATE_MEMPOLICY_H

#include <stdbool.h>

#include "supervisor/state/dump.h"
#include "supervisor/state/restore_plan.h"

/* With one node, all policies come to the same, and asking for them costs time. */
bool mempolicy_matters(void);

/* The policy of the thread that @r runs in, or of the memory at @address if that is not 0. */
int mempolicy_read(struct remote *r, uint64_t scratch, uint64_t address,
	struct image_policy *policy, struct err *e);

/* Find memory with a policy of its own, into d->policies; with that of the lower half, which goes on making some
 * and giving it back. */
int mempolicy_dump(struct dump *d, struct remote *r, uint64_t scratch, struct err *e);

/* Add what sets them to the batches. Nodes that are not here are left out; without any left,
 * memory comes from where the kernel likes. */
void mempolicy_plan_thread(
	struct restore_plan *p, struct batch_builder *b, const struct image_thread *t);
void mempolicy_plan_memory(struct restore_plan *p);

/* Whether @img wants nodes that are not here. */
bool mempolicy_lacks_nodes(const struct image *img);

#endif
