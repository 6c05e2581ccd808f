/* kernel_node.h - for victims: the parameters of a graph's node that launches a kernel. */
#ifndef T_SPLIT_KERNEL_NODE_H
#define T_SPLIT_KERNEL_NODE_H

#include "shared/cuda/graph_params.h"

struct kernel_arguments {
	uint64_t words[3];
	void *pointers[3];
};

/* @function with arguments @x, @y and @z, which are put into *@a, for @count threads, a multiple of 32. */
static inline struct graph_kernel kernel_node_params(void *function, unsigned count,
	struct kernel_arguments *a, uint64_t x, uint64_t y, uint64_t z)
{
	*a = (struct kernel_arguments){.words = {x, y, z}};
	for (int i = 0; i < 3; i++)
		a->pointers[i] = &a->words[i];
	return (struct graph_kernel){.function = function,
		.grid = {count / 32, 1, 1},
		.block = {32, 1, 1},
		.params = a->pointers};
}

#endif
