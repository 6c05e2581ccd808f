/* high_descriptor: has a descriptor of its own where the lower half's are. */
#include <sys/resource.h>

#include "t/split/driver_victim.h"

void victim_hurt(void)
{
}

int main(void)
{
	struct rlimit limit;
	int high;

	MUST(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 256;
	MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	WORKS(cuInit(0));
	limit.rlim_cur = limit.rlim_max;
	MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	high = dup2(0, 300);
	MUST(high == 300);
	victim_ready();
	victim_wait();
	CHECK(fcntl(high, F_GETFD) == 0, "the descriptor is gone");
	return victim_done();
}
