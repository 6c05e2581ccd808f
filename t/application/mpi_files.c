/*
 * mpi_files.c - an MPI program whose ranks write and read files together by MPI-IO, with views, pointers of their own
 * and shared ones, nonblocking and split calls under way. What is written depends on the place only, and places on the
 * round, as files are not taken back by a restart: so each round finds what it has written, also when it is done again.
 *
 * Of one rank: "ready" after the first round, and "ok" when it was told by SIGUSR1 to end. Of several: as mpi_job.c.
 * With "sequential" or "removed" it has a file besides that cannot be opened again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi_ranks.h"

#define BLOCK  8    /* ints that a rank writes at a time */
#define ROUNDS 2000 /* after which places are written again */
#define DISP   64   /* of the view, in bytes */

static volatile sig_atomic_t told_to_end;

/* ---- what is in a file: at each place the number of that place ---- */

static int at(int stream, long place)
{
	return (int)(place * 16 + stream);
}

static void fill(int *block, int stream, long place, int count)
{
	for (int i = 0; i < count; i++)
		block[i] = at(stream, place + i);
}

static int is_filled(const int *block, int stream, long place, int count)
{
	for (int i = 0; i < count; i++)
		if (block[i] != at(stream, place + i))
			return 0;
	return 1;
}

static void check_count(MPI_Status *status, int count)
{
	int got;

	MPI_Get_count(status, MPI_INT, &got);
	CHECK(got == count);
}

/* ---- errors ---- */

static int heard;
static MPI_File heard_of;

static void hear(MPI_File *file, int *code, ...)
{
	heard++;
	heard_of = *file;
}

/* ---- a file with a view: ranks have its blocks in turn ---- */

static MPI_File data;
static MPI_Datatype blocks, pair;
static MPI_Errhandler handler;

/* Of the view, in ints. */
#define CALLS              9
#define PLACE(round, call) (((round) % ROUNDS * CALLS + (call)) * (long)BLOCK)

static void open_data(void)
{
	MPI_Comm comm;
	MPI_Datatype inner;
	MPI_Info info;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Info_create(&info);
	MPI_Info_set(info, "cb_buffer_size", "65536");
	CHECK(!MPI_File_open(comm, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &data));
	MPI_Info_free(&info);
	MPI_Comm_free(&comm);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Type_vector(1, BLOCK / 2, size * BLOCK / 2, pair, &inner);
	MPI_Type_create_resized(inner, 0, (MPI_Aint)sizeof(int) * size * BLOCK, &blocks);
	MPI_Type_commit(&blocks);
	MPI_Type_free(&inner);
	CHECK(!MPI_File_set_view(data, DISP + (MPI_Offset)sizeof(int) * rank * BLOCK, pair,
		blocks, "native", MPI_INFO_NULL));
	MPI_Type_free(&blocks);
	MPI_File_create_errhandler(hear, &handler);
	MPI_File_set_errhandler(data, handler);
}

