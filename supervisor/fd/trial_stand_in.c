/*
 * trial_stand_in.c - /dev/null for a descriptor, a memfd of the same size for memory.
 */
#include "supervisor/fd/trial_stand_in.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

int fd_stand_in(struct fd_restore *r, struct err *e)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	return fd < 0 ? err_set(e, errno, "cannot open /dev/null") : fd_lift(r, fd, e);
}

/* Not in huge pages, of which the program may have all. */
int fd_stand_in_memory(struct fd_restore *r, uint32_t number, struct err *e)
{
	struct fd_made *made = &r->made[number - 1];
	int fd = memfd_create("trial", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_set(e, errno, "cannot create a memfd");
	made->fd = fd = fd_lift(r, fd, e);
	if (fd < 0)
		return -1;
	return ftruncate(fd, r->objects[number - 1].size)
		       ? err_set(e, errno, "cannot set the size of a memfd")
		       : 0;
}
