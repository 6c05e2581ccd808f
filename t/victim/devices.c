/* /dev/null, zero, full, random and urandom. */
#include "victim.h"

static int null, zero, full, random_fd, urandom;

void victim_hurt(void)
{
	dup2(null, zero);
}

int main(void)
{
	char data[64];

	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	zero = open("/dev/zero", O_RDONLY);
	full = open("/dev/full", O_WRONLY);
	random_fd = open("/dev/random", O_RDONLY | O_NONBLOCK);
	urandom = open("/dev/urandom", O_RDONLY);
	MUST(null > 0 && zero > 0 && full > 0 && random_fd > 0 && urandom > 0);
	victim_ready();
	victim_wait();
	memset(data, 1, sizeof(data));
	CHECK(read(null, data, 64) == 0 && write(null, data, 64) == 64, "/dev/null");
	CHECK(read(zero, data, 64) == 64, "/dev/zero");
	ZERO(data, 64, "/dev/zero");
	CHECK(write(full, data, 1) < 0 && errno == ENOSPC, "/dev/full");
	CHECK(read(urandom, data, 64) == 64 && memcmp(data, data + 32, 32), "/dev/urandom");
	CHECK(fcntl(random_fd, F_GETFL) & O_NONBLOCK && read(random_fd, data, 8) == 8,
		"/dev/random");
	CHECK(fcntl(null, F_GETFD) == FD_CLOEXEC, "close-on-exec");
	return victim_done();
}