static void check_data(void)
{
	MPI_Offset disp;
	MPI_Datatype etype, filetype;
	MPI_Group group;
	MPI_Info info;
	MPI_Errhandler set;
	MPI_Aint extent;
	char datarep[MPI_MAX_DATAREP_STRING], value[32] = "";
	int amode, members, bytes, flag, i, a, d, combiner;

	CHECK(!MPI_File_get_amode(data, &amode) && amode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
	CHECK(!MPI_File_get_view(data, &disp, &etype, &filetype, datarep));
	CHECK(disp == DISP + (MPI_Offset)sizeof(int) * rank * BLOCK &&
		!strcmp(datarep, "native"));
	MPI_Type_size(etype, &bytes);
	CHECK(bytes == 2 * sizeof(int));
	MPI_Type_size(filetype, &bytes);
	CHECK(bytes == BLOCK * sizeof(int));
	MPI_File_get_type_extent(data, filetype, &extent);
	CHECK(extent == (MPI_Aint)sizeof(int) * size * BLOCK);
	MPI_Type_get_envelope(filetype, &i, &a, &d, &combiner);
	CHECK(combiner != MPI_COMBINER_NAMED);
	MPI_Type_free(&etype);
	MPI_Type_free(&filetype);
	MPI_File_get_group(data, &group);
	MPI_Group_size(group, &members);
	MPI_Group_free(&group);
	CHECK(members == size);
	MPI_File_get_info(data, &info);
	MPI_Info_get(info, "cb_buffer_size", sizeof(value) - 1, value, &flag);
	MPI_Info_free(&info);
	CHECK(flag && !strcmp(value, "65536"));
	MPI_File_get_errhandler(data, &set);
	CHECK(set == handler);
	MPI_Errhandler_free(&set);
	CHECK(MPI_File_f2c(MPI_File_c2f(data)) == data);
}

/* Its place, in elements of the view. */
static MPI_Offset position(void)
{
	MPI_Offset place;

	CHECK(!MPI_File_get_position(data, &place));
	return place;
}

static void write_data(long round)
{
	int block[CALLS][BLOCK];
	MPI_Request requests[4];
	MPI_Status statuses[4], status;

	for (int i = 0; i < CALLS; i++)
		fill(block[i], rank, PLACE(round, i), BLOCK);
	CHECK(!MPI_File_seek(data, PLACE(round, 0) / 2, MPI_SEEK_SET));
	CHECK(!MPI_File_iwrite_at(
		data, PLACE(round, 4) / 2, block[4], BLOCK / 2, pair, &requests[0]));
	work_at_random();
	CHECK(!MPI_File_write(data, block[0], BLOCK, MPI_INT, &status));
	check_count(&status, BLOCK);
	CHECK(position() == PLACE(round, 1) / 2);
	CHECK(!MPI_File_write_all(data, block[1], BLOCK, MPI_INT, &status));
	check_count(&status, BLOCK);
	work_at_random();
	CHECK(position() == PLACE(round, 2) / 2);
	CHECK(!MPI_File_iwrite_all(data, block[2], BLOCK, MPI_INT, &requests[1]));
	work_at_random();
	CHECK(!MPI_File_write_at_all_begin(
		data, PLACE(round, 5) / 2, block[5], BLOCK, MPI_INT));
	work_at_random();
	CHECK(!MPI_File_write_at_all_end(data, block[5], &status));
	check_count(&status, BLOCK);
	MPI_Waitall(2, requests, statuses);
	check_count(&statuses[0], BLOCK);
	check_count(&statuses[1], BLOCK);
	CHECK(!MPI_File_iwrite(data, block[3], BLOCK, MPI_INT, &requests[0]));
	CHECK(!MPI_File_iwrite_at_all(
		data, PLACE(round, 6) / 2, block[6], BLOCK, MPI_INT, &requests[1]));
	/* They make progress in the order in which they were begun. */
	CHECK(!MPI_File_iwrite_at_all(
		data, PLACE(round, 8) / 2, block[8], BLOCK, MPI_INT, &requests[2]));
	work_at_random();
	CHECK(!MPI_File_write_at(data, PLACE(round, 7) / 2, block[7], BLOCK, MPI_INT, &status));
	MPI_Waitall(2, requests + 1, statuses);
	check_count(&statuses[0], BLOCK);
	check_count(&statuses[1], BLOCK);
	MPI_Wait(&requests[0], &status);
	check_count(&status, BLOCK);
	CHECK(position() == PLACE(round, 4) / 2);
}

static void read_data(long round)
{
	int block[CALLS][BLOCK];
	MPI_Request requests[2];
	MPI_Status status;

	memset(block, 0, sizeof(block));
	CHECK(!MPI_File_seek(data, PLACE(round, 0) / 2, MPI_SEEK_SET));
	CHECK(!MPI_File_iread(data, block[0], BLOCK, MPI_INT, &requests[0]));
	CHECK(!MPI_File_iread_at(
		data, PLACE(round, 3) / 2, block[3], BLOCK / 2, pair, &requests[1]));
	work_at_random();
	CHECK(!MPI_File_read_all(data, block[1], BLOCK, MPI_INT, &status));
	check_count(&status, BLOCK);
	CHECK(!MPI_File_read_all_begin(data, block[2], BLOCK, MPI_INT));
	work_at_random();
	CHECK(!MPI_File_read_all_end(data, block[2], &status));
	check_count(&status, BLOCK);
	work_at_random();
	CHECK(position() == PLACE(round, 3) / 2);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	CHECK(!MPI_File_iread_at_all(
		data, PLACE(round, 4) / 2, block[4], BLOCK, MPI_INT, &requests[0]));
	work_at_random();
	CHECK(!MPI_File_read_at_all(
		data, PLACE(round, 5) / 2, block[5], BLOCK, MPI_INT, &status));
	CHECK(!MPI_File_read_at(data, PLACE(round, 6) / 2, block[6], BLOCK, MPI_INT, &status));
	CHECK(!MPI_File_read_at_all_begin(data, PLACE(round, 7) / 2, block[7], BLOCK, MPI_INT));
	work_at_random();
	MPI_Wait(&requests[0], &status);
	check_count(&status, BLOCK);
	CHECK(!MPI_File_read_at_all_end(data, block[7], &status));
	check_count(&status, BLOCK);
	CHECK(!MPI_File_read_at(data, PLACE(round, 8) / 2, block[8], BLOCK, MPI_INT, &status));
	for (int i = 0; i < CALLS; i++)
		CHECK(is_filled(block[i], rank, PLACE(round, i), BLOCK));
}

/* ---- a file with a pointer that all share ---- */

static MPI_File shared;

/* In each round all ranks write as much by each of so many calls, nobody knows in which order. */
#define SHARED_CALLS 5

static void check_shared(long blocks_done)
{
	MPI_Offset place;

	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(!MPI_File_get_position_shared(shared, &place));
	CHECK(place == blocks_done * BLOCK);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void write_shared(long round)
{
	int block[BLOCK], other[BLOCK];
	long done = round % ROUNDS * SHARED_CALLS * size;
	MPI_Request request;
	MPI_Status status;

	if (!(round % ROUNDS))
		CHECK(!MPI_File_seek_shared(shared, 0, MPI_SEEK_SET));
	check_shared(done);
	for (int i = 0; i < BLOCK; i++)
		block[i] = (int)round % ROUNDS;
	CHECK(!MPI_File_write_shared(shared, block, BLOCK, MPI_INT, &status));
	check_count(&status, BLOCK);
	CHECK(!MPI_File_iwrite_shared(shared, block, BLOCK, MPI_INT, &request));
	work_at_random();
	MPI_Wait(&request, &status);
	check_count(&status, BLOCK);
	CHECK(!MPI_File_write_ordered(shared, block, BLOCK, MPI_INT, &status));
	work_at_random();
	CHECK(!MPI_File_write_ordered_begin(shared, block, BLOCK, MPI_INT));
	work_at_random();
	CHECK(!MPI_File_write_ordered_end(shared, block, &status));
	check_count(&status, BLOCK);
	check_shared(done + (SHARED_CALLS - 1) * size);
	CHECK(!MPI_File_write_shared(shared, block, BLOCK, MPI_INT, &status));
	check_shared(done + SHARED_CALLS * size);
	CHECK(!MPI_File_seek_shared(shared, done * BLOCK, MPI_SEEK_SET));
	for (int i = 0; i < SHARED_CALLS; i++) {
		memset(other, 1, sizeof(other));
		if (i % 2) {
			CHECK(!MPI_File_read_ordered_begin(shared, other, BLOCK, MPI_INT));
			work_at_random();
			CHECK(!MPI_File_read_ordered_end(shared, other, &status));
		} else {
			CHECK(!MPI_File_read_shared(shared, other, BLOCK, MPI_INT, &status));
		}
		check_count(&status, BLOCK);
		CHECK(!memcmp(other, block, sizeof(block)));
	}
}

/* ---- files of this rank alone ---- */

static MPI_File mine, gone;
static char mine_name[32], gone_name[32];

static void open_mine(void)
{
	snprintf(mine_name, sizeof(mine_name), "mine.%d", rank);
	snprintf(gone_name, sizeof(gone_name), "gone.%d", rank);
	CHECK(!MPI_File_open(MPI_COMM_SELF, mine_name,
		MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY | MPI_MODE_APPEND,
		MPI_INFO_NULL, &mine));
	CHECK(!MPI_File_set_atomicity(mine, 1));
	CHECK(!MPI_File_open(MPI_COMM_SELF, gone_name,
		MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
		&gone));
	CHECK(!MPI_File_set_view(
		gone, 16, MPI_DOUBLE, MPI_DOUBLE, "external32", MPI_INFO_NULL));
	CHECK(!MPI_File_preallocate(gone, 4096));
}

static void use_mine(long round)
{
	double value = round, got = 0;
	MPI_Offset place, bytes, before;
	MPI_Datatype etype, filetype;
	char datarep[MPI_MAX_DATAREP_STRING];
	int amode, atomic, block[BLOCK];

	CHECK(!MPI_File_get_amode(mine, &amode) &&
		amode == (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY | MPI_MODE_APPEND));
	CHECK(!MPI_File_get_atomicity(mine, &atomic) && atomic);
	CHECK(!MPI_File_get_position(mine, &before));
	CHECK(before == (round - 1) * (MPI_Offset)sizeof(block));
	fill(block, 7, round * BLOCK, BLOCK);
	CHECK(!MPI_File_write(mine, block, BLOCK, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(!MPI_File_get_position(mine, &place) && place == before + sizeof(block));
	CHECK(!MPI_File_sync(mine));
	/* The default of all others. */
	CHECK(MPI_File_read(mine, block, 1, MPI_INT, MPI_STATUS_IGNORE));

	CHECK(!MPI_File_get_view(gone, &place, &etype, &filetype, datarep));
	CHECK(place == 16 && etype == MPI_DOUBLE && filetype == MPI_DOUBLE &&
		!strcmp(datarep, "external32"));
	CHECK(!MPI_File_write_at(gone, round % 500, &value, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
	work_at_random();
	CHECK(!MPI_File_read_at(gone, round % 500, &got, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
	CHECK(got == value);
	CHECK(!MPI_File_get_byte_offset(gone, 3, &bytes) && bytes == 16 + 3 * sizeof(double));
	CHECK(!MPI_File_get_atomicity(gone, &atomic) && !atomic);
}

/* ---- errors, and files that are open for a while ---- */

static void fail(void)
{
	int block[BLOCK];
	MPI_File none = data;
	MPI_Errhandler set;

	heard = 0;
	CHECK(FAILS(MPI_File_read_at(data, -5, block, 1, MPI_INT, MPI_STATUS_IGNORE)));
	CHECK(heard == 1 && heard_of == data);
	CHECK(FAILS(MPI_File_open(
		MPI_COMM_SELF, "no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &none)));
	CHECK(heard == 2 && heard_of == MPI_FILE_NULL);
	MPI_File_get_errhandler(MPI_FILE_NULL, &set);
	CHECK(set == handler);
	MPI_Errhandler_free(&set);
}

static void use_for_a_while(long round)
{
	MPI_File file;
	MPI_Comm half;
	MPI_Offset length;
	int members, number;

	MPI_Comm_split(MPI_COMM_WORLD, (int)(rank + round) % 2, 0, &half);
	MPI_Comm_size(half, &members);
	MPI_Comm_rank(half, &number);
	/* MPICH 4.0.2 counts no reference for the default handler of a file, and one less when that is closed. */
	MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
	CHECK(!MPI_File_open(half, (rank + round) % 2 ? "odd" : "even",
		MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
	MPI_Comm_free(&half);
	work_at_random();
	CHECK(!MPI_File_set_size(file, members * 100));
	CHECK(!MPI_File_write_at_all(file, number * 100, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE));
	work_at_random();
	CHECK(!MPI_File_get_size(file, &length) && length == members * 100);
	CHECK(!MPI_File_close(&file) && file == MPI_FILE_NULL);
	MPI_File_set_errhandler(MPI_FILE_NULL, handler);
}

/* ---- all of it ---- */

static void prepare(void)
{
	open_data();
	CHECK(!MPI_File_open(MPI_COMM_WORLD, "shared",
		MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN, MPI_INFO_NULL,
		&shared));
	CHECK(!MPI_File_set_view(shared, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	CHECK(!MPI_File_set_info(shared, MPI_INFO_NULL));
	CHECK(!MPI_File_seek_shared(
		shared, (MPI_Offset)SHARED_CALLS * size * BLOCK, MPI_SEEK_SET));
	open_mine();
	MPI_File_set_errhandler(MPI_FILE_NULL, handler);
	MPI_File_set_errhandler(mine, MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&handler);
	MPI_File_get_errhandler(data, &handler);
}

static void finish(void)
{
	CHECK(!MPI_File_close(&data) && !MPI_File_close(&shared) && !MPI_File_close(&mine));
	CHECK(!access(gone_name, F_OK));
	CHECK(!MPI_File_close(&gone) && gone == MPI_FILE_NULL);
	CHECK(access(gone_name, F_OK));
	MPI_Type_free(&pair);
	MPI_Errhandler_free(&handler);
}

/* What a checkpoint refuses. */
static void open_besides(const char *what)
{
	static MPI_File besides;
	int removed = !strcmp(what, "removed");

	CHECK(!MPI_File_open(MPI_COMM_WORLD, "besides",
		MPI_MODE_CREATE | MPI_MODE_WRONLY | (removed ? 0 : MPI_MODE_SEQUENTIAL),
		MPI_INFO_NULL, &besides));
	MPI_Barrier(MPI_COMM_WORLD);
	if (removed && !rank)
		CHECK(!unlink("besides"));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void on_end_signal(int number)
{
	told_to_end = 1;
}

int main(int argc, char **argv)
{
	int on = 1;

	signal(SIGUSR1, on_end_signal);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	own = rank + 1;
	prepare();
	if (argc > 1)
		open_besides(argv[1]);
	/* Names are what they were where they were given. */
	CHECK(!mkdir("elsewhere", 0700) || errno == EEXIST);
	CHECK(!chdir("elsewhere"));
	for (long round = 1; on; round++) {
		the_round = (int)round;
		CHECK(!chdir(".."));
		work_at_random();
		check_data();
		write_data(round);
		read_data(round);
		write_shared(round);
		use_mine(round);
		fail();
		use_for_a_while(round);
		show_round((int)round);
		if (round == 1) {
			printf("ready\n");
			fflush(stdout);
		}
		on = !told_to_end && access("go", F_OK);
		CHECK(!chdir("elsewhere"));
		work_at_random();
		MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	CHECK(!chdir(".."));
	finish();
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
