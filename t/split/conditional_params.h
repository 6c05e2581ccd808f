/* conditional_params.h - CUgraphNodeParams of a conditional node. */
#ifndef T_SPLIT_CONDITIONAL_PARAMS_H
#define T_SPLIT_CONDITIONAL_PARAMS_H

#include <stdint.h>

struct conditional_params {
	int node_type, reserved[3];
	uint64_t handle;
	int type;
	unsigned count;
	void **graphs, *context;
	char rest[208];
};

#endif
