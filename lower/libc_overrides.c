/*
 * Functions of the libc that libraries down here get from us instead: being the main program,
 * our exports come first. The libc's own calls do not come this way, and that is the point: an
 * address the driver asks for must not depend on what the libc's allocator did before.
 */
#undef _FILE_OFFSET_BITS /* both names are to be defined here */
#include <errno.h>
#include <sys/mman.h>

#include "bringup/core.h"
#include "lower/runtime.h"

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
