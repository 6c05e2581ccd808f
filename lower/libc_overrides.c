/*
 * Functions of the libc that libraries down here get from us instead: being the main program,
 * our exports come first. The libc's own calls do not come this way, and that is the point: an
 * address the driver asks for must not depend on what the libc's allocator did before, and exit
 * is about the program's libc.
 */
#undef _FILE_OFFSET_BITS /* both names are to be defined here */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bringup/core.h"
#include "lower/heap.h"
#include "lower/runtime.h"
#include "shared/raw.h"

void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	long r = table->core->driver_mmap((long)addr, size, prot, flags, fd, offset);

	if ((unsigned long)r > -4096ul) {
		errno = -r;
		return MAP_FAILED;
	}
	return (void *)r;
}

void *mmap64(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

void heap_mapped(uintptr_t start, size_t size)
{
	table->core->mark(start, size);
}

/* A library that ends the process (MPI_Abort, an error that nobody handles) ends the program:
 * with its functions for that, and with what is in the buffers of its files. */
void exit(int status)
{
	if (is_agent)
		agent_ended(status);
	if (upper_thread)
		table->exit(status);
	for (;;)
		raw(SYS_exit_group, status);
}
