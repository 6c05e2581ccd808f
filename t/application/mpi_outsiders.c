/*
 * mpi_outsiders.c - an MPI program that makes what trecr's stub has collective calls of its own for: communicators of all kinds, windows, a file,
 * partitioned requests; for ranks of which only some have the stub. It uses each, and frees it. "ready" then, and "ok" when the file "go" is there.
 */
#include <mpi.h>

#include "mpi_ranks.h"

static void use(MPI_Comm comm, int members)
{
	int one = 1, sum = 0;

	CHECK(!MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) && sum == members);
}

static void communicators(void)
{
	MPI_Comm made[6], half;
	MPI_Request request;
	int cycle = 1, odd = rank % 2, halves[2] = {(size + 1) / 2, size / 2};

	CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &made[0]));
	CHECK(!MPI_Comm_idup(MPI_COMM_WORLD, &made[1], &request));
	CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));
	CHECK(!MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &cycle, 0, &made[2]));
	CHECK(!MPI_Comm_split(made[0], odd, 0, &half));
	CHECK(!MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !odd, 1, &made[3]));
	CHECK(!MPI_Intercomm_merge(made[3], odd, &made[4]));
	CHECK(!MPI_Comm_split_type(made[4], MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made[5]));
	for (int i = 0; i < 6; i++) {
		use(made[i], i == 3 ? halves[!odd] : size);
		CHECK(!MPI_Comm_free(&made[i]));
	}
	use(half, halves[odd]);
	CHECK(!MPI_Comm_free(&half));
}

/* Each puts its rank into the next one's memory. What is there then is not looked at: between fences MPICH 4.0.2 loses some of this where nobody
 * but it has a part in it. */
static void put_in_fences(MPI_Win window)
{
	CHECK(!MPI_Win_fence(0, window));
	CHECK(!MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window));
	CHECK(!MPI_Win_fence(0, window));
	CHECK(!MPI_Win_free(&window));
}

static void windows(void)
{
	MPI_Win window;
	int memory, *allocated;

	CHECK(!MPI_Win_create(&memory, sizeof(memory), sizeof(memory), MPI_INFO_NULL,
		MPI_COMM_WORLD, &window));
	put_in_fences(window);
	CHECK(!MPI_Win_allocate(sizeof(memory), sizeof(memory), MPI_INFO_NULL, MPI_COMM_WORLD,
		&allocated, &window));
	put_in_fences(window);
	CHECK(!MPI_Win_allocate_shared(sizeof(memory), sizeof(memory), MPI_INFO_NULL,
		MPI_COMM_WORLD, &allocated, &window));
	put_in_fences(window);
	CHECK(!MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window));
	CHECK(!MPI_Win_fence(0, window) && !MPI_Win_free(&window));
}

static void files(void)
{
	MPI_File file;
	int got = -1;

	CHECK(!MPI_File_open(MPI_COMM_WORLD, "shared-file", MPI_MODE_CREATE | MPI_MODE_RDWR,
		MPI_INFO_NULL, &file));
	CHECK(!MPI_File_write_at_all(
		file, rank * sizeof(rank), &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(!MPI_File_read_at_all(
		file, rank * sizeof(rank), &got, 1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(got == rank && !MPI_File_close(&file));
}

/* From each rank to the next. */
static void partitions(void)
{
	enum { PARTS = 4 };
	int out[PARTS], in[PARTS] = {0};
	MPI_Request requests[2];

	CHECK(!MPI_Psend_init(out, PARTS, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD,
		MPI_INFO_NULL, &requests[0]));
	CHECK(!MPI_Precv_init(in, PARTS, 1, MPI_INT, (rank + size - 1) % size, 5,
		MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
	CHECK(!MPI_Startall(2, requests));
	for (int i = 0; i < PARTS; i++) {
		out[i] = 100 * rank + i;
		CHECK(!MPI_Pready(i, requests[0]));
	}
	CHECK(!MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
	for (int i = 0; i < PARTS; i++)
		CHECK(in[i] == 100 * ((rank + size - 1) % size) + i);
	CHECK(!MPI_Request_free(&requests[0]) && !MPI_Request_free(&requests[1]));
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int ends = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	communicators();
	windows();
	files();
	partitions();
	say("ready");
	while (!ends) {
		ends = !access("go", F_OK);
		CHECK(!MPI_Bcast(&ends, 1, MPI_INT, 0, MPI_COMM_WORLD));
	}
	say("ok");
	MPI_Finalize();
	return 0;
}
