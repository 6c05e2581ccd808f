/*
 * memory/memory_source.h - runs of a process's own memory: where their bytes are read from.
 */
#ifndef SUPERVISOR_MEMORY_MEMORY_SOURCE_H
#define SUPERVISOR_MEMORY_MEMORY_SOURCE_H

#include "supervisor/state/dump.h"

/* Memory of the target at @address + delta; of its copy, where there is one. */
struct memory_source {
	struct dump *dump;
	bool copied;
	bool in_common; /* see struct vma */
	uint64_t delta;
};

/* Of pages of @v. It lives as long as @d. */
struct memory_source *memory_source_new(struct dump *d, const struct vma *v, uint64_t delta);

/* The same of pages that are saved at the addresses that they have; @copied: they are read from a copy, where there is
 * one. Mappings that are read alike have the same, so that pages of several can be read at once. */
struct memory_source *memory_source_own(struct dump *d, const struct vma *v, bool copied);

/* Add [@start, @end) to the runs of @d: to d->copied_runs if @source is a copy's, else to d->runs. */
void memory_source_run(struct dump *d, struct memory_source *source, uint64_t start,
	uint64_t end, bool keep_zero, bool clean);

/* Reads what a run of @d is of the process's own memory: block_run.read of such runs; the context
 * is a struct memory_source. */
int memory_source_read(void *context, uint64_t address, void *data, size_t size, struct err *e);

#endif
