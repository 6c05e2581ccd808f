/*
 * mpi_kept.c - an MPI program of one rank without a launcher that has what is no object: errors of its own, memory
 * of MPI_Alloc_mem, a buffer for MPI_Bsend, and attributes of MPI_COMM_SELF, which MPI_Finalize deletes the last
 * one first. Each round checks all of it, until SIGUSR1. Prints "ready" after the first round, and "ok" at the end.
 */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_one_rank.h"

/* ---- errors ---- */

static int classes[2], codes[3];

static void make_errors(void)
{
	int gone, code;

	/* They are no more, but have had their numbers. */
	CHECK(!MPI_Add_error_class(&gone) && !MPI_Add_error_code(gone, &code));
	CHECK(!MPI_Add_error_string(code, "that is gone"));
#ifndef OPEN_MPI
	CHECK(!MPIX_Delete_error_string(code) && !MPIX_Delete_error_code(code));
	CHECK(!MPIX_Delete_error_class(gone));
#endif
	CHECK(!MPI_Add_error_class(&classes[0]));
	CHECK(!MPI_Add_error_code(classes[0], &codes[0]));
	CHECK(!MPI_Add_error_class(&classes[1]));
	CHECK(!MPI_Add_error_code(classes[1], &codes[1]));
	CHECK(!MPI_Add_error_code(MPI_ERR_ARG, &codes[2]));
	CHECK(!MPI_Add_error_string(classes[0], "a class"));
	CHECK(!MPI_Add_error_string(codes[1], "a code of the second class, at first"));
	CHECK(!MPI_Add_error_string(codes[1], "a code of the second class"));
}

static void check_errors(void)
{
	char text[MPI_MAX_ERROR_STRING];
	int class, length, *last, flag;

	for (int i = 0; i < 2; i++)
		CHECK(!MPI_Error_class(codes[i], &class) && class == classes[i]);
	CHECK(!MPI_Error_class(codes[2], &class) && class == MPI_ERR_ARG);
	CHECK(!MPI_Error_string(classes[0], text, &length) && !strcmp(text, "a class"));
	CHECK(!MPI_Error_string(codes[1], text, &length) &&
		!strcmp(text, "a code of the second class"));
	CHECK(!MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag) && flag);
	/* MPICH counts classes only. */
	CHECK(*last >= classes[0] && *last >= classes[1]);
}

/* ---- memory ---- */

enum { BYTES = 100000 };
static unsigned char *plain, *aligned, *buffer;

static void make_memory(void)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096");
	CHECK(!MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &plain));
	CHECK(!MPI_Alloc_mem(BYTES, info, &aligned) && !((uintptr_t)aligned % 4096));
	MPI_Info_free(&info);
	for (int i = 0; i < BYTES; i++) {
		plain[i] = i * 7;
		aligned[i] = i * 13;
	}
	buffer = malloc(BYTES);
	CHECK(!MPI_Buffer_attach(buffer, BYTES));
}

static void check_memory(void)
{
	void *more;

	for (int i = 0; i < BYTES; i++)
		CHECK(plain[i] == (unsigned char)(i * 7) &&
			aligned[i] == (unsigned char)(i * 13));
	CHECK(!MPI_Alloc_mem(1000, MPI_INFO_NULL, &more) && !MPI_Free_mem(more));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK(MPI_Alloc_mem(-1, MPI_INFO_NULL, &more) != MPI_SUCCESS);
	/* There is one already. */
	CHECK(MPI_Buffer_attach(plain, BYTES) != MPI_SUCCESS);
}

static void free_memory(void)
{
	void *was;
	int size;

	CHECK(!MPI_Buffer_detach(&was, &size) && was == buffer && size == BYTES);
	CHECK(!MPI_Buffer_attach(plain, BYTES));
	CHECK(!MPI_Buffer_detach(&was, &size) && was == plain && size == BYTES);
	CHECK(!MPI_Free_mem(plain) && !MPI_Free_mem(aligned));
}

/* ---- attributes of MPI_COMM_SELF ---- */

enum { KEYS = 4 };
static int keys[KEYS], values[KEYS], deleted[KEYS + 2], deletions;

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
	CHECK(comm == MPI_COMM_SELF && deletions < KEYS + 2);
	deleted[deletions++] = (int *)value - values;
	return MPI_SUCCESS;
}

static void make_attributes(void)
{
	static const int order[KEYS] = {2, 0, 3, 1};

	for (int i = 0; i < KEYS; i++)
		CHECK(!MPI_Comm_create_keyval(
			MPI_COMM_NULL_COPY_FN, on_delete, &keys[i], NULL));
	for (int i = 0; i < KEYS; i++)
		CHECK(!MPI_Comm_set_attr(MPI_COMM_SELF, keys[order[i]], &values[order[i]]));
	/* One is changed, which leaves it where it was; one is made anew. */
	CHECK(!MPI_Comm_set_attr(MPI_COMM_SELF, keys[0], &values[0]));
	CHECK(!MPI_Comm_delete_attr(MPI_COMM_SELF, keys[2]));
	CHECK(!MPI_Comm_set_attr(MPI_COMM_SELF, keys[2], &values[2]));
	CHECK(deletions == 2);
}

static void check_attributes(void)
{
	for (int i = 0; i < KEYS; i++) {
		int *value, flag;

		CHECK(!MPI_Comm_get_attr(MPI_COMM_SELF, keys[i], &value, &flag) && flag &&
			value == &values[i]);
	}
}

/* ---- */

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const int order[KEYS + 2] = {0, 2, 2, 1, 3, 0};
	int another, level;

	signal(SIGUSR1, on_end_signal);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
	make_errors();
	make_memory();
	make_attributes();
	for (int round = 1; round == 1 || !told_to_end; round++) {
		check_errors();
		check_memory();
		check_attributes();
		if (round == 1)
			say("ready");
	}
	CHECK(!MPI_Add_error_class(&another) && another != classes[0] && another != classes[1]);
	free_memory();
	MPI_Finalize();
	CHECK(deletions == KEYS + 2 && !memcmp(deleted, order, sizeof(order)));
	say("ok");
	return 0;
}
