/* Descriptors at the highest number that the limit allows, and spread below it. */
#include <sys/resource.h>

#include "victim.h"

static int ends[2], highest, middle, writer;

void victim_hurt(void)
{
	close(highest);
}

int main(void)
{
	struct rlimit limit;
	char data[8];

	MUST(!getrlimit(RLIMIT_NOFILE, &limit) && !pipe(ends));
	highest = dup2(ends[0], (int)limit.rlim_cur - 1);
	middle = dup2(ends[0], highest / 2);
	writer = dup2(ends[1], highest / 4);
	MUST(highest > 0 && middle > 0 && writer > 0 && write(writer, "abc", 3) == 3);
	victim_ready();
	victim_wait();
	CHECK(read(highest, data, 8) == 3, "descriptor %d: %s", highest, strerror(errno));
	CHECK(write(ends[1], "x", 1) == 1 && read(middle, data, 8) == 1, "descriptor %d: %s",
		middle, strerror(errno));
	CHECK(dup(writer) > 0 && fcntl(highest - 1, F_GETFD) < 0, "more are open than were");
	return victim_done();
}
