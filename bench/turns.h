/*
 * turns.h - for programs that bench/turns compares: a round of figures for each line that comes
 * in, until there are no more.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#include <stdio.h>
#include <time.h>

static double turns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Nanoseconds that each of @count times of a statement takes, once it has been done a few
 * times: another process has had its turn before. */
#define TURNS_EACH(name, count, ...)                                                           \
	do {                                                                                   \
		double start_;                                                                 \
		for (int i_ = 0; i_ < (count) / 10 + 1; i_++)                                  \
			__VA_ARGS__;                                                           \
		start_ = turns_now();                                                          \
		for (int i_ = 0; i_ < (count); i_++)                                           \
			__VA_ARGS__;                                                           \
		printf("%s %.2f\n", name, (turns_now() - start_) / (count));                   \
	} while (0)

/* False when there is no other round to be done. */
static int turns_next(void)
{
	char line[80];

	return fgets(line, sizeof(line), stdin) != NULL;
}

static void turns_done(void)
{
	puts("");
	fflush(stdout);
}

#endif
