/* eventfd: its count, as a semaphore too, shared between duplicates. */
#include <sys/eventfd.h>

#include "victim.h"

static int fd, copy, semaphore, full;

void victim_hurt(void)
{
	eventfd_t v;

	eventfd_read(semaphore, &v);
}

int main(void)
{
	eventfd_t v = 0;

	fd = eventfd(0, EFD_NONBLOCK);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	semaphore = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	full = eventfd(0, EFD_NONBLOCK);
	MUST(fd > 0 && copy > 0 && semaphore > 0 && full > 0);
	MUST(!eventfd_write(fd, 0x123456789ull) && !eventfd_write(full, 0xfffffffffffffffeull));
	victim_ready();
	victim_wait();
	CHECK(eventfd_write(full, 1) < 0 && errno == EAGAIN, "the full one has room");
	CHECK(!eventfd_read(full, &v) && v == 0xfffffffffffffffeull, "count is %llx",
		(long long)v);
	CHECK(!eventfd_read(fd, &v) && v == 0x123456789ull, "count is %llx", (long long)v);
	CHECK(eventfd_read(fd, &v) < 0 && errno == EAGAIN, "O_NONBLOCK");
	CHECK(!eventfd_write(copy, 5) && !eventfd_read(fd, &v) && v == 5, "duplicates are two");
	for (int i = 0; i < 3; i++)
		CHECK(!eventfd_read(semaphore, &v) && v == 1, "semaphore gives %llu at %d",
			(long long)v, i);
	CHECK(eventfd_read(semaphore, &v) < 0 && errno == EAGAIN, "semaphore has more");
	CHECK(fcntl(semaphore, F_GETFD) == FD_CLOEXEC && fcntl(copy, F_GETFD) == FD_CLOEXEC &&
			!fcntl(fd, F_GETFD),
		"close-on-exec");
	return victim_done();
}
