/* launch_config.h - CUlaunchConfig, for code that looks into it; nothing but what cuda.h says. */
#ifndef STUBS_CUDA_LAUNCH_CONFIG_H
#define STUBS_CUDA_LAUNCH_CONFIG_H

#include <stdint.h>

/* CUlaunchAttributeID of those with an event, which is words[0] */
#define PROGRAMMATIC_EVENT      7
#define LAUNCH_COMPLETION_EVENT 12

/* CUlaunchAttribute */
struct launch_attribute {
	int id, padding;
	uint64_t words[8];
};

/* CUlaunchConfig */
struct launch_config {
	unsigned grid[3], block[3], shared;
	void *stream;
	struct launch_attribute *attributes;
	unsigned attribute_count;
};
_Static_assert(sizeof(struct launch_config) == 56, "");

#endif
