/*
 * Requests in an io_uring that open FIFOs, and end when somebody outside opens these for
 * writing: the descriptors are there, whenever that was.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "uring.h"

#define FIFOS 4

static struct uring u;

static const char *name(int i)
{
	static char names[FIFOS][8];

	snprintf(names[i], sizeof(names[i]), "fifo%d", i);
	return names[i];
}

/* One is opened, and then something else has its number. */
void victim_hurt(void)
{
	int end = open(name(0), O_RDWR | O_NONBLOCK);

	MUST(end >= 0 && uring_enter(u.fd, 0, 1, IORING_ENTER_GETEVENTS) == 0);
	MUST(dup2(STDERR_FILENO, uring_peek(&u)->res) >= 0);
}

/* By a worker thread of the kernel, which waits in it. */
static void begin(int i)
{
	struct io_uring_sqe *sqe;

	MUST(!mkfifo(name(i), 0600));
	sqe = uring_next(&u, i);
	sqe->opcode = IORING_OP_OPENAT;
	sqe->flags = IOSQE_ASYNC;
	sqe->fd = AT_FDCWD;
	sqe->addr = (uintptr_t)name(i);
	sqe->open_flags = O_RDONLY | O_CLOEXEC;
	MUST(uring_submit(&u, 0) == 1);
}

static void check_opened(void)
{
	const struct io_uring_cqe *cqe = uring_peek(&u);
	struct stat opened, named;
	int i;

	CHECK(cqe, "a completion is missing");
	if (!cqe)
		return;
	i = cqe->user_data;
	CHECK(cqe->res >= 0, "open of %s: %s", name(i), strerror(-cqe->res));
	CHECK(cqe->res < 0 || (!fstat(cqe->res, &opened) && !stat(name(i), &named) &&
				      opened.st_ino == named.st_ino),
		"descriptor %d is not %s", cqe->res, name(i));
	uring_seen(&u);
}

int main(void)
{
	int ends[FIFOS], low;

	uring_open(&u, 16, 0);
	for (int i = 0; i < FIFOS; i++)
		begin(i);
	victim_ready();
	victim_wait();
	/* For files that nobody has opened; at numbers that no request has been given. */
	for (int i = 0; i < FIFOS; i++) {
		low = open(name(i), O_RDWR | O_NONBLOCK);
		ends[i] = fcntl(low, F_DUPFD, 100);
		close(low);
	}
	CHECK(uring_enter(u.fd, 0, FIFOS, IORING_ENTER_GETEVENTS) == 0, "io_uring_enter: %m");
	for (int i = 0; i < FIFOS; i++)
		check_opened();
	for (int i = 0; i < FIFOS; i++)
		close(ends[i]);
	return victim_done();
}
