/*
 * shared_window.h - memory that ranks share in a window (MPI_Win_allocate_shared) is a file in /dev/shm that has no name any more. It
 * is mapped in the lower half's part of the addresses, so it is in no image: each rank saves its own part of it, and a
 * restart maps another file there. For both halves.
 */
#ifndef SHARED_SHARED_WINDOW_H
#define SHARED_SHARED_WINDOW_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "shared/raw.h"

#define SHARED_NAME_SIZE 64

/* A name that no other file has. */
static inline void shared_window_name(char name[SHARED_NAME_SIZE])
{
	static const char folder[] = "/dev/shm/trecr-window-", digits[] = "0123456789abcdef";
	unsigned char random[16];
	char *to = name + sizeof(folder) - 1;

	raw_copy(name, folder, sizeof(folder) - 1);
	if (raw(SYS_getrandom, random, sizeof(random), 0) != sizeof(random))
		raw_zero(random, sizeof(random)); /* then it may be there already */
	for (unsigned i = 0; i < sizeof(random); i++) {
		*to++ = digits[random[i] >> 4];
		*to++ = digits[random[i] & 15];
	}
	*to = 0;
}

/* A descriptor of the file, of @size bytes; negative: it cannot be made, or there is no room for as much. */
static inline int shared_window_create(const char *name, uint64_t size)
{
	long fd = raw(SYS_open, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct statfs st;

	if (raw_failed(fd))
		return -1;
	if (!raw_failed(raw(SYS_fstatfs, fd, &st)) &&
		(!st.f_blocks || st.f_bfree >= size / st.f_bsize + 1) &&
		!raw_failed(raw(SYS_ftruncate, fd, size)))
		return (int)fd;
	raw(SYS_unlink, name);
	raw(SYS_close, fd);
	return -1;
}

static inline int shared_window_open(const char *name)
{
	long fd = raw(SYS_open, name, O_RDWR | O_CLOEXEC, 0);

	return raw_failed(fd) ? -1 : (int)fd;
}

/* At an address that was marked as the lower half's before. 0; or -1: something else is there. */
static inline int shared_window_map(int fd, void *at, uint64_t size)
{
	long r = raw(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

	if (r == (long)at)
		return 0;
	if (!raw_failed(r))
		raw(SYS_munmap, r, size);
	return -1;
}

#endif
