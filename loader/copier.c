/*
 * copier.c - one userfaultfd for the time that memory is filled. Its number is one that the program has free, and it
 * is closed before the program's own threads are made. Nobody waits at it: what is missing is touched by its copies
 * only, or by somebody who looks at the memory from outside.
 */
#include "loader/copier.h"

#include <linux/ioctl.h>
#include <linux/userfaultfd.h>

#include "loader/system_call.h"

#define SYS_close       3
#define SYS_mmap        9
#define SYS_munmap      11
#define SYS_ioctl       16
#define SYS_userfaultfd 323

#define O_CLOEXEC 02000000

#define PROT_READ_WRITE 3
/* MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE */
#define MAP_BUFFERS 0x100022

#define EAGAIN 11
#define EEXIST 17

static long call(unsigned long nr, unsigned long a, unsigned long b, unsigned long c)
{
	const unsigned long words[7] = {nr, a, b, c};

	return batch_syscall(words);
}

static int map_buffers(const struct batch_copier *k)
{
	const unsigned long words[7] = {SYS_mmap, k->buffers, k->buffers_size, PROT_READ_WRITE,
		MAP_BUFFERS, (unsigned long)-1, 0};

	return batch_syscall(words) == (long)k->buffers ? 0 : -1;
}

static int register_all(
	const struct batch_copier *k, const unsigned long *ranges, unsigned long count)
{
	struct uffdio_api api = {.api = UFFD_API};

	if (is_error(call(SYS_ioctl, k->fd, UFFDIO_API, (unsigned long)&api)))
		return -1;
	for (unsigned long i = 0; i < count; i++) {
		struct uffdio_register r = {
			.range = {ranges[2 * i], ranges[2 * i + 1] - ranges[2 * i]},
			.mode = UFFDIO_REGISTER_MODE_MISSING};

		if (is_error(call(SYS_ioctl, k->fd, UFFDIO_REGISTER, (unsigned long)&r)) ||
			!(r.ioctls & 1ull << _UFFDIO_COPY))
			return -1;
	}
	return 0;
}

/* What was registered is so no more. */
static void close_copier(struct batch_copier *k)
{
	if (k->fd >= 0)
		call(SYS_close, k->fd, 0, 0);
	k->fd = -1;
	call(SYS_munmap, k->buffers, k->buffers_size, 0);
}

/* Faults of the kernel itself, which take a privilege to serve, do not come. */
void copier_open(struct batch_copier *k, const unsigned long *ranges, unsigned long count)
{
	if (map_buffers(k))
		return;
	k->fd = call(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY, 0, 0);
	if (k->fd < 0 || register_all(k, ranges, count))
		close_copier(k);
}

int copier_is_open(const struct batch_copier *k)
{
	return k && k->fd >= 0;
}

/* A copy may end early, and tells how far it has come. */
long copier_put(
	const struct batch_copier *k, unsigned long at, unsigned long from, unsigned long size)
{
	unsigned long done = 0;

	while (done < size) {
		struct uffdio_copy c = {.dst = at + done,
			.src = from + done,
			.len = size - done,
			.mode = UFFDIO_COPY_MODE_DONTWAKE};
		long result = call(SYS_ioctl, k->fd, UFFDIO_COPY, (unsigned long)&c);

		if (result == -EEXIST)
			return done;
		if (result && result != -EAGAIN)
			return result;
		if (c.copy > 0)
			done += c.copy;
	}
	return done;
}

void copier_leave(struct batch_copier *k)
{
	if (k && !__atomic_sub_fetch(&k->batches, 1, __ATOMIC_ACQ_REL) && k->fd >= 0)
		close_copier(k);
}
