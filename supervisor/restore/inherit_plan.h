/*
 * restore/inherit_plan.h - pages that processes have had in common since fork(2) are in the process that makes them
 * when it does, so that they are in common again: which process gets what before it makes its children, and what of
 * that its children leave as it is (doc/decisions/common-pages.md).
 *
 * A block is the same as another if both are stored at one place of one file: the checkpoint has compared them.
 */
#ifndef SUPERVISOR_RESTORE_INHERIT_PLAN_H
#define SUPERVISOR_RESTORE_INHERIT_PLAN_H

#include "ckpt/store.h"
#include "supervisor/restore/inherit_candidates.h"
#include "supervisor/state/restore_plan.h"
#include "supervisor/tree/creation_order.h"

struct inherit;

/* Both @c and @order stay until inherit_free(). */
struct inherit *inherit_plan(const struct checkpoint *c, const struct creation_order *order);
void inherit_free(struct inherit *h);

/* Whether process @i inherits memory: so it must not execute anything. */
bool inherit_is_heir(const struct inherit *h, size_t i);

/* Whether @node of the order, or any that descends from it, inherits memory. */
bool inherit_concerns(const struct inherit *h, size_t node);

/* Bytes that all processes together take less than they would if none inherited anything, in areas that are usable. */
uint64_t inherit_saves(const struct inherit *h);

/* What is to be mapped in the first process: struct inherit_area. One that cannot be is set unusable. */
struct buf *inherit_areas(struct inherit *h);

/* What @node of the order gets before it makes its first child: struct placed_blocks, into @list. */
void inherit_fill(const struct inherit *h, size_t node, struct buf *list);

/* What process @i has then. */
void inherit_result(const struct inherit *h, size_t i, struct inherited *in);

#endif
