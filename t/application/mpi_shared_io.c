/*
 * mpi_shared_io.c - rank 1's requests of io_uring read into the part of rank 0 of memory that ranks share
 * (MPI_Win_allocate_shared). Each rank shows when it may be saved ("asleep.RANK"), and ends when there is a file
 * "awake". Prints "ok", or "skip" where the kernel makes no such io_uring. Arguments:
 *
 *	reads FILE	one after the other, each behind many others, which take their time
 *	nothing 0	none
 *	timer SECONDS	one that waits for a timer, which fires so long after the start, into a large
 *			part that its rank fills at a restart
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <mpi.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "mpi_ranks.h"

enum {
	BEFORE = 255,
	CHUNK = 4 << 20,
	LARGE = 256 << 20,
};

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void show_asleep(void)
{
	char name[32];

	snprintf(name, sizeof(name), "asleep.%d", rank);
	close(open(name, O_CREAT | O_WRONLY, 0600));
}

/* ---- the ring ---- */

static int ring;
static struct io_uring_params params;
static char *queues;
static struct io_uring_sqe *entries;

static unsigned *word(unsigned offset)
{
	return (unsigned *)(queues + offset);
}

static int open_ring(void)
{
	ring = (int)syscall(SYS_io_uring_setup, BEFORE + 1, &params);
	if (ring < 0)
		return 0;
	queues = mmap(NULL,
		params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe) +
			params.sq_entries * sizeof(unsigned),
		PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE,
		MAP_SHARED, ring, IORING_OFF_SQES);
	CHECK(queues != MAP_FAILED && entries != MAP_FAILED);
	return 1;
}

static void add_read(int fd, void *to, unsigned size, uint64_t offset, unsigned flags)
{
	unsigned tail = *word(params.sq_off.tail), i = tail & (params.sq_entries - 1);

	entries[i] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ,
		.flags = (uint8_t)flags,
		.fd = fd,
		.addr = (uintptr_t)to,
		.len = size,
		.off = offset,
		.user_data = tail + 1,
	};
	word(params.sq_off.array)[i] = i;
	__atomic_store_n(word(params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
}

static unsigned completions(void)
{
	return __atomic_load_n(word(params.cq_off.tail), __ATOMIC_ACQUIRE) -
	       *word(params.cq_off.head);
}

/* Requests that have been added, of which each reads all that it is to. */
static void take(unsigned count, int size)
{
	while (completions() < count)
		(void)syscall(
			SYS_io_uring_enter, ring, 0, count, IORING_ENTER_GETEVENTS, NULL, 0);
	for (unsigned i = 0; i < count; i++) {
		unsigned head = *word(params.cq_off.head);
		const struct io_uring_cqe *done =
			(void *)(queues + params.cq_off.cqes +
				 (head & (params.cq_entries - 1)) * sizeof(*done));

		CHECK(done->res == size || (i + 1 == count && done->res == 1));
		__atomic_store_n(word(params.cq_off.head), head + 1, __ATOMIC_RELEASE);
	}
}

static void submit(unsigned count)
{
	CHECK(syscall(SYS_io_uring_enter, ring, count, 0, 0, NULL, 0) == (int)count);
}

/* ---- what it reads ---- */

/* Workers of the kernel read, which do not stop with the program; the last request begins when the others are over. */
static void read_again_and_again(const char *name, char *to)
{
	char *besides =
		mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(name, O_RDWR | O_CREAT, 0600);
	unsigned char numbers[256];

	for (int i = 0; i < 256; i++)
		numbers[i] = (unsigned char)i;
	CHECK(besides != MAP_FAILED && fd >= 0 && !ftruncate(fd, CHUNK));
	CHECK(pwrite(fd, numbers, sizeof(numbers), 0) == sizeof(numbers));
	for (int round = 1; round < 3 || access("awake", F_OK); round++) {
		the_round = round;
		for (int i = 0; i < BEFORE; i++)
			add_read(fd, besides, CHUNK, 0, IOSQE_ASYNC);
		add_read(fd, to, 1, (uint64_t)round % 256, IOSQE_ASYNC | IOSQE_IO_DRAIN);
		submit(BEFORE + 1);
		take(BEFORE + 1, CHUNK);
		CHECK(*(volatile unsigned char *)to == round % 256);
		if (round == 2)
			show_asleep();
	}
}

/* By the clock that tells the time of day, which no checkpoint stops. */
static void read_timer(int seconds, char *to)
{
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
	struct itimerspec at = {0};
	uint64_t fired = 0;

	CHECK(fd >= 0 && !clock_gettime(CLOCK_REALTIME, &at.it_value));
	at.it_value.tv_sec += seconds;
	CHECK(!timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL));
	add_read(fd, to, sizeof(fired), 0, 0);
	submit(1);
	show_asleep();
	take(1, sizeof(fired));
	memcpy(&fired, to, sizeof(fired));
	CHECK(fired == 1);
}

static void sleep_beside(void)
{
	show_asleep();
	while (access("awake", F_OK))
		nap();
}

int main(int argc, char **argv)
{
	int has_timer = argc > 1 && !strcmp(argv[1], "timer"), unit = 0, is_open = 1;
	MPI_Aint bytes = 0;
	char *own = NULL, *to = NULL;
	MPI_Win window;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 3 || size < 2)
		return 2;
	MPI_Win_allocate_shared(!rank && has_timer ? LARGE : 4096, 1, MPI_INFO_NULL,
		MPI_COMM_WORLD, &own, &window);
	MPI_Win_shared_query(window, 0, &bytes, &unit, &to);
	to += bytes - sizeof(uint64_t);
	for (long i = 0; !rank && i < bytes / (long)sizeof(int); i++)
		((unsigned *)own)[i] = (unsigned)i * 2654435761;
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1)
		is_open = open_ring();
	MPI_Bcast(&is_open, 1, MPI_INT, 1, MPI_COMM_WORLD);
	if (!is_open) {
		printf("skip\n");
		fflush(stdout);
		show_asleep();
	} else if (rank != 1 || !strcmp(argv[1], "nothing")) {
		sleep_beside();
	} else if (has_timer) {
		read_timer(atoi(argv[2]), to);
	} else {
		read_again_and_again(argv[2], to);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&window);
	MPI_Finalize();
	if (is_open)
		printf("ok\n");
	return 0;
}
