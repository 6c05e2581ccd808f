/*
 * test_hooks.h - environment variables by which tests have a tool take this machine for another
 * one, have sizes and times that suit a test, or check more. There are no others.
 */
#ifndef LIB_TEST_HOOKS_H
#define LIB_TEST_HOOKS_H

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* This kernel's vdso is not the image's (t/vdso.t). */
static inline bool test_other_vdso(void)
{
	return getenv("TRECR_TEST_OTHER_VDSO");
}

/* There are several NUMA nodes (t/memory.t). */
static inline bool test_numa(void)
{
	return getenv("TRECR_TEST_NUMA");
}

/* Small regions, too, are filled later, and memory that is not asked for
 * comes only when a file of that name is there (t/lazy.t). */
static inline const char *test_lazy(void)
{
	return getenv("TRECR_TEST_LAZY");
}

static inline bool test_lazy_held(void)
{
	return test_lazy() && access(test_lazy(), F_OK);
}

/* So many files for the image of a process, filled in turn; NULL: as many as its memory asks for
 * (t/image_files.t). */
static inline const char *test_image_files(void)
{
	return getenv("TRECR_TEST_FILES");
}

/* Pages that count as unchanged are compared all the same (t/dirty.t). */
static inline bool test_check_clean(void)
{
	return getenv("TRECR_TEST_CHECK_CLEAN");
}

/* Milliseconds after which a connection between members counts as cut; 0: as many as usual
 * (t/job_nodes.t). */
static inline int test_cut_ms(void)
{
	const char *text = getenv("TRECR_TEST_CUT_MS");
	int ms = text ? atoi(text) : 0;

	return ms > 0 ? ms : 0;
}

/* A file to be created when the first attempt at a checkpoint has failed and is to be tried again, which is
 * when the file has been removed; NULL: at once (t/process.t). */
static inline const char *test_tries_again(void)
{
	return getenv("TRECR_TEST_TRIES_AGAIN");
}

/* The program is stopped before it is executed (t/start.t). */
static inline bool test_stops_early(void)
{
	return getenv("TRECR_TEST_STOPS_EARLY");
}

#endif
