/*
 * function_versions.h - what cuGetProcAddress hands out: made from the API table by `gen versions`.
 */
#ifndef STUBS_FUNCTION_VERSIONS_H
#define STUBS_FUNCTION_VERSIONS_H

#include <stddef.h>

struct function_version {
	const char *name;
	unsigned since; /* CUDA version from which on this is the answer, 12030 is 12.3 */
	int per_thread; /* for callers with a per-thread default stream */
	void (*entry)(void);
};

/* The entry for @name as asked for by a caller built for CUDA @version, NULL: not in the
 * table. A per-thread caller gets the common variant when there is no other, as the driver
 * does. @versions is sorted by name, variant, newest first. */
void (*function_version_find(const struct function_version *versions, size_t count,
	const char *name, unsigned version, int per_thread))(void);

#endif
