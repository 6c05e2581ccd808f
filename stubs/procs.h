/*
 * procs.h - what cuGetProcAddress hands out: made from the API table by `gen procs`.
 */
#ifndef STUBS_PROCS_H
#define STUBS_PROCS_H

#include <stddef.h>

struct stub_proc {
	const char *name;
	unsigned since; /* CUDA version from which on this is the answer, 12030 is 12.3 */
	int per_thread; /* for callers with a per-thread default stream */
	void (*entry)(void);
};

/* The entry for @name as asked for by a caller built for CUDA @version, NULL: not in the
 * table. A per-thread caller gets the common variant when there is no other, as the driver
 * does. @procs is sorted by name, variant, newest first. */
void (*stub_proc_find(const struct stub_proc *procs, size_t count, const char *name,
	unsigned version, int per_thread))(void);

#endif
