/* check.h - for programs that check themselves: what is wrong is printed and counted, and ends
 * in the exit status. `on_upper` says whether the thread's data is the program's own. */
#ifndef T_SPLIT_CHECK_H
#define T_SPLIT_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong __attribute__((unused));

#define CHECK(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,             \
				#condition);                                                   \
			__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);                       \
		}                                                                              \
	} while (0)

/* Result of a driver call that must be @wanted. */
#define CHECK_RESULT(call, wanted)                                                             \
	do {                                                                                   \
		int result_ = (call);                                                          \
		if (result_ != (wanted)) {                                                     \
			fprintf(stderr, "%s:%d: %s gave %d, not %d\n", __FILE__, __LINE__,     \
				#call, result_, (wanted));                                     \
			__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);                       \
		}                                                                              \
	} while (0)

#define OK(call) CHECK_RESULT(call, 0)

/* Run by the split process, not natively: t/split.t says so. */
static inline int is_split(void)
{
	return getenv("TRECR_TEST_SPLIT") != NULL;
}

#endif
