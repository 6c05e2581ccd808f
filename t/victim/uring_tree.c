/*
 * An io_uring that two processes have, with its mappings: what one submits, the other sees.
 */
#include <sys/wait.h>

#include "uring.h"

static struct uring u;
static int gate[2], ready[2];

void victim_hurt(void)
{
	uring_next(&u, 1);
	uring_submit(&u, 1);
}

static int child(void)
{
	char c;

	CHECK(write(ready[1], "r", 1) == 1, "write: %m");
	CHECK(read(gate[0], &c, 1) == 1, "read: %m");
	uring_next(&u, 4711);
	CHECK(uring_submit(&u, 1) == 1, "submit: %m");
	return victim_failures;
}

int main(void)
{
	int status = -1;
	pid_t pid;
	char c;

	uring_open(&u, 8, 0);
	for (int i = 0; i < 20; i++) {
		uring_next(&u, i);
		MUST(uring_submit(&u, 1) == 1);
		CHECK(uring_take(&u, i) == 0, "an empty request");
	}
	MUST(!pipe(gate) && !pipe(ready));
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		_exit(child());
	MUST(read(ready[0], &c, 1) == 1);
	victim_ready();
	victim_wait();
	CHECK(write(gate[1], "g", 1) == 1, "write: %m");
	CHECK(waitpid(pid, &status, 0) == pid && !status, "the child: %x", status);
	CHECK(uring_take(&u, 4711) == 0, "the child's request");
	return victim_done();
}
