/*
 * middle.c - preloaded into an MPI program by suite.sh, between the program and its library: each function of MPI comes
 * here first. Rank 0 counts them; or it lets a checkpoint come in the middle: at a certain call it writes its process
 * id into the file "reached", and takes its time for each call from then on, and no rank ends MPI or a session, until the file
 * "saved" is there. "ending" says that rank 0 was at the end before that.
 *
 * In the environment: MIDDLE, a directory for these files; MIDDLE_AT, the number of the call; 0: write the file "count"
 * in the end. MIDDLE_PAUSE, microseconds for each call behind it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void middle_call(const char *name);

static const char *directory, *rank;
static long calls, at, pause_us;
static int is_saved, is_reached;

static const char *path_of(const char *name, char path[4096])
{
	snprintf(path, 4096, "%s/%s", directory, name);
	return path;
}

/* Whole when it is seen. */
static void write_file(const char *name, long value)
{
	char path[4096], part[4096];
	FILE *f = fopen(path_of("part", part), "we");

	if (!f)
		return;
	fprintf(f, "%ld\n", value);
	fclose(f);
	(void)rename(part, path_of(name, path));
}

static int saved(void)
{
	char path[4096];

	if (!is_saved && !access(path_of("saved", path), F_OK))
		is_saved = 1;
	return is_saved;
}

static void nap(long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

static long number(const char *name)
{
	const char *value = getenv(name);

	return value ? strtol(value, NULL, 10) : 0;
}

static void __attribute__((constructor)) begin(void)
{
	directory = getenv("MIDDLE");
	rank = getenv("PMI_RANK");
	at = number("MIDDLE_AT");
	pause_us = number("MIDDLE_PAUSE");
}

static void __attribute__((destructor)) end(void)
{
	if (directory && rank && !at && !strcmp(rank, "0"))
		write_file("count", calls);
}

/* Once: a checkpoint may follow at any moment, and is to find no file that is being written. */
static void tell_reached(void)
{
	is_reached = 1;
	write_file("reached", getpid());
}

static void await_saved(void)
{
	if (!strcmp(rank, "0") && !is_reached) {
		write_file("ending", calls);
		tell_reached();
	}
	while (!saved())
		nap(10000);
}

void middle_call(const char *name)
{
	long n = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);

	if (!directory || !rank || !at || saved())
		return;
	if (!strcmp(name, "MPI_Finalize") || !strcmp(name, "MPI_Session_finalize"))
		await_saved();
	if (strcmp(rank, "0") || n < at)
		return;
	if (n == at)
		tell_reached();
	nap(pause_us);
}
