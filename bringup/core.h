/*
 * core.h - the code behind the patched system calls of the lower half, a small program without
 * libc at LOWER_CORE. The stub that brings a lower half up maps it first and calls its entry
 * point, which hands out these functions.
 */
#ifndef BRINGUP_CORE_H
#define BRINGUP_CORE_H

#include <stddef.h>
#include <stdint.h>

struct core_functions {
	/* Patch the text of the lower ld.so before it runs. It will see to the libc's when that
	 * is mapped. 0, or -errno: -ENOEXEC when the text is not as expected. */
	int (*patch_ldso)(uint8_t *text, size_t size);
	/* Memory for callers of mmap(2) in the driver. Arguments and result are the system
	 * call's. */
	long (*driver_mmap)(long addr, long size, long prot, long flags, long fd, long offset);
	/* Where what the driver asks for next is to lie, and where nothing else is to:
	 * space_hint(), space_keep(). */
	void (*driver_hint)(uintptr_t address, size_t size);
	int (*driver_keep)(uintptr_t start, uintptr_t end);
	const struct space_taken *driver_taken; /* space_taken() */
	/* The next file that ld.so maps goes to @address, if that is free. */
	void (*place_next)(uintptr_t address);
	const struct space_list *space; /* space_lists() */
	/* How many sites of the libc were patched, or -ENOEXEC; 0 when it was not mapped yet.
	 */
	int (*libc_sites)(void);
	/* Mapped without the hooks' knowledge: space_mark(). */
	void (*mark)(uintptr_t start, size_t size);
};

struct core_options {
	int fd_base; /* descriptors of the lower half get this number and higher ones */
};

typedef void core_entry(const struct core_options *options, struct core_functions *functions);

#endif
