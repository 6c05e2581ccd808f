/* graph_values.h - for victims whose graphs allocate memory: what is in it, and how much there is. */
#ifndef T_SPLIT_GRAPH_VALUES_H
#define T_SPLIT_GRAPH_VALUES_H

#include "t/split/driver_victim.h"

#define INVALID_VALUE 1
#define NOT_SUPPORTED 801

/* CUgraphMem_attribute */
#define USED     0
#define RESERVED 2

int cuDeviceGetGraphMemAttribute(int, int, void *);

static unsigned turn; /* how often all has been gone through */

/* Bytes of the first device. */
static inline uint64_t attribute(int which)
{
	uint64_t value = 0;

	OK(cuDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

/* @count words at @address are all @value. */
static inline void compare_words(
	const char *what, CUdeviceptr address, size_t count, uint32_t value)
{
	uint32_t words[1024] = {0};

	MUST(count <= 1024);
	OK(cuMemcpyDtoH_v2(words, address, count * sizeof(*words)));
	for (size_t i = 0; i < count; i++)
		if (words[i] != value) {
			CHECK(0, "turn %u, %s: word %zu is %u, not %u", turn, what, i, words[i],
				value);
			break;
		}
}

#endif
