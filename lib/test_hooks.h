/*
 * test_hooks.h - environment variables by which tests have a tool take this machine for another
 * one. There are no others.
 */
#ifndef LIB_TEST_HOOKS_H
#define LIB_TEST_HOOKS_H

#include <stdbool.h>
#include <stdlib.h>

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

#endif
