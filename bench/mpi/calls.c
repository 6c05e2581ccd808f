/*
 * What calls of MPI cost: for bench/turns, with figures in ns. Two ranks or more; the others wait asleep between
 * rounds, so that processes that take turns do not disturb each other. A figure is the least of many short
 * batches, as on a busy machine most of them are interrupted.
 *
 * With "steps" one rank alone does each call again and again, between calls of mark(), and prints where that
 * is and what the calls are: bench/mpi/steps counts instructions.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/turns.h"

enum { LARGE = 1 << 20, WINDOW = 64, BATCHES = 40, TAG = 7, NEXT = 8 };

static int rank, size;
static char *large, small[8];
static MPI_Win window;

/* ---- figures of two ranks ---- */

static void comm_rank(int n)
{
	for (int i = 0; i < n; i++)
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static void ping_pong(char *data, int bytes, int n)
{
	for (int i = 0; i < n; i++)
		for (int half = 0; half < 2; half++)
			if (rank == half)
				MPI_Send(data, bytes, MPI_CHAR, 1 - half, TAG, MPI_COMM_WORLD);
			else
				MPI_Recv(data, bytes, MPI_CHAR, half, TAG, MPI_COMM_WORLD,
					MPI_STATUS_IGNORE);
}

static void ping_pong_small(int n)
{
	if (rank < 2)
		ping_pong(small, sizeof(small), n);
}

static void ping_pong_large(int n)
{
	if (rank < 2)
		ping_pong(large, LARGE, n);
}

static void messages(int n)
{
	MPI_Request requests[WINDOW];
	char bytes[WINDOW];

	for (int i = 0; i < n && rank < 2; i += WINDOW) {
		for (int k = 0; k < WINDOW; k++)
			if (rank)
				MPI_Irecv(&bytes[k], 1, MPI_CHAR, 0, TAG, MPI_COMM_WORLD,
					&requests[k]);
			else
				MPI_Isend(&small[0], 1, MPI_CHAR, 1, TAG, MPI_COMM_WORLD,
					&requests[k]);
		MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	}
}

static void allreduce(int n)
{
	double in = 1, out;

	for (int i = 0; i < n; i++)
		MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(int n)
{
	for (int i = 0; i < n; i++)
		MPI_Barrier(MPI_COMM_WORLD);
}

static void put(int n)
{
	for (int i = 0; i < n && !rank; i++) {
		MPI_Put(small, 1, MPI_DOUBLE, size - 1, 0, 1, MPI_DOUBLE, window);
		MPI_Win_flush(size - 1, window);
	}
}

static const struct figure {
	const char *name;
	void (*calls)(int n);
	int count; /* of a batch */
	int each;  /* how many calls or messages the figure is of */
} figures[] = {
	{"MPI_Comm_rank", comm_rank, 10000, 1},
	{"ping-pong, 8 bytes", ping_pong_small, 200, 2},
	{"ping-pong, 1 MiB", ping_pong_large, 4, 2},
	{"messages begun and waited for", messages, 10 * WINDOW, 1},
	{"MPI_Allreduce", allreduce, 200, 1},
	{"MPI_Barrier", barrier, 200, 1},
	{"MPI_Put and MPI_Win_flush", put, 1000, 1},
};
#define FIGURES (sizeof(figures) / sizeof(*figures))

static double batch(const struct figure *f)
{
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = turns_now();
	f->calls(f->count);
	return (turns_now() - start) / f->count / f->each;
}

static void round_of_figures(void)
{
	for (unsigned i = 0; i < FIGURES; i++) {
		double least = batch(&figures[i]);

		for (int k = 1; k < BATCHES; k++) {
			double time = batch(&figures[i]);

			least = time < least ? time : least;
		}
		if (!rank)
			printf("%s %.2f\n", figures[i].name, least);
	}
	if (!rank)
		turns_done();
}

/* The others are told by a message, for which they look while they sleep. */
static int next_round(void)
{
	const struct timespec nap = {.tv_nsec = 300000};
	int next = !rank && turns_next(), there = 0;

	for (int i = 1; !rank && i < size; i++)
		MPI_Send(&next, 1, MPI_INT, i, NEXT, MPI_COMM_WORLD);
	while (rank && !there) {
		MPI_Iprobe(0, NEXT, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
		nanosleep(&nap, NULL);
	}
	if (rank)
		MPI_Recv(&next, 1, MPI_INT, 0, NEXT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return next;
}

/* ---- instructions of one rank ---- */

/* -1: behind a call. */
__attribute__((noinline, noclone)) static void mark(int number)
{
	__asm__ volatile("" ::"r"(number) : "memory");
}

#define STEPS(F)                                                                               \
	F("nothing", (void)0)                                                                  \
	F("MPI_Comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &n))                                  \
	F("MPI_Wtime", MPI_Wtime())                                                            \
	F("MPI_Type_size", MPI_Type_size(MPI_DOUBLE, &n))                                      \
	F("MPI_Isend", MPI_Isend(small, 8, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &requests[0]))    \
	F("MPI_Irecv", MPI_Irecv(large, 8, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &requests[1]))    \
	F("MPI_Waitall of two", MPI_Waitall(2, requests, MPI_STATUSES_IGNORE))                 \
	F("MPI_Irecv, to come",                                                                \
		MPI_Irecv(large, 8, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &requests[1]))           \
	F("MPI_Send", MPI_Send(small, 8, MPI_CHAR, 0, TAG, MPI_COMM_WORLD))                    \
	F("MPI_Wait", MPI_Wait(&requests[1], MPI_STATUS_IGNORE))                               \
	F("MPI_Isend, to be received",                                                         \
		MPI_Isend(small, 8, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &requests[0]))           \
	F("MPI_Recv", MPI_Recv(large, 8, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) \
	F("MPI_Test, complete", MPI_Test(&requests[0], &n, MPI_STATUS_IGNORE))                 \
	F("MPI_Iprobe, nothing", MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &n, MPI_STATUS_IGNORE))    \
	F("MPI_Barrier, of one", MPI_Barrier(MPI_COMM_WORLD))                                  \
	F("MPI_Allreduce, of one",                                                             \
		MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD))              \
	F("MPI_Bcast, of one", MPI_Bcast(&in, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD))               \
	F("MPI_Put, to oneself", MPI_Put(small, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, window))   \
	F("MPI_Win_flush", MPI_Win_flush(0, window))

static void step(void)
{
	MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	double in = 1, out;
	int n, number = 0;

#define F(name, call)                                                                          \
	mark(number++);                                                                        \
	call;                                                                                  \
	mark(-1);
	STEPS(F)
#undef F
}

static void steps(void)
{
#define F(name, call) puts(name);
	STEPS(F)
#undef F
	printf("\n%lx %d\n", (unsigned long)mark, getpid());
	fflush(stdout);
	for (;;)
		step();
}

int main(int argc, char **argv)
{
	void *base;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	large = calloc(1, LARGE);
	MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
	MPI_Win_lock_all(0, window);
	if (argc > 1 && !strcmp(argv[1], "steps"))
		steps();
	while (next_round())
		round_of_figures();
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
