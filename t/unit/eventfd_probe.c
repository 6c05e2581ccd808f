/* Whether an eventfd is a semaphore is seen without a trace (supervisor/fd_kinds/eventfd_probe.h). */
#include "supervisor/fd_kinds/eventfd_probe.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "t/unit/tap.h"

/* As hexadecimal digits, so that no read changes it. */
static uint64_t count_of(int fd)
{
	cleanup_free char *path = xasprintf("/proc/self/fdinfo/%d", fd);
	cleanup_free char *text = NULL;
	size_t size;

	return read_file(path, &text, &size, NULL) ? 12345
						   : status_number(text, "eventfd-count", 16);
}

static void test(uint64_t count, int flags)
{
	int fd = eventfd(0, flags);
	bool semaphore = !(flags & EFD_SEMAPHORE);
	struct err e = ERR_INIT;

	if (count && write(fd, &count, sizeof(count)) != sizeof(count))
		ok(false, "it can hold %#lx", (unsigned long)count);
	ok(!eventfd_is_semaphore(fd, count, &semaphore, &e) &&
			semaphore == !!(flags & EFD_SEMAPHORE),
		"a %s of %#lx%s is known %s", flags & EFD_SEMAPHORE ? "semaphore" : "counter",
		(unsigned long)count, flags & EFD_NONBLOCK ? ", without waiting," : "", e.msg);
	ok(count_of(fd) == count, "and has that count still: %#lx",
		(unsigned long)count_of(fd));
	ok((fcntl(fd, F_GETFL) & O_NONBLOCK) == (flags & EFD_NONBLOCK ? O_NONBLOCK : 0),
		"and its flags");
	close(fd);
}

int main(void)
{
	static const uint64_t counts[] = {0, 1, 2, 3, 1000, UINT64_MAX - 2, UINT64_MAX - 1};
	static const int flags[] = {0, EFD_NONBLOCK};
	struct err e = ERR_INIT;
	bool semaphore;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(flags); k++) {
			test(counts[i], flags[k]);
			test(counts[i], flags[k] | EFD_SEMAPHORE);
		}
	ok(eventfd_is_semaphore(-1, UINT64_MAX, &semaphore, &e) < 0,
		"one that has overflowed is not");
	says(e.msg, "6.5 and later", "and the kernels are named that show it");
	return done_testing();
}
