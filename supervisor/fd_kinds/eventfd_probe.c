/*
 * eventfd_probe.c - what read(2) takes tells: all of a counter, 1 of a semaphore (man eventfd).
 */
#include "supervisor/fd_kinds/eventfd_probe.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "supervisor/fd/surviving_helper.h"

struct probe {
	int fd;
	uint64_t count;
	bool semaphore;
	struct err *e;
};

/* Never waits, however the program has opened it. */
static bool take_value(int fd, uint64_t *value)
{
	struct iovec iov = {value, sizeof(*value)};

	return preadv2(fd, &iov, 1, -1, RWF_NOWAIT) == sizeof(*value);
}

static bool add_value(int fd, uint64_t value)
{
	return write(fd, &value, sizeof(value)) == sizeof(value);
}

/* With two in it, the two kinds differ. What is taken is put back at once: nobody sees less for long. */
static int take_and_put_back(void *arg)
{
	struct probe *p = arg;
	uint64_t more = p->count < 2 ? 2 - p->count : 0, got;
	bool back;

	if ((more && !add_value(p->fd, more)) || !take_value(p->fd, &got))
		return err_set(p->e, errno, "cannot see whether it is a semaphore");
	p->semaphore = got == 1;
	if (!p->semaphore)
		back = !p->count || add_value(p->fd, p->count);
	else if (p->count)
		back = p->count == 1 || add_value(p->fd, 1);
	else
		back = take_value(p->fd, &got);
	return back ? 0 : err_set(p->e, errno, "cannot put back its count");
}

int eventfd_is_semaphore(int fd, uint64_t count, bool *semaphore, struct err *e)
{
	struct probe p = {.fd = fd, .count = count, .e = e};

	/* So much comes from the kernel itself only (asynchronous I/O), and cannot be put back. */
	if (count == UINT64_MAX)
		return err_set(e, 0,
			"its count has overflowed, and this kernel does not show whether it is "
			"a "
			"semaphore (6.5 and later do)");
	if (run_in_surviving_helper(take_and_put_back, &p, e))
		return -1;
	*semaphore = p.semaphore;
	return 0;
}
