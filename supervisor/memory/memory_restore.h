/*
 * memory/memory_restore.h - memory of a new process: mapped and filled by the loader.
 */
#ifndef SUPERVISOR_MEMORY_MEMORY_RESTORE_H
#define SUPERVISOR_MEMORY_MEMORY_RESTORE_H

#include "supervisor/state/restore_plan.h"

/* The parts. */
int restore_plan_memory(struct restore_plan *p, struct err *e);

/* Read @size bytes of the memory that @x is of, from @skip on. */
void restore_plan_fill(struct restore_plan *p, struct batch_builder *b,
	const struct image_extent *x, uint64_t skip, uint64_t size);

/* Whether the region that @x lies in is device memory. An extent is of one kind only. */
bool restore_plan_is_on_device(const struct restore_plan *p, const struct image_extent *x);

#endif
